"""The blanks of a table filled, everything else as it was.

Several models are tried on known cells that are hidden from them, column means among them; each column is filled by the
best. The error is that of cells hidden from the models which took no part in the choice. A table larger than the memory
budget is filled block by block by one model, which is chosen on some of its rows.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np

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
from twofold.analyses.complete.cells import Cells, cells_of, check_finite, say_left
from twofold.analyses.complete.models import (
    BY_NAME,
    SAMPLE,
    build,
    calibrate,
    choose,
    choose_one,
    column_means,
    describe_choice,
    fill_in,
    measure,
    run_trials,
    those_to_try,
)
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, as_blocks
from twofold.core.data.sources import ColumnsOf
from twofold.core.progress import Progress, doing, part
from twofold.core.seeds import generator
from twofold.io.tables.csv_fill import Source, read_source
from twofold.io.tables.roles import Column, names_rows
from twofold.io.tables.table import Piece, Table, quote_names

RARE = 40  # known cells in the sample, below which nothing is learned of a column of a streamed table
EXACT = 2**53  # up to which every whole number is a float


@analysis(streams=True)
def complete(
    data: Data,
    *,
    method: Literal["means", "ppca", "factors", "gaussian", "neighbors", "forests", "als", "svd", "svp", "soft", "svt"]
    | None = None,
    uncertainty: bool = False,
    seed: Seed = 0,
    progress: Progress | None = None,
    **reading: Unpack[Reading],
) -> Filling:
    """Fill the blanks of a table, and leave everything else as it is.

    Categories are filled with categories, whole numbers with whole numbers, dates with dates, and nothing beyond what
    its column holds. Several models are tried on known cells that are hidden from them, and every column has the one
    that does best there. Free text and identifiers stay blank.

    Parameters
    ----------
    data : path, list of paths, frame or array
        CSV, TSV, Parquet, JSONL, Excel, .npy, .npz, .mtx, file.db::table, a folder, a pattern, or - (stdin); NaN is a
        blank.
    method
        Column means and commonest values, probabilistic PCA, factor analysis (factors), one Gaussian, neighbors among
        the columns, iterated forests; or low-rank completion of the columns' z-scores by als, svd, svp, soft or svt.
        Default: the best of the first six in each column, on hidden cells; the best of the first three in all columns,
        where a table is read in blocks.
    uncertainty
        Add for every filled column how sure each guess is: NAME_sd, its standard deviation, or NAME_p, the probability
        of the category.

    Returns
    -------
    Filling
        ``table`` is the table with its blanks filled. That of a table larger than the memory budget (a `.npy` or
        Parquet file of numbers, or a folder or pattern of them) is filled as ``save`` writes it, block by block, with
        the first three methods or, by name, "gaussian".

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
        how["chosen"] = {"method": found.method}
        return StreamedFilling(**how, **found.shown(), **streamed)
    cells = cells_of(table)
    fill = to_fill(table, cells)
    blank = np.isnan(cells.X) & fill
    if not fill.any():
        raise InputError(f"{table.source} has no column whose blanks can be filled.")
    found = fill_blanks(cells, blank, fill, method, table, seed) if blank.any() else nothing_to_fill(cells, table)
    table.notes += about(found, blank.any(axis=0), cells.names) + say_left(table)
    return Filling(**how, **found.shown(), blank=blank, columns=cells.columns)


# --- the numbers --------------------------------------------------------------------------------------------


def source_of(data: Any, **reading: Unpack[Reading]) -> Source:
    """The table and, where there are any, its columns as they stood."""
    paths = [data] if isinstance(data, (str, os.PathLike)) else data
    if isinstance(paths, (list, tuple)) and is_paths(paths):
        return read_source([os.fspath(one) for one in paths], **reading)
    frame = as_frame_or_none(data)
    return Source(as_table(data, **reading), None if frame is None else Piece(frame, "the table"), None)


def to_fill(table: Table, cells: Cells) -> np.ndarray:
    """(d,) which columns are filled: those with a value."""
    known = (~np.isnan(cells.X)).any(axis=0)
    names = [name for name, some in zip(cells.names, known, strict=True) if not some]
    table.notes += [f'"{name}" stays as it is: blank in every row' for name in names]
    return known


# --- choosing and filling -----------------------------------------------------------------------------------


class Found(NamedTuple):
    """What came of it."""

    method: str
    label: str
    model: Any
    filled: np.ndarray
    std: np.ndarray
    tried: dict[str, float]
    figures: dict[str, Any]
    baseline: dict[str, Any]
    errors: np.ndarray
    of_means: np.ndarray

    def shown(self) -> dict[str, Any]:
        """Return what the answer holds of it."""
        return self._asdict()


def nothing_to_fill(cells: Cells, table: Table) -> Found:
    table.notes.append("no cell is blank: there is nothing to fill")
    means, X = column_means(), cells.X
    model = name_columns(build([means], np.zeros(len(cells.columns), int), cells).fit(X), cells, table)
    nothing = np.full(X.shape[1], np.nan)
    return Found("means", means.label, model, X, np.zeros_like(X), {}, {}, {}, nothing, nothing)


def fill_blanks(
    cells: Cells, blank: np.ndarray, fill: np.ndarray, method: str | None, table: Table, seed: int
) -> Found:
    """Fill every column with the model that does best on cells hidden from it."""
    X, notes = cells.X, table.notes
    varies = fill & (spread(np.where(fill, X, 0.0), 0.0) > 0)
    varies = varies if varies.any() else fill
    known = cells.take(varies)  # what is learned from
    candidates = those_to_try(known, method, seed, notes)
    with part(0.0, 0.8), warnings_as_notes([]):
        trials = run_trials(candidates, known, np.asarray(blank[:, varies].any(axis=0)), seed)
    if trials is None:
        notes.append("too few cells to hide any, so the guesses are not tested")
        chosen, measured = np.zeros(varies.sum(), int), None
    else:
        candidates = trials.candidates
        chosen = choose(trials, np.ones(len(trials.draw), bool))
        measured = measure(trials)
    filled, std = X.copy(), np.zeros_like(X)
    said = [] if known.levels.any() else notes  # of zeros and ones a covariance is singular, which says nothing
    with part(0.8, 1.0, label="filling"), warnings_as_notes(said):
        model = build(candidates, chosen, known).fit(known.X)
        filled[:, varies], unsure, beyond = fill_in(model, known.X)
    notes += say_ends(beyond)
    scale = np.where(known.levels > 0, 1.0, 1.0 if trials is None else calibrate(trials)[chosen])
    std[:, varies] = unsure * scale
    for j in np.flatnonzero(fill & ~varies):
        filled[:, j] = np.nanmean(X[:, j])
    blanks = blank[:, varies].any(axis=0)
    label = describe_choice(candidates, chosen[blanks])
    methods = {candidates[c].method for c in chosen[blanks]}
    tried: dict[str, float] = {}
    errors, of_means = np.full((2, X.shape[1]), np.nan)
    if trials is not None and measured is not None:
        tried = {c.label: trials.overall(loss) for c, loss in zip(candidates, trials.losses, strict=True)}
        tried.setdefault(label, measured.error)
        errors[varies], of_means[varies] = measured.errors, measured.of_means
    figures, baseline = ({}, {}) if measured is None else measured[:2]
    name_columns(model, known, table)
    name = methods.pop() if len(methods) == 1 else "several"
    return Found(name, label, model, filled, std, tried, figures, baseline, errors, of_means)


def name_columns(model: Any, cells: Cells, table: Table) -> Any:
    """Put into the model what `apply` needs: names, and between what its guesses must be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without a value
        model.column_range_ = np.array([np.nanmin(cells.X, axis=0), np.nanmax(cells.X, axis=0)])
    if table.named:
        model.feature_names_in_ = np.array(cells.names, dtype=object)
    return model


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
    best = column_means(streams=True)
    errors, of_means = np.full((2, len(learned)), np.nan)
    tried: dict[str, float] = {}
    figures: dict[str, Any] = {}
    baseline: dict[str, Any] = {}
    if blank.any():
        cells = Cells(Y, [Column(name, "number") for name in np.array(table.columns, dtype=object)[learned]])
        candidates = those_to_try(cells, method, seed, notes, streams=True)
        with part(0.0, 0.3), warnings_as_notes([]):
            trials = run_trials(candidates, cells, np.ones(len(where), bool), seed)
        if trials is None:
            notes.append("too few cells to hide any, so the guesses are not tested")
            best = candidates[0]
        else:
            place = choose_one(trials)
            best = trials.candidates[place]
            tried = {c.label: trials.overall(loss) for c, loss in zip(trials.candidates, trials.losses, strict=True)}
            figures, baseline, errors[learned], of_means[learned], _ = measure(trials, place)
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
    notes += say_ends(guesses.beyond)
    filled, std, _ = filler(sample)
    found = Found(best.method, best.label, model, filled, std, tried, figures, baseline, errors, of_means)
    notes += about(found, blank, table.columns)
    columns = [Column(name, "number") for name in table.columns]
    streamed: dict[str, Any] = {"blocks": blocks, "filler": filler, "found": guesses, "columns": columns}
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
    """(d,) which columns are filled, and from which of them a model is learned: the others get their mean.

    Columns that name rows and such without a value are not filled.
    """
    fill = np.ones(len(table.columns), dtype=bool)
    for j, name in enumerate(table.columns):
        if not seen.columns.weight[j]:
            table.notes.append(f'"{name}" stays as it is: blank in every row')
            fill[j] = False
        elif names_rows(name, sample[~np.isnan(sample[:, j]), j], 1):
            table.notes.append(f'"{name}" stays as it is: it names the rows, and names cannot be guessed')
            fill[j] = False
    if not fill.any():
        raise InputError(f"{table.source} has no column of numbers whose blanks can be filled.")
    varies = fill & (np.sqrt(seen.columns.variance) > 1e-12 * np.abs(seen.columns.mean))
    rare = varies & ((~np.isnan(sample)).sum(axis=0) < min(RARE, len(sample) // 4))
    if rare.any():
        names = quote_names([name for name, few in zip(table.columns, rare, strict=True) if few])
        table.notes.append(f"{names}: known in too few rows to learn from, so filled with column means")
    learned = varies & ~rare
    return fill, learned if learned.any() else fill


def say_ends(beyond: int) -> list[str]:
    """Note the guesses that were clipped to the range of their column."""
    many = f"{beyond:,} guess{'es' if beyond > 1 else ''}"
    return [f"{many} beyond the range of the column brought to its end"] if beyond else []


def about(found: Found, blank: np.ndarray, names: Sequence[str]) -> list[str]:
    """Describe what was chosen, and how far to trust it; `blank` (d,) marks columns with blanks."""
    if not found.tried:
        return []
    out, own = [], found.label
    error = found.tried[own]
    others = sorted((e, label) for label, e in found.tried.items() if label != own)
    if others and found.method == "several":
        out.append(
            f"filled by {own}: error {error:.2f} on hidden cells that did not choose; one model for all columns has at "
            f"best {others[0][0]:.2f} ({others[0][1]})"
        )
    elif others:
        out.append(
            f"filled by {own}: error {error:.2f} on hidden cells, the best of {len(found.tried)} tried; "
            f"next {others[0][1]} ({others[0][0]:.2f})"
        )
    if found.method == "means":
        return out
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero(blank & (found.errors > 0.98 * found.of_means))
    if len(bad) == np.count_nonzero(blank & ~np.isnan(found.errors)):
        out.append("the columns say little about each other: guesses are hardly better than means")
    elif len(bad):
        out.append(f"no better than the mean or the commonest value in {quote_names([names[j] for j in bad.tolist()])}")
    return out
