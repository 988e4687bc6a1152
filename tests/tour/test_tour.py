"""The tour: one page that stands alone, and stations whose numbers are far from chance on both sides.

A station's models are fitted once: the page shows the very parts that the tests look at.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.cli.helpers import run_twofold
from twofold.clusters import KMeans
from twofold.linalg import shrink
from twofold.tour import EXTRAS, STATIONS, Part, clusters, completion, signals, topics, words
from twofold.tour.page import page

FITTED_ONCE = {
    "topics": ["count_words", "packages", "numbers", "parts"],
    "words": ["learn_vectors", "products", "directions", "halves"],
    "signals": ["station"],
    "deep": ["train_judge", "reading", "codes", "walk", "game", "pixels"],
}


def remember(make: Callable) -> Callable:
    """Return `make` with a memory of its results; a world is the same if it is the same object."""
    made: dict[tuple, tuple] = {}

    @functools.wraps(make)
    def ask(*args: Any) -> Any:
        key = tuple(a if isinstance(a, int) else id(a) for a in args)
        if key not in made:
            made[key] = (make(*args), args)  # the arguments are kept, so that no other object takes their place
        return made[key][0]

    return ask


@pytest.fixture(scope="module", autouse=True)
def once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for title, name in STATIONS.items():
            if title not in EXTRAS or find_spec(EXTRAS[title][0]):
                module = import_module(f"twofold.tour.{name}")
                for function in FITTED_ONCE.get(name, []):
                    patch.setattr(module, function, remember(getattr(module, function)))
        yield


# --- the page ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tour_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tour") / "page.html"
    result = run_twofold("tour", "-o", str(path))
    assert result.exit_code == 0, result.output
    return path


def test_every_station_is_on_the_page(tour_page: Path) -> None:
    assert len(re.findall(r"<section id=", tour_page.read_text(encoding="utf-8"))) == len(STATIONS) > 0


def test_page_needs_nothing_else(tour_page: Path) -> None:
    text = re.sub(r'xmlns(:\w+)?="[^"]*"', "", tour_page.read_text(encoding="utf-8"))
    places = re.findall(r'(?:src|href)="([^"]*)"|url\(([^)]*)\)', text)
    assert places
    assert all((a or b).startswith(("#", "data:")) for a, b in places)
    assert "<script" not in text


def test_ids_are_unique_and_references_lead_somewhere(tour_page: Path) -> None:
    text = tour_page.read_text(encoding="utf-8")
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', text)) <= {(i, "") for i in ids} | {("", i) for i in ids}


def test_every_figure_has_words(tour_page: Path) -> None:
    figures = re.findall(r"<svg[^>]*>", tour_page.read_text(encoding="utf-8"))
    assert figures
    assert all(re.search(r'aria-label="[^"]{20,}"', figure) for figure in figures)


def test_tags_are_balanced(tour_page: Path) -> None:
    class Balance(HTMLParser):
        open: list[str] = []  # noqa: RUF012
        empty = ("meta", "img", "br", "link")

        def handle_starttag(self, tag: str, attrs: list) -> None:
            if tag not in self.empty:
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

    check = Balance()
    check.feed(tour_page.read_text(encoding="utf-8"))
    assert check.open == []


def test_page_is_not_overwritten_unasked(tour_page: Path) -> None:
    before = tour_page.read_bytes()
    result = run_twofold("tour", "-o", str(tour_page))
    assert result.exit_code == 2
    assert tour_page.read_bytes() == before


def test_what_is_found_in_data_is_only_ever_text() -> None:
    facts = {"k": 1, "count": 2, "candidates": 3, "different": 4, "shape": "<b>round</b>"}
    parts = {name: Part(Figure(), {"x < y": "3 & 4"}, **facts) for name in ("moving", "digits", "mixture", "colors")}
    text = page([("Groups, hard and soft", parts, 1.0)])
    for escaped in ("&lt;b&gt;round&lt;/b&gt;", "x &lt; y", "3 &amp; 4", "[&#34;full&#34;, &#34;tied&#34;"):
        assert escaped in text
    assert "<b>" not in text


# --- stations ------------------------------------------------------------------------------------------------

NETWORKS = "Networks and generators"
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def numbers(part: Part) -> list[float]:
    return [float(text.replace("−", "-").replace(",", "").split()[0].rstrip("%")) for text in part.numbers.values()]


def test_lloyds_path_is_that_of_kmeans() -> None:
    X = np.random.default_rng(0).standard_normal((200, 2))
    path = clusters.lloyd_path(X, X[:4])
    costs = [((X[:, None] - Z) ** 2).sum(axis=2).min(axis=1).sum() for Z in path]
    assert len(path) > 3 and (np.diff(costs) < 0).all()
    np.testing.assert_allclose(path[-1], KMeans(4, init=X[:4], tol=0).fit(X).cluster_centers_)


def test_held_out_ratings_are_not_shown_and_half_steps_end_at_the_soft_threshold() -> None:
    world = completion.split_ratings(0)
    assert world.train.multiply(world.held).nnz == 0
    assert world.train.nnz + world.held.nnz == len(world.frame)
    rows, cols = completion.cells(world.held)
    assert np.array_equal(world.held[rows, cols], world.held.data)
    rest = float(completion.landscape().numbers["u z at rest"])
    assert rest == pytest.approx(shrink(np.array([[1.4]]), 0.3)[0, 0], abs=1e-3)


def test_topics_know_packages_and_held_out_words() -> None:
    world = topics.count_words(0)
    assert not set(world.test) & set(world.train)
    assert len(world.test) + len(world.train) == world.X.shape[0]
    assert world.shares.sum() == pytest.approx(1) and (np.diff(world.shares) <= 0).all()
    np.testing.assert_allclose(world.mixtures.sum(axis=1), 1, rtol=1e-5)
    own, plain, different = numbers(topics.words_of(world))
    assert own < 0.8 * plain < plain < different
    right, chance = numbers(topics.packages(world))
    assert right > 2 * chance


def test_word_vectors_know_kinds_steps_and_halves() -> None:
    """The text is that of the versions installed; ten of some thousand words would have one in a hundred by chance."""
    world = words.learn_vectors(0)
    pairs = [("rows", "columns"), ("true", "false"), ("right", "left"), ("lower", "upper"), ("string", "str")]
    close = [other in [word for word, _ in world.vectors.nearest(own, 10)] for own, other in pairs]
    assert sum(close) >= 3
    plural, opposite, right, beside = numbers(words.directions(world))
    assert plural > 0.15 and abs(opposite) < 0.15 < 30 < beside and right > 2
    before, after = numbers(words.halves(world, 0))
    assert after > before + 5
    part = words.products(0)
    assert float(part.numbers["correlation"]) > 0.95
    target, product = np.asarray(part.figure.axes[0].collections[0].get_offsets()).T  # type: ignore[union-attr]
    assert abs(np.median(product - target)) < 0.25  # on the diagonal, and not beside it


def test_signals_are_kept_recovered_cleaned_and_filled() -> None:
    def value(part: Part, name: str) -> float:
        return float(part.numbers[name].split()[0].rstrip("%"))

    bases, sensing, noise, holes = signals.station(0).values()
    wavelets, haar, cosines = (value(bases, f"kept by {name}") for name in ("wavelets", "haar", "cosines"))
    assert 100 > wavelets > haar > cosines > 50
    assert 0 < value(sensing, "error") < 15
    assert value(noise, "cleaned") > value(noise, "with noise") + 4
    assert value(holes, "filled") > value(holes, "mean in the holes") + 6


@needs_torch
def test_networks_read_code_walk_forge_and_draw() -> None:
    from twofold.tour import deep

    world = deep.train_judge(0)
    own = {row.tobytes() for row in world.seen}
    assert sum(row.tobytes() in own for row in world.held) < 3  # copies are in the data itself
    right, _ = numbers(deep.reading(world))
    assert right > 90  # percent; by chance 10
    straight, bent = numbers(deep.codes(world))
    assert bent < 0.85 * straight
    bound, better, used = numbers(deep.walk(world))
    assert bound < better < 0 and used >= 4
    first, _, last, floor = numbers(deep.game(world))
    assert floor < last < 0.6 * first
    exact, alone, kinds, sure = numbers(deep.pixels(world))
    assert exact > alone + 15
    assert alone > -64 * np.log(17)  # knowing nothing
    assert kinds > 5 and sure > 40  # of 10; noise would be one kind, or unsure


def test_without_torch_a_station_is_left_out_with_one_line(tmp_path: Path, monkeypatch: Any) -> None:
    from twofold.cli.verbs import tour as command

    assert set(EXTRAS) <= set(STATIONS)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(command, "STATIONS", {NETWORKS: STATIONS[NETWORKS]})
    result = run_twofold("tour", "-o", str(tmp_path / "page.html"))
    assert result.exit_code == 0, result.output
    (line,) = [line for line in result.stderr.splitlines() if NETWORKS in line]
    assert "torch" in line and "twofold[deep]" in line
    assert NETWORKS not in (tmp_path / "page.html").read_text(encoding="utf-8")
