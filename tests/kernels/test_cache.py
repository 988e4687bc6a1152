"""The folder of compiled kernels if neither the package nor the user's own folder is writable; checks of bounds."""

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


def test_a_named_or_writable_folder_is_used(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    twofold.kernels.find_cache()
    assert str(tmp_path) == numba.config.CACHE_DIR
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    twofold.kernels.find_cache()
    assert numba.config.CACHE_DIR == ""


def test_a_folder_that_can_be_created_is_writable(tmp_path):
    assert twofold.kernels.can_write(tmp_path / "a" / "b")
    file = tmp_path / "file"
    file.write_text("")
    assert not twofold.kernels.can_write(file)


def test_a_folder_without_permission_is_not_writable(monkeypatch, tmp_path):
    """Like the home of another user after `sudo -u`."""

    def refuse(path, **_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "stat", refuse)
    assert not twofold.kernels.can_write(tmp_path / "home" / ".cache")


def test_kernels_work_without_any_writable_folder(tmp_path):
    """In a separate process in which os.access denies every write."""
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
    assert not Path(folder).exists()  # removed at exit


OUTSIDE = """
import numpy as np
from twofold.kernels.top_k import select_best
items, scores = np.empty((1, 2), np.int64), np.empty((1, 2))
select_best(np.ones((1, 5)), np.array([0, 1]), np.array([7]), items, scores)
"""


def test_an_index_outside_is_an_error(tmp_path):
    """With NUMBA_BOUNDSCHECK=1 and a separate cache, as in `make bounds`, kernels check every index."""
    checked = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", OUTSIDE], env=checked, capture_output=True, text=True, timeout=600)
    assert run.returncode == 1 and "IndexError: index is out of bounds" in run.stderr
