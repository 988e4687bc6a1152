"""Arrays of any dtype as the plain ones a file can hold, with a JSON node that says how to put them together.

    {"$array": name}                                        as stored
    {"$array": name, "dtype": "<c16"}                       stored as another dtype of the same bytes
    {"$array": name, "half": scale, "as": "<f4"}            float16, times the scale
    {"$array": name, "as": "<i4"}                           uint16
    {"$strings": [bytes, offsets], "shape", "width"}        UTF-8, and where each string starts

Reading takes an array out of the dict of stored ones: a second reference to it finds nothing, so no file can
unfold into more than its own size.
"""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

import numpy as np

from twofold.core.checks import InputError
from twofold.core.files.safetensors_file import DTYPES, Span, Wrong, require

SPREAD = 64  # a string array may take this many times its stored bytes in memory

_VIEWED = re.compile(r"<c8|<c16|<[mM]8(\[\w{1,9}\])?|\|S[1-9]\d{0,8}|<U[1-9]\d{0,8}")

Arrays = dict[str, np.ndarray]


def encode_array(array: np.ndarray, arrays: Arrays, where: str, half: bool = False) -> dict[str, Any]:
    """The node of an array, whose parts are added to `arrays` under names that start with `where`.

    With `half`, floats become float16, and whole numbers uint16 where all fit.
    """
    dtype, plain = array.dtype.newbyteorder("<"), np.asarray(array)
    if half and dtype.kind == "f" and dtype.itemsize > 2 and array.size and np.isfinite(plain).all():
        scale = float(np.abs(plain).max()) or 1.0
        small = (plain / scale).astype(np.float16)
        return {"$array": _keep(small, arrays, where), "half": scale, "as": "<f4"}
    if half and dtype.kind == "i" and dtype.itemsize > 2 and array.size and plain.min() >= 0 and plain.max() < 2**16:
        return {"$array": _keep(plain.astype(np.uint16), arrays, where), "as": dtype.str}
    if isinstance(array, np.ma.MaskedArray):
        raise InputError(f"{where} is a masked array, which a model file cannot hold. Use NaN for its holes.")
    if dtype.str in DTYPES.values():
        return {"$array": _keep(plain, arrays, where)}
    if dtype.kind in "UO" and all(isinstance(item, str) for item in plain.flat):
        texts = [item.encode("utf-8", "surrogatepass") for item in plain.flat]
        starts = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        if dtype.kind == "O" or array.nbytes <= SPREAD * (int(starts[-1]) + starts.nbytes):
            parts = [
                _keep(np.frombuffer(b"".join(texts), np.uint8), arrays, f"{where}.utf8"),
                _keep(starts, arrays, f"{where}.offsets"),
            ]
            width = dtype.itemsize // 4 if dtype.kind == "U" else None
            return {"$strings": parts, "shape": list(array.shape), "width": width}
    if not _VIEWED.fullmatch(dtype.str):
        content = "objects other than text" if dtype.kind == "O" else f"dtype {array.dtype}"
        raise InputError(f"{where} is an array of {content}, which a model file cannot hold. Use numbers or text.")
    # Complex numbers as pairs, dates as integers, very uneven text as code points: one more axis, same bytes.
    little = np.ascontiguousarray(plain, dtype=dtype).reshape(*array.shape, 1)
    return {"$array": _keep(little.view(_carrier(dtype)), arrays, where), "dtype": dtype.str}


def decode_array(node: Any, arrays: Arrays) -> np.ndarray:
    """The array a node stands for; its parts are taken out of `arrays`."""
    match node:
        case {"$strings": [str(text), str(starts)], "shape": list(shape), "width": None | int() as width}:
            return _strings(arrays.pop(text), arrays.pop(starts), shape, width)
        case {"$array": str(name), "dtype": str(code)} if _VIEWED.fullmatch(code):
            stored, dtype = arrays.pop(name), np.dtype(code)
            items = dtype.itemsize // np.dtype(_carrier(dtype)).itemsize
            fits = stored.dtype == _carrier(dtype) and stored.shape[-1:] == (items,)
            require(fits, f"is damaged: array {name!r} cannot be read as {code}.")
            require(dtype.kind != "U" or not (stored > 0x10FFFF).any(), "is damaged: text beyond Unicode.")
            return stored.view(dtype).reshape(stored.shape[:-1])
        case {"$array": str(name), "half": float(scale), "as": "<f4"} if math.isfinite(scale):
            stored = arrays.pop(name)
            require(stored.dtype == np.float16, f"is damaged: array {name!r} is not in half precision.")
            return np.multiply(stored, np.float32(scale), dtype=np.float32)
        case {"$array": str(name), "as": "<i4" | "<i8" as code} if "half" not in node:
            stored = arrays.pop(name)
            require(stored.dtype == np.uint16, f"is damaged: array {name!r} cannot be read as {code}.")
            return stored.astype(code)
        case {"$array": str(name)} if "dtype" not in node and "as" not in node:
            return arrays.pop(name)
    raise Wrong(f"is damaged: its header has an array that makes no sense: {str(node)[:60]}.")


def outline_array(node: dict[str, Any], spans: dict[str, Span]) -> str:
    """Dtype and shape of the array a node stands for."""
    if "$strings" in node:
        return f"text {tuple(node['shape'])}"
    span = spans[node["$array"]]
    if "dtype" in node:
        return f"{np.dtype(node['dtype']).name} {span.shape[:-1]}"
    return f"{np.dtype(DTYPES[span.dtype]).name} {span.shape}"


def _keep(part: np.ndarray, arrays: Arrays, name: str) -> str:
    """Store an array and return the name it got, which is readable and, above all, its own."""
    name = name[-150:]
    name = name if name not in arrays else f"{name}#{len(arrays)}"
    arrays[name] = part
    return name


def _carrier(dtype: np.dtype) -> str:
    """The storable dtype whose items make up one item of `dtype`."""
    return {"c": f"<f{dtype.itemsize // 2}", "m": "<i8", "M": "<i8", "S": "|u1", "U": "<u4"}[dtype.kind]


def _strings(text: np.ndarray, starts: np.ndarray, shape: list[int], width: int | None) -> np.ndarray:
    wrong = "is damaged: where its strings start and end makes no sense."
    require(text.dtype == np.uint8 and starts.dtype == np.int64 and text.ndim == starts.ndim == 1, wrong)
    require(all(type(n) is int and n >= 0 for n in shape), wrong)
    require(len(starts) == math.prod(shape) + 1 and starts[0] == 0 and starts[-1] == len(text), wrong)
    require(bool((np.diff(starts) >= 0).all()), wrong)
    memory = 4 * (width or 0) * (len(starts) - 1)
    require((width is None or width > 0) and memory <= SPREAD * (len(text) + starts.nbytes), wrong)
    whole, ends = text.tobytes(), starts.tolist()
    items = [whole[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(ends)]
    return np.array(items, dtype=object if width is None else f"<U{width}").reshape(shape)
