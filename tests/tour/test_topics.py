"""The topics station and its figures show what is there."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from twofold.plots.models.topics import (
    choice_figure,
    draw_topic_map,
    groups_figure,
    parts_figure,
    words_figure,
)
from twofold.plots.reports.topics import topic_report_figure
from twofold.tour import topics as station


@pytest.fixture(scope="module")
def world() -> station.World:
    return station.counted(0)


def test_documents_put_aside_are_not_fitted(world: station.World) -> None:
    assert not set(world.test) & set(world.train)
    assert len(world.test) + len(world.train) == world.X.shape[0]
    again = station.fitted(world.X[world.train], station.TOPICS, 0)
    np.testing.assert_array_equal(again.components_, world.model.components_)


def test_topics_predict_what_frequencies_do_not(world: station.World) -> None:
    part = station.words_of(world)
    own, plain, different = (float(value.replace(",", "")) for value in part.numbers.values())
    assert own < 0.8 * plain < plain < different


def test_packages_are_told_from_topics(world: station.World) -> None:
    right, chance = (float(value.rstrip("%")) for value in station.packages(world).numbers.values())
    assert right > 2 * chance


def test_shares_are_of_all_words(world: station.World) -> None:
    assert world.shares.sum() == pytest.approx(1) and (np.diff(world.shares) <= 0).all()
    np.testing.assert_allclose(world.mixtures.sum(axis=1), 1, rtol=1e-5)


def test_words_are_those_most_probable() -> None:
    topics = np.random.default_rng(0).dirichlet(np.ones(30), 5)
    words = [f"w{j}" for j in range(30)]
    figure = words_figure(topics, words, top=4)
    for c, ax in enumerate(figure.axes[:5]):
        shown = [label.get_text() for label in ax.get_yticklabels()][::-1]
        assert shown == [words[j] for j in np.argsort(-topics[c])[:4]]


def test_no_words_of_the_map_hide_others() -> None:
    rng = np.random.default_rng(0)
    figure = Figure(figsize=(9, 5.2))
    ax = figure.add_axes((0, 0, 1, 1))
    draw_topic_map(
        ax, rng.standard_normal((25, 2)), rng.dirichlet(np.ones(25)), [f"some few words {c}" for c in range(25)]
    )
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts if text.get_text().startswith("some")]
    assert len(boxes) > 8
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_circles_of_the_map_do_not_hide_numbers() -> None:
    figure = Figure(figsize=(9, 5.2))
    ax = figure.add_axes((0, 0, 1, 1))
    at = np.array([[0.0, 0.0], [0.001, 0.0], [1.0, 1.0], [0.2, 0.9]])
    draw_topic_map(ax, at, np.full(4, 0.25), ["a", "b", "c", "d"])
    figure.draw_without_rendering()
    circles = ax.collections[0]
    places = ax.transData.transform(np.asarray(circles.get_offsets())) / figure.dpi
    radius = np.sqrt(circles.get_sizes()) / 144
    assert np.hypot(*(places[0] - places[1])) >= radius[0]
    np.testing.assert_allclose(circles.get_offsets()[2:], at[2:], atol=1e-9)


def test_choice_marks_the_number_taken() -> None:
    figure = choice_figure([2, 4, 8], [30, 20, 21], [0.1, 0.3, 0.2], 4)
    assert any(list(line.get_xdata()) == [4, 4] for line in figure.axes[0].lines)
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), [30, 20, 21])
    np.testing.assert_array_equal(figure.axes[1].lines[0].get_ydata(), [0.1, 0.3, 0.2])


def test_figures_take_one_topic_and_many() -> None:
    rng = np.random.default_rng(0)
    days = np.arange("2020-01", "2020-06", dtype="datetime64[M]").astype("datetime64[D]")
    for k in (1, 2, 40):
        shares, tops = np.sort(rng.dirichlet(np.ones(k)))[::-1], [["one", "two", "three", "four"]] * k
        at = rng.standard_normal((k, 2)) if k > 1 else np.zeros((1, 2))
        topic_report_figure(at, shares, tops, None, (days, rng.dirichlet(np.ones(k), 5)), "t").draw_without_rendering()
        groups_figure(rng.dirichlet(np.ones(k), 3), list("abc"), ["x"] * k).draw_without_rendering()


def test_parts_show_signs_only_where_there_are_some() -> None:
    images = np.zeros((4, 2, 2))
    images[:, 0, 0] = 1.0
    figure = parts_figure({"plus": images, "both": images - 0.5}, per_row=2)
    plus, both = (np.asarray(ax.images[0].get_array()) for ax in figure.axes)
    assert np.ptp(plus[1, 1, :3]) < 0.05  # paper
    assert both[1, 1, 0] - both[1, 1, 2] > 0.1  # red
