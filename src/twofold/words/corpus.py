"""A corpus as numbers: the ids of its words in order, and where its lines end.

    tokens (N,) int32     ends (S,) int64     line s is tokens[ends[s-1]:ends[s]]

Words that are not in the vocabulary are left out. What would take more than its share of the memory budget is put
into a temporary file that disappears with the corpus.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any, NamedTuple

import numpy as np

from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.text.counting import Chunk, Codes, Tally, encode_chunks
from twofold.text.documents import Texts, is_once
from twofold.text.tokenize import Rules
from twofold.text.vocabulary import Vocabulary, rules_of

PIECE = 2**20  # tokens that are renumbered at once


class Store:
    """Numbers put one after the other: in memory, or in a temporary file from a share of the budget on."""

    def __init__(self, dtype: Any, most: int | None = None):
        """`most` bytes are held; the default is an eighth of the memory budget."""
        self.dtype, self.length = np.dtype(dtype), 0
        self.parts: list[np.ndarray] = []
        self.file: Any = None
        self.most = config().memory // 8 if most is None else most

    def append(self, numbers: np.ndarray) -> None:
        self.length += len(numbers)
        self.parts.append(np.ascontiguousarray(numbers, self.dtype))
        if self.length * self.dtype.itemsize > self.most:
            self.file = self.file or tempfile.TemporaryFile(prefix="twofold-words-")  # noqa: SIM115  (see `close`)
            for part in self.parts:
                self.file.write(part.data)
            self.parts = []

    def finish(self) -> np.ndarray:
        """All of it: an array, or a map of the file."""
        if self.file is None:
            self.parts = [np.concatenate([np.empty(0, self.dtype), *self.parts])]
            return self.parts[0]
        self.file.flush()
        return np.memmap(self.file, self.dtype, "r", shape=(self.length,))

    def read(self, start: int, stop: int) -> np.ndarray:
        """Numbers start..stop once finished; read rather than mapped, so that they are in memory only while used."""
        if self.file is None:
            return self.parts[0][start:stop]
        out, at = np.empty(stop - start, self.dtype), start * self.dtype.itemsize
        if hasattr(os, "preadv") and os.preadv(self.file.fileno(), [out.data], at) == out.nbytes:
            return out
        return np.array(np.memmap(self.file, self.dtype, "r", shape=(self.length,))[start:stop])

    def close(self) -> None:
        self.parts = []
        if self.file is not None:
            self.file.close()


class Lines(NamedTuple):
    """Some of a corpus in memory: `tokens` (m,) int32 and their lines' `ends` (s,) int64, the last of which is m.

    Tokens first..last are this run's own; the others are there to be seen by a window.
    """

    tokens: np.ndarray
    ends: np.ndarray
    first: int
    last: int

    @property
    def own(self) -> np.ndarray:
        return self.tokens[self.first : self.last]


class Run(NamedTuple):
    """A stretch of a corpus, not yet read: tokens start..stop, of begin..finish that windows may see."""

    corpus: Corpus
    begin: int
    start: int
    stop: int
    finish: int

    def read(self) -> Lines:
        tokens = self.corpus.stored.read(self.begin, self.finish)
        a, b = np.searchsorted(self.corpus.ends, [self.begin, self.finish], side="right")
        inside = np.append(self.corpus.line_ends.read(int(a), int(b)) - self.begin, len(tokens))
        ends = inside[: np.searchsorted(inside, len(tokens)) + 1]  # one end at the last token, not two
        return Lines(tokens, ends, self.start - self.begin, self.stop - self.begin)


class Corpus:
    """Encoded lines. As a context manager it deletes its temporary files at the end; else they go with it.

    Attributes
    ----------
    tokens : ndarray or memmap of shape (N,), int32
        Ids of the words, unknown ones left out.
    ends : ndarray or memmap of shape (S,), int64
        Where each line ends in tokens; a line without known words ends where the one before does.
    """

    def __init__(self, tokens: Store, ends: Store):
        self.stored, self.line_ends = tokens, ends
        self.tokens, self.ends = tokens.finish(), ends.finish()

    def __enter__(self) -> Corpus:
        return self

    def __exit__(self, *why: Any) -> None:
        del self.tokens, self.ends
        self.stored.close()
        self.line_ends.close()

    def __len__(self) -> int:
        """How many tokens there are."""
        return self.stored.length


def runs(corpus: Corpus, tokens_per_run: int, margin: int = 0) -> list[Run]:
    """The corpus as runs of whole lines with about so many tokens, wherever it lives: the cuts depend on it alone.

    A run ends with the line that fills it. A line of more than `tokens_per_run` tokens begins a run of its own and
    is cut after every so many of its tokens; with a `margin`, the runs beside a cut also see so many tokens of that
    line beyond it, which are not theirs, so that windows are the same as without the cut.
    """
    found, start, n = [], 0, len(corpus)
    while start < n:
        line = int(np.searchsorted(corpus.ends, start, side="right"))  # the one that token `start` is in
        begins = int(corpus.ends[line - 1]) if line else 0
        goal = min(start + tokens_per_run, n)
        last = int(np.searchsorted(corpus.ends, goal, side="left"))  # the line that fills the run
        ends = int(corpus.ends[last])
        former = max(int(corpus.ends[last - 1]) if last else 0, start)
        if ends - former <= tokens_per_run:
            stop = ends
        else:
            stop = goal if former == start else former
        seen = int(corpus.ends[np.searchsorted(corpus.ends, stop, side="left")])
        found.append(Run(corpus, max(begins, start - margin), start, stop, min(seen, stop + margin)))
        start = stop
    return found


# ---- encoding --------------------------------------------------------------------------------------------------


class Encoding:
    """Chunks of codes on their way into a corpus."""

    def __init__(self) -> None:
        self.tokens, self.ends, self.texts_done = Store(np.int32), Store(np.int64), 0

    def add(self, chunk: Chunk, texts: Texts) -> None:
        keep = chunk.codes >= 0
        before = self.tokens.length + np.concatenate([[0], np.cumsum(keep)])
        ends = before[np.cumsum(chunk.lengths)]
        after = self.texts_done + len(chunk.lengths)
        joined = [at - self.texts_done for at in texts.continued if self.texts_done <= at < after]
        self.tokens.append(chunk.codes[keep])
        self.ends.append(np.delete(ends, joined))
        self.texts_done = after

    def close(self) -> None:
        self.tokens.close()
        self.ends.close()


def encode_corpus(corpus: Any, vocabulary: Vocabulary) -> Corpus:
    """The corpus (a path, texts, or lists of words) as ids of a fitted vocabulary; files are read as they are encoded.

    >>> v = Vocabulary(min_count=1).fit(["to be or not to be"])
    >>> with encode_corpus(["Be!", "that is not", "to be"], v) as corpus:
    ...     corpus.tokens.tolist(), corpus.ends.tolist()
    ([0, 2, 1, 0], [1, 2, 4])
    """
    return encode_pieces(corpus, rules_of(vocabulary.lowercase), vocabulary.finder())


def encode_pieces(corpus: Any, rules: Rules, codes: Codes) -> Corpus:
    """The corpus as codes of its pieces."""
    made, texts = Encoding(), Texts(corpus)
    for chunk in encode_chunks(texts, rules, codes):
        made.add(chunk, texts)
    return Corpus(made.tokens, made.ends)


def fit_and_encode(corpus: Any, vocabulary: Vocabulary) -> Corpus:
    """Fit the vocabulary and encode by it: what ``encode_corpus(corpus, vocabulary.fit(corpus))`` gives, reading once.

    Words are numbered as they come up, and renumbered at the end. Only if the distinct words outgrow the memory
    budget is the corpus read again.
    """
    made = Encoding()

    def keep(chunk: Chunk, tally: Tally, texts: Texts) -> None:
        if not tally.runs:
            made.add(chunk, texts)
        elif is_once(corpus):
            raise InputError(
                "the corpus can be gone through only once, and has more distinct words than the memory budget of "
                f"{config().memory:,} bytes holds. Give a list or a path, or raise it: twofold.config(memory=...)."
            )

    tally = vocabulary._learn(corpus, keep)
    if tally.runs:
        made.close()
        return encode_corpus(corpus, vocabulary)
    ids = np.full(len(tally.forms), -1, np.int32)
    ids[[tally.forms[word] for word in vocabulary.words_]] = np.arange(len(vocabulary))
    return _renumbered(Corpus(made.tokens, made.ends), ids)


def _renumbered(corpus: Corpus, ids: np.ndarray) -> Corpus:
    """The corpus with ids[token] for each token, those below 0 left out."""
    tokens, ends, done = Store(np.int32), Store(np.int64), 0
    with corpus:
        for a in range(0, max(len(corpus), 1), PIECE):
            codes = ids[corpus.stored.read(a, min(a + PIECE, len(corpus)))]
            keep = codes >= 0
            before = tokens.length + np.concatenate([[0], np.cumsum(keep)])
            upto = int(np.searchsorted(corpus.ends, a + len(codes), side="right"))
            ends.append(before[corpus.line_ends.read(done, upto) - a])
            tokens.append(codes[keep])
            done = upto
    return Corpus(tokens, ends)
