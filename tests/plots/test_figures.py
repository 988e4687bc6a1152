"""Figures draw what they are given, and no label hides another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from scipy import sparse

from twofold.clusters import GaussianMixture
from twofold.plots.labels import label_points
from twofold.plots.models import clusters, completion, signals, topics, words
from twofold.plots.reports.recommend import plane
from twofold.plots.reports.topics import topic_report_figure
from twofold.signals.bases import DCT, Haar

RNG = np.random.default_rng
WORDS = [("mill" * 4)[:n] for n in RNG(0).integers(3, 14, 150)]


def new_axes(width: float, height: float) -> Any:
    return Figure(figsize=(width, height)).add_axes((0, 0, 1, 1))


def label_films() -> Any:
    at, ax = RNG(0).uniform(size=(200, 2)), new_axes(11, 6)
    ax.scatter(*at.T)
    label_points(ax, at, [f"The Wonderful Film {j}" for j in range(200)], np.arange(200), 20)
    return ax


def label_topics() -> Any:
    at, shares, ax = RNG(0).standard_normal((25, 2)), RNG(0).dirichlet(np.ones(25)), new_axes(9, 5.2)
    topics.draw_topic_map(ax, at, shares, [f"some few words {c}" for c in range(25)])
    return ax


def label_words() -> Any:
    groups, weights = RNG(1).integers(0, 5, 150).tolist(), RNG(1).random(150).tolist()
    return words.word_map_figure(RNG(0).standard_normal((150, 2)), WORDS, groups, weights).axes[0]


@pytest.mark.parametrize(
    ("draw", "labels", "overlap"), [(label_films, 20, 0.35), (label_topics, 8, 0.0), (label_words, 60, 0.12)]
)
def test_no_label_hides_another(draw: Any, labels: int, overlap: float) -> None:
    ax = draw()
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts if not text.get_text().isdigit()]
    assert len(boxes) >= labels
    shared = [
        max(0, min(a.x1, b.x1) - max(a.x0, b.x0)) * max(0, min(a.y1, b.y1) - max(a.y0, b.y0)) / (a.width * a.height)
        for i, a in enumerate(boxes)
        for b in boxes[:i]
    ]
    assert max(shared) <= overlap


def test_the_first_words_are_written_first() -> None:
    at = np.array([[0.0, 0.0], [0.001, 0.0], [0.0, 0.001], [0.001, 0.001], [0.0, 0.0005], [0.0005, 0.0], [1.0, 1.0]])
    figure = words.word_map_figure(at, ["first", "second", "third", "fourth", "fifth", "sixth", "away"])
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert shown[0] == "first" and "away" in shown and len(shown) < 7


def test_circles_of_the_map_do_not_hide_numbers() -> None:
    ax = new_axes(9, 5.2)
    at = np.array([[0.0, 0.0], [0.001, 0.0], [1.0, 1.0], [0.2, 0.9]])
    topics.draw_topic_map(ax, at, np.full(4, 0.25), ["a", "b", "c", "d"])
    ax.figure.draw_without_rendering()
    circles = ax.collections[0]
    places = ax.transData.transform(np.asarray(circles.get_offsets())) / ax.figure.dpi
    assert np.hypot(*(places[0] - places[1])) >= np.sqrt(circles.get_sizes()[0]) / 144
    np.testing.assert_allclose(circles.get_offsets()[2:], at[2:], atol=1e-9)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical", "fixed"])
def test_ellipses_hold_the_rows_they_should(kind: str) -> None:
    """Two standard deviations of a Gaussian in the plane hold 1 − e⁻² of it, whatever its shape."""
    S = {"full": [[2, 1.2], [1.2, 1]], "tied": [[2, 1.2], [1.2, 1]], "diag": [[3, 0], [0, 1]]}.get(kind, np.eye(2))
    X = RNG(0).standard_normal((4000, 2)) @ np.linalg.cholesky(np.array(S)).T
    X += np.repeat([[0, 0], [30, 5]], 2000, axis=0)
    ax = Figure().subplots()
    clusters.draw_ellipses(ax, GaussianMixture(2, covariance_type=kind, random_state=0).fit(X))
    drawn = [patch for patch in ax.patches if isinstance(patch, Ellipse)]
    outer = [max(drawn[i : i + 4], key=lambda e: e.width) for i in (0, 4)]
    inside = np.any([e.contains_points(ax.transData.transform(X)) for e in outer], axis=0)
    assert inside.mean() == pytest.approx(1 - np.exp(-2), abs=0.02)


def test_landscapes_have_their_lowest_points_on_the_curve() -> None:
    figure = completion.landscape_figure(-1.0, {"a": (0.0, {}), "b": (0.2, {"way": np.zeros((3, 2))})})
    branches = [line.get_xydata() for line in figure.axes[0].lines if len(line.get_xydata()) > 10]
    assert len(branches) == 2
    for branch in branches:
        np.testing.assert_allclose(branch[:, 0] * branch[:, 1], -1.0)
    points = [line.get_xydata()[0] for line in figure.axes[1].lines if line.get_marker() == "o" and line.get_ms() == 9]
    assert sorted(u * z for u, z in points) == pytest.approx([-0.8, -0.8])


def test_lines_curves_and_products_are_drawn_as_given() -> None:
    phases = completion.phase_figure({"a": np.zeros((3, 2))}, np.array([0.2, 0.6]), np.array([1.0, 2.0, 3.0]), (10, 20))
    share, rank = phases.axes[0].lines[0].get_xydata().T
    np.testing.assert_allclose(share * 200, rank * (30 - rank))  # the degrees of freedom
    figure = words.curves_figure({"one": ([1, 10], [0.2, 0.4])}, "x", "y", level=("level", 0.3), share=True, log=True)
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_xydata(), [[1, 0.2], [10, 0.4]])
    xs, ys = np.array([0.0, 1.0]), np.array([0.5, 2.0])
    ax = words.products_figure({"t": (xs, ys, np.ones(2))}, "x", "y").axes[0]
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), np.column_stack([xs, ys]))
    perplexity, coherence = topics.choice_figure([2, 4, 8], [30, 20, 21], {"LDA": [0.1, 0.3, 0.2]}, 4).axes
    assert any(list(line.get_xdata()) == [4, 4] for line in perplexity.lines)
    np.testing.assert_array_equal(perplexity.lines[0].get_ydata(), [30, 20, 21])
    np.testing.assert_array_equal(coherence.lines[0].get_ydata(), [0.1, 0.3, 0.2])


def test_the_plane_of_items_keeps_the_largest_differences() -> None:
    class Model:
        model_ = type("M", (), {"components_": np.diag([9.0, 5.0, 0.1]) @ RNG(0).normal(size=(3, 40))})
        ratings_ = sparse.csr_array(np.eye(40))

    at = plane(Model())
    assert at is not None
    Z = Model.model_.components_.T
    Z = Z - Z.mean(axis=0)
    assert (at**2).sum() == pytest.approx((Z**2).sum(), rel=1e-2)
    Model.model_.components_ = Model.model_.components_[:1]
    same = np.kron(np.eye(2), np.ones((100, 20)))  # two groups of people, and the films of each
    Model.ratings_ = sparse.csr_array((RNG(0).random((200, 40)) < 0.1 + 0.7 * same) * 1.0)
    at = plane(Model())
    assert at is not None and abs(at[:20, 0].mean() - at[20:, 0].mean()) > 6 * at[:20, 0].std()
    Model.ratings_ = sparse.csr_array(np.eye(5))
    assert plane(Model()) is None


def test_the_words_of_topics_are_the_most_probable() -> None:
    weights, vocabulary = RNG(0).dirichlet(np.ones(30), 5), [f"w{j}" for j in range(30)]
    for row, ax in zip(weights, topics.words_figure(weights, vocabulary, top=4).axes, strict=False):
        shown = [label.get_text() for label in ax.get_yticklabels()][::-1]
        assert shown == [vocabulary[j] for j in np.argsort(-row)[:4]]


@pytest.mark.parametrize("k", [1, 2, 40])
def test_figures_take_one_topic_and_many(k: int) -> None:
    rng = RNG(0)
    days = np.arange("2020-01", "2020-06", dtype="datetime64[M]").astype("datetime64[D]")
    shares, tops = np.sort(rng.dirichlet(np.ones(k)))[::-1], [["one", "two", "three", "four"]] * k
    at = rng.standard_normal((k, 2)) if k > 1 else np.zeros((1, 2))
    topic_report_figure(at, shares, tops, None, (days, rng.dirichlet(np.ones(k), 5)), "t").draw_without_rendering()
    topics.groups_figure(rng.dirichlet(np.ones(k), 3), list("abc"), ["x"] * k).draw_without_rendering()


def test_parts_show_signs_only_where_there_are_some() -> None:
    images = np.zeros((4, 2, 2))
    images[:, 0, 0] = 1.0
    figure = topics.parts_figure({"plus": images, "both": images - 0.5}, per_row=2)
    plus, both = (np.asarray(ax.images[0].get_array()) for ax in figure.axes)
    assert np.ptp(plus[1, 1, :3]) < 0.05  # paper
    assert both[1, 1, 0] - both[1, 1, 2] > 0.1  # red


def test_pairs_that_agree_have_a_common_step_and_arrows_follow_it() -> None:
    rng = RNG(0)
    one, step = rng.standard_normal((400, 30)), 3 * rng.standard_normal(30)
    assert words.measure_common_step(np.stack([one, one + step], axis=1)).mean() > 0.5
    assert abs(words.measure_common_step(np.stack([one, rng.standard_normal((400, 30))], axis=1)).mean()) < 0.1
    small = rng.standard_normal((12, 5)) * [0, 1, 1, 1, 1]
    pairs = [(f"one{i}", f"many{i}") for i in range(12)]
    ax = words.steps_figure({"t": (pairs, np.stack([small, small + np.eye(5)[0]], axis=1))}, shown=4).axes[0]
    arrows: list = [text for text in ax.texts if getattr(text, "arrow_patch", None) is not None]
    assert len(arrows) == 4 and all(arrow.xy[1] > arrow.xyann[1] for arrow in arrows)  # the common step is up
    shown = {text.get_text() for text in ax.texts} - {""}
    assert len(shown) == 8 and shown <= {word for pair in pairs[::2] for word in pair}


def test_each_basis_has_its_signal_and_its_curve() -> None:
    x = RNG(0).standard_normal(64)
    curves, *rows = signals.bases_figure(x, {"one": DCT(), "two": Haar()}, 5).axes
    assert [line.get_label() for line in curves.lines[:2]] == ["one", "two"]
    for ax, line, basis in zip(rows, curves.lines, (DCT(), Haar()), strict=False):
        drawn = np.asarray(ax.lines[1].get_ydata())
        assert np.count_nonzero(np.abs(basis.analyze(drawn)) > 1e-9) == 5
        lost = float(np.sum((x - drawn) ** 2) / np.sum(x**2))
        np.testing.assert_allclose(np.asarray(line.get_ydata())[5], lost)
        np.testing.assert_allclose(signals.compute_energy_lost(basis.analyze(x))[5], lost, atol=1e-12)


def test_a_recording_has_a_spectrogram_with_its_tone() -> None:
    tone = np.sin(2 * np.pi * 1000 * np.arange(4000) / 8000)[None]
    figure = signals.compare_signals_figure(tone, 0.1 * tone, ["hum"], 8000)
    before, after = (ax for ax in figure.get_axes() if ax.collections and ax.get_ylabel() != "dB")
    for ax, loudness in ((before, 0), (after, -20)):
        mesh: Any = ax.collections[0]
        power, edges = mesh.get_array(), mesh.get_coordinates()[:, 0, 1]
        at = int(np.argmax(power[:, power.shape[1] // 2]))
        assert edges[at] <= 1.0 <= edges[at + 1] and power[at].max() == pytest.approx(loudness, abs=0.1)
    assert len(signals.compare_signals_figure(tone, tone, ["hum"]).get_axes()) == 2
