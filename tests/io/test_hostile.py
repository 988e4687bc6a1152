"""Files that were made to do harm, or look like it: refused in one line, or read in time that grows with their size."""

from __future__ import annotations

import contextlib
import os

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import twofold
from twofold.analyses.common.answer import console
from twofold.core.printable import printable
from twofold.io.tables.columns import BLANKS, plain_numbers, to_numbers
from twofold.io.tables.delimited import MAX_COLUMNS, read_delimited
from twofold.io.tables.read import read_table
from twofold.io.tables.table import unique_names

CELLS = st.sampled_from(["1", "2.5", " 3", "-4e3", "nan", "NA", "", "inf", "1,5", "x", "true", "5 %", "-9", "0"])


@given(
    st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=6), st.sampled_from([(), ("-9",), ("0",)])
)
def test_columns_read_all_at_once_are_what_they_are_one_by_one(columns, missing):
    frame = pl.DataFrame({f"c{j}": column for j, column in enumerate(columns)}, schema_overrides={})
    blanks = BLANKS | set(missing)
    for name, quick in plain_numbers(frame, blanks).items():
        slow = to_numbers(frame[name], blanks, False)
        assert (quick.kind, quick.form) == (slow.kind, slow.form)
        np.testing.assert_array_equal(quick.values, slow.values)


@given(st.lists(st.sampled_from(["a", "b", "a_2", "", "column_2", "column"]), max_size=12))
def test_names_become_distinct_and_those_that_were_stay(names):
    out, renamed = unique_names(names)
    assert len(set(out)) == len(out) == len(names) and all(out)
    assert {(names[i], out[i], i + 1) for i in range(len(out)) if names[i] != out[i]} == set(renamed)
    assert all(new not in names for _, new, _ in renamed)


def test_a_line_of_millions_of_fields_is_refused():
    with pytest.raises(twofold.InputError, match=r"line 1: .* fields, and at most 500,000 columns"):
        read_delimited(b"1," * (MAX_COLUMNS + 5), "long.csv")


@pytest.mark.parametrize("content", [b"\t\x1d\r\r", b"\t\t\t\x1d\r", b"\xef 3\nr 03\n "])
def test_odd_bytes_are_read_or_refused(tmp_path, content):
    """What a fuzzer that looks at coverage found: rare line separators, and a last line of spaces alone."""
    path = tmp_path / "odd.csv"
    path.write_bytes(content)
    if b"3" in content:
        assert read_table(path).columns == ["3"]
    else:
        with pytest.raises(twofold.InputError, match="no column of numbers"):
            read_table(path)


def spoil(path, read, tries=300):
    """Each of `tries` bytes in turn replaced by another: read, or refused by name."""
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for at in rng.integers(len(whole), size=tries):
        changed = bytearray(whole)
        changed[at] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(changed))
        with contextlib.suppress(twofold.InputError):
            read(path)


def test_a_damaged_parquet_file_is_read_or_refused(tmp_path, capfd):
    path = tmp_path / "damaged.parquet"
    pl.DataFrame({"a": [1, 2], "b": [1.0, 2.0], "c": ["x", "y"]}).write_parquet(path)
    spoil(path, read_table)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_damaged_archive_of_arrays_is_read_or_refused(tmp_path, sparse):
    path = tmp_path / "damaged.npz"
    if sparse:
        sp.save_npz(path, sp.csr_array(np.eye(3)))
    else:
        np.savez(path, X=np.arange(6.0).reshape(3, 2))
    spoil(path, read_table)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 2)])
def test_an_array_without_cells_is_refused(tmp_path, shape):
    np.save(tmp_path / "none.npy", np.zeros(shape))
    with pytest.raises(twofold.InputError, match=r"of shape .* has no (rows|columns)"):
        read_table(tmp_path / "none.npy")


def test_what_is_no_file_is_not_said_to_be_missing(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link.csv").symlink_to("nowhere.csv")
    with pytest.raises(twofold.InputError, match="is a pipe or a device, not a file"):
        read_table(tmp_path / "pipe")
    with pytest.raises(twofold.InputError, match=r"is a link to nowhere.csv, which does not exist"):
        read_table(tmp_path / "link.csv")


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_printed(text):
    shown = printable(text)
    assert len(shown) == len(text) and "\x1b" not in shown and "\x9b" not in shown
    assert printable("plain — ünïcode\ttext\n") == "plain — ünïcode\ttext\n"


def test_answers_print_names_with_control_characters_harmlessly(tmp_path, capsys):
    rng = np.random.default_rng(0)
    file = tmp_path / "a\x1b]0;b\x07.csv"
    pl.DataFrame(rng.normal(size=(20, 2)), schema=["x\x1b[31m", "=1+1"]).write_csv(file)
    answer = twofold.analyses.reduce(str(file))
    console().print(answer)
    assert "\x1b" not in capsys.readouterr().out and "\x1b" not in repr(answer)


def test_json_nested_beyond_all_measure_is_refused_with_its_line(tmp_path):
    path = tmp_path / "deep.jsonl"
    path.write_text('{"a": 1}\n' + '{"a":' * 50_000 + "1" + "}" * 50_000 + "\n")
    with pytest.raises(twofold.InputError, match=r"line 2: not JSON"):
        read_table(path)


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_arrays_whose_heads_are_no_python_are_refused_by_name(name, tmp_path):
    path = tmp_path / name
    np.save(path, np.ones(4)) if name == "x.npy" else np.savez(path, a=np.ones(4))
    path.write_bytes(path.read_bytes().replace(b"(4,)", b"(((("))
    with pytest.raises(twofold.InputError, match=name):
        read_table(path)
    if name == "x.npy":
        with pytest.raises(twofold.InputError, match=name):
            twofold.PCA(1).fit(path)
