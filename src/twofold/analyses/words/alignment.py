"""One set of word vectors turned onto another, and how many words of pairs held out find their partner."""

from __future__ import annotations

from typing import Any, NamedTuple

from twofold.analyses.words.vectors import examples
from twofold.core.seeds import generator
from twofold.words.alignment import Alignment, find_pairs, find_same_spelling
from twofold.words.word_vectors.word_vectors import WordVectors

SHOWN_WORDS, TRANSLATIONS_PER_WORD = 8, 3
MIN_PAIRS = 10  # of which some can be held out
MAX_TEST_PAIRS = 1_000


class Aligned(NamedTuple):
    """Vectors of the source among those of the target, and what is told about them."""

    vectors: WordVectors
    facts: dict[str, Any]


def align_vectors(source: WordVectors, target: WordVectors, pairs: str | None) -> Aligned:
    """Turn the source onto the target by pairs in a file, or by the words that both have.

    Nothing is centered, so that the vectors turned can be compared with the target's as these are.
    """
    options: dict[str, Any] = {"center": False}
    if pairs is None:
        places = find_same_spelling(source, target, Alignment().vocabulary)
    else:
        places = find_pairs(pairs, source, target)
    known = [(str(source.words[a]), str(target.words[b])) for a, b in places]
    held = measure(source, target, known, options)
    turn = Alignment(**options).fit(source, target, known if pairs is not None else None)
    words = examples(source, SHOWN_WORDS, max_cosine=1.0) or [str(word) for word in source.words[:SHOWN_WORDS]]
    facts = {
        "words": len(source),
        "other_words": len(target),
        "n_components": source.vectors_.shape[1],
        "by": "words that both have" if pairs is None else pairs,
        "pairs": len(known),
        "held_out": held,
        "translations": {word: dict(turn.translate(word, TRANSLATIONS_PER_WORD)) for word in words},
    }
    turned = (source.vectors_ @ turn.matrix_).astype(source.vectors_.dtype)
    return Aligned(WordVectors.of(source.words, turned, source.counts_), facts)


def measure(
    source: WordVectors, target: WordVectors, known: list[tuple[str, str]], options: dict[str, Any]
) -> dict[str, Any] | None:
    """Of a fifth of the pairs, not learned from: how often the first, and one of the first five, is right."""
    words = list(dict.fromkeys(a for a, _ in known))
    if len(words) < MIN_PAIRS:
        return None
    order = generator(0, 1).permutation(len(words))[: min(len(words) // 5, MAX_TEST_PAIRS)]
    hidden = {words[i] for i in order}
    test, train = ([pair for pair in known if (pair[0] in hidden) == wanted] for wanted in (True, False))
    turn = Alignment(**options).fit(source, target, train)
    return {
        "words": len(hidden),
        "precision_1": float(turn.score(test)),
        "precision_5": float(turn.score(test, n=5)),
        "by_chance_1": 1 / len(target),
        "by_chance_5": min(5 / len(target), 1.0),
    }
