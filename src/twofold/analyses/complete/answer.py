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
from twofold.analyses.common.tables import about_table
from twofold.analyses.common.targets import Writer
from twofold.analyses.complete.blocks import Filler, Guesses, fill_blocks, types_of
from twofold.core.data.blocks import Blocks
from twofold.io.tables.csv_fill import Source, as_frame, as_text, sd_names, style_of
from twofold.io.tables.table import Table
from twofold.io.tables.write import write_frames, write_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(kw_only=True, repr=False, eq=False)
class Filling(Answer):
    """A filled table."""

    read: Source
    method: str
    label: str  # the method in words
    filled: np.ndarray  # (n,d) known cells as they were
    std: np.ndarray  # (n,d) of filled cells, 0 elsewhere
    blank: np.ndarray  # (n,d) bool, cells that were filled
    tried: dict[str, float]  # label → error on the cells hidden for the choice, in spreads
    errors: np.ndarray  # (d,) error on hidden cells of each column, in spreads; NaN where none was hidden
    uncertainty: bool
    missing: Sequence[Any]

    endings: ClassVar[tuple[str, ...]] = (*FRAMES, ".npy", *DRAWN, ".twofold")

    @property
    def data(self) -> Table:
        return self.read.table

    @cached_property
    def guesses(self) -> Guesses:
        """How many blanks each column had, and between what their guesses lie."""
        held = np.where(self.blank, self.filled, np.nan)
        low, high = np.fmin.reduce(held, axis=0), np.fmax.reduce(held, axis=0)
        return Guesses(len(self.filled), self.blank.sum(axis=0), low, high)

    @property
    def heading(self) -> str:
        return about_table(self.data, self.guesses.rows)

    @property
    def outcome(self) -> str:
        blanks, cells = int(self.guesses.blanks.sum()), self.guesses.rows * len(self.data.columns)
        share = f"({blanks / cells:.1%} of the cells)"
        return f"{count(blanks, 'blank')} {share} filled by {self.label}" if blanks else "no blank to fill"

    @cached_property
    def table(self) -> pl.DataFrame:
        return as_frame(self.read, self.filled, self.blank, self.std if self.uncertainty else None)

    def grids(self) -> list[Grid]:
        blanks = self.guesses.blanks
        rows = [self.about_column(int(j)) for j in sorted(np.flatnonzero(blanks), key=lambda j: -blanks[j])]
        head = ["column", "blanks", "share", "filled with", "error"]
        return [Grid(head, rows, right=(1, 2, 4), rest="columns")] if rows else []

    def about_column(self, j: int) -> list[str]:
        """How many blanks a column had, what they became, how good that is."""
        name, found = self.data.columns[j], self.guesses
        column = None if self.read.piece is None else self.read.piece.frame[name]
        style = style_of(column, ~self.blank[:, j]) if column is not None and column.dtype == pl.String else None
        low, high = ((f"{v:.4g}" if style is None else style.write(v)) for v in (found.low[j], found.high[j]))
        error = "" if np.isnan(self.errors[j]) else f"{self.errors[j]:.2f} sd"
        span = low if low == high else f"{low} to {high}"
        return [name, f"{found.blanks[j]:,}", f"{found.blanks[j] / found.rows:.0%}", span, error]

    def lines(self) -> list[str]:
        own = self.figures
        if not self.guesses.blanks.any():
            return []
        if not own:
            return ["held out: nothing, the table is too small"]
        return [
            f"held out: {own['cells']:,} known cells were hidden and filled in; error {own['rmse']:.2f} standard "
            f"deviations of their columns, column means give {self.baseline['rmse']:.2f}; {own['within_two_sd']:.0%} "
            "lie within two of the stated sd"
        ]

    def facts(self) -> dict[str, Any]:
        blanks = self.guesses.blanks
        columns = [
            {"column": self.data.columns[j], "blanks": blanks[j], "error": self.errors[j]}
            for j in np.flatnonzero(blanks)
        ]
        return {
            "rows": self.guesses.rows,
            "columns": len(self.data.columns),
            "blank_cells": blanks.sum(),
            "method": self.method,
            "model": type(self.model).__name__,
            "filled": columns,
            "tried": self.tried,
        }

    def plot(self) -> Figure:
        from twofold.plots.reports.complete import filling_figure

        return filling_figure(self.filled, self.blank, self.data.columns, self.tried, self.label, self.heading)

    def writer(self, path: Path) -> Writer:
        ending, text = path.suffix.lower(), self.read.text
        if ending == ".npy":
            return lambda to: np.save(to, self.filled)
        if text is not None and ending in (".csv", ".tsv") and not self.safe_csv:
            if (ending == ".tsv") == (text.delimiter == "\t"):
                std = self.std if self.uncertainty else None
                edited = as_text(self.read, self.filled, self.blank, std, self.missing)
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
        names = sd_names(self.read, wide.tolist()) if self.uncertainty else []
        for filled, std in fill_blocks(self.blocks, self.filler, self.uncertainty):
            frame = pl.DataFrame(filled, schema=columns, orient="row").fill_nan(None)
            frame = frame.with_columns(_typed(pl.col(name), kind) for name, kind in zip(columns, kinds, strict=True))
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


def _typed(column: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """Numbers in their column's own type; a guess is rounded where it holds whole numbers."""
    if kind == pl.Boolean:
        return column >= 0.5
    return (column.round() if kind.is_integer() else column).cast(kind)
