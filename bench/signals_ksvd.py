"""K-SVD of patches of a photograph: the same start, the same number of sweeps; and fewer patches for slower peers."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import DictionaryLearning
from sklearn.exceptions import ConvergenceWarning

from bench.harness import Bar, Contestant, Event, Missing, Row, optional
from bench.machine import threads
from twofold import KSVD, OnlineDictionary, SparseCoder, datasets
from twofold.io.images import read_image
from twofold.signals.images.patches import take_patches

ATOMS, NONZERO, SWEEPS, ONLINE = 256, 8, 10, 3
TIE = 1e-3


def photograph() -> tuple[str, np.ndarray]:
    path = Path(os.environ.get("TWOFOLD_DATA", "")) / "images" / "barbara.png"
    return ("barbara", read_image(path).pixels) if path.exists() else ("ascent", datasets.photographs().ascent)


def patches(image: np.ndarray, n: int) -> np.ndarray:
    """Some of its 8 x 8 patches, without their means."""
    X = take_patches(image.astype(np.float64), 8, range(image.shape[0] - 7))
    X = X[np.sort(np.random.default_rng(0).choice(len(X), n, replace=False))]
    return X - X.mean(axis=1, keepdims=True)


def ours(X: np.ndarray, D: np.ndarray, sweeps: int = SWEEPS, model: Any = KSVD) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model(ATOMS, n_nonzero=NONZERO, init=D, max_iter=sweeps, tol=0).fit(X).components_


def dictlearn_entry(X: np.ndarray, D: np.ndarray) -> Contestant:
    from dictlearn import DictionaryLearning as Peer

    def run(X: np.ndarray, sweeps: int) -> np.ndarray:
        model = Peer(ATOMS, n_nonzero_coefs=NONZERO, max_iter=sweeps, dict_init=D, random_state=0)
        return model.fit(X).components_

    return Contestant("dictlearn", lambda: run(X, SWEEPS), warm=lambda: run(X[:600], 1), note="aksvd, BLAS threaded")


def ksvd_entry(X: np.ndarray, D: np.ndarray) -> Contestant:
    from ksvd import ApproximateKSVD

    class Started(ApproximateKSVD):
        """It begins at random otherwise, and has no other way to begin."""

        def _initialize(self, X: np.ndarray) -> np.ndarray:
            return D.copy()

    def run(X: np.ndarray, sweeps: int) -> np.ndarray:
        return Started(ATOMS, max_iter=sweeps, transform_n_nonzero_coefs=NONZERO).fit(X).components_

    note = "its atoms see positive coefficients only"
    return Contestant("ksvd", lambda: run(X, SWEEPS), warm=lambda: run(X[:600], 1), note=note)


def sklearn_entry(X: np.ndarray, D: np.ndarray) -> Contestant:
    """ℓ1 instead of a number of atoms; with this penalty codes have about as many."""

    def run(X: np.ndarray, sweeps: int) -> np.ndarray:
        alpha = 0.17 * float(np.median(np.linalg.norm(X, axis=1)))
        start = {"dict_init": D, "code_init": np.zeros((len(X), ATOMS))}
        jobs = {"fit_algorithm": "cd", "n_jobs": threads()}
        model = DictionaryLearning(ATOMS, alpha=alpha, max_iter=sweeps, tol=0, **jobs, **start)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(X).components_

    note = f"ℓ1, coordinate descent, {threads()} jobs"
    return Contestant("scikit-learn", lambda: run(X, SWEEPS), warm=lambda: run(X[:300], 1), note=note)


def fast_enough(rows: list[Row]) -> bool:
    """Five times dictlearn and ksvd, and no worse than either."""
    mine = next(row for row in rows if row.ours and row.counts)
    peers = [row for row in rows if row.contestant in ("dictlearn", "ksvd") and row.seconds]
    as_good = all(mine.quality["error"] <= (1 + TIE) * row.quality["error"] for row in peers)
    return as_good and all(row.median >= 5 * mine.median for row in peers)


def event(name: str, n: int, peers: tuple) -> Event:
    picture, image = photograph()
    X = patches(image, n)
    D = X[np.random.default_rng(1).choice(np.flatnonzero(X.any(axis=1)), ATOMS, replace=False)]
    D = D / np.linalg.norm(D, axis=1, keepdims=True)

    def quality(atoms: np.ndarray) -> dict[str, float]:
        coder = SparseCoder(atoms / np.linalg.norm(atoms, axis=1, keepdims=True), transform_n_nonzero_coefs=NONZERO)
        return {"error": float(np.sqrt(-2 * coder.score(X) / X.shape[1]))}

    def online() -> np.ndarray:
        return ours(X, D, ONLINE, OnlineDictionary)

    return Event(
        f"signals_ksvd {name}",
        f"K-SVD of {n:,} patches of {picture}, {ATOMS} atoms, {NONZERO} a patch, {SWEEPS} sweeps; error a pixel",
        [
            Contestant("twofold", lambda: ours(X, D), ours=True, warm=lambda: ours(X[:600], D, 1), note="approximate"),
            Contestant("twofold online", online, ours=True, counts=False, note=f"OnlineDictionary, {ONLINE} sweeps"),
            *(peer(X, D) for peer in peers),
        ],
        quality=quality,
        as_good=lambda a, b: a["error"] <= (1 + TIE) * b["error"],
        bar=Bar("5 x dictlearn and ksvd, and no worse an error", test=fast_enough),
        budget=5.0,
    )


def dictlearn_or_not(X: np.ndarray, D: np.ndarray) -> Contestant | Missing:
    return optional("dictlearn", "dictlearn", lambda: dictlearn_entry(X, D))


def ksvd_or_not(X: np.ndarray, D: np.ndarray) -> Contestant | Missing:
    return optional("ksvd", "ksvd", lambda: ksvd_entry(X, D))


EVENTS = (
    lambda quick: event("many", 2000 if quick else 20_000, (dictlearn_or_not,)),
    lambda quick: event("few", 500 if quick else 2000, (dictlearn_or_not, ksvd_or_not, sklearn_entry)),
)
