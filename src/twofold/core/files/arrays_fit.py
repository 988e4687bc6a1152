"""How the fitted arrays of a model fit together, declared beside them and checked when a file is loaded.

    components_: Annotated[np.ndarray, "k d"]
    labels_: Annotated[np.ndarray, "n, >= 0, < k"]
    vectors_: Annotated[WordVectors, "vectors_: k d"]

First the sizes of the axes: d is the number of columns of X, and any other name means the same size wherever the class
uses it; k+1 is one more, a dot is any size, three dots are any further axes, and nothing at all is a single number.
Where a parameter decides, its value stands behind each choice: "k d d (full) or k d (diag)". Then what holds for every
entry; all are finite unless "any" is said; "text" are ids or words, of which the shape alone is checked. A name before
a colon is that of a part. Compiled code relies on all this: a file from a stranger must not lead
outside an array.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
from scipy import sparse

from twofold.core.files.safetensors_file import Wrong, require

DECLARED = re.compile(r"""Annotated\[.*, ["'](?:(\w+): )?([^"':]*)["']\]""")
COMPARED: dict[str, Any] = {">=": np.greater_equal, ">": np.greater, "<": np.less}


def read_declarations(cls: type) -> dict[str, str]:
    """Read what a class and its bases declare of their fitted arrays, by the names of attributes or "attribute.part".

    >>> from twofold import SkipGram
    >>> read_declarations(SkipGram)["vectors_.vectors_"]
    'v k'
    """
    declarations = {}
    for base in reversed(cls.__mro__):
        for name, annotation in vars(base).get("__annotations__", {}).items():  # text: all modules postpone them
            if match := DECLARED.fullmatch(str(annotation)):
                part, text = match.groups()
                declarations[f"{name}.{part}" if part else name] = text
    return declarations


def check_arrays(model: Any) -> None:
    """Refuse a model, just read from a file, whose arrays do not fit together; the message names the array.

    >>> from twofold import PCA
    >>> model = PCA(1).fit(np.eye(3))
    >>> model.mean_ = model.mean_[:2]
    >>> check_arrays(model)
    Traceback (most recent call last):
        ...
    twofold.core.files.safetensors_file.Wrong: is damaged: mean_ of PCA has shape (2,), and (d) is (3,).
    """
    name = type(model).__name__
    sizes = {axis: getattr(model, of) for axis, of in (("d", "n_features_in_"), ("n", "n_rows_")) if hasattr(model, of)}
    for axis, size in sizes.items():
        whole = isinstance(size, (int, np.integer)) and not isinstance(size, bool) and 0 <= size < 2**40
        require(bool(whole), f"is damaged: the size {axis} of {name} is {size!r}.")
    chosen = {value for value in model.get_params(deep=False).values() if isinstance(value, str)}
    for attribute, declaration in read_declarations(type(model)).items():
        if hasattr(model, attribute.partition(".")[0]):
            value = functools.reduce(getattr, attribute.split("."), model)
            for one in value if isinstance(value, tuple) else (value,):
                _check(one, f"{attribute} of {name}", declaration, sizes, chosen)
    if hasattr(model, "_check_parts") and model.__sklearn_is_fitted__():
        model._check_parts(require)


def _check(value: Any, name: str, declaration: str, sizes: dict[str, int], chosen: set[str]) -> None:
    shapes, *conditions = (part.strip() for part in declaration.split(","))
    if (value is None and "or None" in conditions) or (isinstance(value, str) and "or path" in conditions):
        return
    if "text" in conditions:
        value = np.zeros(np.shape(value))
    numbers = sparse.issparse(value) or isinstance(value, (np.ndarray, np.number, int, float))
    require(numbers and not isinstance(value, bool), f"is damaged: {name} is no array of numbers.")
    require(sparse.issparse(value) or "sparse" not in conditions, f"is damaged: {name} is no sparse array.")
    axes = _choose(shapes, chosen)
    shape = value.shape if hasattr(value, "shape") else ()
    wanted = axes.split()
    if wanted[-1:] == ["..."]:
        wanted[-1:] = ["."] * (len(shape) + 1 - len(wanted))
    right = len(shape) == len(wanted)
    for size, axis in zip(shape, wanted, strict=False):
        symbol, _, more = axis.partition("+")
        if axis.isdigit():
            right = right and size == int(axis)
        elif axis != ".":
            right = right and size == sizes.setdefault(symbol, size - int(more or 0)) + int(more or 0)
    known = tuple(sizes.get(axis.partition("+")[0], axis) for axis in wanted)
    require(right, f"is damaged: {name} has shape {shape}, and ({axes}) is {known}.")
    entries = np.asarray(value.data if sparse.issparse(value) else value)
    if entries.dtype.kind == "f" and "any" not in conditions:
        require(bool(np.isfinite(entries).all()), f"is damaged: {name} holds numbers that are not finite.")
    for condition in conditions:
        sign, _, bound = condition.partition(" ")
        if sign in COMPARED and entries.size:
            limit = sizes[bound] if bound in sizes else float(bound)
            wrong = entries[~COMPARED[sign](entries, limit)]
            require(not wrong.size, f"is damaged: {name} holds {wrong[:1].tolist()}, which is not {condition}.")


def _choose(shapes: str, chosen: set[str]) -> str:
    """The axes that belong to the values of a model's parameters.

    >>> _choose("k d d (full) or k d (diag)", {"diag"})
    'k d'
    """
    for choice in shapes.split(" or "):
        axes, _, value = choice.partition("(")
        if not value or value.rstrip(")") in chosen:
            return axes.strip()
    raise Wrong(f"is damaged: its parameters are none of those of {shapes!r}.")
