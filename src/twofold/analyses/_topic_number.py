"""How many topics, and what they are worth: documents are held out, half of each tells its mixture, the rest is scored.

More topics predict better, up to a point, and fewer hold together better. Of the numbers tried, the one is taken that
has most of what there is to be had of both, prediction counting double.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from twofold.analyses._topic_models import fit, topics_of

TRIED = (3, 5, 8, 12, 18, 26, 40)
ENOUGH = 150_000  # words by which a number can be chosen
MOST_FITTED = 2_000_000  # words beyond which the figure comes from a part of the documents
MOST_TESTED = 2_000  # documents scored
APART = 0.05  # log-perplexities and coherences that differ by less hardly differ
PREDICTS = 2.0  # what perplexity counts beside coherence, which alone favours few and broad topics
FEWEST = 20  # documents of which some can be held out
PRIOR = 0.01  # of a count, for words that the training part does not have


def choose_number(kind: str, X: sp.csr_array, seed: int, notes: list[str]) -> tuple[int, dict[str, Any] | None]:
    """A number of topics, and the figures of all that were tried."""
    from twofold.core.seeds import generator
    from twofold.topics.evaluation import topic_coherence

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
        model = fit(kind, train, k, seed)
        topics = topics_of(model)
        figures.append((k, score(topics, train, test, seed, model), float(np.nanmean(topic_coherence(topics, train)))))
    ks, perplexities, coherences = (list(column) for column in zip(*figures, strict=True))
    best = ks[int(np.argmax(PREDICTS * part_of(-np.log(perplexities)) + part_of(np.array(coherences))))]
    part = f" on {len(order):,} of the documents" if len(order) < len(rows) else ""
    notes.append(
        f"{best} topics: of {', '.join(map(str, ks))} tried{part}, the best balance of held-out perplexity and "
        "coherence; -k sets another number"
    )
    return best, {"ks": ks, "perplexities": perplexities, "coherences": coherences, "best": best}


def part_of(figures: np.ndarray) -> np.ndarray:
    """How much of what there is between the least and the most each has, from 0 to 1; less if they hardly differ."""
    return (figures - figures.min()) / max(float(np.ptp(figures)), APART)


def measure(kind: str, X: sp.csr_array, k: int, seed: int, notes: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Perplexity on a tenth of the documents by topics fitted to the others, and by word frequencies alone."""
    from twofold.core.seeds import generator

    rows = np.flatnonzero(np.diff(X.indptr) > 1)
    if len(rows) < FEWEST:
        notes.append(f"too few documents ({len(rows)}) to hold any out")
        return {}, {}
    order = generator(seed, 3).permutation(rows)
    tenth = min(len(order) // 10, MOST_TESTED)
    test, rest = X[order[:tenth]], order[tenth:]
    lengths = np.asarray(X.sum(axis=1)).ravel()[rest]
    train = X[rest[: int(np.searchsorted(np.cumsum(lengths), MOST_FITTED)) + 1]]
    model = fit(kind, train, min(k, *train.shape), seed)
    figures = {
        "what": "perplexity of half the words of documents not fitted, given the other half",
        "documents": tenth,
        "perplexity": score(topics_of(model), train, test, seed, model),
    }
    return figures, {"method": "word frequencies alone", "perplexity": score(unigram(train), train, test, seed)}


def unigram(X: sp.csr_array) -> np.ndarray:
    """(1,d) how frequent words are."""
    return np.asarray(X.sum(axis=0), dtype=np.float64).reshape(1, -1)


def score(topics: np.ndarray, train: sp.csr_array, test: sp.csr_array, seed: int, model: Any = None) -> float:
    """Perplexity by document completion; every topic is smoothed alike, so that no word is impossible."""
    from twofold.topics.evaluation import perplexity

    size = np.maximum(topics.sum(axis=1, keepdims=True), 1e-300)
    tokens = float(train.sum()) / len(topics)
    smooth = topics / size * tokens + PRIOR
    return float(perplexity(smooth, test, alpha=getattr(model, "doc_topic_prior_", None), random_state=seed))
