"""Results appear whole or not at all, and never in place of something else."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from twofold.analyses.answer import bar, plain
from twofold.core.checks import InputError
from twofold.core.files.atomic import write_all
from twofold.io.writable import check_writable


def test_all_files_or_none(folder):
    Path("old.csv").write_text("old")

    def fail(to):
        to.write_text("half")
        raise RuntimeError("disk on fire")

    with pytest.raises(RuntimeError):
        write_all({Path("old.csv"): lambda to: to.write_text("new"), Path("b.csv"): fail})
    assert [p.name for p in folder.iterdir()] == ["old.csv"]
    assert Path("old.csv").read_text() == "old"
    write_all({Path("old.csv"): lambda to: to.write_text("new"), Path("b.csv"): lambda to: to.write_text("b")})
    assert {p.name: p.read_text() for p in folder.iterdir()} == {"old.csv": "new", "b.csv": "b"}


def test_targets_that_must_not_be_written(folder):
    Path("there.csv").write_text("x")
    Path("sub").mkdir()
    for path, word in [("there.csv", "--force"), ("sub", "folder"), ("no/such.csv", "no folder")]:
        with pytest.raises(InputError, match=word):
            check_writable(Path(path), force=False)
    check_writable(Path("there.csv"), force=True)
    with pytest.raises(InputError, match="input"):
        check_writable(Path("there.csv"), force=True, inputs=["./there.csv"])


def test_json_is_strict():
    value = {"a": np.float64("nan"), "b": np.arange(2), "c": [math.inf, np.int64(3)], "d": Path("x"), "e": True}
    text = json.dumps(plain(value), allow_nan=False)
    assert json.loads(text) == {"a": None, "b": [0, 1], "c": [None, 3], "d": "x", "e": True}


def test_bars_grow_with_what_they_show():
    lengths = [len(bar(share, 10)) for share in np.linspace(0, 1, 50)]
    assert lengths == sorted(lengths) and lengths[0] == 0 and bar(1.0, 10) == "█" * 10
