"""What methods on tables share: standardizing, the plane in which rows are drawn, and the table of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.methods.method import Data, Setting
from twofold.lab.script import Script

if TYPE_CHECKING:
    import polars as pl

STANDARDIZE = Setting(
    name="standardize",
    label="standardize columns",
    about="Divide every column by its standard deviation first, for columns in different units. Auto does so when the "
    "deviations differ more than tenfold.",
    type="choice",
    default="auto",
    choices=("auto", "yes", "no"),
    advanced=True,
)


def needs_scale(X: np.ndarray, data: Data, wish: str) -> bool:
    """Whether columns are divided by their spreads, as the command line decides it."""
    from twofold.analyses._tables import spread

    if wish != "auto" or data.kind == "pictures":
        return wish == "yes"
    deviations = spread(X, np.nan)
    return bool(np.nanmax(deviations) > 10 * np.nanmin(deviations))


def standardize(script: Script, data: Data, wish: str) -> None:
    """Bind X to its z-scores if that is wished for, or needed."""
    check_table(script["X"], data)
    if needs_scale(script["X"], data, wish):
        script.use("sklearn.preprocessing", "StandardScaler")
        script.do("X = StandardScaler().fit_transform(X)")


def check_table(X: np.ndarray, data: Data) -> None:
    """Refuse what no method can work on."""
    from twofold.analyses._tables import spread

    if X.shape[0] < 2 or X.shape[1] < 1:
        raise InputError(f"{data.name} has {X.shape[0]} rows and {X.shape[1]} columns of numbers; two rows are needed.")
    if not (spread(X, 0.0) > 0).any():
        raise InputError(f"{data.name}: every column of numbers is constant, so there is nothing to see.")


def code_table(script: Script, names: Sequence[str] | None, model: Any, what: str = "code") -> pl.DataFrame:
    """The codes of every row."""
    codes = np.asarray(model.transform(script["X"]))
    return results(script, names, {f"{what}_{c + 1}": codes[:, c] for c in range(codes.shape[1])})


def results(script: Script, names: Sequence[str] | None, found: Mapping[str, Any]) -> pl.DataFrame:
    """One line a row: its name or number, then what was found."""
    import polars as pl

    rows = script["rows"] if "rows" in script else range(len(script["X"]))
    first: dict[str, Any] = {"row": list(rows)} if names is None else {"row": list(rows), "name": list(names)}
    return pl.DataFrame({**first, **found})


def colors_of(script: Script) -> np.ndarray:
    """(n,) the target of every row as a small number; 255 where there is none."""
    if "y" not in script:
        return np.full(len(script["X"]), 255, dtype=np.uint8)
    return (np.unique(script["y"], return_inverse=True)[1] % 256).astype(np.uint8)


def column_names(data: Data, d: int) -> list[str]:
    return list(data.columns) if len(data.columns) == d else [f"column {j + 1}" for j in range(d)]
