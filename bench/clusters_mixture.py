"""EM for a Gaussian mixture with full covariances: 30,000 x 74, ten components, twenty sweeps."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture as SklearnMixture
from threadpoolctl import threadpool_limits

from bench.clusters_kmeans import proteins, quietly
from bench.harness import Bar, Contestant, Event, Missing, Timed, Work
from twofold import GaussianMixture

C, SWEEPS = 10, 20


class Start(NamedTuple):
    """A mixture to begin from."""

    weights: np.ndarray
    means: np.ndarray
    precisions: np.ndarray


def our_start(X: np.ndarray) -> Start:
    """Return the start of our fit, for all."""
    model = quietly(lambda: GaussianMixture(C, max_iter=0, random_state=0).fit(X))
    precisions = model.precisions_
    return Start(
        model.weights_,
        model.means_,
        (precisions + precisions.transpose(0, 2, 1)) / 2,  # scikit-learn insists on symmetry
    )


def likelihood(X: np.ndarray, model: Any) -> float:
    """The mean log-likelihood of the rows under a fitted mixture, by the plainest route."""
    logs = np.empty((len(X), C))
    for c, (m, S) in enumerate(zip(model.means_, model.covariances_, strict=True)):
        L = np.linalg.cholesky(S)
        z = solve_triangular(L, (X - m).T, lower=True)
        constant = 0.5 * X.shape[1] * np.log(2 * np.pi) + np.log(np.diag(L)).sum()
        logs[:, c] = np.log(model.weights_[c]) - constant - 0.5 * (z**2).sum(axis=0)
    return float(logsumexp(logs, axis=1).mean())


def mixture(quick: bool) -> Event | Missing:
    X = proteins("clusters_mixture")
    if isinstance(X, Missing):
        return X
    X = X[: 5_000 if quick else 30_000].astype(np.float64)
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)
    start, (n, d) = our_start(X), X.shape

    def ours(X: np.ndarray) -> GaussianMixture:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # no convergence, thin components: see notes
            return GaussianMixture(C, tol=0, max_iter=SWEEPS, random_state=0).fit(X)

    def ours_sweeps() -> Timed:
        model = ours(X)
        return Timed(model.history_["seconds"][-1], model)

    def sklearn(X: np.ndarray, **more: Any) -> SklearnMixture:
        return quietly(lambda: SklearnMixture(C, tol=0, max_iter=SWEEPS, random_state=0, **more).fit(X))

    def sklearn_one_thread() -> SklearnMixture:
        with threadpool_limits(1, "blas"):
            return sklearn(X, **given)

    given = {"weights_init": start.weights, "means_init": start.means, "precisions_init": start.precisions}
    small = X[:2000]
    return Event(
        "clusters_mixture",
        f"Gaussian mixture of {n:,} x {d}, float64, {C} full covariances, {SWEEPS} sweeps",
        [
            Contestant("twofold", ours_sweeps, ours=True, note="sweeps alone", warm=lambda: ours(small)),
            Contestant(
                "twofold, whole fit",
                lambda: ours(X),
                ours=True,
                counts=False,
                note="with its start",
                warm=lambda: None,
            ),
            Contestant(
                "scikit-learn", lambda: sklearn(X, **given), note="our start given", warm=lambda: sklearn(small)
            ),
            Contestant(
                "scikit-learn, one BLAS thread",
                sklearn_one_thread,
                note="our start given: its small products can be faster so",
                warm=lambda: None,
            ),
            Contestant(
                "scikit-learn, whole fit",
                lambda: sklearn(X),
                counts=False,
                note="with its k-means start",
                warm=lambda: None,
            ),
        ],
        quality=lambda model: {"log-likelihood": likelihood(X, model), "sweeps": model.n_iter_},
        as_good=lambda a, b: a["log-likelihood"] >= b["log-likelihood"] - 1e-3 * abs(b["log-likelihood"]),
        bar=Bar("3 x scikit-learn", ratio=3.0),
        # A triangular product for the densities and the symmetric half of one for the sums, for each component.
        work=Work(flops=float(SWEEPS) * C * n * d * (2 * d + 2), bytes=float(SWEEPS) * X.nbytes),
        repeats=None if quick else 2,
        notes=[
            "scikit-learn's fit ends with one half-sweep more, for the labels: 1 part in 40.",
            "Some clusters lie in a subspace: both add 1e-6 to the variances, and ours warns of such components.",
        ],
    )


EVENTS = (mixture,)
