"""Orthogonal matching pursuit of many signals: 32 of 1,024 atoms each, and patches of a photograph to a given error."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import sparse_encode
from sklearn.linear_model import orthogonal_mp_gram

from bench.harness import Bar, Contestant, Event, Missing, Row, optional
from bench.machine import threads
from twofold import datasets
from twofold.signals import DCT, orthogonal_matching_pursuit
from twofold.signals.images.patches import take_patches

TIE = 1e-3


class Job:
    """Signals X (n,d), atoms D (k,d), and when to stop: a number of atoms, or an error."""

    def __init__(self, X: np.ndarray, D: np.ndarray, n_nonzero: int | None = None, tol: float | None = None):
        self.X, self.D, self.n_nonzero, self.tol = X, D, n_nonzero, tol

    def few(self) -> Job:
        return Job(self.X[:50], self.D, self.n_nonzero, self.tol)

    def quality(self, codes: Any) -> dict[str, float]:
        """Measure the distance of the signals from their codes, sparse or dense (n,k), and the number of atoms."""
        left = np.linalg.norm(self.X - codes @ self.D, axis=1)
        return {"error": float(np.sqrt((left**2).mean())), "atoms": float((codes != 0).sum()) / len(left)}


def ours(job: Job) -> Any:
    return orthogonal_matching_pursuit(job.D, job.X, n_nonzero=job.n_nonzero, error=job.tol)


def by_gram(job: Job) -> np.ndarray:
    gram, products = job.D @ job.D.T, job.D @ job.X.T
    stop: dict[str, Any] = {"n_nonzero_coefs": job.n_nonzero}
    if job.tol is not None:
        stop = {"tol": job.tol**2, "norms_squared": np.einsum("ij,ij->i", job.X, job.X)}
    return orthogonal_mp_gram(gram, products, copy_Gram=False, copy_Xy=False, **stop).T


def by_encode(job: Job) -> np.ndarray:
    """Its parallel form, which stops by count only."""
    return sparse_encode(job.X, job.D, algorithm="omp", n_nonzero_coefs=job.n_nonzero, n_jobs=threads())


def spams_entry(job: Job) -> Contestant:
    import spams

    def run(job: Job) -> Any:
        # With L alone, single precision gives codes of nothing: eps has to be said.
        stop: dict[str, Any] = {"L": job.n_nonzero, "eps": 0.0} if job.tol is None else {"eps": job.tol**2}
        X, D = np.asfortranarray(job.X.T), np.asfortranarray(job.D.T)
        return spams.omp(X, D, numThreads=threads(), **stop).T

    return entry("SPAMS", run, job, note=f"{threads()} threads")


def dictlearn_entry(job: Job) -> Contestant:
    import dictlearn

    def run(job: Job) -> np.ndarray:
        square = None if job.tol is None else job.tol**2
        return dictlearn.sparse_encode(job.X, job.D, algorithm="omp", n_nonzero_coefs=job.n_nonzero, tol=square)

    return entry("dictlearn", run, job, note="one thread: it has no other way")


def entry(name: str, run: Any, job: Job, **more: Any) -> Contestant:
    return Contestant(name, lambda: run(job), warm=lambda: run(job.few()), **more)


def fast_enough(rows: list[Row]) -> bool:
    mine = next(row for row in rows if row.ours)
    wanted = {"scikit-learn": 10.0, "scikit-learn, jobs": 10.0, "SPAMS": 1.0}
    return all(row.median >= wanted.get(row.contestant, 0.0) * mine.median and row.equal for row in rows if row.seconds)


def event(name: str, title: str, job: Job, single: bool = False) -> Event:
    """All in double precision; in single, those that support it."""
    peers: list[Contestant | Missing] = [
        entry("scikit-learn", by_gram, job, note="orthogonal_mp_gram"),
        *(
            [entry("scikit-learn, jobs", by_encode, job, note=f"sparse_encode, {threads()} jobs")]
            if job.n_nonzero
            else []
        ),
        optional("dictlearn", "dictlearn", lambda: dictlearn_entry(job)),
    ]
    return Event(
        f"signals_omp {name}",
        title,
        [
            entry("twofold", ours, job, ours=True, note=f"{threads()} threads"),
            optional("SPAMS", "spams-bin", lambda: spams_entry(job)),
            *([] if single else peers),
        ],
        quality=job.quality,
        as_good=lambda a, b: a["error"] <= (1 + TIE) * b["error"] and a["atoms"] <= (1 + TIE) * b["atoms"],
        bar=Bar(
            "1 x SPAMS, residuals equal" if single else "10 x scikit-learn, 1 x SPAMS, residuals equal",
            test=fast_enough,
        ),
        budget=10.0,
    )


def by_count(quick: bool, dtype: type = np.float64) -> Event:
    n, k, d, s = (500 if quick else 5000), 1024, 256, 32
    rng = np.random.default_rng(0)
    D = rng.normal(size=(k, d))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    places = rng.permuted(np.tile(np.arange(k), (n, 1)), axis=1)[:, :s]
    X = np.einsum("is,isd->id", rng.normal(size=(n, s)), D[places]) + 0.1 * rng.normal(size=(n, d))
    kind = np.dtype(dtype).name
    title = f"{n:,} signals of {s} atoms and noise, {k:,} x {d} dictionary, {s} atoms a code, {kind}"
    return event(f"count {kind}", title, Job(X.astype(dtype), D.astype(dtype), s), single=dtype == np.float32)


def by_error(quick: bool) -> Event:
    """Only patches that are not small enough already: some peers give those an atom, too."""
    sigma, k = 10.0, 256
    image = datasets.photographs().camera.astype(np.float64)
    noisy = image + sigma * np.random.default_rng(0).normal(size=image.shape)
    tol = 1.15 * 8 * sigma
    X = take_patches(noisy, 8, range(0, 505))
    X = X - X.mean(axis=1, keepdims=True)
    X = X[np.linalg.norm(X, axis=1) > tol][:: 40 if quick else 5]
    cosines = DCT().matrix(16)[:, :8]
    D = np.einsum("ax,by->abxy", cosines, cosines).reshape(k, 64)
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    title = f"{len(X):,} noisy 8 x 8 patches, {k} cosines of 64 numbers, to an error of 1.15 x 8 σ, float64"
    return event("error", title, Job(X, D, tol=tol))


EVENTS = (by_count, lambda quick: by_count(quick, np.float32), by_error)
