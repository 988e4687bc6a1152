"""The quality of generated images, by the features and the predictions of a classifier of the user's."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from twofold.core.checks import InputError
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed


class Frechet(NamedTuple):
    """A distance, and the distance between two halves of the real data."""

    distance: float
    floor: float


def frechet_distance(real: Any, generated: Any, *, features: Any = None, random_state: Seed = 0) -> Frechet:
    """The Fréchet distance between Gaussians fitted to real and to generated samples, with its floor.

        ‖m − m'‖² + tr(C + C' − 2 (C C')^½)

    It depends on the features and on how many samples there are, so it can only be compared with distances of the same
    features and number; the floor, the distance between two halves of the real samples, is that of a perfect generator.

    Parameters
    ----------
    real, generated : array of shape (n, ...), (m, ...)
        Samples, which are flattened unless `features` is given.
    features : callable, optional
        samples → (n, d), such as the last hidden layer of a classifier; None takes the samples themselves.
    random_state : int, RandomState, Generator or None, default=0
        For the halves.

    Returns
    -------
    distance, floor : named tuple of float

    References
    ----------
    Dowson & Landau (1982), *J. Multivariate Analysis* 12, 450-455. Heusel et al. (2017), *NIPS* 30 (for generators).

    Examples
    --------
    >>> from twofold.deep import frechet_distance
    >>> rng = np.random.default_rng(0)
    >>> real, near, far = rng.normal(size=(3, 2000, 4)) + np.array([0, 0, 1])[:, None, None]
    >>> frechet_distance(real, near).distance < 0.05, round(frechet_distance(real, far).distance)
    (True, 4)
    """
    A, B = (_check_features(X, features, name) for X, name in ((real, "real"), (generated, "generated")))
    if A.shape[1] != B.shape[1]:
        raise InputError(f"real samples have {A.shape[1]} features, generated ones {B.shape[1]}. Give the same kind.")
    order = generator(seed_of(random_state)).permutation(len(A))
    half = len(A) // 2
    floor = _measure_distance(A[order[:half]], A[order[half:]]) if half > 1 else float("nan")
    return Frechet(_measure_distance(A, B), floor)


def _check_features(X: Any, features: Any, name: str) -> np.ndarray:
    F = np.asarray(X if features is None else features(X), dtype=np.float64)
    F = F.reshape(len(F), -1) if F.ndim > 1 else F[:, None]
    if len(F) < 2 or not np.isfinite(F).all():
        raise InputError(f"{name} needs two samples or more of finite numbers; it has shape {np.shape(X)}.")
    return F


def _measure_distance(A: np.ndarray, B: np.ndarray) -> float:
    """The distance of two samples; tr (C C')^½ is the nuclear norm of the product of their centered factors."""
    a, b = (X - X.mean(axis=0) for X in (A, B))
    # C = aᵀa/n, so the eigenvalues of C C' are the squared singular values of a bᵀ/√(nm): taken from R factors, d × d.
    Ra, Rb = (np.linalg.qr(X, mode="r") / np.sqrt(len(X) - 1) for X in (a, b))
    cross = np.linalg.svd(Ra @ Rb.T, compute_uv=False).sum()
    mean = ((A.mean(axis=0) - B.mean(axis=0)) ** 2).sum()
    return float(max(mean + (Ra**2).sum() + (Rb**2).sum() - 2 * cross, 0.0))


class SampleScore(NamedTuple):
    """The confidence of a classifier, the evenness of the classes, and both in one number."""

    quality: float
    diversity: float
    score: float


def sample_score(classifier: Any, samples: Any) -> SampleScore:
    """Quality and diversity of samples, by the predictions of a classifier.

        quality = exp(−mean entropy of p(y|x)) in (1/K, 1],  diversity = exp(entropy of p(y)) in [1, K] classes
        score = exp(mean KL(p(y|x) ‖ p(y))) = quality · diversity

    Parameters
    ----------
    classifier : object with ``predict_proba``, or callable
        samples → probabilities (n, K), trained by the user on the real data.
    samples : array

    Returns
    -------
    quality, diversity, score : named tuple of float
        The score lies between 1 and K. Memorized data have a perfect one: it does not measure novelty.

    References
    ----------
    Salimans et al. (2016), *NIPS* 29 (with a particular network, as the Inception score).

    Examples
    --------
    >>> from twofold.deep import sample_score
    >>> sure_and_even = np.eye(4)[[0, 1, 2, 3]]
    >>> sample_score(lambda samples: sure_and_even, np.zeros(4))
    SampleScore(quality=1.0, diversity=4.0, score=4.0)
    """
    ask = getattr(classifier, "predict_proba", classifier)
    P = np.asarray(ask(samples), dtype=np.float64)
    if P.ndim != 2 or len(P) == 0 or not np.allclose(P.sum(axis=1), 1, atol=1e-3) or (P < 0).any():
        raise InputError(f"the classifier gives {P.shape}; probabilities (n, K) that sum to 1 are needed.")
    entropy = -xlogy(P, P).sum(axis=1).mean()
    mean = P.mean(axis=0)
    overall = -xlogy(mean, mean).sum()
    return SampleScore(float(np.exp(-entropy)), float(np.exp(overall)), float(np.exp(overall - entropy)))
