"""Every recipe of the cookbook runs by itself, in an empty folder, and is short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .prompts import GUIDE, find_blocks, run_blocks

RECIPES = {
    part.partition("\n")[0]: part
    for part in re.split(r"^## ", (GUIDE / "cookbook.md").read_text(encoding="utf-8"), flags=re.M)[1:]
}


def test_there_are_twenty_recipes() -> None:
    assert len(RECIPES) >= 20


@pytest.mark.parametrize("title", RECIPES)
def test_recipe(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = find_blocks(RECIPES[title])
    assert len(re.findall(r"^(?:>>>|\.\.\.) ", block, re.M)) <= 12
    if "VAE" in block:
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    run_blocks([block], title)
