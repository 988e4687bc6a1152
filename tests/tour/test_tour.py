"""The tour is one page that stands alone."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from tests.cli.helpers import run_twofold
from twofold.tour import STATIONS, Part
from twofold.tour.page import page


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
