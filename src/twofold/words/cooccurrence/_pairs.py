"""Pairs of words within a window, summed for the whole corpus, a row of the table at a time.

    n[i, j] = Σ  w(p − q)  over places p of word i and q of word j, at most `window` apart in one line

Each word's places are listed first; a row is then the sum over the windows at its word's places. The engine maps over
runs of rows, cut by the words' counts alone.

Sums are whole numbers: weights are multiples of 1/unit, the least common multiple of the distances. So every order
of additions gives the same bits. A corpus too large for the memory budget is counted in parts, whose rows are on disk
until they are added. On a cluster the parts are blocks of files:

    map      the lines of a block → ids → sums of whole numbers by row, sorted          a folder N.csr a block, on disk
    bucket   runs of rows that store about equally many cells, over all blocks
    reduce   each run of rows: the sums of all blocks, added                            comes here, run after run

All workers must see that disk.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.data.blocks import Rows
from twofold.core.data.csr_folder import Stored, open_array, write_csr
from twofold.core.engine.local import Engine
from twofold.kernels.cooccurrence import lay_out, merge_rows, window_rows
from twofold.text.counting import column_finder
from twofold.text.text_tasks import TextTasks
from twofold.text.tokenize import Rules, Stems
from twofold.text.vocabulary import Vocabulary, rules_of
from twofold.words.corpus import Corpus, Run, Store, encode_pieces, runs

MAX_PANEL_PAIRS = 2**19  # stored in a run of rows (unless one row has more)
ENTRY_BYTES = 12  # of a stored pair: its column and its sum
TOKEN_BYTES = 12  # of a token while its run is counted
MIN_RUN_TOKENS = 2**16  # that are counted together with any budget
MAX_PARTS = 16  # on disk, before they are added to one


class Weights(NamedTuple):
    """table[d−1] / unit is the weight of two words at distance d; `both` sides of a word count, or one."""

    table: np.ndarray
    unit: int
    both: bool


class Panel(NamedTuple):
    """Consecutive rows: of sums (int64), or of the counts they stand for (float32)."""

    indptr: np.ndarray
    indices: np.ndarray  # int32
    values: np.ndarray


def make_weights(window: int, harmonic: bool, both: bool, max_count: int) -> Weights:
    """Weights 1/distance, or 1, as whole numbers; no row of a word that occurs `max_count` times overflows.

    The unit is the least common multiple of 1..window if that fits (up to window 22 always); else a power of two, and
    weights are rounded to its multiples.
    """
    distances = range(1, window + 1)
    if not harmonic:
        return Weights(np.ones(window, np.int64), 1, both)
    room = 2**62 / (2 * max(max_count, 1) * sum(1 / d for d in distances))
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
    rows.has_canonical_format = True  # columns ascend
    return rows


def sum_panels(corpus: Corpus, V: int, weights: Weights) -> Iterator[Panel]:
    """The sums of some lines in whole numbers, from the first row to the last."""
    parts = cut_corpus(corpus, len(weights.table))
    if not parts:
        return iter([Panel(np.zeros(V + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))])
    return _count_run(parts[0], V, weights, sums=True) if len(parts) == 1 else _count_on_disk(parts, V, weights, 0)


def cut_corpus(corpus: Corpus, window: int) -> list[Run]:
    """Runs of the corpus that can be counted in the memory budget."""
    tokens_per_run = min(max(MIN_RUN_TOKENS, config().memory // (3 * TOKEN_BYTES)), 2**29)
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
    """Count each word, a part at a time, since bincount makes an int64 copy of its input."""
    counts = np.zeros(V, np.int64)
    for at in range(0, len(tokens), 2**20):
        counts += np.bincount(tokens[at : at + 2**20], minlength=V)
    return counts


def _count_run(run: Run, V: int, weights: Weights, sums: bool = False) -> Iterator[Panel]:
    """The rows of one run of the corpus: counts, or sums in whole numbers."""
    places = _find_places(run, V)
    neighbors = len(weights.table) * (2 if weights.both else 1)
    bounds = cut_rows(np.minimum(neighbors * np.diff(places.starts), V))
    return _map_panels(_window_panel, bounds, places, weights, V, 0 if sums else weights.unit)


def _window_panel(rows: tuple[int, int, int], p: Places, weights: Weights, V: int, unit: int) -> Panel:
    a, b, size = rows
    out, starts = _panel(b - a, size), p.starts[a : b + 1]
    window_rows(p.tokens, p.places, starts, weights.table, 1 + weights.both, *_make_scratch(V), *out)
    return _finish(out, unit)


def _panel(rows: int, size: int) -> Panel:
    return Panel(np.zeros(rows + 1, np.int64), np.empty(size, np.int32), np.empty(size, np.int64))


def _make_scratch(V: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums, and bits that mark those that are not zero."""
    blocks = np.zeros(V // 64 + 1, np.uint64)
    return np.zeros(V, np.int64), blocks, np.zeros(len(blocks) // 64 + 1, np.uint64)


def _finish(panel: Panel, unit: int) -> Panel:
    """Cut a panel to its stored size; divide the sums by `unit` if it is not 0."""
    stored = int(panel.indptr[-1])
    values = panel.values[:stored]
    values = (values / unit).astype(np.float32) if unit else values.copy()
    return Panel(panel.indptr, panel.indices[:stored].copy(), values)


def cut_rows(sizes: np.ndarray) -> list[tuple[int, int, int]]:
    """Cut rows into runs (start, stop, bound of stored pairs), given a bound for each row."""
    before, bounds, a = np.concatenate([[0], np.cumsum(sizes)]), [], 0
    while a < len(sizes):
        b = max(int(np.searchsorted(before, before[a] + MAX_PANEL_PAIRS, side="right")) - 1, a + 1)
        bounds.append((a, b, int(before[b] - before[a])))
        a = b
    return bounds


def _map_panels(make: Callable[..., Panel], bounds: list[tuple], *shared: Any) -> Iterator[Panel]:
    """Make panels in order, as many at a time as the memory budget allows."""
    engine = Engine()
    largest = ENTRY_BYTES * max(1, *(size for _, _, size in bounds))
    together = max(1, min(32 * config().threads, config().memory // (4 * largest)))
    for at in range(0, len(bounds), together):
        some = Rows(bounds[at : at + together])
        yield from engine.gather(engine.map(make, some, *(engine.broadcast(value) for value in shared)))


# ---- several runs, on disk -------------------------------------------------------------------------------------


class Part(NamedTuple):
    """Rows of sums in temporary files, or in a folder, and the start of each row."""

    starts: Store | Stored
    indices: Store | Stored
    sums: Store | Stored


def _count_on_disk(parts: list[Run], V: int, weights: Weights, unit: int) -> Iterator[Panel]:
    """The rows of the whole corpus; each run of it is counted to disk first."""
    written: list[Part] = []
    try:
        for run in parts:
            written.append(_write_part(_count_run(run, V, weights, sums=True)))
            if len(written) == MAX_PARTS:
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
    """The sum of several parts, by rows."""
    stored = np.zeros(V, np.int64)
    for part in parts:
        stored += np.diff(part.starts.read(0, V + 1))
    return _map_panels(merge_panel, cut_rows(stored), parts, V, unit)


def merge_panel(rows: tuple[int, int, int], parts: list[Part], V: int, unit: int) -> Panel:
    a, b, size = rows
    starts = np.array([part.starts.read(a, b + 1) for part in parts])  # (parts, rows + 1)
    indices = [part.indices.read(int(s[0]), int(s[-1])) for part, s in zip(parts, starts, strict=True)]
    sums = [part.sums.read(int(s[0]), int(s[-1])) for part, s in zip(parts, starts, strict=True)]
    before = np.concatenate([[0], np.cumsum([len(values) for values in sums])[:-1]])
    starts += (before - starts[:, 0])[:, None]
    out = _panel(b - a, size)
    merge_rows(starts, np.concatenate(indices), np.concatenate(sums), *_make_scratch(V), *out)
    return _finish(out, unit)


# ---- on the workers of a cluster -------------------------------------------------------------------------------


def pair_rows_on_cluster(
    corpus: TextTasks, vocabulary: Vocabulary, max_count: int, window: int, harmonic: bool, both: bool, folder: str
) -> Iterator[sparse.csr_array]:
    """The table n (V,V) float32 in blocks of rows, from the first to the last.

    No word occurs more than `max_count` times; `folder` is empty, and all workers can read it.
    """
    V, tasks = len(vocabulary), corpus.tasks
    weights = make_weights(window, harmonic, both, max_count)
    shared = tasks.hold(vocabulary.words_.tolist()), rules_of(vocabulary.lowercase), weights, folder
    written = [tasks.submit(write_part, block, number, *shared) for number, block in enumerate(corpus.blocks)]
    stored = tasks.gather([tasks.reduce(written)])[0]
    for rows in corpus.map(merge_run, folder, len(written), V, weights.unit, over=cut_rows(stored)):
        yield as_rows(rows, V)


def count_vocabulary(corpus: TextTasks, vocabulary: Vocabulary) -> np.ndarray:
    """Count each word of a vocabulary."""
    tasks, rules = corpus.tasks, rules_of(vocabulary.lowercase)
    words = tasks.hold(vocabulary.words_.tolist())
    counted = [tasks.submit(count_ids, block, words, rules) for block in corpus.blocks]
    return tasks.gather([tasks.reduce(counted)])[0]


def encode(block: Any, words: list[str], rules: Rules) -> Corpus:
    """A block's lines as ids of words."""
    return encode_pieces(block, rules, column_finder(words, rules, Stems(None)))


def count_ids(block: Any, words: list[str], rules: Rules) -> np.ndarray:
    with encode(block, words, rules) as corpus:
        return np.bincount(corpus.tokens, minlength=len(words))


def write_part(block: Any, number: int, words: list[str], rules: Rules, weights: Weights, folder: str) -> np.ndarray:
    """Write a block's sums; return the number of stored pairs of each row (V,)."""
    if not os.path.isdir(folder):
        raise InputError(
            f"a worker cannot read {folder}, the folder of the pair counts. Give fit(..., to=PATH) a path on a disk "
            "that all of them share, or set TMPDIR to one."
        )
    V, stored = len(words), list[np.ndarray]()
    with encode(block, words, rules) as corpus:

        def rows() -> Iterator[sparse.csr_array]:
            for panel in sum_panels(corpus, V, weights):
                stored.append(np.diff(panel.indptr))
                yield as_rows(panel, V)

        write_csr(Path(folder) / f"{number}.csr", rows())
    return np.concatenate(stored)


def merge_run(rows: tuple[int, int, int], folder: str, parts: int, V: int, unit: int) -> Any:
    """Add a run of rows of all blocks."""
    names = ("indptr.npy", "indices.npy", "data.npy")
    opened = [Part(*(open_array(Path(folder) / f"{n}.csr" / name) for name in names)) for n in range(parts)]
    return merge_panel(rows, opened, V, unit)
