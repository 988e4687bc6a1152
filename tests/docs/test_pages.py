"""What the pages show is what the code does: every prompt in the README and the guide is run."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
    if ">>>" in page.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if "from distributed" in page.read_text(encoding="utf-8"):
        pytest.importorskip("distributed")
    if page.stem == "networks":
        pytest.importorskip("torch")
    blocks = re.findall(r"```python\n(>>>.*?)```", page.read_text(encoding="utf-8"), re.S)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=flags, verbose=False).run(example, out=said.append)
    assert result.attempted > 0
    assert result.failed == 0, "".join(said)
