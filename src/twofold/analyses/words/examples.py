"""Words worth showing: frequent, but not merely grammar.

Of English text a list says which words are grammar. Of other text, the most frequent words that make up a part of it
are taken to be: in every language few words, the small ones, are half of what is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from twofold.words.word_vectors.word_vectors import WordVectors

COMMONEST = frozenset("the of and to in is it that for was on with as are this be".split())  # noqa: SIM905
ENGLISH = 8  # of these among the most frequent words say that the text is English
GRAMMAR = 0.45  # of the text, in a language that is not known
SHORTEST = 3  # letters
ALIKE = 0.55  # cosine from which two words are too close to show both


def telling(vectors: WordVectors, most: int) -> list[str]:
    """The most frequent words that say what the text is about."""
    words = [str(word) for word in vectors.words]
    skip = grammar(words, vectors.counts_)
    lengths = np.linalg.norm(np.asarray(vectors.vectors_, dtype=np.float64), axis=1)
    out: list[str] = []
    for at, word in enumerate(words):
        if at not in skip and len(word) >= SHORTEST and word.isalpha() and lengths[at] > 0:
            out.append(word)
        if len(out) == most:
            break
    return out


def grammar(words: list[str], counts: np.ndarray | None) -> set[int]:
    """Places of the words that are grammar."""
    if sum(word in COMMONEST for word in words[:60]) >= ENGLISH:
        from twofold.text.stop_words import english

        known = english()
        return {at for at, word in enumerate(words) if word.lower() in known}
    if counts is None:
        return set(range(min(100, len(words) // 20)))
    share = np.cumsum(counts) / max(float(np.sum(counts)), 1.0)
    return set(range(min(int(np.searchsorted(share, GRAMMAR)), len(words) // 10)))


def examples(vectors: WordVectors, most: int, apart: float = ALIKE) -> list[str]:
    """Telling words, no two of which are alike."""
    out: list[str] = []
    for word in telling(vectors, 40 * most):
        if all(vectors.similarity(word, other) < apart for other in out):
            out.append(word)
        if len(out) == most:
            break
    return out
