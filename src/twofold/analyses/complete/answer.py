"""A filled table, as it is shown, drawn and written: in memory, or filled again block by block as it is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from twofold.analyses.common.answer import DRAWN, FRAMES, Answer, Grid, count
from twofold.analyses.common.targets import Writer
from twofold.analyses.complete.blocks import Filler, Guesses, fill_blocks, types_of
from twofold.core.data.blocks import Blocks
from twofold.io.tables.csv_fill import Source, Style, as_frame, as_text, styles, sure_names, values_of
from twofold.io.tables.roles import Column
from twofold.io.tables.table import Table
from twofold.io.tables.write import write_frames, write_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_LEVELS_SHOWN, MAX_DECIMALS_SHOWN = 3, 4


@dataclass(kw_only=True, repr=False, eq=False)
class Filling(Answer):
    """A filled table."""

    read: Source
    method: str
    label: str  # the method in words
    filled: np.ndarray  # (n,d) known cells as they were, categories by their codes
    std: np.ndarray  # (n,d) of filled cells, 0 elsewhere; of categories the chance that they are wrong
    blank: np.ndarray  # (n,d) bool, cells that were filled
    columns: list[Column]  # of filled
    tried: dict[str, float]  # label → error on hidden cells, about 1 for column means
    errors: np.ndarray  # (d,) error on hidden cells of each column, in spreads, or share of categories that is wrong
    of_means: np.ndarray  # (d,) the same of column means and commonest values; NaN where no cell was hidden
    uncertainty: bool
    missing: Sequence[Any]

    endings: ClassVar[tuple[str, ...]] = (*FRAMES, ".npy", *DRAWN, ".twofold")

    @property
    def data(self) -> Table:
        return self.read.table

    @cached_property
    def guesses(self) -> Guesses:
        """Count the blanks of each column, with the range of their guesses."""
        held = np.where(self.blank, self.filled, np.nan)
        low, high = np.fmin.reduce(held, axis=0), np.fmax.reduce(held, axis=0)
        return Guesses(len(self.filled), self.blank.sum(axis=0), low, high)

    @property
    def sure(self) -> np.ndarray | None:
        """(n,d) standard deviations of numbers, probabilities of categories, if they are wanted."""
        if not self.uncertainty:
            return None
        levels = np.array([bool(column.levels) for column in self.columns])
        return np.where(levels, 1.0 - self.std, self.std)

    @property
    def heading(self) -> str:
        of = "" if any(column.levels or column.role == "date" for column in self.columns) else " of numbers"
        rows, columns = count(self.guesses.rows, "row"), count(len(self.columns), "column")
        return f"{self.data.source}: {rows}, {columns}{of}"

    @property
    def outcome(self) -> str:
        blanks, cells = int(self.guesses.blanks.sum()), self.guesses.rows * len(self.columns)
        share = f"({blanks / cells:.1%} of the cells)"
        left = f", {self.left:,} left" if self.left else ""
        return f"{count(blanks, 'blank')} {share} filled by {self.label}{left}" if blanks else "no blank to fill"

    @property
    def left(self) -> int:
        """Blanks that stay: in free text, identifiers, and columns without a value."""
        frame = self.data.frame
        return 0 if frame is None else sum(frame.null_count().row(0)) - int(self.guesses.blanks.sum())

    @cached_property
    def table(self) -> pl.DataFrame:
        return as_frame(self.read, self.columns, self.filled, self.blank, self.sure)

    def grids(self) -> list[Grid]:
        blanks = self.guesses.blanks
        rows = [self.about_column(int(j)) for j in sorted(np.flatnonzero(blanks), key=lambda j: -blanks[j])]
        head = ["column", "blanks", "share", "filled with", "error", "of means"]
        return [Grid(head, rows, right=(1, 2, 4, 5), rest="columns")] if rows else []

    def about_column(self, j: int) -> list[str]:
        """Describe the blanks of a column: how many, what they became, how good that is."""
        column, found = self.columns[j], self.guesses
        unit = "{:.0%} wrong" if column.levels else "{:.2f} sd"
        errors = ["" if np.isnan(e) else unit.format(e) for e in (self.errors[j], self.of_means[j])]
        return [column.name, f"{found.blanks[j]:,}", f"{found.blanks[j] / found.rows:.0%}", self.span(j), *errors]

    def span(self, j: int) -> str:
        """Describe what the blanks of a column became: the commonest levels, or the range of its numbers."""
        column = self.columns[j]
        if column.levels:
            counts = np.bincount(self.filled[self.blank[:, j], j].astype(int), minlength=len(column.levels))
            order = [c for c in np.argsort(-counts, kind="stable") if counts[c]]
            shown = ", ".join(f"{column.levels[c]} ({counts[c]:,})" for c in order[:MAX_LEVELS_SHOWN])
            return shown + (", ..." if len(order) > MAX_LEVELS_SHOWN else "")
        style = self.styles.get(j)
        write = "{:.4g}".format if style is None or style.decimals > MAX_DECIMALS_SHOWN else style.write
        low, high = (write(float(value)) for value in (self.guesses.low[j], self.guesses.high[j]))
        return low if low == high else f"{low} to {high}"

    @cached_property
    def styles(self) -> dict[int, Style]:
        """Return how the cells of text columns, and dates, are written."""
        frame = None if self.read.piece is None else self.read.piece.frame
        if frame is None:
            return {}
        found = styles(self.read, self.columns, self.filled, self.blank)
        dates = {j: Style(0, date="%Y-%m-%d") for j in found if self.columns[j].role == "date"}
        return dates | {j: style for j, style in found.items() if frame[self.columns[j].name].dtype == pl.String}

    def lines(self) -> list[str]:
        own, means = self.figures, self.baseline
        if not self.guesses.blanks.any():
            return []
        if not own:
            return ["held out: nothing, the table is too small"]
        parts = [f"held out: {own['cells']:,} known cells were hidden and filled in"]
        if "rmse" in own:
            parts.append(
                f"error {own['rmse']:.2f} standard deviations of their columns, column means give "
                f"{means['rmse']:.2f}; {own['within_two_sd']:.0%} lie within two of the stated sd"
            )
        if "accuracy" in own:
            parts.append(
                f"{own['accuracy']:.0%} of the categories are right, the commonest value of each column gives "
                f"{means['accuracy']:.0%}"
            )
        return ["; ".join(parts)]

    def facts(self) -> dict[str, Any]:
        blanks = self.guesses.blanks
        columns = [
            {"column": self.columns[j].name, "blanks": blanks[j], "error": self.errors[j], "of_means": self.of_means[j]}
            for j in np.flatnonzero(blanks)
        ]
        return {
            "rows": self.guesses.rows,
            "columns": len(self.columns),
            "blank_cells": blanks.sum(),
            "left": self.left,
            "method": self.method,
            "model": type(self.model).__name__,
            "filled": columns,
            "tried": self.tried,
        }

    def plot(self) -> Figure:
        from twofold.plots.reports.complete import filling_figure

        names = [column.name for column in self.columns]
        return filling_figure(self.filled, self.blank, names, self.tried, self.label, self.heading)

    def writer(self, path: Path) -> Writer:
        ending, text = path.suffix.lower(), self.read.text
        if ending == ".npy":
            numbers = [
                values_of(c, self.filled[:, j]) for j, c in enumerate(self.columns) if c.name in self.data.columns
            ]
            return lambda to: np.save(to, np.column_stack(numbers))
        if text is not None and ending in (".csv", ".tsv") and not self.safe_csv:
            if (ending == ".tsv") == (text.delimiter == "\t"):
                edited = as_text(self.read, self.columns, self.filled, self.blank, self.sure, self.missing)
                return lambda to: to.write_bytes(edited)
            self.notes.append(f"{path} is written anew: {self.source} has other delimiters")
        return super().writer(path)


@dataclass(kw_only=True, repr=False, eq=False)
class StreamedFilling(Filling):
    """A table larger than the memory budget, which is filled as it is written. ``table`` has all of it, in memory.

    `filled`, `std` and `blank` are those of some rows, for the figure.
    """

    blocks: Blocks
    filler: Filler
    found: Guesses

    streams: ClassVar[bool] = True

    @property
    def guesses(self) -> Guesses:
        return self.found

    @cached_property
    def table(self) -> pl.DataFrame:
        return pl.concat(self.frames())

    def frames(self) -> Iterator[pl.DataFrame]:
        """The filled table, a block at a time: column names and types are those of the files."""
        columns = self.data.columns
        kinds, wide = types_of(self.blocks.source), np.flatnonzero(self.found.blanks)
        names = sure_names(self.read, [self.columns[j] for j in wide]) if self.uncertainty else []
        for filled, std in fill_blocks(self.blocks, self.filler, self.uncertainty):
            frame = pl.DataFrame(filled, schema=columns, orient="row").fill_nan(None)
            frame = frame.with_columns(
                _cast_column(pl.col(name), kind) for name, kind in zip(columns, kinds, strict=True)
            )
            pairs = zip(names, wide, strict=False)
            yield frame.with_columns(pl.Series(name, std[:, j]).fill_nan(None) for name, j in pairs)

    def writer(self, path: Path) -> Writer:
        ending = path.suffix.lower()
        if ending == ".npy":
            filled = (filled for filled, _ in fill_blocks(self.blocks, self.filler, False))
            return lambda to: write_rows(filled, to, self.blocks.shape, self.blocks.dtype)
        if ending in FRAMES:
            return lambda to: write_frames(self.frames(), to)
        return super().writer(path)


def _cast_column(column: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """Numbers in their column's own type; a guess is rounded where it holds whole numbers."""
    if kind == pl.Boolean:
        return column >= 0.5
    return (column.round() if kind.is_integer() else column).cast(kind)
