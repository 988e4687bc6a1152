"""Phrases: neighboring words that occur together far more often than by chance, such as "hong kong".

    npmi(a, b) = log(p_ab / (p_a p_b)) / −log p_ab      p of words and of pairs of neighbors, in all text

Reference: Bouma (2009), *GSCL*, 31-40.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from twofold.text.counting import UNSEEN, Chunk
from twofold.text.languages import list_languages, list_stop_words
from twofold.text.tokenize import Rules

if TYPE_CHECKING:
    from twofold.text.bag_of_words import BagOfWords

MIN_TIMES = 5  # that a phrase occurs
MIN_NPMI = 0.5
STEM_LETTERS = 4  # with which a word in two forms begins, such as "iteration, iterations", which is no phrase
LANGUAGE_SAMPLE_TEXTS = 1000
MAX_TEXTS = 20_000  # in which phrases for titles are looked for


class Phrases(NamedTuple):
    """Pairs of words (by their codes) that are phrases."""

    pairs: np.ndarray  # (m,) first · n_words + second, sorted
    times: np.ndarray  # (m,)
    n_words: int

    def find(self, codes: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The places in `codes` where a phrase begins, and which one it is."""
        at, pair = neighbors(codes, lengths, self.n_words)
        which = np.minimum(np.searchsorted(self.pairs, pair), max(len(self.pairs) - 1, 0))
        known = self.pairs[which] == pair if len(self.pairs) else np.zeros(len(pair), bool)
        return at[known], which[known]


def neighbors(codes: np.ndarray, lengths: np.ndarray, n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """The places of words whose neighbor to the right is a word of the same document, and the pairs as numbers."""
    ends = np.cumsum(lengths)
    inside = np.ones(max(len(codes) - 1, 0), bool)
    inside[ends[(ends > 0) & (ends < len(codes))] - 1] = False
    at = np.flatnonzero(inside & (codes[:-1] >= 0) & (codes[1:] >= 0)) if len(codes) else np.zeros(0, np.int64)
    return at, codes[at].astype(np.int64) * n_words + codes[at + 1]


def learn_phrases(chunks: Iterable[Chunk], n_words: int, min_times: int = MIN_TIMES) -> Phrases:
    """Find the pairs of neighboring words that are phrases."""
    pairs, times, words = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(n_words, np.int64)
    for chunk in chunks:
        words += np.bincount(chunk.codes[chunk.codes >= 0], minlength=n_words)
        new, count = np.unique(neighbors(chunk.codes, chunk.lengths, n_words)[1], return_counts=True)
        every, back = np.unique(np.concatenate([pairs, new]), return_inverse=True)
        pairs, times = every, np.bincount(back, weights=np.concatenate([times, count])).astype(np.int64)
    often = times >= min_times
    pairs, times, total = pairs[often], times[often], max(int(words.sum()), 1)
    a, b = np.divmod(pairs, n_words)
    together = times / total
    with np.errstate(divide="ignore", invalid="ignore"):
        npmi = np.log(together * total**2 / (words[a] * words[b])) / -np.log(together)
    kept = (npmi >= MIN_NPMI) & (a != b)
    return Phrases(pairs[kept], times[kept], n_words)


def find_phrases(bag: BagOfWords, texts: Sequence[str]) -> dict[tuple[str, str], int]:
    """The phrases of words that a bag counts, and how often each occurs in some texts."""
    step = max(1, len(texts) // MAX_TEXTS)
    found = learn_phrases(bag._encode(list(texts[::step]), bag.vocabulary_), len(bag.vocabulary_))
    first, second = np.divmod(found.pairs, max(found.n_words, 1))
    names: Any = [str(word) for word in bag.vocabulary_]
    every = zip(first, second, found.times, strict=True)
    return {(names[a], names[b]): int(n) for a, b, n in every if names[a][:STEM_LETTERS] != names[b][:STEM_LETTERS]}


def join_phrases(texts: Iterable[str | list[str]]) -> tuple[list[list[str]], list[str]]:
    """The words of texts with phrases as words, "hong_kong", and the phrases, the most frequent first.

    No phrase has a stop word of the languages that the texts are in.

    >>> texts = ["This is the tea from Hong Kong", "Hong Kong has a port", "the port", "a ship", "her tea"] * 9
    >>> lines, phrases = join_phrases(texts)
    >>> lines[0], phrases
    (['this', 'is', 'the', 'tea', 'from', 'hong_kong'], ['hong_kong'])
    """
    rules, codes = Rules(numbers=True, min_length=1), dict[str, int]()
    lines = [[word for word in map(rules.word, rules.split(text)) if word] for text in texts]
    sample = [" ".join(line) for line in lines[:: max(1, len(lines) // LANGUAGE_SAMPLE_TEXTS)]]
    small = set[str]().union(*(list_stop_words(code) for code in list_languages(sample)))
    numbers = [-1 if word in small else codes.setdefault(word, len(codes)) for line in lines for word in line]
    lengths = np.array([len(line) for line in lines], dtype=np.int64)
    chunk = Chunk(np.array(numbers, dtype=np.int32), lengths)
    found = learn_phrases([chunk], max(len(codes), 1))
    at, _ = found.find(chunk.codes, lengths)
    starts, out, ends = set(at.tolist()), list[list[str]](), np.cumsum(lengths)
    for line, end in zip(lines, ends.tolist(), strict=True):
        joined, i, first = list[str](), 0, end - len(line)
        while i < len(line):
            pair = first + i in starts
            joined.append("_".join(line[i : i + 1 + pair]))
            i += 1 + pair
        out.append(joined)
    words = list(codes)
    order = found.pairs[np.argsort(-found.times, kind="stable")].tolist()
    return out, [f"{words[p // found.n_words]}_{words[p % found.n_words]}" for p in order]


def write_title(words: Sequence[str], phrases: Mapping[tuple[str, str], int], count: int) -> str:
    """The first words of a topic, those that are a phrase together.

    >>> write_title(["stock", "hong", "trade", "kong", "bank"], {("hong", "kong"): 9}, 3)
    'stock, hong kong, trade'
    """
    done, parts = set[str](), list[str]()
    for word in words:
        if word in done:
            continue
        pairs = [p for p in phrases if word in p and set(p) <= set(words) and not done & set(p)]
        pair = max(pairs, key=lambda p: (phrases[p], p)) if pairs else (word,)
        done |= set(pair)
        parts.append(" ".join(pair))
    return ", ".join(parts[:count])


class Vocabulary(NamedTuple):
    """Words and phrases of a bag: the columns, and further words that occur only in phrases."""

    words: np.ndarray  # (v,) every column, then the words that only phrases have
    columns: int
    phrases: Phrases
    column_of: np.ndarray  # (m,) of each phrase

    def add(self, chunk: Chunk) -> Chunk:
        """A chunk with the codes of its phrases beside those of their words."""
        at, which = self.phrases.find(chunk.codes, chunk.lengths)
        document = np.repeat(np.arange(len(chunk.lengths)), chunk.lengths)
        own = np.where(chunk.codes < self.columns, chunk.codes, UNSEEN)
        codes, of = np.concatenate([own, self.column_of[which]]), np.concatenate([document, document[at]])
        order = np.argsort(of, kind="stable")
        return Chunk(codes[order].astype(np.int32), np.bincount(of, minlength=len(chunk.lengths)))


def split_vocabulary(words: np.ndarray) -> Vocabulary:
    """The phrases among the words that are counted are those with a space."""
    known = {str(word): at for at, word in enumerate(words)}
    phrases = [(column, word.partition(" ")) for word, column in known.items() if " " in word]
    for _, (first, _, second) in phrases:
        known.setdefault(first, len(known))
        known.setdefault(second, len(known))
    every = np.array(list(known), dtype=object)
    pairs = np.array([known[a] * len(known) + known[b] for _, (a, _, b) in phrases], dtype=np.int64)
    order = np.argsort(pairs)
    columns = np.array([column for column, _ in phrases], dtype=np.int64)
    return Vocabulary(
        every, len(words), Phrases(pairs[order], np.zeros(len(pairs), np.int64), len(known)), columns[order]
    )
