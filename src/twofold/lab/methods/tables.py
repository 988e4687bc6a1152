"""Helpers of methods on tables: standardizing, the table of results, and maps that keep their orientation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.methods.method import Data
from twofold.lab.methods.setting import Setting
from twofold.lab.script import Script

if TYPE_CHECKING:
    import polars as pl

STANDARDIZE = Setting(
    "standardize",
    "standardize columns",
    "Divide every column by its standard deviation first, for columns in different units. Auto does so when the "
    "deviations differ more than tenfold.",
    "auto",
    choices=("auto", "yes", "no"),
    advanced=True,
)
MAX_PLACES = 160  # rows and columns of a matrix that are drawn


def needs_scale(X: np.ndarray, data: Data, wish: str) -> bool:
    """Return True if columns are divided by their spreads, as the command line decides it."""
    from twofold.analyses.common.tables import spread

    if wish != "auto" or data.kind == "pictures":
        return wish == "yes"
    deviations = spread(X, np.nan)
    return bool(np.nanmax(deviations) > 10 * np.nanmin(deviations))


def standardize(script: Script, data: Data, wish: str) -> None:
    """Bind X to its z-scores if the setting or the columns require it."""
    check_table(script["X"], data)
    if needs_scale(script["X"], data, wish):
        script.use("sklearn.preprocessing", "StandardScaler")
        script.do("X = StandardScaler().fit_transform(X)")


def check_table(X: np.ndarray, data: Data) -> None:
    """Refuse a table that no method can work on."""
    from twofold.analyses.common.tables import spread

    if X.shape[0] < 2 or X.shape[1] < 1:
        raise InputError(f"{data.name} has {X.shape[0]} rows and {X.shape[1]} columns of numbers; two rows are needed.")
    if not (spread(X, 0.0) > 0).any():
        raise InputError(f"{data.name}: every column of numbers is constant, so there is nothing to see.")


def code_table(script: Script, data: Data, model: Any, prefix: str = "code") -> pl.DataFrame:
    """Return the codes of every row."""
    codes = np.asarray(model.transform(script["X"]))
    return result_table(script, data, {f"{prefix}_{c + 1}": codes[:, c] for c in range(codes.shape[1])})


def result_table(script: Script, data: Data, columns: Mapping[str, Any]) -> pl.DataFrame:
    """Return one line a row: its number, its name if it has one, then the result."""
    import polars as pl

    n = len(next(iter(columns.values())))
    rows = list(script["rows"]) if "rows" in script else list(range(n))
    named = {} if data.names is None else {"name": [data.names[row] for row in rows]}
    return pl.DataFrame({"row": rows, **named, **columns})


def class_colors(script: Script) -> np.ndarray:
    """(n,) the target of every row as a small number; 255 where there is none."""
    if "y" not in script:
        return np.full(len(script["X"]), 255, dtype=np.uint8)
    return (np.unique(script["y"], return_inverse=True)[1] % 256).astype(np.uint8)


def column_names(data: Data, d: int) -> list[str]:
    return list(data.columns) if len(data.columns) == d else [f"column {j + 1}" for j in range(d)]


def spread_evenly(size: int) -> np.ndarray:
    """Return up to MAX_PLACES indices below `size`, evenly spread."""
    return np.unique(np.linspace(0, size - 1, min(size, MAX_PLACES)).round().astype(int))


def first_two(codes: np.ndarray) -> np.ndarray:
    """(n,2) the first two columns; a column of zeros where there is but one."""
    return np.column_stack([codes[:, :2], np.zeros((len(codes), max(0, 2 - codes.shape[1])))])


def turn_to(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """`now` (m,2) rotated or mirrored to lie nearest to `before` (m,2): orthogonal Procrustes."""
    if not np.any(before):
        return now
    left, _, right = np.linalg.svd(now.T @ before)
    return now @ left @ right
