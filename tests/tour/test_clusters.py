"""The cluster station shows what the models do."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from twofold.clusters import GaussianMixture, KMeans
from twofold.plots.models.clusters import draw_ellipses
from twofold.tour.clusters import lloyd_path


def test_the_path_that_is_drawn_is_that_of_kmeans() -> None:
    X = np.random.default_rng(0).standard_normal((200, 2))
    path = lloyd_path(X, X[:4])
    costs = [((X[:, None] - Z) ** 2).sum(axis=2).min(axis=1).sum() for Z in path]
    assert len(path) > 3 and (np.diff(costs) < 0).all()
    np.testing.assert_allclose(path[-1], KMeans(4, init=X[:4], tol=0).fit(X).cluster_centers_)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical", "fixed"])
def test_ellipses_hold_the_rows_they_should(kind: str) -> None:
    """Two standard deviations of a Gaussian in the plane hold 1 − e⁻² of it, whatever its shape."""
    S = {"full": [[2, 1.2], [1.2, 1]], "tied": [[2, 1.2], [1.2, 1]], "diag": [[3, 0], [0, 1]]}.get(kind, np.eye(2))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 2)) @ np.linalg.cholesky(np.array(S)).T + np.repeat([[0, 0], [30, 5]], 2000, axis=0)
    ax = Figure().subplots()
    draw_ellipses(ax, GaussianMixture(2, covariance_type=kind, random_state=0).fit(X))
    drawn = [patch for patch in ax.patches if isinstance(patch, Ellipse)]
    outer = [max(drawn[i : i + 4], key=lambda e: e.width) for i in (0, 4)]
    inside = np.any([e.contains_points(ax.transData.transform(X)) for e in outer], axis=0)
    assert inside.mean() == pytest.approx(1 - np.exp(-2), abs=0.02)
