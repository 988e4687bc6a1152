"""Latent Dirichlet allocation of 20 Newsgroups: fifty topics, equal priors, judged on unseen documents."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation as SklearnLDA
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer

from bench import machine
from bench.harness import Bar, Contestant, Event, Missing, Row, optional
from twofold import datasets
from twofold.core.checks import InputError
from twofold.topics.evaluation import perplexity
from twofold.topics.lda.lda import LatentDirichletAllocation

PEERS = {"tomotopy, 200 sweeps": 1.5, "scikit-learn": 10.0, "gensim": 10.0}  # times their speed the bar asks for
ALPHA, BETA = 0.1, 0.01


def newsgroups(quick: bool) -> tuple[sparse.csr_array, sparse.csr_array] | Missing:
    """Counts of the training and of the test half; words in five documents at least and half of them at most."""
    try:
        found = datasets.fetch("newsgroups20")
    except InputError as why:
        return Missing("topics_lda newsgroups20", str(why))
    words = CountVectorizer(min_df=5, max_df=0.5, stop_words="english", token_pattern=r"(?u)\b[a-zA-Z]{2,}\b")
    train, test = (half.documents[:: 10 if quick else 1] for half in (found.train, found.test))
    X = sparse.csr_array(words.fit_transform(train).astype(np.float64))
    return X, sparse.csr_array(words.transform(test).astype(np.float64))


def token_lists(X: sparse.csr_array) -> list[list[str]]:
    """Every document as its words, the numbers of the columns standing for them."""
    names = np.array([str(j) for j in range(X.shape[1])])
    counts = X.data.astype(np.int64)
    return [
        np.repeat(names[X.indices[a:b]], counts[a:b]).tolist() for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
    ]


def ours(X: sparse.csr_array, k: int, tol: float, sweeps: int = 200) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LatentDirichletAllocation(
            k, doc_topic_prior=ALPHA, topic_word_prior=BETA, tol=tol, max_iter=sweeps, random_state=0
        )
        return model.fit(X).components_


def sklearn(X: sparse.csr_array, k: int, sweeps: int) -> np.ndarray:
    model = SklearnLDA(
        k, doc_topic_prior=ALPHA, topic_word_prior=BETA, learning_method="batch", max_iter=sweeps,
        n_jobs=machine.threads(), random_state=0,
    )  # fmt: skip
    return model.fit(X).components_


def tomotopy_entry(X: sparse.csr_array, k: int, sweeps: int, lists: list[list[str]]) -> Contestant:
    import tomotopy

    def fit(sweeps: int) -> np.ndarray:
        model = tomotopy.LDAModel(k=k, alpha=ALPHA, eta=BETA, seed=0)
        model.optim_interval = 0
        for document in lists:
            model.add_doc(document)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            model.train(sweeps, workers=machine.threads())
        topics = np.zeros((k, X.shape[1]))
        topics[:, [int(word) for word in model.used_vocabs]] = [model.get_topic_word_dist(c) for c in range(k)]
        return topics

    return Contestant(f"tomotopy, {sweeps} sweeps", lambda: fit(sweeps), warm=lambda: fit(1), note="reading included")


def gensim_entry(X: sparse.csr_array, k: int, sweeps: int) -> Contestant:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    def fit(X: sparse.csr_array, sweeps: int) -> np.ndarray:
        corpus = Sparse2Corpus(sparse.csr_matrix(X), documents_columns=False)
        names = {j: str(j) for j in range(X.shape[1])}
        model = LdaModel(corpus, k, names, alpha=[ALPHA] * k, eta=BETA, passes=sweeps, eval_every=None, random_state=0)
        return model.get_topics()

    return Contestant("gensim", lambda: fit(X, sweeps), warm=lambda: fit(X[:200], 1), note="one process")


def as_good(a: dict[str, float], b: dict[str, float]) -> bool:
    return a["perplexity"] <= 1.005 * b["perplexity"]


def fast_enough(rows: list[Row]) -> bool:
    """True if an entry of ours is as good as each peer of the bar, and faster by the factor of the bar."""
    mine = [row for row in rows if row.ours and row.seconds]
    peers = [row for row in rows if row.contestant in PEERS and row.seconds]
    return bool(peers) and all(
        any(as_good(own.quality, peer.quality) and peer.median >= PEERS[peer.contestant] * own.median for own in mine)
        for peer in peers
    )


def newsgroups20(quick: bool) -> Event | Missing:
    found = newsgroups(quick)
    if isinstance(found, Missing):
        return found
    (X, test), k, (sweeps, passes) = found, 50, (20, 2) if quick else (200, 10)
    lists = token_lists(X)

    def entry(name: str, fit: Any, **more: Any) -> Contestant:
        return Contestant(name, lambda: fit(X), warm=lambda: fit(X[:300]), **more)

    return Event(
        "topics_lda newsgroups20",
        f"LDA of 20 Newsgroups, {X.shape[0]:,} documents, {X.shape[1]:,} words, {X.sum():,.0f} tokens, k = {k}",
        [
            entry("twofold", lambda X: ours(X, k, 1e-4), ours=True),
            entry("twofold, 30 sweeps", lambda X: ours(X, k, 0.0, 30), ours=True),
            optional(f"tomotopy, {sweeps} sweeps", "tomotopy", lambda: tomotopy_entry(X, k, sweeps, lists)),
            entry("scikit-learn", lambda X: sklearn(X, k, passes), note=f"batch, {passes} sweeps"),
            optional("gensim", "gensim", lambda: gensim_entry(X, k, passes)),
        ],
        quality=lambda topics: {"perplexity": perplexity(topics, test, alpha=ALPHA)},
        as_good=as_good,
        bar=Bar("1.5 x tomotopy, 10 x scikit-learn and gensim, at no worse perplexity (0.5 %)", test=fast_enough),
        budget=60.0,
        notes=[
            f"α = {ALPHA}, β = {BETA} for all; perplexity by document completion on the test half, by one evaluator.",
            f"scikit-learn and gensim make {passes} sweeps, with which they are still far behind in perplexity.",
        ],
    )


EVENTS = (newsgroups20,)
