"""A file that cannot be written is told before anything is computed, in one line."""

import os
from pathlib import Path

import pytest

from twofold import InputError
from twofold.io.writable import check_writable


def test_what_can_be_written_passes(folder):
    check_writable("new.csv")
    Path("old.csv").write_text("a")
    check_writable("old.csv", force=True, inputs=["other.csv"])
    assert [p.name for p in folder.iterdir()] == ["old.csv"]


@pytest.mark.parametrize(
    ("path", "options", "words"),
    [
        ("there", {}, "there is a folder"),
        ("no/such/a.csv", {}, "no folder no/such"),
        ("old.csv", {}, "old.csv exists"),
        ("old.csv", {"force": True, "inputs": ["./old.csv"]}, "is the input"),
        ("old.csv", {"force": True, "inputs": ["old.csv::table"]}, "is the input"),
    ],
)
def test_what_cannot_be_written_is_refused(folder, path, options, words):
    Path("there").mkdir()
    Path("old.csv").write_text("a")
    with pytest.raises(InputError, match=words) as caught:
        check_writable(path, **options)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.skipif(os.name == "nt" or (hasattr(os, "geteuid") and os.geteuid() == 0), reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(folder):
    Path("locked").mkdir(mode=0o500)
    with pytest.raises(InputError, match="cannot write in locked"):
        check_writable("locked/a.csv")
