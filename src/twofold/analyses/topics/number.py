"""How many topics, and what they are worth: documents are held out, half of each tells its mixture, the rest is scored.

More topics predict better, up to a point. Of the numbers tried, which grow while more are better, `select` takes the
fewest that predict as well as the best; how well their words hold together is shown beside.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from twofold.analyses.common.sizes import find_size
from twofold.analyses.topics.models import fit, topics_of

TRIED = (3, 5, 8, 12, 18, 26, 40)
MAX_TOPICS = 320  # tried, where there are enough documents and words
MAX_SEARCH_WORDS = 150_000  # by which a number is chosen
MAX_FITTED_WORDS = 2_000_000  # beyond which the figure comes from a part of the documents
MAX_TESTED_DOCUMENTS = 2_000
MIN_DOCUMENTS = 20  # of which some can be held out
FOLDS = 3
SEARCH_SECONDS = 120.0  # to look beyond the first numbers
PRIOR_COUNT = 0.01  # of words that the training part does not have


class Candidate(BaseEstimator):
    """A model of topics of counts, as `select` takes it."""

    def __init__(self, kind: str = "lda", n_components: int = 3, random_state: int = 0):
        self.kind = kind
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: sp.csr_array, y: Any = None) -> Candidate:
        self.model_ = fit(self.kind, X, self.n_components, self.random_state)
        self.topics_, self.tokens_ = topics_of(self.model_), float(X.sum())
        return self

    def score(self, X: sp.csr_array, y: Any = None) -> float:
        """Minus the log-perplexity of half the words of documents, given the other half."""
        return -float(np.log(score(self.topics_, self.tokens_, X, self.random_state, self.model_)))


def choose_number(kind: str, X: Any, seed: int, notes: list[str]) -> tuple[int, dict[str, Any] | None]:
    """A number of topics, and the figures of all that were tried."""
    import twofold
    from twofold.core.seeds import generator
    from twofold.topics.evaluation import topic_coherence

    rows = np.flatnonzero(np.diff(X.indptr) > 1)
    order = generator(seed, 2).permutation(rows)
    lengths = np.asarray(X.sum(axis=1)).ravel()[order]
    order = order[: max(MIN_DOCUMENTS, int(np.searchsorted(np.cumsum(lengths), MAX_SEARCH_WORDS)) + 1)]
    most = min(len(order) // 10, X.shape[1] // 5, MAX_TOPICS)
    if len(order) < MIN_DOCUMENTS or most < TRIED[0]:
        k = min(TRIED[0], *X.shape)
        notes.append(f"{k} topics: too few documents to choose by; -k sets another number")
        return k, None
    some, coherent = X[order], dict[int, float]()

    def score_hidden(fitted: Candidate, shown: sp.csr_array) -> float:
        if fitted.n_components not in coherent:
            coherent[fitted.n_components] = float(np.nanmean(topic_coherence(fitted.topics_, some)))
        return fitted.score(shown)

    def choose(sizes: list[int], seconds: float | None) -> Any:
        base = Candidate(kind, random_state=seed)
        return twofold.select(
            base, some, criterion=score_hidden, folds=FOLDS, time=seconds, random_state=seed, n_components=sizes
        )

    first = [k for k in TRIED if k <= most]
    found, table = find_size(choose, "n_components", first, most, SEARCH_SECONDS, narrow=False)
    done = table.drop_nulls("heldout")
    ks, best = done["n_components"].to_list(), int(found.best_params["n_components"])
    part = f" on {len(order):,} of the documents" if len(order) < len(rows) else ""
    notes.append(
        f"{best} topics: of {', '.join(map(str, ks))} tried{part}, the fewest whose perplexity on documents held out "
        "is within one standard error of the least; -k sets another number"
    )
    perplexities = np.exp(-done["heldout"].to_numpy()).tolist()
    return best, {"ks": ks, "perplexities": perplexities, "coherences": [coherent[k] for k in ks], "best": best}


def measure(kind: str, X: Any, k: int, seed: int, notes: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Perplexity on a tenth of the documents by topics fitted to the others, and by word frequencies alone."""
    from twofold.core.seeds import generator

    rows = np.flatnonzero(np.diff(X.indptr) > 1)
    if len(rows) < MIN_DOCUMENTS:
        notes.append(f"too few documents ({len(rows)}) to hold any out")
        return {}, {}
    order = generator(seed, 3).permutation(rows)
    tenth = min(len(order) // 10, MAX_TESTED_DOCUMENTS)
    test, rest = X[order[:tenth]], order[tenth:]
    lengths = np.asarray(X.sum(axis=1)).ravel()[rest]
    train = X[rest[: int(np.searchsorted(np.cumsum(lengths), MAX_FITTED_WORDS)) + 1]]
    model = fit(kind, train, min(k, *train.shape), seed)
    figures = {
        "what": "perplexity of half the words of documents not fitted, given the other half",
        "documents": tenth,
        "perplexity": score(topics_of(model), float(train.sum()), test, seed, model),
    }
    frequencies = np.asarray(train.sum(axis=0), dtype=np.float64).reshape(1, -1)
    plain = score(frequencies, float(train.sum()), test, seed)
    return figures, {"method": "word frequencies alone", "perplexity": plain}


def score(topics: np.ndarray, tokens: float, test: sp.csr_array, seed: int, model: Any = None) -> float:
    """Perplexity by document completion; topics of `tokens` words are smoothed, so that no word is impossible."""
    from twofold.topics.evaluation import perplexity

    size = np.maximum(topics.sum(axis=1, keepdims=True), 1e-300)
    smooth = topics / size * (tokens / len(topics)) + PRIOR_COUNT
    return float(perplexity(smooth, test, alpha=getattr(model, "doc_topic_prior_", None), random_state=seed))
