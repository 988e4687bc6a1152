"""The concordance: every name, law and section in it exists, and the section treats the item in the words it names."""

import importlib
import re
from functools import cache
from pathlib import Path

import pytest

import twofold

ROOT = Path(__file__).parents[2]
LEARN = ROOT / "docs/learn"
SETS = ("Fei", "Çetin", "Perez Jensen", "Erdogdu", "Formula sheet", "Beyond the notes")
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")]
    for line in (LEARN / "concordance.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| section", "| ---"))
]


def anchor_of(heading: str) -> str:
    """The anchor of a heading, as links name it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def squeeze(text: str) -> str:
    """Text without differences of spaces, case, emphasis and the marks of formulas."""
    return re.sub(r"[\s*$]+", " ", text).strip().lower()


@cache
def sections(page: str) -> dict[str, str]:
    """The text under each heading of a page, without that of the headings below it."""
    parts = re.split(r"^#+ (.*)$", (LEARN / page).read_text(encoding="utf-8"), flags=re.M)
    return {anchor_of(head): squeeze(text) for head, text in zip(parts[1::2], parts[2::2], strict=True)}


def find(name: str) -> object:
    """The thing that a dotted name means, under twofold."""
    first, *rest = name.removeprefix("twofold.").split(".")
    try:
        thing = getattr(twofold, first)
    except AttributeError:
        thing = importlib.import_module(f"twofold.{first}")
    for part in rest:
        thing = getattr(thing, part)
    return thing


def test_no_set_is_missing_and_no_cell_empty():
    heads = re.findall(r"^## (.*)$", (LEARN / "concordance.md").read_text(encoding="utf-8"), flags=re.M)
    assert tuple(heads) == SETS and len(ROWS) >= 279
    for row in ROWS:
        assert len(row) == 6 and all(row), row


@pytest.mark.parametrize("name", sorted({name for row in ROWS for name in re.findall(r"`([^`]+)`", row[2])}))
def test_every_name_exists(name):
    assert find(name) is not None


def test_every_law_is_about_the_thing():
    failures = []
    for _, item, here, law, _, _ in ROWS:
        path = ROOT / law.strip("`")
        names = [name.split(".")[-1] for name in re.findall(r"`([^`]+)`", here)]
        if not path.is_file() or not any(name in path.read_text(encoding="utf-8") for name in names):
            failures.append(f"{item}: {law} does not use {names}")
    assert failures == []


def test_every_section_treats_its_item():
    failures = []
    for _, item, _, _, link, words in ROWS:
        page, _, anchor = re.fullmatch(r"\[.*\]\((.*)\)", link)[1].partition("#")
        text = sections(page).get(anchor)
        missing = [one for one in words.split("; ") if text is None or squeeze(one) not in text]
        failures += [f"{item}: {page}#{anchor} lacks {missing}"] if missing else []
    assert failures == []


# --- the reference -------------------------------------------------------------------------------------------

REFERENCE = ROOT / "docs" / "reference" / "index.md"
FAMILIES = "linear clusters completion topics words signals factors metrics linalg datasets"


def list_names():
    """(module, name) of every line of the autosummaries."""
    module, found = "", []
    for line in REFERENCE.read_text().splitlines():
        if at := re.match(r"\.\. currentmodule:: ([\w.]+)", line):
            module = at[1]
        elif name := re.fullmatch(r"   ([\w.]+)", line):
            found.append((module, name[1]))
    return found


def test_what_is_listed_exists():
    for module, name in list_names():
        where = importlib.import_module(module)
        for part in name.split("."):
            where = getattr(where, part)


@pytest.mark.parametrize("family", FAMILIES.split())
def test_what_is_public_is_listed(family):
    public = set(importlib.import_module(f"twofold.{family}").__all__)
    assert not public - {name.split(".")[-1] for _, name in list_names()}
