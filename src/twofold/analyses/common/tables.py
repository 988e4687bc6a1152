"""What analyses of tables of numbers share: reading, memory, checks, spreads, units, and the table of results."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import polars as pl
import scipy.sparse as sp

from twofold.analyses.common.analysis import Reading
from twofold.core.checks import InputError, check_sparse, first_bad
from twofold.core.config import config
from twofold.io.tables.read import read_table
from twofold.io.tables.roles import Column
from twofold.io.tables.table import Piece, Table, assemble, quote_names, unique_names

MIN_DOMINANT_SHARE = 0.9  # of the variance
COARSE = 0.25  # steps of a column, in standard deviations, from which its values are few
BLUR = 0.7  # steps; from 0.5 on, two neighboring values make one hill, and no longer two


STOPPED = re.compile(r"(\w+) did not converge in max_iter=(\d+)")


def as_table(data: Any, known: Sequence[Column] = (), **reading: Unpack[Reading]) -> Table:
    """A table from whatever holds one: a path or several, a frame, an array, a sparse array.

    Columns that are `known` by their names are read as another table has them.
    """
    if isinstance(data, (str, os.PathLike)):
        data = [data]
    if isinstance(data, (list, tuple)) and is_paths(data):
        return read_table([os.fspath(one) for one in data], known=known, **reading)
    if isinstance(data, Table):
        return replace(data, notes=list(data.notes))
    frame = as_frame_or_none(data)
    if frame is not None:
        return assemble([Piece(frame, "the table")], "the table", known=known, **reading)
    if sp.issparse(data):
        check_sparse(data, "the table")
    X = sp.csr_array(data) if sp.issparse(data) else np.asarray(data)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise InputError(f"the table is an array of {X.dtype} with shape {X.shape}; a 2-D array of numbers is needed.")
    names = [f"column_{j + 1}" for j in range(X.shape[1])]
    if any(len(given) for given in reading.values()):  # type: ignore[arg-type]
        raise InputError("an array has no names of columns. Give a frame, or leave the columns out of the array.")
    return Table(X.astype(np.float64), names, source="the table")


def about_table(table: Table, n: int) -> str:
    """Name what was read, as a heading."""
    d = len(table.columns)
    return f"{table.source}: {n:,} row{'' if n == 1 else 's'}, {d:,} column{'' if d == 1 else 's'} of numbers"


def as_frame_or_none(data: Any) -> pl.DataFrame | None:
    """A polars or pandas frame as a polars one; None for anything else."""
    if type(data).__module__.partition(".")[0] == "pandas":
        ordered = {str(name): kind.categories for name, kind in data.dtypes.items() if getattr(kind, "ordered", False)}
        kinds = {name: pl.Enum([str(level) for level in levels]) for name, levels in ordered.items()}
        return pl.from_pandas(data).with_columns(pl.col(n).cast(pl.String).cast(kind) for n, kind in kinds.items())
    return data if isinstance(data, pl.DataFrame) else None


def is_paths(data: Sequence[Any]) -> bool:
    return all(isinstance(one, (str, os.PathLike)) for one in data)


def beside(table: Table, results: Mapping[str, Any]) -> pl.DataFrame:
    """Every column of the table in its order, then the results; of an array the results alone."""
    return append_columns(keep_columns(table), results)


def keep_columns(table: Table) -> pl.DataFrame:
    """The columns of the table as they go into the result."""
    if table.frame is not None:
        return table.frame
    return pl.DataFrame([*([table.ids] if table.ids is not None else []), *table.others.iter_columns()])


def append_columns(frame: pl.DataFrame, results: Mapping[str, Any]) -> pl.DataFrame:
    """The frame and the results; a result called as a column of the frame gets another name."""
    names = unique_names([*frame.columns, *results])[0][frame.width :]
    parts = [pl.Series(name, values) for name, values in zip(names, results.values(), strict=True)]
    return pl.DataFrame([*frame.iter_columns(), *parts])


@contextmanager
def warnings_as_notes(notes: list[str]) -> Iterator[None]:
    """Warnings raised inside become notes, in words that do not need the library's parameters."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts = [getattr(w.message, "fact", str(w.message)) for w in caught if issubclass(w.category, UserWarning)]
    notes += dict.fromkeys(map(in_plain_words, texts))


def in_plain_words(message: str) -> str:
    """Rephrase a warning of the library for readers who did not write the call."""
    stopped = STOPPED.match(message)
    if stopped is None:
        return message
    return f"{stopped[1]} was stopped after {stopped[2]} sweeps, before it had settled: figures may still move a little"


def is_streamed(table: Table) -> bool:
    """Say whether the numbers stay on disk, because their file exceeds the memory budget; then it is noted."""
    if not isinstance(table.numbers, Path):
        return False
    n, d = shape_of(table.numbers)
    if n * d * 8 > config().memory:
        table.notes.append(f"{table.source} is streamed in blocks ({n:,} rows)")
        return True
    return False


def in_memory(table: Table) -> Any:
    """The numbers, read in unless their file exceeds the memory budget; blank columns are left out."""
    if is_streamed(table):
        return table.numbers
    X = table.array()
    if isinstance(X, np.ndarray):
        blank = np.asarray(np.isnan(X).all(axis=0))
        if blank.any() and not blank.all():
            names = [name for name, empty in zip(table.columns, blank.tolist(), strict=True) if empty]
            table.columns = [name for name in table.columns if name not in names]
            table.notes.append(f"{quote_names(names)} set aside: blank in every row")
            return X[:, ~blank]
    return X


def shape_of(X: Any) -> tuple[int, int]:
    if not isinstance(X, Path):
        return X.shape
    from twofold.core.data.blocks import as_blocks

    n, d = as_blocks(X).shape
    return n, d


def check(X: Any, n: int, table: Table, doing: str) -> None:
    """Refuse what no method can work on; `doing` is what the user wanted done."""
    if n < 2:
        raise InputError(f"{table.source} has one row; at least two are needed to see how rows differ.")
    if isinstance(X, Path):
        return
    bad = first_bad(X, allow_nan=not sp.issparse(X))
    if bad is not None:
        row, column, value = bad
        where = f'{table.source}, row {row + 1}, column "{table.columns[column]}"'
        raise InputError(f"{where}: {value} is not a finite number. Use ⟨missing={value}⟩ to treat it as a blank.")
    if not (spread(X, 0.0) > 0).any():
        raise InputError(f"{table.source}: every column of numbers is constant, so there is nothing to {doing}.")


def spread(X: Any, of_constant: float = 1.0) -> np.ndarray:
    """Standard deviation of each column over its known cells; a constant column keeps its units."""
    if isinstance(X, Path):
        from twofold.core.data.blocks import as_blocks
        from twofold.core.engine.local import engine_for
        from twofold.core.numerics.moments import column_moments

        blocks = as_blocks(X)
        moments = column_moments(engine_for(blocks), blocks)
        s, floor = np.sqrt(moments.variance), 1e-12 * np.abs(moments.mean)
    elif sp.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
        s = np.sqrt(np.maximum(variance, 0))
        floor = 1e-7 * np.abs(mean)
    else:
        s = np.nanstd(X, axis=0)
        floor = 1e-12 * np.abs(np.nanmean(X, axis=0))
    return np.where(s > floor, s, of_constant)


def choose_scale(wish: bool | None, X: Any, table: Table) -> bool:
    """Decide whether to divide columns by their spreads: if named ones differ more than tenfold, unless told."""
    if wish:
        return True
    s = spread(X, np.nan)
    high, low = int(np.nanargmax(s)), int(np.nanargmin(s))
    share = s[high] ** 2 / np.nansum(s**2)
    if (wish is False or not table.named) and share > MIN_DOMINANT_SHARE and np.isfinite(s).sum() > 2:
        table.notes.append(f"{quote_names([table.columns[high]])} alone has {share:.0%} of the variance")
    if wish is False or s[high] <= 10 * s[low]:
        return False
    if sp.issparse(X) or not table.named:
        table.notes.append("columns without names share a unit, so are not standardized (⟨scale=True⟩ does)")
        return False
    table.notes.append(
        f"columns are standardized, because their spreads differ {s[high] / s[low]:,.0f}-fold "
        f"({quote_names([table.columns[high]])} against {quote_names([table.columns[low]])}); ⟨scale=False⟩ does not"
    )
    return True


def grain(X: np.ndarray) -> np.ndarray:
    """The step between the values of each column that holds but few, and 0 where values lie close."""
    steps = np.zeros(X.shape[1])
    for j, column in enumerate(X.T):
        known = column[~np.isnan(column)]
        values = np.unique(known)
        gaps = np.diff(values)
        gaps = gaps[gaps > 1e-6 * np.abs(values[-1] - values[0])]  # less is rounding
        if len(gaps) and 2 * len(values) <= len(known) and gaps.min() >= COARSE * known.std():
            steps[j] = gaps.min()
    return steps


def dither(X: np.ndarray, steps: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Blur every value by BLUR steps, so that a value often seen is no group of its own."""
    return X + BLUR * steps * rng.standard_normal(X.shape)


def rows_of(X: Any, rows: np.ndarray) -> Any:
    """Some rows, in their order, in memory."""
    if not isinstance(X, Path):
        return X[rows]
    from twofold.core.data.blocks import as_blocks
    from twofold.core.engine.local import engine_for, fetch_rows

    blocks = as_blocks(X)
    return fetch_rows(engine_for(blocks), blocks, rows)
