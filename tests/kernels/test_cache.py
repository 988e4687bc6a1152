"""Where compiled kernels are kept when neither the package nor the user's own folder can be written to."""

import os
import subprocess
import sys
from pathlib import Path

import numba

import twofold.kernels

PROGRAM = """
import numpy as np
from twofold.kernels.top_k import select_best
from numba import config
print(config.CACHE_DIR)
items, scores = np.zeros((1, 1), np.int64), np.zeros((1, 1))
select_best(np.array([[1.0, 3.0]]), np.zeros(2, np.int64), np.zeros(0, np.int64), items, scores)
print(items[0, 0])
"""


def test_nothing_is_done_where_a_folder_is_named_or_writable(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    twofold.kernels.find_cache()
    assert str(tmp_path) == numba.config.CACHE_DIR
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    twofold.kernels.find_cache()
    assert numba.config.CACHE_DIR == ""


def test_a_folder_that_could_be_made_counts_as_writable(tmp_path):
    assert twofold.kernels.can_write(tmp_path / "a" / "b")
    file = tmp_path / "file"
    file.write_text("")
    assert not twofold.kernels.can_write(file)


def test_a_folder_into_which_one_may_not_look_is_not_writable(monkeypatch, tmp_path):
    """As the home of another user is, when a command runs for somebody else (sudo -u)."""

    def refuse(path, **_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "stat", refuse)
    assert not twofold.kernels.can_write(tmp_path / "home" / ".cache")


def test_a_user_who_can_write_nowhere_still_computes(tmp_path):
    """In a process of its own that is told that no folder can be written to."""
    source = Path(twofold.__file__).parents[1]
    code = "import os\nreal = os.access\nos.access = lambda path, mode: not mode & os.W_OK and real(path, mode)\n"
    run = subprocess.run(
        [sys.executable, "-c", code + PROGRAM],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(source), "TMPDIR": str(tmp_path), "NUMBA_CACHE_DIR": ""},
    )
    assert run.returncode == 0, run.stderr
    folder, answer = run.stdout.split()
    assert Path(folder).parent == tmp_path and answer == "1"
    assert not Path(folder).exists()  # cleared at the end
