"""A file appears whole or not at all, and a refusal names it."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from twofold import InputError
from twofold.core.files import atomic

FORMS = {
    "bytes": lambda path, data: atomic.write_bytes(path, data),
    "text": lambda path, data: atomic.write_text(path, data.decode()),
    "path": lambda path, data: atomic.write_all({path: lambda draft: draft.write_bytes(data)}),
}
forms = pytest.mark.parametrize("write", FORMS.values(), ids=FORMS)


@forms
def test_a_file_is_new_or_replaced(write, tmp_path):
    for data in (b"first", b"second, longer", b""):
        write(tmp_path / "a.txt", data)
        assert (tmp_path / "a.txt").read_bytes() == data and os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("no"), OSError(errno.ENOSPC, "full")])
@pytest.mark.parametrize("old", [None, b"old"])
def test_an_error_leaves_what_was_there(error, old, tmp_path):
    path = tmp_path / "a.csv"
    if old is not None:
        path.write_bytes(old)
    with pytest.raises(type(error)), atomic.replacing(path) as draft:
        assert draft.suffix == ".csv" and draft.parent == tmp_path
        draft.write_bytes(b"half")
        raise error
    assert os.listdir(tmp_path) == ([] if old is None else ["a.csv"])
    assert old is None or path.read_bytes() == old


def test_of_several_files_none_appears_when_one_fails(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("old")

    def fail(draft):
        draft.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError) as refused:
        atomic.write_all({first: lambda draft: draft.write_text("new"), second: fail})
    assert refused.value.filename == str(second) and refused.value.errno == errno.ENOSPC
    assert first.read_text() == "old" and os.listdir(tmp_path) == ["a"]


def test_errors_of_libraries_become_those_of_the_system(tmp_path):
    path = tmp_path / "a"
    for raised, number in ((RuntimeError("I/O error: full (os error 28)"), 28), (OSError("5 of 9 written"), errno.EIO)):
        with pytest.raises(OSError) as refused, atomic.replacing(path):
            raise raised
        assert (refused.value.errno, refused.value.filename) == (number, str(path))


def test_a_folder_and_a_missing_folder_are_refused_before_writing(tmp_path):
    with pytest.raises(InputError, match="it is a folder"):
        atomic.write_text(tmp_path, "x")
    with pytest.raises(InputError, match="does not exist"):
        atomic.write_text(tmp_path / "no" / "a.txt", "x")


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    atomic.write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink() and (tmp_path / "real.txt").read_text() == "new"


def test_a_file_has_the_rights_of_this_users_files(tmp_path):
    (tmp_path / "plain").touch()
    atomic.write_text(tmp_path / "made", "x")
    assert (tmp_path / "made").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("can", [True, False], ids=["at one stroke", "one by one"])
def test_a_folder_is_exchanged_whole(can, tmp_path, monkeypatch):
    if not can:
        monkeypatch.setattr(atomic, "_exchange", lambda first, second: False)
    goal = tmp_path / "x.csr"
    for text in ("first", "second", "third"):
        with atomic.replacing_folder(goal) as made:
            (made / text).write_text(text)
        assert os.listdir(tmp_path) == ["x.csr"] and os.listdir(goal) == [text]
    with pytest.raises(KeyboardInterrupt), atomic.replacing_folder(goal) as made:
        (made / "fourth").touch()
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == ["x.csr"] and os.listdir(goal) == ["third"]


LIMITED = """
import resource, sys
import numpy as np, polars as pl
from twofold import PCA
from twofold.core.data.csr_folder import write_csr
from twofold.core.files import atomic
from scipy import sparse
X = np.random.default_rng(0).normal(size=(300, 40))
frame = pl.DataFrame(X)
model = PCA().fit(X)
ways = {
    "m.twofold": lambda path: model.save(path),
    "a.csv": lambda path: atomic.write_all({path: frame.write_csv}),
    "a.parquet": lambda path: atomic.write_all({path: frame.write_parquet}),
    "a.npy": lambda path: atomic.write_all({path: lambda to: np.save(to, X)}),
    "a": lambda path: atomic.write_bytes(path, X.tobytes()),
    "a.csr": lambda path: write_csr(path, [sparse.csr_array(X)]),
}
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
for name, write in ways.items():
    path = f"{sys.argv[1]}/{name}"
    try:
        write(path)
    except OSError as error:
        if error.filename != path or path not in str(error):
            sys.exit(f"{name}: {error!r} names {error.filename!r}")
    else:
        sys.exit(f"{name} was not refused")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="files are not limited in size there")
def test_a_file_that_may_not_grow_is_named_by_an_os_error(tmp_path):
    """The nearest to a full disk that a test can have: the system refuses the bytes after the first few."""
    done = subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert os.listdir(tmp_path) == []


def test_what_a_killed_process_left_is_cleared_by_the_next_writer(tmp_path):
    file = tmp_path / "a.csv"
    left = [tmp_path / ".a.0123456789ab.part.csv", tmp_path / ".a.ba9876543210.part.csv"]
    foreign = tmp_path / ".b.0123456789ab.part.csv"
    for path in (*left, foreign):
        path.write_text("half")
    held = atomic._lock(left[1])  # another process is writing this one, slowly
    atomic.write_text(file, "whole")
    assert sorted(tmp_path.iterdir()) == sorted([file, left[1], foreign])
    os.close(held)
    atomic.write_text(file, "again")
    assert sorted(tmp_path.iterdir()) == sorted([file, foreign])


def test_a_draft_cleared_before_it_is_locked_is_made_again(tmp_path):
    made = []

    def make(draft):
        draft.touch()
        made.append(draft)
        if len(made) == 1:
            draft.unlink()

    with atomic._lock_draft(tmp_path / "a", tmp_path / "a", make) as draft:
        assert draft.exists() and len(made) == 2
        atomic.write_text(tmp_path / "a", "another writer's")
        assert draft.exists()
    assert os.listdir(tmp_path) == ["a"]


def test_a_killed_writer_leaves_the_old_file_and_the_next_clears_up(tmp_path):
    file = tmp_path / "a.npy"
    file.write_text("old")
    pid = os.fork()
    if pid == 0:
        with atomic.replacing(file) as draft:
            draft.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert file.read_text() == "old" and len(list(tmp_path.iterdir())) == 2
    atomic.write_text(file, "new")
    assert list(tmp_path.iterdir()) == [file] and file.read_text() == "new"
