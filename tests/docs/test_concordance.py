"""The concordance of docs/learn/index.md: no row is empty, and every name, test and chapter in it exists."""

import importlib
import re
from pathlib import Path

import pytest

import twofold

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/learn/index.md").read_text(encoding="utf-8").partition("## Concordance")[2]
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| section", "| ---"))
]


def anchors(page):
    """The headings of a page, as links name them."""
    heads = re.findall(r"^#+ (.*)$", (ROOT / "docs/learn" / page).read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def find(name):
    """The thing that a dotted name means, under twofold."""
    first, *rest = name.removeprefix("twofold.").split(".")
    try:
        thing = getattr(twofold, first)
    except AttributeError:
        thing = importlib.import_module(f"twofold.{first}")
    for part in rest:
        thing = getattr(thing, part)
    return thing


def test_there_are_five_sets_and_no_empty_cell():
    assert len(re.findall(r"^### ", PAGE, flags=re.M)) == 5 and len(ROWS) > 80
    for row in ROWS:
        assert len(row) == 5 and all(row), row


@pytest.mark.parametrize("name", sorted({name for row in ROWS for name in re.findall(r"`([^`]+)`", row[2])}))
def test_every_name_exists(name):
    assert find(name) is not None


@pytest.mark.parametrize("path", sorted({path for row in ROWS for path in re.findall(r"`([^`]+)`", row[3])}))
def test_every_law_exists(path):
    assert (ROOT / path).is_file()


@pytest.mark.parametrize("link", sorted({link for row in ROWS for link in re.findall(r"\(([^)]+)\)", row[4])}))
def test_every_chapter_exists(link):
    page, _, anchor = link.partition("#")
    assert anchor in anchors(page), sorted(anchors(page))
