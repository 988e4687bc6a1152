"""Blanks filled block by block, by threads here or by the workers of a cluster.

One pass describes the columns, one draws rows to choose a model by, the fit makes its own, one looks at the guesses,
and one fills the blocks as they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from twofold.core.data.blocks import Blocks
from twofold.core.data.sources import ParquetSource, Source
from twofold.core.engine.local import engine_for


class Description(NamedTuple):
    """What is known of each column."""

    columns: Any  # moments
    low: np.ndarray  # (d,) NaN where nothing is known
    high: np.ndarray


class Guesses(NamedTuple):
    """What was guessed in each column."""

    rows: int
    blanks: np.ndarray  # (d,)
    low: np.ndarray  # (d,) NaN where nothing was guessed
    high: np.ndarray
    beyond: int = 0  # guesses that were brought to the end of their column's range


class Filler(NamedTuple):
    """How the blanks of a block are filled."""

    fill: Callable[..., Any]  # fill(X, *state) → X without blanks, and standard deviations
    state: tuple[Any, ...]
    learned: np.ndarray  # columns that the model knows
    low: np.ndarray  # of these, between what guesses are kept
    high: np.ndarray
    means: np.ndarray  # (d,) for blanks of other columns; NaN where they stay

    def __call__(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """The filled block, standard deviations, and how many guesses were brought to the end of their range."""
        part = X[:, self.learned]
        holes = np.isnan(part)
        guess, sd = self.fill(part, *self.state)
        beyond = int((holes & ((guess < self.low) | (guess > self.high))).sum())
        filled, std = np.where(np.isnan(X), self.means, X).astype(X.dtype), np.zeros_like(X)
        filled[:, self.learned] = np.where(holes, np.clip(guess, self.low, self.high), part)
        std[:, self.learned] = sd
        return filled, std, beyond


def describe(blocks: Blocks) -> Description:
    """One pass: moments and ends of every column."""
    engine = engine_for(blocks)
    with np.errstate(invalid="ignore"):  # infinite cells are refused by their place
        return engine.reduce(_join_descriptions, engine.map(_describe, blocks))


def _describe(X: np.ndarray) -> Description:
    from twofold.core.numerics.moments import block_columns

    return Description(block_columns(X, None), np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0))


def _join_descriptions(a: Description, b: Description) -> Description:
    from twofold.core.numerics.moments import merge

    return Description(merge(a.columns, b.columns), np.fmin(a.low, b.low), np.fmax(a.high, b.high))


def look_at_guesses(blocks: Blocks, filler: Filler) -> Guesses:
    """One pass: what the blanks become."""
    engine = engine_for(blocks)
    return engine.reduce(_join_guesses, engine.map(_look, blocks, engine.broadcast(filler)))


def _look(X: np.ndarray, filler: Filler) -> Guesses:
    filled, _, beyond = filler(X)
    blank = np.isnan(X) & ~np.isnan(filled)
    held = np.where(blank, filled, np.nan)
    ends = (np.fmin.reduce(held, axis=0), np.fmax.reduce(held, axis=0))
    return Guesses(len(X), blank.sum(axis=0), *ends, beyond)


def _join_guesses(a: Guesses, b: Guesses) -> Guesses:
    ends = np.fmin(a.low, b.low), np.fmax(a.high, b.high)
    return Guesses(a.rows + b.rows, a.blanks + b.blanks, *ends, a.beyond + b.beyond)


def fill_blocks(blocks: Blocks, filler: Filler, with_std: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """One pass: every block filled, in order, and standard deviations if wanted, NaN where a cell was known."""
    engine = engine_for(blocks)
    yield from engine.stream(engine.map(_fill, blocks, engine.broadcast(filler), engine.broadcast(with_std)))


def _fill(X: np.ndarray, filler: Filler, with_std: bool) -> tuple[np.ndarray, np.ndarray]:
    filled, std, _ = filler(X)
    if not with_std:
        return filled, np.empty((len(X), 0), X.dtype)
    return filled, np.where(np.isnan(X) & ~np.isnan(filled), std, np.nan)


def types_of(source: Source) -> list[Any]:
    """The types of the columns, as the files have them; that of the numbers in memory where they do not agree."""
    files = getattr(source, "files", [source])
    plain = [pl.Float32() if source.dtype == np.float32 else pl.Float64()] * source.shape[1]
    schemas = [file.frame.collect_schema().dtypes() for file in files if isinstance(file, ParquetSource)]
    return schemas[0] if schemas and all(schema == schemas[0] for schema in schemas) else plain
