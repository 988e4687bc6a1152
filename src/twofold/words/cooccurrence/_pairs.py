"""Pairs of words within a window, summed for the whole corpus, a row of the table at a time.

    n[i, j] = Σ  w(p − q)  over places p of word i and q of word j, at most `window` apart in one line

Each word's places are listed first; a row is then the sum over the windows at its word's places, and rows are
independent: runs of them, cut by the words' counts alone, are what the engine maps over.

Sums are whole numbers: weights are multiples of 1/unit, the least common multiple of the distances. So every order
of adding gives the same, and a corpus too large for the memory budget is simply counted in parts, whose rows wait on
disk until they are added up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.config import config
from twofold.core.data.blocks import Rows
from twofold.core.data.csr_folder import Stored
from twofold.core.engine.local import Engine
from twofold.kernels.cooccurrence import lay_out, merge_rows, window_rows
from twofold.words.corpus import Corpus, Run, Store, runs

PANEL = 2**19  # stored pairs in a run of rows, at most (unless one row has more)
ENTRY_BYTES = 12  # of a stored pair: its column and its sum
TOKEN_BYTES = 12  # what a token takes while its run is counted
LEAST_RUN = 2**16  # tokens of the corpus that are counted at once, whatever the budget
MOST_PARTS = 16  # on disk, before they are added up to one


class Weights(NamedTuple):
    """table[d−1] / unit is the weight of two words at distance d; `both` sides of a word count, or what precedes it."""

    table: np.ndarray
    unit: int
    both: bool


class Panel(NamedTuple):
    """Consecutive rows: of sums (int64), or of the counts they stand for (float32)."""

    indptr: np.ndarray
    indices: np.ndarray  # int32
    values: np.ndarray


def make_weights(window: int, harmonic: bool, both: bool, most: int) -> Weights:
    """Weights 1/distance, or 1, as whole numbers small enough that no row of a word that occurs `most` times overflows.

    The unit is the least common multiple of 1..window where that fits (windows up to 22 always do); else a power of
    two, and weights are rounded to its multiples.
    """
    distances = range(1, window + 1)
    if not harmonic:
        return Weights(np.ones(window, np.int64), 1, both)
    room = 2**62 / (2 * max(most, 1) * sum(1 / d for d in distances))
    unit = math.lcm(*distances)
    if unit > room:
        unit = 2 ** int(math.log2(room))
    return Weights(np.array([round(unit / d) for d in distances], np.int64), unit, both)


def pair_rows(corpus: Corpus, V: int, window: int, harmonic: bool, both: bool) -> Iterator[sparse.csr_array]:
    """The table n (V,V) float32 in blocks of rows, from the first to the last."""
    parts = cut_corpus(corpus, window)
    counts = np.zeros(V, np.int64)
    for part in parts:
        counts += _count_words(part.read().own, V)
    weights = make_weights(window, harmonic, both, int(counts.max()))
    panels = _count_run(parts[0], V, weights) if len(parts) == 1 else _count_on_disk(parts, V, weights, weights.unit)
    for panel in panels:
        yield as_rows(panel, V)


def as_rows(panel: Panel, V: int) -> sparse.csr_array:
    rows = sparse.csr_array((panel.values, panel.indices, panel.indptr), shape=(len(panel.indptr) - 1, V))
    rows.has_canonical_format = True  # columns ascend: no need to look
    return rows


def sum_panels(corpus: Corpus, V: int, weights: Weights) -> Iterator[Panel]:
    """The whole sums that counts are made of, of some lines, from the first row to the last."""
    parts = cut_corpus(corpus, len(weights.table))
    if not parts:
        return iter([Panel(np.zeros(V + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))])
    return _count_run(parts[0], V, weights, sums=True) if len(parts) == 1 else _count_on_disk(parts, V, weights, 0)


def cut_corpus(corpus: Corpus, window: int) -> list[Run]:
    """Runs of the corpus that can be counted in the memory budget."""
    tokens_per_run = min(max(LEAST_RUN, config().memory // (3 * TOKEN_BYTES)), 2**29)
    return runs(corpus, tokens_per_run, margin=window)


# ---- one run of the corpus -------------------------------------------------------------------------------------


class Places(NamedTuple):
    """A run's tokens with −1 around its lines, and the places of each word."""

    tokens: np.ndarray
    places: np.ndarray
    starts: np.ndarray


def _find_places(run: Run, V: int) -> Places:
    lines = run.read()
    starts = np.concatenate([[0], np.cumsum(_count_words(lines.own, V))])
    tokens = np.empty(len(lines.tokens) + len(lines.ends) + 1, np.int32)
    places = np.empty(len(lines.own), np.int32)
    used = lay_out(lines.tokens, lines.ends, lines.first, lines.last, starts, tokens, places)
    return Places(tokens[:used], places, starts)


def _count_words(tokens: np.ndarray, V: int) -> np.ndarray:
    """How often each word occurs; a piece at a time, since bincount makes a wider copy of what it counts."""
    counts = np.zeros(V, np.int64)
    for at in range(0, len(tokens), 2**20):
        counts += np.bincount(tokens[at : at + 2**20], minlength=V)
    return counts


def _count_run(run: Run, V: int, weights: Weights, sums: bool = False) -> Iterator[Panel]:
    """The rows of one run of the corpus: counts, or the whole sums that several runs' counts are made of."""
    found = _find_places(run, V)
    seen = len(weights.table) * (2 if weights.both else 1)
    bounds = cut_rows(np.minimum(seen * np.diff(found.starts), V))
    return _map_panels(_window_panel, bounds, found, weights, V, 0 if sums else weights.unit)


def _window_panel(rows: tuple[int, int, int], found: Places, weights: Weights, V: int, unit: int) -> Panel:
    a, b, most = rows
    out, starts = _panel(b - a, most), found.starts[a : b + 1]
    window_rows(found.tokens, found.places, starts, weights.table, 1 + weights.both, *_make_scratch(V), *out)
    return _finish(out, unit)


def _panel(rows: int, most: int) -> Panel:
    return Panel(np.zeros(rows + 1, np.int64), np.empty(most, np.int32), np.empty(most, np.int64))


def _make_scratch(V: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums, and the bits that tell which of them are not zero."""
    blocks = np.zeros(V // 64 + 1, np.uint64)
    return np.zeros(V, np.int64), blocks, np.zeros(len(blocks) // 64 + 1, np.uint64)


def _finish(panel: Panel, unit: int) -> Panel:
    """Only what is stored, and as counts if a unit is given."""
    stored = int(panel.indptr[-1])
    values = panel.values[:stored]
    values = (values / unit).astype(np.float32) if unit else values.copy()
    return Panel(panel.indptr, panel.indices[:stored].copy(), values)


def cut_rows(most: np.ndarray) -> list[tuple[int, int, int]]:
    """Runs of rows (from, to, bound on what they store), given how much each may store."""
    before, bounds, a = np.concatenate([[0], np.cumsum(most)]), [], 0
    while a < len(most):
        b = max(int(np.searchsorted(before, before[a] + PANEL, side="right")) - 1, a + 1)
        bounds.append((a, b, int(before[b] - before[a])))
        a = b
    return bounds


def _map_panels(make: Callable[..., Panel], bounds: list[tuple], *shared: Any) -> Iterator[Panel]:
    """Panels in order, a few at a time, as the memory budget allows."""
    engine = Engine()
    largest = ENTRY_BYTES * max(most for _, _, most in bounds)
    together = max(1, min(32 * config().threads, config().memory // (4 * largest)))
    for at in range(0, len(bounds), together):
        some = Rows(bounds[at : at + together])
        yield from engine.gather(engine.map(make, some, *(engine.broadcast(value) for value in shared)))


# ---- several runs, on disk -------------------------------------------------------------------------------------


class Part(NamedTuple):
    """Rows of sums in temporary files, or in a folder, and where each row starts."""

    starts: Store | Stored
    indices: Store | Stored
    sums: Store | Stored


def _count_on_disk(parts: list[Run], V: int, weights: Weights, unit: int) -> Iterator[Panel]:
    """The rows of the whole corpus, each run of it counted to disk first."""
    written: list[Part] = []
    try:
        for run in parts:
            written.append(_write_part(_count_run(run, V, weights, sums=True)))
            if len(written) == MOST_PARTS:
                former, written = written, []
                written.append(_write_part(_merge_parts(former, V, 0)))
                _close(former)
        yield from _merge_parts(written, V, unit)
    finally:
        _close(written)


def _close(parts: list[Part]) -> None:
    for part in parts:
        for store in part:
            if isinstance(store, Store):
                store.close()


def _write_part(panels: Iterable[Panel]) -> Part:
    starts, indices, sums = stores = Store(np.int64, 0), Store(np.int32, 0), Store(np.int64, 0)
    starts.append(np.zeros(1, np.int64))
    for panel in panels:
        starts.append(panel.indptr[1:] + indices.length)
        indices.append(panel.indices)
        sums.append(panel.values)
    for store in stores:
        store.finish()
    return Part(*stores)


def _merge_parts(parts: list[Part], V: int, unit: int) -> Iterator[Panel]:
    """Rows of several parts added up."""
    stored = np.zeros(V, np.int64)
    for part in parts:
        stored += np.diff(part.starts.read(0, V + 1))
    return _map_panels(merge_panel, cut_rows(stored), parts, V, unit)


def merge_panel(rows: tuple[int, int, int], parts: list[Part], V: int, unit: int) -> Panel:
    a, b, most = rows
    starts = np.array([part.starts.read(a, b + 1) for part in parts])  # (parts, rows + 1)
    indices = [part.indices.read(int(s[0]), int(s[-1])) for part, s in zip(parts, starts, strict=True)]
    sums = [part.sums.read(int(s[0]), int(s[-1])) for part, s in zip(parts, starts, strict=True)]
    before = np.concatenate([[0], np.cumsum([len(found) for found in sums])[:-1]])
    starts += (before - starts[:, 0])[:, None]
    out = _panel(b - a, most)
    merge_rows(starts, np.concatenate(indices), np.concatenate(sums), *_make_scratch(V), *out)
    return _finish(out, unit)
