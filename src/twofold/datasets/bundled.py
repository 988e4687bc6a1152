"""Data that is always at hand, with no download: what the installed packages carry, and seeded generators.

Every function returns a ``Bunch``: a dict whose entries are attributes too.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pywt
from sklearn import datasets as sets
from sklearn.utils import Bunch

from twofold.core.checks import InputError


def digits() -> Bunch:
    """1,797 handwritten digits, 8 by 8 pixels from 0 to 16: ``data`` (n,64), ``images`` (n,8,8), ``target``.

    Examples
    --------
    >>> digits().data.shape
    (1797, 64)
    """
    return _pick(sets.load_digits(), "data", "images", "target")


def iris() -> Bunch:
    """150 irises of three kinds, four lengths in cm each: ``data``, ``target`` and their names.

    Examples
    --------
    >>> iris().feature_names[0]
    'sepal length (cm)'
    """
    return _pick(sets.load_iris(), "data", "target", "feature_names", "target_names")


def wine() -> Bunch:
    """178 wines from three growers, 13 chemical measurements each: ``data``, ``target`` and their names.

    Examples
    --------
    >>> wine().data.shape
    (178, 13)
    """
    return _pick(sets.load_wine(), "data", "target", "feature_names", "target_names")


def table_with_holes(share: float = 0.2, seed: int = 0) -> Bunch:
    """The wine table, standardised, with a share of its cells missing at random.

    ``data`` has NaN in the holes, ``truth`` is the full table, ``holes`` says where they are. No row and no
    column is left empty.

    Parameters
    ----------
    share : float, default=0.2
        Of all cells, 0 <= share <= 0.8.
    seed : int, default=0

    Examples
    --------
    >>> table = table_with_holes(0.3)
    >>> round(float(np.isnan(table.data).mean()), 2)
    0.3
    """
    if not 0 <= share <= 0.8:
        raise InputError(f"share is {share}; choose a share of missing cells between 0 and 0.8.")
    full = wine()
    truth = (full.data - full.data.mean(axis=0)) / full.data.std(axis=0)
    n, d = truth.shape
    rng = np.random.default_rng(seed)
    order = rng.random((n, d))
    order[np.arange(n), rng.integers(d, size=n)] = 1.0  # one cell a row, and row 0, always stay
    order[0] = 1.0
    holes = order <= np.sort(order, axis=None)[round(share * n * d) - 1] if share * n * d >= 1 else order < 0
    return Bunch(data=np.where(holes, np.nan, truth), truth=truth, holes=holes, feature_names=full.feature_names)


def photographs() -> Bunch:
    """Photographs, uint8: china and flower (427,640,3) in color, ascent, aero and camera (512,512) in grey.

    Examples
    --------
    >>> photographs().china.shape
    (427, 640, 3)
    """
    color = {name: sets.load_sample_image(f"{name}.jpg") for name in ("china", "flower")}
    grey = {name: getattr(pywt.data, name)().astype(np.uint8) for name in ("ascent", "aero", "camera")}
    return Bunch(**color, **grey)


def signals() -> Bunch:
    """Signals in one dimension, float64: two measured, and the four that Donoho and Johnstone test with.

    ``ecg`` (1024,) a heart, ``nino`` (264,) the temperature of the sea by the quarter; ``blocks``, ``bumps``,
    ``heavisine``, ``doppler`` (1024,).

    Examples
    --------
    >>> signals().ecg.shape
    (1024,)
    """
    real = {"ecg": pywt.data.ecg(), "nino": pywt.data.nino()[1]}
    made = {name.lower(): pywt.data.demo_signal(name, 1024) for name in ("Blocks", "Bumps", "HeaviSine", "Doppler")}
    return Bunch(**{name: np.asarray(signal, dtype=np.float64) for name, signal in (real | made).items()})


def _pick(bunch: Any, *names: str) -> Bunch:
    return Bunch(**{name: bunch[name] for name in names})


# --- English ------------------------------------------------------------------------------------------------

_PACKAGES = ["matplotlib", "numpy", "PIL", "polars", "pywt", "rich", "scipy", "sklearn", "cyclopts"]
_MIN_WORDS = 40


def docstrings(max_documents: int | None = 2000) -> Bunch:
    """The English in the docstrings of the packages that twofold stands on, as documents.

    The source files are parsed, never imported. The packages take turns, each with its files in a fixed
    shuffled order, so that a small collection is as varied as a large one; examples are left out, and so are
    docstrings of fewer than 40 words and repetitions. The text depends on the versions installed.

    Parameters
    ----------
    max_documents : int or None, default=2000
        None reads them all, which takes some seconds.

    Returns
    -------
    Bunch
        ``documents`` list of str, ``names`` what each documents, ``target`` the index of its package in
        ``target_names``.

    Examples
    --------
    >>> text = docstrings(max_documents=100)
    >>> len(text.documents), len(set(text.names))
    (100, 100)
    """
    if max_documents is not None and max_documents < 1:
        raise InputError(f"max_documents is {max_documents}; ask for at least one, or None for all.")
    found = [name for name in _PACKAGES if find_spec(name) is not None]
    turns = itertools.zip_longest(*(_documents_of(name) for name in found))
    every = ((at, *entry) for turn in turns for at, entry in enumerate(turn) if entry is not None)
    seen: set[str] = set()
    rows = []
    for at, name, text in every:
        if text not in seen:
            seen.add(text)
            rows.append((at, name, text))
        if len(rows) == max_documents:
            break
    targets, names, documents = (list(column) for column in zip(*rows, strict=True))
    return Bunch(documents=documents, names=names, target=np.array(targets), target_names=found)


def _documents_of(package: str) -> Iterator[tuple[str, str]]:
    """Name and prose of every long docstring in an installed package."""
    spec = find_spec(package)
    folders = (spec and spec.submodule_search_locations) or []
    root = Path(next(iter(folders)))
    files = [path.relative_to(root) for path in root.rglob("*.py")]
    wanted = [path for path in files if not any("test" in part or part[0] == "." for part in path.parts)]
    wanted.sort(key=lambda path: hashlib.blake2b(path.as_posix().encode()).digest())
    for path in wanted:
        try:
            module = ast.parse((root / path).read_bytes())
        except (SyntaxError, ValueError):  # a template, or written for another Python
            continue
        name = ".".join([package, *path.with_suffix("").parts]).removesuffix(".__init__")
        for inner, text in _prose_in(module, name):
            if len(text.split()) >= _MIN_WORDS:
                yield inner, text


def _prose_in(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    """Depth first, in the order of the file."""
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        text = ast.get_docstring(node)
        if text:
            yield name, re.sub(r"(?m)^[ \t]*>>>.*\n?(?:[ \t]*\S.*\n?)*", "", text).strip()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from _prose_in(child, f"{name}.{child.name}")
