"""What the pages show is what the code does: every prompt in the README, the guide and the chapters is run."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from .prompts import GUIDE, ROOT, find_blocks, run_blocks

ALONE = "cookbook"  # its blocks are run one by one, in test_cookbook
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted(GUIDE.glob("*.md")), *sorted((ROOT / "docs" / "learn").glob("*.md"))]
    if page.stem != ALONE and find_blocks(page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    if "from distributed" in text:
        pytest.importorskip("distributed")
    if page.stem == "networks":
        pytest.importorskip("torch")
    run_blocks(find_blocks(text, "torch" if find_spec("torch") else ""), page.name)
