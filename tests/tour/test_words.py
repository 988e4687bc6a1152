"""The words station and its figures show what is there."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from twofold.plots.models.words import (
    curves_figure,
    draw_word_map,
    measure_common_step,
    products_figure,
    steps_figure,
    word_map_figure,
)
from twofold.tour import words as station


@pytest.fixture(scope="module")
def world() -> station.World:
    return station.learned(0)


def test_neighbours_are_of_the_same_kind(world: station.World) -> None:
    pairs = [("rows", "columns"), ("true", "false"), ("right", "left"), ("lower", "upper"), ("string", "str")]
    close = [other in [word for word, _ in world.vectors.nearest(own, 10)] for own, other in pairs]
    # The text is that of the versions installed. Ten of some thousand words would have one in a hundred by chance.
    assert sum(close) >= 3


def test_products_are_mutual_information() -> None:
    part = station.products(0)
    assert float(part.numbers["correlation"]) > 0.95
    target, product = np.asarray(part.figure.axes[0].collections[0].get_offsets()).T  # type: ignore[union-attr]
    assert abs(np.median(product - target)) < 0.25  # on the diagonal, and not beside it


def test_plurals_have_a_common_step_and_opposites_none(world: station.World) -> None:
    plural, opposite, right, beside = (float(value.rstrip("%")) for value in station.directions(world).numbers.values())
    assert plural > 0.15 and abs(opposite) < 0.15 < 30 < beside
    assert right > 2  # of some thousand words


def test_halves_meet_only_after_the_rotation(world: station.World) -> None:
    before, after = (float(value.rstrip("%")) for value in station.halves(world, 0).numbers.values())
    assert before < 10 < 20 < after


# --- figures ------------------------------------------------------------------------------------------------


def test_no_word_of_the_map_hides_another() -> None:
    rng = np.random.default_rng(0)
    figure = Figure(figsize=(10.6, 6.9))
    ax = figure.add_axes((0, 0, 1, 1))
    words = [("mill" * 4)[:n] for n in rng.integers(3, 14, 150)]
    draw_word_map(ax, rng.standard_normal((150, 2)), words, rng.integers(0, 5, 150).tolist(), rng.random(150).tolist())
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) > 60
    shared = [
        max(0, min(a.x1, b.x1) - max(a.x0, b.x0)) * max(0, min(a.y1, b.y1) - max(a.y0, b.y0)) / (a.width * a.height)
        for i, a in enumerate(boxes)
        for b in boxes[:i]
    ]
    assert max(shared) < 0.12


def test_words_that_come_first_are_written_first() -> None:
    at = np.array([[0.0, 0.0], [0.001, 0.0], [0.0, 0.001], [0.001, 0.001], [0.0, 0.0005], [0.0005, 0.0], [1.0, 1.0]])
    figure = word_map_figure(at, ["first", "second", "third", "fourth", "fifth", "sixth", "away"])
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert shown[0] == "first" and "away" in shown and len(shown) < 7


def test_steps_that_agree_are_told_from_those_that_do_not() -> None:
    rng = np.random.default_rng(0)
    words, step = rng.standard_normal((400, 30)), 3 * rng.standard_normal(30)
    assert measure_common_step(np.stack([words, words + step], axis=1)).mean() > 0.5
    assert abs(measure_common_step(np.stack([words, rng.standard_normal((400, 30))], axis=1)).mean()) < 0.1


def test_arrows_lead_from_the_first_to_the_second() -> None:
    words = np.random.default_rng(0).standard_normal((12, 5)) * [0, 1, 1, 1, 1]
    pairs = [(f"one{i}", f"many{i}") for i in range(12)]
    ax = steps_figure({"t": (pairs, np.stack([words, words + np.eye(5)[0]], axis=1))}, shown=4).axes[0]
    arrows: list = [text for text in ax.texts if getattr(text, "arrow_patch", None) is not None]
    assert len(arrows) == 4 and all(arrow.xy[1] > arrow.xyann[1] for arrow in arrows)  # the common step is up
    shown = {text.get_text() for text in ax.texts} - {""}
    assert len(shown) == 8 and shown <= {word for pair in pairs[::2] for word in pair}


def test_curves_and_products_are_drawn_as_given() -> None:
    figure = curves_figure({"one": ([1, 10], [0.2, 0.4])}, "x", "y", level=("level", 0.3), share=True, log=True)
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_xydata(), [[1, 0.2], [10, 0.4]])
    xs, ys = np.array([0.0, 1.0]), np.array([0.5, 2.0])
    ax = products_figure({"t": (xs, ys, np.ones(2))}, "x", "y").axes[0]
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), np.column_stack([xs, ys]))
