"""How word vectors do on text that they have not seen: do the words around a hidden one point to it?"""

from __future__ import annotations

from typing import Any

import numpy as np

SIDES = 5  # words on either side by which a hidden one is guessed
MOST_TESTED = 40_000  # words
CHANCE = {"method": "chance", "right": 0.5}
RARE = 1e-3  # share of the text from which on words are tested, and believed, less


def told_apart(model: Any, texts: list[str], seed: int) -> dict[str, Any]:
    """How often the words around a hidden one point nearer to it than to another word of the same texts.

    The other word is one that was hidden elsewhere, so that both are drawn alike and frequency says nothing.
    """
    if not texts:
        return {}
    from twofold.core.seeds import generator
    from twofold.words.corpus import encode_corpus

    with encode_corpus(texts, model.vocabulary_) as corpus:
        tokens, ends = np.array(corpus.tokens[:MOST_TESTED]), np.asarray(corpus.ends)
    if len(tokens) < 2:
        return {}
    vectors = model.vectors_.vectors_
    W = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    f = model.vocabulary_.counts_ / model.vocabulary_.counts_.sum()
    weight = np.minimum(1.0, np.sqrt(RARE / f))[tokens]
    line = np.searchsorted(ends, np.arange(len(tokens)), side="right")
    around = np.zeros((len(tokens), W.shape[1]))
    own = W[tokens] * weight[:, None]
    for step in range(1, SIDES + 1):
        same = (line[step:] == line[:-step])[:, None]
        around[step:] += own[:-step] * same
        around[:-step] += own[step:] * same
    rng = generator(seed, 7)
    at = np.flatnonzero((rng.random(len(tokens)) < weight) & (np.abs(around).sum(axis=1) > 0))
    other = tokens[rng.permutation(at)]
    differ = other != tokens[at]
    at, other = at[differ], other[differ]
    if not len(at):
        return {}
    gap = np.einsum("ij,ij->i", around[at], W[tokens[at]] - W[other])
    return {
        "what": "share of hidden words that their neighbours tell from other ones hidden elsewhere",
        "texts": len(texts),
        "words": len(at),
        "right": float(np.mean(gap > 0) + 0.5 * np.mean(gap == 0)),
    }
