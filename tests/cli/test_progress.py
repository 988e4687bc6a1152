"""What the terminal, or a file in its place, shows of progress."""

import io
import time

import pytest
from rich.console import Console

from twofold.cli import progress
from twofold.core.progress import part, report, report_to


def test_a_terminal_shows_one_bar():
    out = io.StringIO()
    with progress.TerminalProgress(Console(file=out, force_terminal=True, width=100)) as bar, report_to(bar):
        report(0, None, "reading")
        with part(0, 1, 2, "writing"):
            report(1, 2, "1 of 2 blocks")
            assert bar.bars.tasks[0].completed == 0.5 and bar.bars.tasks[0].total == 2
    assert "writing" in out.getvalue() and len(bar.bars.tasks) == 1


def test_lines_say_how_far_and_how_long(monkeypatch):
    monkeypatch.setattr(progress, "REPORT_SECONDS", 0.01)
    lines = []
    with progress.LineProgress(lines.append) as face:
        face.report(1, 4, "KMeans: sweep 2 of at most 4")
        while not lines[2:]:
            time.sleep(0.01)
    assert lines[-1] == "KMeans: sweep 2 of at most 4, 25% (1 s so far)"


@pytest.mark.parametrize("terminal", [False, True])
def test_quiet_shows_nothing(monkeypatch, capsys, terminal):
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    with progress.show_progress(quiet=True):
        report(1, 2, "hidden")
    assert capsys.readouterr().err == ""
