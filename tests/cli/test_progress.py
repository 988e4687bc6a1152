"""What is shown while blocks are worked on."""

import io

from rich.console import Console

from twofold.cli._progress import TerminalProgress
from twofold.core.engine.progress import Counter


def test_blocks_are_counted_once_there_are_some():
    progress, out = TerminalProgress(), io.StringIO()
    progress.console = Console(file=out, force_terminal=True, width=100)
    with progress.passes():
        before = len(out.getvalue())
        counter = Counter("writing blocks", 2)
        counter.add(None)
        counter.add(None)
    shown = out.getvalue()
    assert "starting" in shown[:before] and "of" not in shown[:before] and "None" not in shown
    assert "writing blocks" in shown[before:] and "2 of 2 blocks" in shown[before:]
