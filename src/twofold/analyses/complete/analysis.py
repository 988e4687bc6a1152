"""The blanks of a table filled, everything else as it was.

Several models are tried on known cells that are hidden from them, column means among them; the best fills the blanks.
Its error is then measured on other hidden cells. A table larger than the memory budget is filled block by block; its
model is chosen on some of its rows.
"""

from __future__ import annotations

import os
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np
import scipy.sparse as sp

from twofold.analyses.common.analysis import Data, Reading, Seed, analysis
from twofold.analyses.common.tables import (
    as_frame_or_none,
    as_table,
    is_paths,
    is_streamed,
    rows_of,
    spread,
    warnings_as_notes,
)
from twofold.analyses.complete.answer import Filling, StreamedFilling
from twofold.analyses.complete.blocks import Description, Filler, describe, look_at_guesses, types_of
from twofold.analyses.complete.models import (
    BY_NAME,
    SAMPLE,
    Candidate,
    about_ends,
    choose,
    column_means,
    fill_in,
    measure,
    those_to_try,
)
from twofold.core.checks import InputError, first_bad
from twofold.core.data.blocks import Blocks, as_blocks
from twofold.core.data.sources import ColumnsOf
from twofold.core.progress import Progress, doing
from twofold.core.seeds import generator
from twofold.io.tables.csv_fill import Source, read_source
from twofold.io.tables.roles import names_rows
from twofold.io.tables.table import Piece, Table, quote_names

RARE = 40  # known cells in the sample, below which nothing is learned of a column of a streamed table
EXACT = 2**53  # up to which every whole number is a float


@analysis(streams=True)
def complete(
    data: Data,
    *,
    method: Literal["means", "ppca", "factors", "gaussian", "als", "svd", "svp", "soft", "svt"] | None = None,
    uncertainty: bool = False,
    seed: Seed = 0,
    progress: Progress | None = None,
    **reading: Unpack[Reading],
) -> Filling:
    """Fill the blanks of a table, and leave everything else as it is.

    Parameters
    ----------
    data : path, list of paths, frame or array
        CSV, TSV, Parquet, JSONL, Excel, .npy, .npz, .mtx, file.db::table, a folder, a pattern, or - (stdin); NaN is a
        blank.
    method
        Column means, probabilistic PCA, factor analysis (factors), one Gaussian; or low-rank completion of the columns'
        z-scores by als, svd, svp, soft or svt. Default: the best of the first four on hidden cells; of the first three,
        where a table is read in blocks.
    uncertainty
        Add a column NAME_sd, the standard deviation of each guess, for every filled column.

    Returns
    -------
    Filling
        ``table`` is the table without blanks. That of a table larger than the memory budget (a `.npy` or Parquet file
        of numbers, or a folder or pattern of them) is filled as ``save`` writes it, block by block, with the first
        three methods or, by name, "gaussian".

    Examples
    --------
    >>> from twofold import datasets
    >>> answer = complete(datasets.table_with_holes().data)
    >>> answer.figures["rmse"] < answer.baseline["rmse"]
    True
    """
    with doing("reading"):
        read = source_of(data, **reading)
    table = read.table
    how: dict[str, Any] = {"source": table.source, "read": read, "uncertainty": uncertainty}
    how |= {"missing": list(reading.get("missing", ())), "notes": table.notes}
    if is_streamed(table):
        found, streamed = fill_stream(table, method, seed)
        how["chosen"] = {"method": found.best.method}
        return StreamedFilling(**how, **found.shown(), **streamed)
    X = numbers_of(table)
    fill = to_fill(table, X, (~np.isnan(X)).sum(axis=0))
    blank = np.isnan(X) & fill
    if not fill.any():
        raise InputError(f"{table.source} has no column of numbers whose blanks can be filled.")
    found = fill_blanks(X, blank, fill, method, table, seed) if blank.any() else nothing_to_fill(X, table)
    table.notes += about(found, blank.any(axis=0), table)
    how["chosen"] = {"method": found.best.method}
    return Filling(**how, **found.shown(), blank=blank)


# --- the numbers --------------------------------------------------------------------------------------------


def source_of(data: Any, **reading: Unpack[Reading]) -> Source:
    """The table and, where there are any, its columns as they stood."""
    paths = [data] if isinstance(data, (str, os.PathLike)) else data
    if isinstance(paths, (list, tuple)) and is_paths(paths):
        return read_source([os.fspath(one) for one in paths], **reading)
    frame = as_frame_or_none(data)
    return Source(as_table(data, **reading), None if frame is None else Piece(frame, "the table"), None)


def numbers_of(table: Table) -> np.ndarray:
    """The numbers in memory, refused where they cannot be completed."""
    X = table.array()
    if sp.issparse(X):
        raise InputError(
            f"{table.source} is sparse, and a completed table is not. Ratings are for twofold recommend; in Python, "
            "ALS and SoftImpute take sparse tables as they are."
        )
    check_finite(X, table)
    return np.asarray(X, dtype=np.float64)


def check_finite(
    X: np.ndarray, table: Table, first: int = 0, remedy: str = "Use ⟨missing={}⟩ to treat it as a blank."
) -> None:
    """Refuse rows with a number that is infinite, and say where; `first` is the place of the first of them."""
    bad = first_bad(X, allow_nan=True)
    if bad is not None:
        row, column, value = bad
        where = f'{table.source}, row {first + row + 1}, column "{table.columns[column]}"'
        raise InputError(f"{where}: {value} is not a finite number. {remedy.format(value)}")


def to_fill(table: Table, X: np.ndarray, known: np.ndarray) -> np.ndarray:
    """(d,) which columns are filled: not those that merely number things, nor those without a value.

    X has all rows or some, and `known` (d,) is how many cells of each column are known in all.
    """
    fill = np.ones(X.shape[1], dtype=bool)
    for j, name in enumerate(table.columns):
        if not known[j]:
            table.notes.append(f'"{name}" stays as it is: blank in every row')
            fill[j] = False
        elif names_rows(name, X[~np.isnan(X[:, j]), j], 1):
            table.notes.append(f'"{name}" stays as it is: it names the rows, and names cannot be guessed')
            fill[j] = False
    return fill


# --- choosing and filling -----------------------------------------------------------------------------------


class Found(NamedTuple):
    """What came of it."""

    best: Candidate
    model: Any
    filled: np.ndarray
    std: np.ndarray
    tried: dict[str, float]
    figures: dict[str, Any]
    baseline: dict[str, Any]
    errors: np.ndarray

    def shown(self) -> dict[str, Any]:
        """What the answer has of it."""
        own = self._asdict()
        best = own.pop("best")
        return own | {"method": best.method, "label": best.label}


def nothing_to_fill(X: np.ndarray, table: Table) -> Found:
    table.notes.append("no cell is blank: there is nothing to fill")
    means = column_means()
    return Found(means, means.make().fit(X), X, np.zeros_like(X), {}, {}, {}, np.full(X.shape[1], np.nan))


def fill_blanks(
    X: np.ndarray, blank: np.ndarray, fill: np.ndarray, method: str | None, table: Table, seed: int
) -> Found:
    """Fill with the model that does best on cells hidden from it."""
    varies = fill & (spread(np.where(fill, X, 0.0), 0.0) > 0)
    varies = varies if varies.any() else fill
    Y = X[:, varies]  # what is learned from
    notes = table.notes
    with doing("trying models on cells that are hidden"), warnings_as_notes([]):
        candidates = those_to_try(Y, method, seed, notes)
        tried, best = choose(candidates, Y, seed)
        doubt = tried.get(best.label, np.nan)
        figures, baseline, errors = measure(best, Y, seed, notes, doubt)
    filled, std = X.copy(), np.zeros_like(X)
    with warnings_as_notes(notes):
        model = best.make().fit(Y)
        filled[:, varies], std[:, varies] = fill_in(model, Y, notes, doubt)
    model.column_range_ = np.array([np.nanmin(Y, axis=0), np.nanmax(Y, axis=0)])  # guesses keep to it
    for j in np.flatnonzero(fill & ~varies):
        filled[:, j] = np.nanmean(X[:, j])
    if table.named:
        model.feature_names_in_ = np.array(table.columns, dtype=object)[varies]
    per_column = np.full(X.shape[1], np.nan)
    per_column[varies] = errors
    return Found(best, model, filled, std, tried, figures, baseline, per_column)


# --- block by block -----------------------------------------------------------------------------------------


def fill_stream(table: Table, method: str | None, seed: int) -> tuple[Found, dict[str, Any]]:
    """The same for a file, or files, that stay on disk: the model is chosen on some rows and fitted to all."""
    if method in BY_NAME:
        raise InputError(
            f"method {method}: it needs all cells in memory, and {table.source} is larger than the memory budget. Use "
            "means, ppca, factors or gaussian, or raise the budget: ⟨memory=SIZE⟩."
        )
    blocks, notes = as_blocks(table.numbers), table.notes
    n = blocks.shape[0]
    with doing("looking at the columns"):
        seen = describe(blocks)
        check_columns(table, blocks, seen)
    with doing("drawing rows"):
        sample = rows_of(table.numbers, np.sort(generator(seed, 3).choice(n, min(n, 2 * SAMPLE), replace=False)))
    fill, learned = to_learn(table, sample, seen)
    blank = fill & (seen.columns.weight < n)
    Y, where = sample[:, learned].astype(np.float64), np.flatnonzero(learned)
    best, errors = column_means(streams=True), np.full(len(learned), np.nan)
    tried: dict[str, float] = {}
    figures: dict[str, Any] = {}
    baseline: dict[str, Any] = {}
    if blank.any():
        with doing("trying models on cells that are hidden"), warnings_as_notes([]):
            tried, best = choose(those_to_try(Y, method, seed, notes, streams=True), Y, seed)
            doubt = tried.get(best.label, np.nan)
            figures, baseline, errors[learned] = measure(best, Y, seed, notes, doubt)
    else:
        notes.append("no cell is blank: there is nothing to fill")
    with warnings_as_notes(notes):
        known = blocks if learned.all() else Blocks(ColumnsOf(blocks.source, where))
        model = best.make().fit(known)
    low, high = seen.low[where], seen.high[where]
    model.column_range_ = np.array([low, high], dtype=np.float64)
    means = np.where(fill & ~learned, seen.columns.mean, np.nan)
    how, *state = model._imputer()
    filler = Filler(how, tuple(state), where, low, high, means)
    with doing("filling"):
        guesses = look_at_guesses(blocks, filler)
    notes += about_ends(guesses.beyond)
    filled, std, _ = filler(sample)
    found = Found(best, model, filled, std, tried, figures, baseline, errors)
    notes += about(found, blank, table)
    streamed = {"blocks": blocks, "filler": filler, "found": guesses}
    return found, streamed | {"blank": np.isnan(sample) & ~np.isnan(filled)}


def check_columns(table: Table, blocks: Blocks, seen: Description) -> None:
    """Refuse numbers that cannot be learned from or written as they were."""
    if not np.isfinite(seen.columns.mean).all():
        for i, first in enumerate(blocks.bounds[:-1].tolist()):
            check_finite(blocks[i], table, first, "Write the files with a blank there.")
    most = np.maximum(np.abs(seen.low), np.abs(seen.high))
    for name, kind, largest in zip(table.columns, types_of(blocks.source), most, strict=True):
        if kind.is_integer() and largest > EXACT:
            raise InputError(
                f'{table.source}, column "{name}": whole numbers beyond 2^53, such as {largest:.0f}, would not stay as '
                "they are in a table that is read in blocks. Write the files without that column."
            )


def to_learn(table: Table, sample: np.ndarray, seen: Description) -> tuple[np.ndarray, np.ndarray]:
    """(d,) which columns are filled, and from which of them a model is learned: the others get their mean."""
    fill = to_fill(table, sample, seen.columns.weight)
    if not fill.any():
        raise InputError(f"{table.source} has no column of numbers whose blanks can be filled.")
    varies = fill & (np.sqrt(seen.columns.variance) > 1e-12 * np.abs(seen.columns.mean))
    rare = varies & ((~np.isnan(sample)).sum(axis=0) < min(RARE, len(sample) // 4))
    if rare.any():
        names = quote_names([name for name, few in zip(table.columns, rare, strict=True) if few])
        table.notes.append(f"{names}: known in too few rows to learn from, so filled with column means")
    learned = varies & ~rare
    return fill, learned if learned.any() else fill


def about(found: Found, blank: np.ndarray, table: Table) -> list[str]:
    """What was chosen, and how far to trust it; `blank` (d,) says which columns had blanks."""
    if not found.tried:
        return []
    out, own = [], found.best.label
    others = sorted((e, label) for label, e in found.tried.items() if label != own)
    if others:
        out.append(
            f"filled by {own}: error {found.tried[own]:.2f} on hidden cells, the best of {len(found.tried)} tried; "
            f"next {others[0][1]} ({others[0][0]:.2f})"
        )
    gap = found.figures.get("rmse", 0.0) / max(found.baseline.get("rmse", 1.0), 1e-300)
    if found.best.method != "means" and gap > 0.95:
        out.append("the columns say little about each other: guesses are hardly better than column means")
    bad = np.flatnonzero(blank & (np.nan_to_num(found.errors) > 0.98))
    if len(bad) and found.best.method != "means" and gap <= 0.95:
        out.append(f"no better than a column mean in {quote_names([table.columns[j] for j in bad])}")
    return out
