"""Whatever is public is in the reference, and whatever is in the reference exists."""

import importlib
import re
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "index.md"
FAMILIES = [
    "linear",
    "clusters",
    "completion",
    "topics",
    "words",
    "signals",
    "factors",
    "metrics",
    "linalg",
    "datasets",
]


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


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_public_is_listed(family):
    public = set(importlib.import_module(f"twofold.{family}").__all__)
    assert not public - {name.split(".")[-1] for _, name in list_names()}
