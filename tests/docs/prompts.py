"""How prompts on a page are found and run."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def find_blocks(text: str, extra: str = "") -> list[str]:
    """The blocks of prompts in a text; with an extra also those for which it must be there, ``python needs=NAME``."""
    mark = f"(?: needs={extra})?" if extra else ""
    return re.findall(rf"```python{mark}\n(>>>.*?)```", text, re.S)


def run_blocks(blocks: list[str], name: str) -> None:
    """Run blocks one after the other in one namespace; what came out differently is the error."""
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name, name, 0)
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(example, out=said.append)
    assert result.attempted > 0
    assert result.failed == 0, "".join(said)
