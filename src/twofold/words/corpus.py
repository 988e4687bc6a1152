"""A corpus as numbers: the ids of its words in order, and where its lines end.

    tokens (N,) int32     ends (S,) int64     line s is tokens[ends[s-1]:ends[s]]

Words that are not in the vocabulary are left out. A corpus beyond its share of the memory budget is in a temporary
file, which is deleted with it.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any, NamedTuple

import numpy as np

from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.text.counting import Chunk, Codes, Tally, encode_chunks
from twofold.text.documents import Texts, is_iterator
from twofold.text.tokenize import Rules
from twofold.text.vocabulary import Vocabulary, rules_of

TOKENS_AT_ONCE = 2**20  # that are renumbered together


class Store:
    """Consecutive numbers: in memory, or in a temporary file beyond a share of the budget."""

    def __init__(self, dtype: Any, max_bytes: int | None = None):
        """Keep up to `max_bytes` in memory, by default an eighth of the budget."""
        self.dtype, self.length = np.dtype(dtype), 0
        self.parts: list[np.ndarray] = []
        self.file: Any = None
        self.max_bytes = config().memory // 8 if max_bytes is None else max_bytes

    def append(self, numbers: np.ndarray) -> None:
        self.length += len(numbers)
        self.parts.append(np.ascontiguousarray(numbers, self.dtype))
        if self.length * self.dtype.itemsize > self.max_bytes:
            self.file = self.file or tempfile.TemporaryFile(prefix="twofold-words-")  # noqa: SIM115  (see `close`)
            for part in self.parts:
                self.file.write(part.data)
            self.parts = []

    def finish(self) -> np.ndarray:
        """All numbers, as an array or a map of the file."""
        if self.file is None:
            self.parts = [np.concatenate([np.empty(0, self.dtype), *self.parts])]
            return self.parts[0]
        self.file.flush()
        return np.memmap(self.file, self.dtype, "r", shape=(self.length,))

    def read(self, start: int, stop: int) -> np.ndarray:
        """Numbers start..stop of a finished store; read, not mapped, so that they are in memory only while used."""
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
    """A part of a corpus in memory: `tokens` (m,) int32 and their lines' `ends` (s,) int64, the last of which is m.

    Tokens first..last belong to the run; the others are read by its windows only.
    """

    tokens: np.ndarray
    ends: np.ndarray
    first: int
    last: int

    @property
    def own(self) -> np.ndarray:
        return self.tokens[self.first : self.last]


class Run(NamedTuple):
    """A part of a corpus, not yet read: tokens start..stop; its windows read begin..finish."""

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
    """Encoded lines; its temporary files are deleted at the end of a `with`, or with it.

    Attributes
    ----------
    tokens : ndarray or memmap of shape (N,), int32
        Ids of the words, unknown ones left out.
    ends : ndarray or memmap of shape (S,), int64
        The end of each line in tokens; a line without known words ends where the line before ends.
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
        """The number of tokens."""
        return self.stored.length


def runs(corpus: Corpus, tokens_per_run: int, margin: int = 0) -> list[Run]:
    """Cut the corpus into runs of whole lines of about `tokens_per_run` tokens; the cuts depend on the corpus alone.

    A run ends with the line that fills it. A longer line begins a run of its own and is cut every `tokens_per_run`
    tokens; the runs at a cut also read `margin` tokens of that line beyond it, so that windows are the same as without.
    """
    parts, start, n = [], 0, len(corpus)
    while start < n:
        line = int(np.searchsorted(corpus.ends, start, side="right"))  # of token `start`
        begins = int(corpus.ends[line - 1]) if line else 0
        goal = min(start + tokens_per_run, n)
        last = int(np.searchsorted(corpus.ends, goal, side="left"))  # the line that fills the run
        ends = int(corpus.ends[last])
        former = max(int(corpus.ends[last - 1]) if last else 0, start)
        stop = ends if ends - former <= tokens_per_run else goal if former == start else former
        line_end = int(corpus.ends[np.searchsorted(corpus.ends, stop, side="left")])
        parts.append(Run(corpus, max(begins, start - margin), start, stop, min(line_end, stop + margin)))
        start = stop
    return parts


# ---- encoding --------------------------------------------------------------------------------------------------


class Encoding:
    """Builds a corpus from chunks of codes."""

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
    """Encode a corpus (a path, texts, or lists of words) by a fitted vocabulary, while it is read.

    >>> v = Vocabulary(min_count=1).fit(["to be or not to be"])
    >>> with encode_corpus(["Be!", "that is not", "to be"], v) as corpus:
    ...     corpus.tokens.tolist(), corpus.ends.tolist()
    ([0, 2, 1, 0], [1, 2, 4])
    """
    return encode_pieces(corpus, rules_of(vocabulary.lowercase), vocabulary.finder())


def encode_pieces(corpus: Any, rules: Rules, codes: Codes) -> Corpus:
    """Encode a corpus by the codes of its pieces."""
    made, texts = Encoding(), Texts(corpus)
    for chunk in encode_chunks(texts, rules, codes):
        made.add(chunk, texts)
    return Corpus(made.tokens, made.ends)


def fit_and_encode(corpus: Any, vocabulary: Vocabulary) -> Corpus:
    """Return ``encode_corpus(corpus, vocabulary.fit(corpus))``, but read the corpus once.

    Words are numbered when they first occur, and renumbered at the end. The corpus is read again only if its distinct
    words do not fit into the memory budget.
    """
    made = Encoding()

    def keep(chunk: Chunk, tally: Tally, texts: Texts) -> None:
        if not tally.runs:
            made.add(chunk, texts)
        elif is_iterator(corpus):
            raise InputError(
                "the corpus can be read only once, and has more distinct words than the memory budget of "
                f"{config().memory:,} bytes holds. Give a list or a path, or raise it: twofold.config(memory=...)."
            )

    tally = vocabulary._learn(corpus, keep)
    if tally.runs:
        made.close()
        return encode_corpus(corpus, vocabulary)
    ids = np.full(len(tally.forms), -1, np.int32)
    ids[[tally.forms[word] for word in vocabulary.words_]] = np.arange(len(vocabulary))
    return _renumber(Corpus(made.tokens, made.ends), ids)


def _renumber(corpus: Corpus, ids: np.ndarray) -> Corpus:
    """Replace each token by ids[token]; drop those below 0."""
    tokens, ends, done = Store(np.int32), Store(np.int64), 0
    with corpus:
        for a in range(0, max(len(corpus), 1), TOKENS_AT_ONCE):
            codes = ids[corpus.stored.read(a, min(a + TOKENS_AT_ONCE, len(corpus)))]
            keep = codes >= 0
            before = tokens.length + np.concatenate([[0], np.cumsum(keep)])
            upto = int(np.searchsorted(corpus.ends, a + len(codes), side="right"))
            ends.append(before[corpus.line_ends.read(done, upto) - a])
            tokens.append(codes[keep])
            done = upto
    return Corpus(tokens, ends)
