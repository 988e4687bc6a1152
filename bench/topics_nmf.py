"""Non-negative factorization to the same objective: faces, a dense table, tf-idf of newsgroups, counts under KL."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import xlogy
from sklearn.decomposition import NMF as SklearnNMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from bench.harness import Bar, Contestant, Event, Missing, Row, optional
from twofold import datasets
from twofold.core.checks import InputError
from twofold.topics.nmf.nmf import NMF

Factors = tuple[np.ndarray, np.ndarray]
TIE = 1e-3


def quietly(fit: Callable[[], Factors]) -> Factors:
    """A peer that stops at its own number of sweeps may say that it has not converged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit()


def square_error(X: Any, factors: Factors) -> float:
    """½‖X − UZ‖² in float64, without forming UZ."""
    U, Z = (np.asarray(A, dtype=np.float64) for A in factors)
    values = (X.data if sparse.issparse(X) else X).astype(np.float64).ravel()
    return 0.5 * float(values @ values - 2 * np.vdot(X @ Z.T, U) + np.vdot(U.T @ U, Z @ Z.T))


def divergence(X: sparse.csr_array, factors: Factors) -> float:
    """Σ x log(x/ŷ) − x + ŷ in float64; only the stored cells have a logarithm."""
    U, Z = (np.asarray(A, dtype=np.float64) for A in factors)
    X, total = sparse.csr_array(X).astype(np.float64), float(U.sum(axis=0) @ Z.sum(axis=1))
    for i in range(X.shape[0]):
        at = slice(X.indptr[i], X.indptr[i + 1])
        x, y = X.data[at], U[i] @ Z[:, X.indices[at]]
        total += float((xlogy(x, x) - xlogy(x, np.maximum(y, 1e-300)) - x).sum())
    return total


class Reached:
    """A callback that stops a fit when its objective is as low as a peer's."""

    def __init__(self, goal: float):
        self.goal = goal

    def setup(self, estimator: Any, context: Any) -> None: ...

    def teardown(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> bool:
        return fitted_estimator is not None and fitted_estimator.history_["objective"][-1] <= self.goal


def ours(X: Any, k: int, goal: float = 0.0, **options: Any) -> Factors:
    model = NMF(k, random_state=0, **options).set_callbacks(Reached(goal))
    return quietly(lambda: (model.fit_transform(X), model.components_))


def sklearn(X: Any, k: int, **options: Any) -> Factors:
    model = SklearnNMF(k, random_state=0, **{"init": "nndsvd", **options})
    return quietly(lambda: (model.fit_transform(X), model.components_))


def gensim_entry(X: Any, k: int) -> Contestant:
    from gensim.matutils import Sparse2Corpus, corpus2dense
    from gensim.models.nmf import Nmf

    def fit(X: Any) -> Factors:
        corpus = Sparse2Corpus(X, documents_columns=False)
        model = Nmf(corpus, num_topics=k, passes=5, normalize=False, random_state=0)
        U = corpus2dense((model.get_document_topics(doc, minimum_probability=0) for doc in corpus), k, X.shape[0]).T
        return np.ascontiguousarray(U), model.get_topics()

    return Contestant("gensim", lambda: fit(X), warm=lambda: fit(X[:300]), note="online, 5 passes")


def fast_enough(rows: list[Row]) -> bool:
    """Ours must be as low as scikit-learn's in a third of its time; if ours is lower still, that is no excuse."""
    mine, theirs = next(row for row in rows if row.ours and row.counts), rows[2]
    return theirs.median >= 3 * mine.median and mine.quality["objective"] <= (1 + TIE) * theirs.quality["objective"]


def event(name: str, data_title: str, X: Any, k: int, peers: list, loss: str = "frobenius") -> Event:
    misfit = square_error if loss == "frobenius" else divergence
    goal = misfit(X, peers[0].run())
    stored = f", {X.nnz:,} stored" if sparse.issparse(X) else ""

    def entry(name: str, goal: float, **more: Any) -> Contestant:
        warm = lambda: ours(X[:500], k, beta_loss=loss, max_iter=20)  # noqa: E731
        return Contestant(name, lambda: ours(X, k, goal, beta_loss=loss), ours=True, warm=warm, **more)

    return Event(
        f"topics_nmf {name}",
        f"NMF ({loss}) of {data_title}, {X.shape[0]:,} x {X.shape[1]:,}{stored}, {X.dtype}, k = {k}",
        [
            entry("twofold", goal, note=f"until {peers[0].name}'s objective is reached"),
            entry("twofold, defaults", 0.0, counts=False, note="goes on until its own tol"),
            *peers,
        ],
        quality=lambda factors: {"objective": misfit(X, factors)},
        as_good=lambda a, b: a["objective"] <= (1 + TIE) * b["objective"],
        bar=Bar("3 x scikit-learn to the same objective (within 0.1 %)", test=fast_enough),
        budget=20.0,
    )


def descent(X: Any, k: int) -> Contestant:
    """scikit-learn's fastest solver, with its own defaults (tol 1e-4, 200 sweeps at most)."""
    return Contestant("scikit-learn cd", lambda: sklearn(X, k), warm=lambda: sklearn(X[:500], k))


def fetch(name: str, event: str) -> Any:
    try:
        return datasets.fetch(name)
    except InputError as why:
        return Missing(event, str(why))


def faces(quick: bool) -> Event | Missing:
    found = fetch("cbcl_faces", "topics_nmf faces")
    if isinstance(found, Missing):
        return found
    X = found.images.reshape(len(found.images), -1).astype(np.float64)
    X = (X / X.max())[: 600 if quick else None]
    return event("faces", "faces (CBCL)", X, 49, [descent(X, 49)])


def table(quick: bool) -> Event:
    n, d, k = (2000 if quick else 20_000), 500, 20
    rng = np.random.default_rng(0)
    X = rng.gamma(0.3, size=(n, k)) @ rng.gamma(0.3, size=(k, d)) + 0.5 * rng.random((n, d))
    X = X.astype(np.float32)
    return event("dense", "20 parts and noise", X, k, [descent(X, k)])


def documents(quick: bool, name: str) -> list[str] | Missing:
    found = fetch("newsgroups20", name)
    return found if isinstance(found, Missing) else found.train.documents[: 1500 if quick else None]


def tfidf(quick: bool, k: int) -> Event | Missing:
    texts = documents(quick, f"topics_nmf tf-idf {k}")
    if isinstance(texts, Missing):
        return texts
    X = TfidfVectorizer(stop_words="english", min_df=3, dtype=np.float32).fit_transform(texts).tocsr()
    peers: list = [descent(X, k)]
    if k <= 20:  # it takes minutes for more
        peers.append(optional("gensim", "gensim", lambda: gensim_entry(X, k)))
    return event(f"tf-idf {k}", "newsgroups (tf-idf)", X, k, peers)


def counts(quick: bool) -> Event | Missing:
    texts = documents(quick, "topics_nmf counts")
    if isinstance(texts, Missing):
        return texts
    X = CountVectorizer(stop_words="english", min_df=5, dtype=np.float32).fit_transform(texts).tocsr()
    options = {"solver": "mu", "beta_loss": "kullback-leibler", "init": "nndsvda", "max_iter": 100}

    def run(X: Any) -> Factors:
        return sklearn(X, 20, **options)

    peer = Contestant("scikit-learn mu", lambda: run(X), warm=lambda: run(X[:300]), note="100 sweeps at most")
    return event("counts", "newsgroups (counts)", X, 20, [peer], loss="kullback-leibler")


EVENTS = (
    faces,
    table,
    lambda quick: tfidf(quick, 20),
    lambda quick: tfidf(quick, 50),
    counts,
)
