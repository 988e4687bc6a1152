"""How many topics, and what they are worth: documents are held out, half of each tells its mixture, the rest is scored.

Of the numbers tried, those whose perplexity is within a few per cent of the least are good; of these, the most
coherent is taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from twofold.cli.topic_models import fit
from twofold.core.seeds import generator
from twofold.topics.evaluation import perplexity, topic_coherence

TRIED = (3, 5, 8, 12, 18, 26, 38, 55)
ENOUGH = 150_000  # words by which a number can be chosen
MOST_FITTED = 2_000_000  # words beyond which the figure comes from a part of the documents
MOST_TESTED = 2_000  # documents scored
SLACK = 0.03  # of the least perplexity
FEWEST = 20  # documents of which some can be held out
PRIOR = 0.01  # of a count, for words that the training part does not have


def choose_number(kind: str, X: sp.csr_array, seed: int, notes: list[str]) -> tuple[int, dict[str, Any] | None]:
    """A number of topics, and the figures of all that were tried."""
    rows = np.flatnonzero(np.diff(X.indptr) > 1)
    order = generator(seed, 2).permutation(rows)
    lengths = np.asarray(X.sum(axis=1)).ravel()[order]
    order = order[: max(FEWEST, int(np.searchsorted(np.cumsum(lengths), ENOUGH)) + 1)]
    most = min(len(order) // 10, X.shape[1] // 5)
    if len(order) < FEWEST or most < TRIED[0]:
        k = min(TRIED[0], *X.shape)
        notes.append(f"{k} topics: too few documents to choose by; -k sets another number")
        return k, None
    test, train = X[order[: len(order) // 5]], X[order[len(order) // 5 :]]
    figures = []
    for k in [k for k in TRIED if k <= most]:
        topics = topics_of(kind, train, k, seed)
        figures.append((k, score(topics, train, test, seed), float(np.mean(topic_coherence(topics, train)))))
        least = min(p for _, p, _ in figures)
        if len(figures) > 2 and all(p > (1 + SLACK) * least for _, p, _ in figures[-2:]):
            break  # it only gets worse
    ks, perplexities, coherences = (list(column) for column in zip(*figures, strict=True))
    good = [i for i, p in enumerate(perplexities) if p <= (1 + SLACK) * min(perplexities)]
    best = ks[max(good, key=lambda i: coherences[i])]
    part = f" on {len(order):,} of the documents" if len(order) < len(rows) else ""
    notes.append(
        f"{best} topics: of {', '.join(map(str, ks))} tried{part}, the most coherent of those within {SLACK:.0%} of "
        "the least held-out perplexity; -k sets another number"
    )
    return best, {"ks": ks, "perplexities": perplexities, "coherences": coherences, "best": best}


def held_out(kind: str, X: sp.csr_array, k: int, seed: int, notes: list[str]) -> dict[str, Any]:
    """Perplexity on a tenth of the documents by topics fitted to the others, and by word frequencies alone."""
    rows = np.flatnonzero(np.diff(X.indptr) > 1)
    if len(rows) < FEWEST:
        notes.append(f"too few documents ({len(rows)}) to hold any out")
        return {}
    order = generator(seed, 3).permutation(rows)
    tenth = min(len(order) // 10, MOST_TESTED)
    test, rest = X[order[:tenth]], order[tenth:]
    lengths = np.asarray(X.sum(axis=1)).ravel()[rest]
    train = X[rest[: int(np.searchsorted(np.cumsum(lengths), MOST_FITTED)) + 1]]
    k = min(k, *train.shape)
    return {
        "what": "perplexity of half the words of documents not fitted, given the other half",
        "documents": tenth,
        "perplexity": score(topics_of(kind, train, k, seed), train, test, seed),
        "perplexity_unigram": score(unigram(train), train, test, seed),
    }


def unigram(X: sp.csr_array) -> np.ndarray:
    """(1,d) how frequent words are."""
    return np.asarray(X.sum(axis=0), dtype=np.float64).reshape(1, -1)


def topics_of(kind: str, X: sp.csr_array, k: int, seed: int) -> np.ndarray:
    return fit(kind, X, k, seed)[1]


def score(topics: np.ndarray, train: sp.csr_array, test: sp.csr_array, seed: int) -> float:
    """Perplexity by document completion; every topic is smoothed alike, so that no word is impossible."""
    size = np.maximum(topics.sum(axis=1, keepdims=True), 1e-300)
    tokens = float(train.sum()) / len(topics)
    smooth = topics / size * tokens + PRIOR
    return float(perplexity(smooth / smooth.sum(axis=1, keepdims=True), test, random_state=seed))
