"""Model files: what ``get_params`` and the fitted attributes hold, as a JSON tree with references to arrays.

In the tree a number, text, None or list stands for itself; every JSON object is one of

    {"$scalar": 0.5, "dtype": "float32"}        a NumPy scalar
    {"$array": ...}  {"$strings": ...}          an array, see `array_codec`
    {"$csr": [data, indices, indptr], ...}      a sparse matrix
    {"$tuple": [...]}  {"$list": array}         a tuple; a long list of one type
    {"$dict": [keys, values]}                   a dict
    {"$record": name, "values": [...]}          a NamedTuple or dataclass that the model's class lists in ``_records``
    {"$model": {"class", "params", "fitted"}}   another model

Reading builds these types and no others, uses each stored array exactly once, and takes classes only from
``twofold._MODELS``: a file cannot run code.
"""

from __future__ import annotations

import importlib
import inspect
import os
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError, ModelFileError
from twofold.core.files.array_codec import Arrays, decode_array, encode_array, outline_array
from twofold.core.files.arrays_fit import check_arrays
from twofold.core.files.safetensors_file import DTYPES, Span, Wrong, read_file, read_table, require, write_file
from twofold.core.types import PathLike

__all__ = ["describe", "load", "read_file", "save", "write_file"]

MAX_DEPTH = 24
LONG = 32  # items, from which a list of one type is an array

_SCALARS = {np.dtype(code).name for code in DTYPES.values()}


def save(model: Any, path: PathLike, *, half: bool = False) -> None:
    """Write a model, fitted or not, to a ``.twofold`` file.

    Stored are the class's name, ``get_params(deep=False)`` and the attributes whose names end in ``_``. A
    ``random_state`` that is neither an integer nor None is stored as None. The file appears whole or not at all; what
    a file cannot hold is an InputError. With `half`, numbers are stored in 16 bits.
    """
    arrays: Arrays = {}
    tree = _encode_model(model, Place("", {}, arrays, 0, half))
    write_file(path, {"kind": "model", "model": tree}, arrays)


def load(path: PathLike) -> Any:
    """Read a model that `save` or ``model.save`` wrote. Nothing in the file is ever executed.

    Raises
    ------
    ModelFileError
        If the file is missing, damaged, cut short, foreign or newer than this version; it says which.
    """
    header, arrays = read_file(path)
    tree = _model_of(path, header)
    try:
        model = _decode_model(tree, arrays, 0)
        require(not arrays, f"is damaged: nothing refers to its arrays {sorted(arrays)[:3]}.")
    except Wrong as wrong:
        raise ModelFileError(f"{path} {wrong}") from wrong
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} is damaged: {error}.") from error
    return model


def describe(path: PathLike) -> dict[str, Any]:
    """Describe what a file holds, without building the model: class, versions, parameters, shapes of the arrays.

    The whole file is checked, in a fixed amount of memory.
    """
    table = read_table(path)
    about = {key: table.header.get(key) for key in ("kind", "format", "version")}
    about["bytes"] = os.path.getsize(path)
    if about["kind"] != "model":
        return about | {"arrays": {k: outline_array({"$array": k}, table.spans) for k in sorted(table.spans)}}
    try:
        return about | _outline({"$model": _model_of(path, table.header)}, table.spans)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} is damaged: its header makes no sense ({error}).") from error


def _model_of(path: PathLike, header: dict[str, Any]) -> dict[str, Any]:
    kind, tree = header.get("kind"), header.get("model")
    if kind != "model":
        raise ModelFileError(f"{path} holds a {kind}, not a model. Load the file that model.save(path) wrote.")
    if not isinstance(tree, dict):
        raise ModelFileError(f"{path} is damaged: its header describes no model.")
    return tree


def _class(name: Any) -> Any:
    """The loadable class of that name, or None: only names on the list are ever looked up."""
    twofold = importlib.import_module("twofold")
    return getattr(twofold, name) if isinstance(name, str) and name in twofold._MODELS else None


def _records(cls: Any) -> dict[str, Any]:
    """The NamedTuples and dataclasses that models of a class may hold."""
    return {record.__name__: record for record in getattr(cls, "_records", ())}


# --- writing ------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Where in the model a value is, what may be there, and the arrays met so far."""

    where: str
    records: dict[str, Any]
    arrays: Arrays
    depth: int
    half: bool = False

    def inside(self, key: Any) -> Place:
        return self._replace(where=f"{self.where}.{key}" if self.where else str(key), depth=self.depth + 1)


def _encode_model(model: Any, place: Place) -> dict[str, Any]:
    cls = type(model)
    if _class(cls.__name__) is not cls:
        raise InputError(f"{place.where or 'The model'} is a {cls.__name__}, which is no model of twofold.")
    params = model.get_params(deep=False)
    seed = params.get("random_state")
    if isinstance(seed, np.integer):
        params["random_state"] = int(seed)
    elif seed is not None and not isinstance(seed, int):
        params["random_state"] = None
    fitted = {k: v for k, v in sorted(vars(model).items()) if k.endswith("_") and not k.startswith("_")}
    place = place._replace(records=_records(cls))
    return {
        "class": cls.__name__,
        "params": {k: _encode(v, place.inside("params").inside(k)) for k, v in params.items()},
        "fitted": {k: _encode(v, place.inside(k)) for k, v in fitted.items()},
    }


def _encode(value: Any, place: Place) -> Any:
    """One value as a node of the tree."""
    if place.depth > MAX_DEPTH:
        raise InputError(f"{place.where} is nested more than {MAX_DEPTH} deep; a model file cannot hold it.")
    if isinstance(value, np.ndarray):
        return encode_array(value, place.arrays, place.where, place.half)
    if isinstance(value, np.generic) and not isinstance(value, np.str_):
        if value.dtype.name in _SCALARS:
            return {"$scalar": value.item(), "dtype": value.dtype.name}
        return {"$scalar": encode_array(np.asarray(value), place.arrays, place.where)}
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    if sparse.issparse(value) and value.format == "csr" and value.ndim == 2:
        parts = _each([value.data, value.indices, value.indptr], place)
        return {"$csr": parts, "shape": list(value.shape), "matrix": isinstance(value, sparse.spmatrix)}
    if isinstance(value, (tuple, list, dict)):
        return _encode_group(value, place)
    if _class(type(value).__name__) is type(value):
        return {"$model": _encode_model(value, place)}
    if is_dataclass(value) and place.records.get(type(value).__name__) is type(value):
        values = [getattr(value, field.name) for field in fields(value) if field.init]
        return {"$record": type(value).__name__, "values": _each(values, place)}
    raise _refusal(value, place)


def _encode_group(value: tuple[Any, ...] | list[Any] | dict[str, Any], place: Place) -> Any:
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return {"$tuple": _each(value, place)}
    if isinstance(value, tuple) and place.records.get(type(value).__name__) is type(value):
        return {"$record": type(value).__name__, "values": _each(value, place)}
    if isinstance(value, list):
        long = _as_array(value)
        return _each(value, place) if long is None else {"$list": _encode(long, place)}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        keys = _encode(list(value), place.inside("keys"))
        return {"$dict": [keys, [_encode(item, place.inside(key)) for key, item in value.items()]]}
    raise _refusal(value, place)


def _each(items: Any, place: Place) -> list[Any]:
    return [_encode(item, place.inside(i)) for i, item in enumerate(items)]


def _refusal(value: Any, place: Place) -> InputError:
    return InputError(
        f"{place.where} is of type {type(value).__name__}, which a model file cannot hold. Use numbers, "
        "text, arrays, CSR matrices, or lists, tuples and text-keyed dicts of these."
    )


def _as_array(items: list[Any]) -> np.ndarray | None:
    """A long list of one type as an array, which keeps it out of the JSON; None if it is short or mixed."""
    kinds = {type(item) for item in items}
    kind = kinds.pop() if len(items) >= LONG else None
    if kinds or kind not in (bool, int, float, str) or (kind is int and max(map(abs, items)) >= 2**63):
        return None
    return np.array(items, {bool: np.bool_, int: np.int64, float: np.float64, str: object}[kind])


# --- reading ------------------------------------------------------------------------------------------------


def _decode_model(tree: dict[str, Any], arrays: Arrays, depth: int) -> Any:
    name, cls = tree["class"], _class(tree["class"])
    require(cls is not None, f"holds a {name!r}, which this version of twofold cannot load. Upgrade twofold.")
    records = _records(cls)
    params = {k: _decode(node, arrays, records, depth + 1) for k, node in tree["params"].items()}
    fitted = {k: _decode(node, arrays, records, depth + 1) for k, node in tree["fitted"].items()}
    known = inspect.signature(cls).parameters
    for key in params:
        require(key in known, f"gives {name} a parameter {key!r}, which it does not have.")
    for key in fitted:
        fits = key.isidentifier() and key.endswith("_") and not key.startswith("_")
        require(fits, f"gives {name} an attribute {key!r}, which is not the name of a fitted one.")
    model = cls(**params)
    vars(model).update(fitted)
    check_arrays(model)
    return model


def _decode(node: Any, arrays: Arrays, records: dict[str, Any], depth: int) -> Any:
    """The value a node stands for; its arrays are taken out of `arrays`."""

    def each(nodes: list[Any]) -> list[Any]:
        return [_decode(item, arrays, records, depth + 1) for item in nodes]

    require(depth <= MAX_DEPTH, f"is damaged: its header is nested more than {MAX_DEPTH} deep.")
    match node:
        case None | bool() | int() | float() | str():
            return node
        case list():
            return each(node)
        case {"$scalar": inner, "dtype": str(dtype)} if dtype in _SCALARS:
            return np.dtype(dtype).type(_decode(inner, arrays, records, depth + 1))
        case {"$scalar": inner}:
            return decode_array(inner, arrays)[()]
        case {"$array": _} | {"$strings": _}:
            return decode_array(node, arrays)
        case {"$csr": [_, _, _] as parts, "shape": [int(n), int(d)], "matrix": bool(matrix)}:
            build = sparse.csr_matrix if matrix else sparse.csr_array
            data, indices, indptr = (decode_array(part, arrays) for part in parts)
            require(indices.dtype.kind == indptr.dtype.kind == "i", "is damaged: a CSR index is no integer.")
            value = build((data, indices, indptr), shape=(n, d))
            value.check_format(full_check=True)  # an index outside the shape would be read as memory
            return value
        case {"$record": str(name), "values": list(values)} if name in records:
            return records[name](*each(values))
        case {"$tuple": list(items)}:
            return tuple(each(items))
        case {"$list": inner}:
            return decode_array(inner, arrays).tolist()
        case {"$dict": [keys, list(values)]}:
            names = _decode(keys, arrays, records, depth + 1)
            return dict(zip(names, each(values), strict=True))
        case {"$model": dict(tree)}:
            return _decode_model(tree, arrays, depth + 1)
    raise Wrong(f"is damaged: its header has an entry that makes no sense: {str(node)[:60]}.")


# --- describing ---------------------------------------------------------------------------------------------


def _outline(node: Any, spans: dict[str, Span]) -> Any:
    """The tree with every array replaced by its dtype and shape."""
    match node:
        case {"$array": _} | {"$strings": _}:
            return outline_array(node, spans)
        case {"$csr": [data, _, _], "shape": list(shape)}:
            return f"csr {tuple(shape)}, {_outline(data, spans)} stored"
        case {"$scalar": inner} | {"$list": inner}:
            return _outline(inner, spans)
        case {"$tuple": list(items)} | {"$record": _, "values": list(items)} | [*items]:
            return [_outline(item, spans) for item in items]
        case {"$dict": [list(keys), list(values)]}:
            return {key: _outline(value, spans) for key, value in zip(keys, values, strict=True)}
        case {"$dict": [keys, _]}:
            return f"dict by {_outline(keys, spans)}"
        case {"$model": {"class": str(name), "params": dict(params), "fitted": dict(fitted)}}:
            parts = {"params": params, "fitted": fitted}
            return {"class": name} | {k: {n: _outline(v, spans) for n, v in p.items()} for k, p in parts.items()}
    return node
