"""The words station: what words mean in the documentation of nine packages, by the company they keep."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from twofold import datasets
from twofold.clusters.kmeans.kmeans import KMeans
from twofold.core.seeds import generator
from twofold.examples import OPPOSITES, write_language
from twofold.plots.models import words as plots
from twofold.plots.models.words import word_map_figure
from twofold.text.stop_words import english
from twofold.tour import Part, Station
from twofold.words import align
from twofold.words.cooccurrence.cooccurrence import Cooccurrence
from twofold.words.pmi import PMIEmbedding
from twofold.words.skip_gram.skip_gram import SkipGram
from twofold.words.word_vectors.word_vectors import WordVectors

DOCUMENTS = 1000
MAP_WORDS = 150
GROUPS = 8
PAIRS = 40  # of one and many
MIN_PLURAL_COUNT = 12
ALIGNED_WORDS = 40
TRANSLATED_WORDS = 300
NEGATIVES = 5


class World(NamedTuple):
    """Docstrings and the vectors of their words."""

    documents: list[str]
    vectors: WordVectors
    telling: list[str]  # frequent words that are not grammar
    tokens: int


def station(seed: int = 0) -> Station:
    """Find a map of words, what skip-gram converges to, directions with a meaning, and two halves brought together."""
    world = learn_vectors(seed)
    found = {"tokens": world.tokens, "neighbors": neighbors(world), "products": products(seed)}
    return found | {"directions": directions(world), "halves": halves(world, seed)}


def learn_vectors(seed: int) -> World:
    documents = datasets.docstrings(DOCUMENTS).documents
    model = PMIEmbedding(50, min_count=5, random_state=seed).fit(documents)
    small = english()
    telling = [w for w in model.vectors_ if len(w) > 2 and w.isalpha() and w not in small]
    return World(documents, model.vectors_, telling, model.vocabulary_.n_tokens_)


def unit(X: np.ndarray) -> np.ndarray:
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)


def neighbors(w: World) -> Part:
    shown = w.telling[:MAP_WORDS]
    groups = KMeans(GROUPS, random_state=0).fit(unit(w.vectors[shown].astype(np.float64))).labels_
    counts: Any = w.vectors.counts_
    weights = [float(counts[w.vectors.place(word)]) for word in shown]
    asked = [word for word in ("matrix", "color", "column", "file") if word in w.vectors][:3]
    near = {f"nearest to {word}": ", ".join(other for other, _ in w.vectors.nearest(word, 3)) for word in asked}
    at = np.asarray(w.vectors.map_2d(shown, method="tsne"))
    return Part(word_map_figure(at, shown, groups.tolist(), weights), near, asked=asked[0])


def products(seed: int) -> Part:
    text = write_language(generator(seed, 11), 40, 100_000, contrast=1.2)
    model = SkipGram(20, window=1, negatives=NEGATIVES, subsample=0, min_count=1, max_iter=8, random_state=seed).fit(
        text
    )
    table = Cooccurrence(window=1, weighting="flat", min_count=1).fit(text)
    N = table.counts_.toarray()
    noise = table.vocabulary_.counts_**0.75
    seen = N > 30
    with np.errstate(divide="ignore"):
        target = np.log(N / N.sum(axis=1, keepdims=True) / (noise / noise.sum())) - np.log(NEGATIVES)
    words = list(table.vocabulary_.words_)
    product = model.vectors_[words].astype(np.float64) @ model.contexts_[words].astype(np.float64).T
    like = float(np.corrcoef(target[seen], product[seen])[0, 1])
    panels = {"Skip-gram finds PMI": (target[seen], product[seen], N[seen])}
    figure = plots.products_figure(panels, f"PMI − log {NEGATIVES}, counted", "product of the vectors, learned")
    numbers = {"correlation": f"{like:.3f}", "pairs": f"{int(seen.sum()):,}"}
    return Part(figure, numbers, negatives=NEGATIVES, words=len(words))


def steps(w: World) -> dict[str, list[tuple[str, str]]]:
    """Frequent words with their plurals, and words with their opposites."""
    counts: Any = w.vectors.counts_
    many = [(word, word + "s") for word in w.telling if word + "s" in w.vectors]
    often = [pair for pair in many if counts[w.vectors.place(pair[1])] >= MIN_PLURAL_COUNT][:PAIRS]
    known = [pair for pair in OPPOSITES if all(word in w.vectors for word in pair)]
    return {"One and many: a common step": often, "Opposites: none": known}


def directions(w: World) -> Part:
    found = {title: (pairs, np.array([w.vectors[list(pair)] for pair in pairs])) for title, pairs in steps(w).items()}
    agree = [float(plots.measure_common_step(U).mean()) for _, U in found.values()]
    pairs, opposites = (own for own, _ in found.values())
    asked = [w.vectors.analogy(a, b, c)[0][0] == d for a, b in pairs for c, d in pairs if a != c]
    beside = [b in [word for word, _ in w.vectors.nearest(a, 3)] for a, b in opposites]
    numbers = {
        "cosine of a plural's step with the others": f"{agree[0]:.2f}",
        "of an opposite's": f"{agree[1]:.2f}",
        f"right of {len(asked):,} questions for plurals": f"{np.mean(asked):.0%}",
        "opposites among the three nearest": f"{np.mean(beside):.0%}",
    }
    return Part(plots.steps_figure(found), numbers, words=len(w.vectors), pairs=pairs)


def halves(w: World, seed: int) -> Part:
    own = [PMIEmbedding(50, min_count=5, random_state=seed).fit(w.documents[i::2]).vectors_ for i in (0, 1)]
    both = [word for word in w.telling if word in own[0] and word in own[1]]
    aligned, others = both[:ALIGNED_WORDS], both[ALIGNED_WORDS : ALIGNED_WORDS + TRANSLATED_WORDS]
    apart = find_themselves(own[0][others], own[1], others)
    joined = align(own[0], own[1], [(word, word) for word in aligned])
    hits = [joined.translate(word, 1)[0][0] == word for word in others]
    figure = plots.curves_figure(
        {"after the rotation": running(hits), "before": running(apart)},
        "words looked up, the most frequent first",
        "found themselves",
        "Two halves of the docstrings",
        share=True,
    )
    numbers = {"before": f"{np.mean(apart):.0%}", "after": f"{np.mean(hits):.0%}"}
    return Part(figure, numbers, aligned=ALIGNED_WORDS, others=len(others))


def find_themselves(X: np.ndarray, other: WordVectors, words: list[str]) -> list[bool]:
    return [other.nearest(x, 1)[0][0] == word for x, word in zip(X, words, strict=True)]


def running(hits: list[bool]) -> tuple[Any, Any]:
    """The share so far, at every tenth word."""
    n = np.arange(10, len(hits) + 1, 10)
    return n, np.cumsum(hits)[n - 1] / n
