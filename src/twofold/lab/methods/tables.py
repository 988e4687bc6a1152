"""Helpers of methods on tables: standardizing, the table of results, and maps that keep their orientation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.data import Data
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


def needs_scale(script: Script, data: Data, wish: str) -> bool:
    """Return True if columns are divided by their spreads, as the analyses decide it; what they say is a note."""
    from twofold.analyses.common.tables import choose_scale
    from twofold.io.tables.table import Table

    X = script["X"]
    if data.kind == "pictures":  # pixels share a unit
        return wish == "yes"
    table = Table(X, column_names(data, X.shape[1]), source=data.name)
    needed = choose_scale({"auto": None, "yes": True, "no": False}[wish], X, table)
    script.names["said"] = [*script.names.get("said", []), *table.notes]
    return needed


def standardize(script: Script, data: Data, wish: str) -> None:
    """Divide the columns of X by their spreads if the setting or the columns require it."""
    check_table(script["X"], data)
    if needs_scale(script, data, wish):
        script.use("twofold.analyses.common.tables", "spread")
        script.do("scale = spread(X)")
        script.do("X = X / scale")


def keep_steps(script: Script, data: Data) -> None:
    """Put what was done to the columns, and their names, into the model, so that it takes the data as it came."""
    if "shift" in script:  # X was (X - shift) / scale
        script.use("twofold.lab.methods.tables", "encode_numbers")
        columns = "columns" if "columns" in script else repr(column_names(data, len(script["scale"])))
        script.do(f"model.encoding_ = encode_numbers({columns}, shift, scale)")
    elif "scale" in script and hasattr(script["model"], "rescaled"):
        script.do("model = model.rescaled(scale)")
    elif "scale" in script:
        script.do("shift = 0 * scale")
        return keep_steps(script, data)
    if "columns" in script:
        script.do("model.feature_names_in_ = columns")
    elif "shift" in script:
        script.do(f"model.feature_names_in_ = np.array({columns}, dtype=object)")
    return None


def encode_numbers(columns: Sequence[str], shift: np.ndarray, scale: np.ndarray) -> list[Any]:
    """Write (X - shift) / scale as the encoding that `apply` gives the columns of a table."""
    from twofold.analyses.common.encoding import Encoding, Feature
    from twofold.io.tables.roles import Column

    parts = zip(map(str, columns), np.asarray(shift).tolist(), np.asarray(scale).tolist(), strict=True)
    features = [Feature(name, name, "value", [], low, width) for name, low, width in parts]
    return Encoding([Column(one.name, "number") for one in features], features).as_lists()


def check_table(X: np.ndarray, data: Data) -> None:
    """Refuse a table that no method can work on."""
    from twofold.analyses.common.tables import spread

    if X.shape[0] < 2 or X.shape[1] < 1:
        raise InputError(f"{data.name} has {X.shape[0]} rows and {X.shape[1]} columns of numbers; two rows are needed.")
    if not (spread(X, 0.0) > 0).any():
        raise InputError(f"{data.name}: every column of numbers is constant, so there is nothing to see.")


def apply_model(script: Script, data: Data, model: Any) -> pl.DataFrame:
    """Return what `twofold apply` gives of the data as it came, each line with its row in the lab."""
    import polars as pl

    from twofold import analyses

    rows = script.names.get("rows")
    named = data.frame if "columns" in script else None  # the model knows its columns by their names
    if named is None and data.table is not None and hasattr(model, "encoding_"):
        named = pl.DataFrame(data.table, schema=column_names(data, data.table.shape[1]))
    parts: tuple[Any, ...] = (data.texts, named, data.pictures, data.table, data.ratings)
    found = next(part for part in parts if part is not None)
    given: Any = found if rows is None else [found[row] for row in rows] if isinstance(found, list) else found[rows]
    flat = found is data.pictures and getattr(model, "flat_", not hasattr(model, "image_shape_"))
    table = analyses.apply(model, given.reshape(len(given), -1) if flat else given).table
    if data.kind == "ratings":
        return table
    table = table.drop([name for name in ("document", "image", "row") if name in table.columns])
    at = pl.Series("row", range(len(table)) if rows is None else rows)
    called = [] if data.texts is None or data.names is None else [pl.Series("name", [data.names[row] for row in at])]
    return pl.DataFrame([at, *called, *table.iter_columns()])


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
