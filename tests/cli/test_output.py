"""What the command writes: plain cells, strict JSON, bars, and progress on a terminal or in a file in its place."""

import csv
import io
import json
import math
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from twofold.analyses.common.answer import bar
from twofold.cli import progress
from twofold.cli.deliver import print_json
from twofold.core.printable import plain, printable
from twofold.core.progress import part, report, report_to


def test_formulas_are_made_plain_on_request_and_numbers_are_not_touched(twofold):
    cells = ["=1+1", "+a", "-a", "@a", "\ta", "-5", "+1e3", "plain", "a=b", ""]
    rows = [[cell, f"{3 * i + 1}", f"{i * i}.5"] for i, cell in enumerate(cells)]
    with open("in.csv", "w", newline="") as file:
        csv.writer(file).writerows([["name", "=x", "y"], *rows])
    for out, options in (("plain.csv", ()), ("safe.csv", ("--safe-csv",))):
        assert twofold("complete", "in.csv", "-o", out, *options).exit_code == 0
    with open("plain.csv", newline="") as plain_file, open("safe.csv", newline="") as safe_file:
        was, now = list(csv.reader(plain_file)), list(csv.reader(safe_file))
    assert was == [["name", "=x", "y"], *rows]
    assert now[0] == ["name", "'=x", "y"]
    assert [row[0] for row in now[1:]] == [f"'{cell}" if cell in cells[:5] else cell for cell in cells]
    assert [[float(x) for x in row[1:]] for row in now[1:]] == [[float(x) for x in row[1:]] for row in rows]


def test_json_is_strict():
    value = {"a": np.float64("nan"), "b": np.arange(2), "c": [math.inf, np.int64(3)], "d": Path("x"), "e": True}
    text = json.dumps(plain(value), allow_nan=False)
    assert json.loads(text) == {"a": None, "b": [0, 1], "c": [None, 3], "d": "x", "e": True}


def test_json_holds_no_character_that_a_terminal_obeys(capsys):
    value = {"\x1b[2J": "\x9b\u202e\x07 é \n"}
    print_json(value)
    shown = capsys.readouterr().out
    assert json.loads(shown) == value and shown == printable(shown)


def test_bars_grow_with_what_they_show():
    lengths = [len(bar(share, 10)) for share in np.linspace(0, 1, 50)]
    assert lengths == sorted(lengths) and lengths[0] == 0 and bar(1.0, 10) == "█" * 10


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
