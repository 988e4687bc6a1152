"""The completion station and its figures show what is there."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import sparse

from twofold.linalg import shrink
from twofold.plots.labels import label_points
from twofold.plots.models.completion import landscape_figure, phase_figure
from twofold.plots.reports.recommend import plane
from twofold.tour.completion import cells, landscape, rated


def test_held_out_ratings_are_not_shown() -> None:
    world = rated(0)
    assert world.train.multiply(world.held).nnz == 0
    assert world.train.nnz + world.held.nnz == len(world.frame)
    rows, cols = cells(world.held)
    assert np.array_equal(world.held[rows, cols], world.held.data)


def test_half_steps_end_at_the_soft_threshold() -> None:
    part = landscape()
    assert part.figure is not None
    assert float(part.numbers["u z at rest"]) == pytest.approx(shrink(np.array([[1.4]]), 0.3)[0, 0], abs=1e-3)


def test_landscapes_have_their_lowest_points_on_the_curve() -> None:
    figure = landscape_figure(-1.0, {"a": (0.0, {}), "b": (0.2, {"way": np.zeros((3, 2))})})
    branches = [line.get_xydata() for line in figure.axes[0].lines if len(line.get_xydata()) > 10]
    assert len(branches) == 2
    for branch in branches:
        np.testing.assert_allclose(branch[:, 0] * branch[:, 1], -1.0)
    points = [line.get_xydata()[0] for line in figure.axes[1].lines if line.get_marker() == "o" and line.get_ms() == 9]
    assert sorted(u * z for u, z in points) == pytest.approx([-0.8, -0.8])


def test_the_line_of_counting_is_that_of_degrees_of_freedom() -> None:
    figure = phase_figure({"a": np.zeros((3, 2))}, np.array([0.2, 0.6]), np.array([1.0, 2.0, 3.0]), (10, 20))
    (line,) = figure.axes[0].lines
    share, rank = line.get_xydata().T
    np.testing.assert_allclose(share * 200, rank * (30 - rank))


def test_no_name_hides_another() -> None:
    at = np.random.default_rng(0).uniform(size=(200, 2))
    figure = Figure(figsize=(11, 6))
    ax = figure.subplots()
    ax.scatter(*at.T)
    label_points(ax, at, [f"The Wonderful Film {j}" for j in range(200)], np.arange(200), 20)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent().shrunk(0.95, 0.7) for text in ax.texts]
    assert len(boxes) == 20
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_the_plane_of_items_keeps_what_differs_most() -> None:
    class Model:
        model_ = type(
            "M", (), {"components_": np.diag([9.0, 5.0, 0.1]) @ np.random.default_rng(0).normal(size=(3, 40))}
        )
        ratings_ = sparse.csr_array(np.eye(40))

    at = plane(Model())
    assert at is not None
    Z = Model.model_.components_.T
    Z = Z - Z.mean(axis=0)
    assert (at**2).sum() == pytest.approx((Z**2).sum(), rel=1e-2)
    Model.model_.components_ = Model.model_.components_[:1]
    same = np.kron(np.eye(2), np.ones((100, 20)))  # two groups of people, and the films of each
    Model.ratings_ = sparse.csr_array((np.random.default_rng(0).random((200, 40)) < 0.1 + 0.7 * same) * 1.0)
    at = plane(Model())
    assert at is not None and abs(at[:20, 0].mean() - at[20:, 0].mean()) > 6 * at[:20, 0].std()
    Model.ratings_ = sparse.csr_array(np.eye(5))
    assert plane(Model()) is None
