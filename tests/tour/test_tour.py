"""The tour is one page that stands alone."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from tests.cli.helpers import run_twofold
from twofold.tour import STATIONS
from twofold.tour.page import page
from twofold.tour.station import Part, Station


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tour") / "page.html"
    result = run_twofold("tour", "-o", str(path))
    assert result.exit_code == 0, result.output
    return path


def test_every_station_is_on_the_page(made: Path) -> None:
    assert len(re.findall(r"<section id=", made.read_text(encoding="utf-8"))) == len(STATIONS) > 0


def test_page_needs_nothing_else(made: Path) -> None:
    text = re.sub(r'xmlns(:\w+)?="[^"]*"', "", made.read_text(encoding="utf-8"))
    places = re.findall(r'(?:src|href)="([^"]*)"|url\(([^)]*)\)', text)
    assert places
    assert all((a or b).startswith(("#", "data:")) for a, b in places)
    assert "<script" not in text


def test_ids_are_unique_and_references_lead_somewhere(made: Path) -> None:
    text = made.read_text(encoding="utf-8")
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', text)) <= {(i, "") for i in ids} | {("", i) for i in ids}


def test_every_figure_has_words(made: Path) -> None:
    figures = re.findall(r"<svg[^>]*>", made.read_text(encoding="utf-8"))
    assert figures
    assert all(re.search(r'aria-label="[^"]{20,}"', figure) for figure in figures)


def test_tags_are_balanced(made: Path) -> None:
    class Balance(HTMLParser):
        open: list[str] = []  # noqa: RUF012
        empty = ("meta", "img", "br", "link")

        def handle_starttag(self, tag: str, attrs: list) -> None:
            if tag not in self.empty:
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

    check = Balance()
    check.feed(made.read_text(encoding="utf-8"))
    assert check.open == []


def test_page_is_not_overwritten_unasked(made: Path) -> None:
    before = made.read_bytes()
    result = run_twofold("tour", "-o", str(made))
    assert result.exit_code == 2
    assert made.read_bytes() == before


def test_our_words_may_be_marked_up_and_nothing_else() -> None:
    part = Part(
        "1 < 2", "some <i>words</i>", 'a < "b"', Figure(), "a caption with & in it, and more", {"x < y": "3 & 4"}
    )
    text = page([(Station("Q & A", "a <i>lead</i>", [part]), 1.0)])
    assert "a <i>lead</i>" in text and "some <i>words</i>" in text
    for escaped in ("Q &amp; A", "1 &lt; 2", "a &lt; ", "with &amp; in it", "x &lt; y", "3 &amp; 4"):
        assert escaped in text
    assert "&lt;i&gt;" not in text
