"""Input checks and their messages: every error names the object, the value, the place and the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from twofold.core.types import Block, Weights

if TYPE_CHECKING:
    from twofold.core.data.blocks import Blocks


class InputError(ValueError):
    """What the caller gave cannot be used; the message says where and what to do instead."""


class ModelFileError(ValueError):
    """A model file that is damaged, truncated, newer than this program, or not a model file."""


def first_bad(X: Block, allow_nan: bool) -> tuple[int, int, float] | None:
    """Row, column and value of the first cell that is infinite (or NaN, unless allowed)."""
    if hasattr(X, "indptr"):
        bad = np.isinf(X.data) if allow_nan else ~np.isfinite(X.data)
        if not bad.any():
            return None
        at = int(np.argmax(bad))
        row = int(np.searchsorted(X.indptr, at, side="right")) - 1
        return row, int(X.indices[at]), float(X.data[at])
    bad = np.isinf(X) if allow_nan else ~np.isfinite(X)
    if not bad.any():
        return None
    where = divmod(int(np.argmax(bad)), X.shape[1])
    return *where, float(X[where])


def finite_message(name: str, row: int, column: int, value: float, *, allow_nan: bool) -> str:
    """The one message for a cell that is NaN or infinite."""
    where = f"X[{row}, {column}] is {value}"
    if np.isnan(value):
        return (
            f"{where}: {name} does not accept NaN (missing values). Drop those rows, or fill the holes "
            "first, for example with twofold.PPCA(...).impute(X)."
        )
    remedy = "mark it as missing with NaN" if allow_nan else "replace or drop it"
    return f"{where}: {name} needs finite numbers and cannot use infinity (inf). Clip it, or {remedy}."


def refuse(name: str, blocks: Blocks, allow_nan: bool = False) -> None:
    """Look through the blocks for the first cell that is not a usable number, and raise with its place."""
    for i, start in enumerate(blocks.bounds[:-1]):
        bad = first_bad(blocks[i], allow_nan)
        if bad is not None:
            row, column, value = bad
            raise InputError(finite_message(name, int(start) + row, column, value, allow_nan=allow_nan))


def check_weights(sample_weight: Weights, n: int) -> np.ndarray | None:
    """Row weights as float64 (n,), or None when every row counts once."""
    if sample_weight is None:
        return None
    w = np.asarray(sample_weight, dtype=np.float64)
    if w.ndim == 0:
        w = np.full(n, float(w))
    if w.shape != (n,):
        if w.ndim != 1:
            raise InputError(f"Sample weights must be 1D array or scalar, got an array of shape {w.shape}.")
        raise InputError(f"sample_weight.shape == {w.shape}, expected {(n,)}: one weight a row of X.")
    bad = ~np.isfinite(w) | (w < 0)
    if bad.any():
        i = int(np.argmax(bad))
        raise InputError(f"sample_weight[{i}] is {w[i]}; weights must be finite and >= 0. Drop the row or set 0.")
    if not w.any():
        raise InputError("sample_weight is zero everywhere; at least one row must count.")
    return w
