"""Where factorizations end from their own starts: the objective over ten seeds, on unlike tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.decomposition import NMF as SklearnNMF
from sklearn.decomposition import DictionaryLearning, MiniBatchDictionaryLearning
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from threadpoolctl import threadpool_limits

from bench.clusters_kmeans import fetch, inertia, quietly
from bench.harness import Bar, Contestant, Event, Missing, Row, optional
from bench.signals_ksvd import patches
from bench.topics_nmf import divergence, square_error
from twofold import KSVD, NMF, PLSA, Factorization, SparseCoder, datasets
from twofold.factors import NonNegative, OneHot, Poisson, Simplex

ROOM = 1e-3  # of the spread, by which a mean may be higher: what the best fit gains over a single component
ROWS = 600
LONG: dict[str, Any] = {"max_iter": 1000, "tol": 1e-5}  # for peers: what they reach, not where they stop
Fit = Callable[[Any, int, int], Any]  # (X, k, seed): what the judge of the event looks at


class Table(NamedTuple):
    X: Any
    k: int


def faces() -> np.ndarray | None:
    found = fetch("starts_factors", "cbcl_faces")
    return None if isinstance(found, Missing) else found.images[:: len(found.images) // ROWS * 2].reshape(-1, 361) / 255


def texts() -> list[str]:
    """Mails if they are there, or else docstrings."""
    found = fetch("starts_factors", "newsgroups20")
    documents = datasets.docstrings(ROWS).documents if isinstance(found, Missing) else found.train.documents
    return documents[:ROWS]


def plant_parts(k: int) -> np.ndarray:
    """A sum of k parts and noise."""
    rng = np.random.default_rng(0)
    return rng.gamma(0.3, size=(600, k)) @ rng.gamma(0.3, size=(k, 100)) + 0.2 * rng.random((600, 100))


def proteins() -> np.ndarray | None:
    found = fetch("starts_factors", "kdd_bio")
    if isinstance(found, Missing):
        return None
    X = np.asarray(found.data[:: len(found.data) // ROWS], dtype=np.float64)[:ROWS]
    return (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-300)


def pixels() -> np.ndarray:
    """Patches of a photograph, as they are."""
    image = datasets.photographs().camera / 255
    at = np.random.default_rng(0).integers(0, 504, (ROWS, 2))
    return np.array([image[i : i + 8, j : j + 8].ravel() for i, j in at])


def available(result: dict[str, tuple[Any, int]], quick: bool) -> dict[str, Table]:
    kept = {name: Table(*entry) for name, entry in result.items() if entry[0] is not None}
    return dict(list(kept.items())[:2]) if quick else kept


def tables(quick: bool) -> dict[str, Table]:
    words = TfidfVectorizer(stop_words="english", max_features=1000, min_df=3)
    return available(
        {
            "digits": (datasets.digits().data[:ROWS], 10),
            "planted": (plant_parts(8), 8),
            "faces": (faces(), 16),
            "tf-idf": (sparse.csr_array(words.fit_transform(texts())), 10),
            "patches": (pixels(), 10),
            "proteins": (proteins(), 10),
        },
        quick,
    )


def counts(quick: bool) -> dict[str, Table]:
    words = CountVectorizer(stop_words="english", max_features=1000, min_df=3, dtype=np.float64)
    found = faces()
    return available(
        {
            "digits": (sparse.csr_array(datasets.digits().data[:ROWS]), 10),
            "planted": (sparse.csr_array(np.random.default_rng(1).poisson(plant_parts(8)).astype(np.float64)), 8),
            "faces": (None if found is None else sparse.csr_array(found), 10),
            "patches": (sparse.csr_array(pixels()), 10),
            "words": (sparse.csr_array(words.fit_transform(texts())), 10),
            "docstrings": (sparse.csr_array(words.fit_transform(datasets.docstrings(ROWS).documents)), 15),
        },
        quick,
    )


def signals(quick: bool) -> dict[str, Table]:
    rng = np.random.default_rng(0)
    atoms, codes = rng.normal(size=(30, 20)), np.zeros((ROWS, 30))
    for row in codes:
        row[rng.choice(30, 3, replace=False)] = rng.normal(size=3)
    digits, found = datasets.digits().data[:ROWS], faces()
    return available(
        {
            "planted": (codes @ atoms + 0.05 * rng.normal(size=(ROWS, 20)), 30),
            "digits": (digits - digits.mean(axis=1, keepdims=True), 64),
            "camera": (patches(datasets.photographs().camera, ROWS), 100),
            "ascent": (patches(datasets.photographs().ascent, ROWS), 100),
            "faces": (None if found is None else found - found.mean(axis=1, keepdims=True), 49),
        },
        quick,
    )


def contest(
    name: str,
    data_title: str,
    result: dict[str, Table],
    judge: Callable[[Any, Any], float],
    ours: dict[str, Fit],
    peers: dict[str, Fit],
    single: Callable[[Table], float],
    seeds: int,
) -> Event:
    """Everyone fits every table from every seed; `single` is what one component reaches, where the spread begins."""
    one = {table: single(entry) for table, entry in result.items()}
    best = dict.fromkeys(result, np.inf)

    def objectives(fit: Fit) -> dict[str, list[float]]:
        values = {t: [judge(X, quietly(partial(fit, X, k, s))) for s in range(seeds)] for t, (X, k) in result.items()}
        best.update({table: min(best[table], *values[table]) for table in result})
        return values

    def quality(result: dict[str, list[float]]) -> dict[str, float]:
        mean = {table: float(np.mean(values)) for table, values in result.items()}
        return mean | {f"worst {table}": max(values) for table, values in result.items()}

    def as_good(a: dict[str, float], b: dict[str, float]) -> bool:
        return all(a[table] <= b[table] + ROOM * (one[table] - best[table]) for table in result)

    def no_worse(rows: list[Row]) -> bool:
        mine, theirs = ([row.quality for row in rows if row.counts and row.ours == side] for side in (True, False))
        return all(as_good(a, b) for a in mine for b in theirs if b)

    def entry(name: str, fit: Fit, is_ours: bool) -> Contestant:
        return Contestant(name, lambda: objectives(fit), ours=is_ours, warm=lambda: None)

    return Event(
        f"starts_factors {name}",
        f"{data_title}, mean and worst of {seeds} seeds",
        [
            *(entry(name, fit, True) for name, fit in ours.items()),
            *(entry(name, fit, False) for name, fit in peers.items()),
            Contestant("best known", lambda: {t: [best[t]] for t in result}, counts=False, warm=lambda: None),
            Contestant("one component", lambda: {t: [one[t]] for t in result}, counts=False, warm=lambda: None),
        ],
        quality=quality,
        as_good=as_good,
        bar=Bar("no mean higher than a peer's by 0.1 % of the spread", test=no_worse),
        repeats=1,
        notes=["The spread is what the best fit known gains over a single component."],
    )


def factors(model: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    return model.fit_transform(X), model.components_


def nmf(quick: bool) -> Event:
    def general(X: Any, k: int, seed: int) -> Any:
        return factors(Factorization(k, left=NonNegative(), right=NonNegative(), random_state=seed), X)

    def peer(init: str | None, X: Any, k: int, seed: int) -> Any:
        return factors(SklearnNMF(k, init=init, random_state=seed, **LONG), X)

    return contest(
        "NMF",
        "½‖X − UZ‖² of non-negative factors",
        tables(quick),
        square_error,
        {"twofold": lambda X, k, seed: factors(NMF(k, random_state=seed), X), "twofold, Factorization": general},
        {"scikit-learn, nndsvda": partial(peer, None), "scikit-learn, random": partial(peer, "random")},
        lambda t: square_error(t.X, factors(NMF(1), t.X)),
        2 if quick else 10,
    )


def kullback_leibler(quick: bool) -> Event:
    loss = {"beta_loss": "kullback-leibler"}

    def plsa(X: Any, k: int, seed: int) -> Any:
        model = PLSA(k, random_state=seed)
        return model.fit_transform(X) * np.asarray(X.sum(axis=1)).reshape(-1, 1), model.components_

    def general(X: Any, k: int, seed: int) -> Any:
        model = Factorization(k, loss=Poisson(), left=NonNegative(), right=Simplex(), random_state=seed)
        return factors(model, X.toarray())

    def peer(init: str | None, X: Any, k: int, seed: int) -> Any:
        return factors(SklearnNMF(k, init=init, random_state=seed, solver="mu", **loss, max_iter=400, tol=1e-5), X)

    return contest(
        "Kullback-Leibler",
        "divergence of X from UZ, non-negative factors",
        counts(quick),
        divergence,
        {
            "twofold, PLSA": plsa,
            "twofold, NMF": lambda X, k, seed: factors(NMF(k, random_state=seed, **loss), X),
            "twofold, Factorization": general,
        },
        {"scikit-learn, nndsvda": partial(peer, None), "scikit-learn, random": partial(peer, "random")},
        lambda t: divergence(t.X, factors(NMF(1, **loss), t.X)),
        2 if quick else 10,
    )


def groups(quick: bool) -> Event:
    found = {name: Table(t.X, t.k) for name, t in tables(quick).items() if not sparse.issparse(t.X)}
    return contest(
        "k-means",
        "Σ‖x − z‖² by Factorization(k, left=OneHot())",
        found,
        inertia,
        {"twofold, Factorization": lambda X, k, s: Factorization(k, left=OneHot(), random_state=s).fit(X).components_},
        {"scikit-learn, KMeans": lambda X, k, seed: SklearnKMeans(k, random_state=seed).fit(X).cluster_centers_},
        lambda t: inertia(t.X, t.X.mean(axis=0)[None]),
        2 if quick else 10,
    )


NONZERO = 4


def measure_error(X: np.ndarray, atoms: np.ndarray) -> float:
    """½‖X − UD‖² of codes of a few atoms by orthogonal matching pursuit."""
    atoms = atoms[np.linalg.norm(atoms, axis=1) > 0]
    atoms = atoms / np.linalg.norm(atoms, axis=1, keepdims=True)
    return -len(X) * float(SparseCoder(atoms, transform_n_nonzero_coefs=NONZERO).score(X))


def spams_fit() -> Fit:
    import spams

    def fit(X: np.ndarray, k: int, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        D = np.asfortranarray(X[rng.choice(np.flatnonzero(X.any(axis=1)), k, replace=False)].T)
        D /= np.linalg.norm(D, axis=0)
        options = {"lambda1": NONZERO, "mode": 3, "iter": 200, "verbose": False, "numThreads": 2}
        return np.ascontiguousarray(spams.trainDL(np.asfortranarray(X.T), D=D, **options).T)

    return fit


def dictionaries(quick: bool) -> Event:
    def peer(kind: Any, sweeps: int, X: np.ndarray, k: int, seed: int) -> np.ndarray:
        """ℓ1, with about as many atoms a signal."""
        alpha = 0.17 * float(np.median(np.linalg.norm(X, axis=1)))
        with threadpool_limits(1):
            return kind(k, alpha=alpha, fit_algorithm="cd", max_iter=sweeps, random_state=seed).fit(X).components_

    def own(X: np.ndarray, k: int, seed: int) -> np.ndarray:
        return KSVD(k, n_nonzero=NONZERO, random_state=seed).fit(X).components_

    peers: dict[str, Fit] = {
        "scikit-learn, mini-batches": partial(peer, MiniBatchDictionaryLearning, 20),
        "scikit-learn, DictionaryLearning": partial(peer, DictionaryLearning, 5),
    }
    spams = optional("spams", "spams-bin", lambda: Contestant("spams", spams_fit()))
    if isinstance(spams, Contestant):
        peers["spams"] = spams.run
    return contest(
        "dictionaries",
        f"½‖X − UD‖² with {NONZERO} atoms a signal, found by orthogonal matching pursuit",
        signals(quick),
        measure_error,
        {"twofold, KSVD": own},
        peers,
        lambda t: measure_error(t.X, KSVD(1, n_nonzero=1, random_state=0).fit(t.X).components_),
        2 if quick else 10,
    )


EVENTS = (nmf, kullback_leibler, groups, dictionaries)
