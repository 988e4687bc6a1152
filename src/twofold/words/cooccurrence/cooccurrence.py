"""Co-occurrence: counts of pairs of words near each other.

    n[i, j] = Σ  1/(p − q)  over places p of word i and q of word j, at most `window` apart in one line
    n (V,V) CSR float32, symmetric; rows and columns in the order of the vocabulary

One pass:   each line   text → ids, by a vocabulary that is learned while the text is read
            each word   its row is the sum of the windows at its places

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
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.data.blocks import Blocks, Rows, as_blocks
from twofold.core.data.csr_folder import ENDING, Stored, open_array, write_csr
from twofold.core.engine.local import Engine
from twofold.core.estimator import Model, fitting
from twofold.core.params import Interval, StrOptions
from twofold.core.types import Documents
from twofold.kernels.cooccurrence import lay_out, merge_rows, window_rows
from twofold.text.counting import column_finder
from twofold.text.text_tasks import TextTasks, find_text_tasks
from twofold.text.tokenize import Rules, Stems
from twofold.text.vocabulary import Vocabulary, rules_of
from twofold.words.corpus import Corpus, Run, Store, encode_corpus, encode_pieces, fit_and_encode, runs

MAX_PANEL_PAIRS = 2**19  # stored in a run of rows (unless one row has more)
ENTRY_BYTES = 12  # of a stored pair: its column and its sum
TOKEN_BYTES = 12  # of a token while its run is counted
MIN_RUN_TOKENS = 2**16  # that are counted together with any budget
MAX_PARTS = 16  # on disk, before they are added to one


class Cooccurrence(Model):
    """Counts of the pairs of words that occur near each other: the table that GloVe and PMI embeddings factorize.

    ``counts_[i, j]`` adds up 1/d over all pairs of a word i and a word j that are d ≤ `window` places apart in one
    line: neighbors count 1, words with one between them 1/2. Words that are not in the vocabulary are left out
    first, and windows never cross the end of a line.

    Parameters
    ----------
    window : int, default=10
        Maximum distance of a pair, in words.
    weighting : {"harmonic", "flat"}, default="harmonic"
        A pair at distance d counts 1/d, or 1.
    symmetric : bool, default=True
        Count both sides of a word. If False, ``counts_[i, j]`` counts the words j before a word i; the symmetric table
        is that one plus its transpose.
    min_count, max_size, lowercase
        Of the vocabulary that is learned, see `Vocabulary`.
    vocabulary : Vocabulary, list of str or None, default=None
        The words to count, in this order; by default they are learned.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        Of the rows and columns.
    counts_ : csr_array of shape (V, V), float32, or str
        The table, or the path of the folder it was written to.

    Notes
    -----
    Sums are exact: weights are whole multiples of 1/lcm(1..window), added as integers, and rounded once at the end.
    (For windows above about 25 that multiple is too large; weights are then multiples of a power of two.) So neither
    threads nor the memory budget change a bit.

    A corpus is read line by line, and stored in 4 bytes a word; beyond the memory budget it is in temporary files, like
    the tables of its parts. With ``fit(corpus, to="pairs.csr")`` the table is written to disk and is never in memory.

    References
    ----------
    Lund & Burgess (1996), *Behavior Research Methods* 28, 203-208. Pennington, Socher & Manning (2014), *EMNLP*.

    Examples
    --------
    >>> from twofold.words.cooccurrence.cooccurrence import Cooccurrence
    >>> pairs = Cooccurrence(window=2, min_count=1).fit(["a rose is a rose"])
    >>> [str(word) for word in pairs.vocabulary_.words_]
    ['a', 'rose', 'is']
    >>> pairs.counts_.toarray()  # "is" has "a" and "rose" beside it, and both once more with one word between
    array([[0. , 2.5, 1.5],
           [2.5, 0. , 1.5],
           [1.5, 1.5, 0. ]], dtype=float32)
    """

    vocabulary_: Annotated[Vocabulary, "words_: v, text"]
    counts_: Annotated[Any, "v v, >= 0, sparse, or path"]
    _takes_text: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict] = {
        "window": [Interval(Integral, 1, None, closed="left")],
        "weighting": [StrOptions({"harmonic", "flat"})],
        "symmetric": ["boolean"],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "max_size": [Interval(Integral, 1, None, closed="left"), None],
        "vocabulary": [Vocabulary, list, tuple, np.ndarray, None],
        "lowercase": ["boolean"],
    }

    def __init__(
        self,
        *,
        window: int = 10,
        weighting: str = "harmonic",
        symmetric: bool = True,
        min_count: int = 5,
        max_size: int | None = None,
        vocabulary: Any = None,
        lowercase: bool = True,
    ):
        self.window = window
        self.weighting = weighting
        self.symmetric = symmetric
        self.min_count = min_count
        self.max_size = max_size
        self.vocabulary = vocabulary
        self.lowercase = lowercase

    @fitting
    def fit(self, corpus: Documents, y: Any = None, *, to: str | os.PathLike | None = None) -> Cooccurrence:
        """Count the pairs of a corpus; see :meth:`Vocabulary.fit` for what that may be.

        With `to`, the path of a folder that ends in ".csr", the table is written there, and `counts_` is that path. The
        folder appears whole or not at all.
        """
        if to is not None and not os.fspath(to).lower().endswith(ENDING):
            raise InputError(f'to={os.fspath(to)!r} must end in "{ENDING}": models know a sparse table by that.')
        how = (int(self.window), self.weighting == "harmonic", bool(self.symmetric))
        vocabulary, texts = self._start_vocabulary(), find_text_tasks(corpus, split=True)
        if texts is not None:
            max_count = self._count_on_cluster(texts, vocabulary)
            beside = None if to is None else os.path.dirname(os.path.abspath(to))
            with tempfile.TemporaryDirectory(prefix="twofold-words-", dir=beside) as folder:
                counts = _gather(pair_rows_on_cluster(texts, vocabulary, max_count, *how, folder), len(vocabulary), to)
        else:
            with (fit_and_encode if self.vocabulary is None else encode_corpus)(corpus, vocabulary) as lines:
                if not len(lines):
                    raise _none_of(vocabulary)
                counts = _gather(pair_rows(lines, len(vocabulary), *how), len(vocabulary), to)
        self.vocabulary_, self.counts_ = vocabulary, counts
        return self

    def _start_vocabulary(self) -> Vocabulary:
        """The words to count, or a vocabulary to fit."""
        if self.vocabulary is None:
            return Vocabulary(min_count=self.min_count, max_size=self.max_size, lowercase=self.lowercase)
        if isinstance(self.vocabulary, Vocabulary):
            return self.vocabulary
        return Vocabulary.of(self.vocabulary, lowercase=self.lowercase)

    def _count_on_cluster(self, texts: TextTasks, vocabulary: Vocabulary) -> int:
        """Fit the vocabulary on a cluster if it is not given; return the count of the most frequent word."""
        if self.vocabulary is None:
            return int(vocabulary._fit_on_cluster(texts).counts_.max())
        max_count = int(count_vocabulary(texts, vocabulary).max())
        if not max_count:
            raise _none_of(vocabulary)
        return max_count


def _none_of(vocabulary: Vocabulary) -> InputError:
    return InputError(
        f"the corpus has none of the {len(vocabulary):,} words of the vocabulary in it. Give other words or "
        "another text, or leave vocabulary=None to learn them."
    )


def _gather(blocks: Iterable[sparse.csr_array], V: int, to: str | os.PathLike | None) -> Any:
    """Blocks of rows as one array, or in a folder."""
    return _stack(blocks, V) if to is None else write_csr(to, blocks)


def _stack(blocks: Iterable[sparse.csr_array], V: int) -> sparse.csr_array:
    """Blocks of rows as one array, which grows in place, so that no copy is made."""
    values, indices, lengths, stored = np.empty(0, np.float32), np.empty(0, np.int32), list[np.ndarray](), 0
    for block in blocks:
        for whole, more in ((values, block.data), (indices, block.indices)):
            whole.resize(stored + block.nnz, refcheck=False)
            whole[stored:] = more
        stored += block.nnz
        lengths.append(np.diff(block.indptr))
    indptr = np.concatenate([[0], *lengths]).cumsum().astype(np.int32 if stored < 2**31 else np.int64)
    counts = sparse.csr_array((values, indices, indptr), shape=(V, V))
    counts.has_canonical_format = True
    return counts


class PairCounts(NamedTuple):
    """Counts n (V,V) in blocks of rows, and their words."""

    vocabulary: Vocabulary
    blocks: Blocks


OPTIONS = ("window", "min_count", "max_size", "lowercase")  # of Cooccurrence that models of pairs also have


@contextmanager
def count_pairs(X: Any, model: Any, vocabulary: Vocabulary | None = None) -> Iterator[PairCounts]:
    """Yield the pairs of a fitted `Cooccurrence`, or those of a corpus, counted with the options of `model`.

    Lists are counted in memory; the table of files, which may have any size, is in a temporary folder and is read a few
    megabytes at a time.
    """
    with tempfile.TemporaryDirectory(prefix="twofold-words-") as folder:
        if not isinstance(X, Cooccurrence):
            small = isinstance(X, (list, tuple))
            options = {name: getattr(model, name) for name in OPTIONS}
            to = None if small else os.path.join(folder, "pairs.csr")
            X = Cooccurrence(**options, vocabulary=vocabulary).fit(X, to=to)
        check_is_fitted(X)
        blocks = as_blocks(X.counts_)
        if not blocks.source.n_stored:
            raise InputError(
                f"no two of the {len(X.vocabulary_):,} words of the vocabulary occur within ⟨window={X.window}⟩ places "
                "of each other. Give longer lines, or lower min_count."
            )
        yield PairCounts(X.vocabulary_, blocks)


# ---- sums in whole numbers ------------------------------------------------------------------------------------------


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
