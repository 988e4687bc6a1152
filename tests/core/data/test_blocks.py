"""Blocks: the same cuts and the same rows from every kind of input."""

import errno
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from twofold import InputError
from twofold.core.data.blocks import Blocks, as_blocks
from twofold.core.data.sources import ColumnsOf, ParquetSource, base, decoded, parquet
from twofold.core.data.sources.files import NpzSource

dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def table(n=500, d=7, dtype=np.float64):
    return np.random.default_rng(0).normal(size=(n, d)).astype(dtype)


def together(blocks):
    parts = [blocks[i] for i in range(len(blocks))]
    return sparse.vstack(parts).toarray() if sparse.issparse(parts[0]) else np.concatenate(parts)


def inputs(X, folder):
    """One table in every shape it may come in."""
    da = pytest.importorskip("dask.array")
    np.save(folder / "c.npy", X)
    np.save(folder / "f.npy", np.asfortranarray(X))
    pl.DataFrame(X).write_parquet(folder / "x.parquet", row_group_size=83)
    return {
        "array": X,
        "fortran": np.asfortranarray(X),
        "view": np.repeat(X, 2, axis=0)[::2],
        "npy": folder / "c.npy",
        "npy fortran": str(folder / "f.npy"),
        "parquet": folder / "x.parquet",
        "dask": da.from_array(X, chunks=(83, 4)),
    }


@dtypes
def test_every_input_is_cut_alike_and_read_alike(dtype, tmp_path, small_blocks):
    X = table(dtype=dtype)
    first = as_blocks(X)
    assert len(first) > 3 and first.bounds[0] == 0 and first.bounds[-1] == len(X)
    for name, given_ in inputs(X, tmp_path).items():
        blocks = as_blocks(given_)
        assert blocks.shape == X.shape and blocks.dtype == dtype, name
        assert np.array_equal(blocks.bounds, first.bounds), name
        for i in range(len(blocks)):
            block = blocks[i]
            assert block.flags.c_contiguous and block.dtype == dtype, name
            assert np.array_equal(block, X[blocks.bounds[i] : blocks.bounds[i + 1]]), name


def test_every_input_can_be_cut_along_its_columns(tmp_path, small_blocks):
    X = table(300, 40)
    first = as_blocks(X).T
    assert first.shape == (40, 300) and len(first) > 5
    for name, given_ in inputs(X, tmp_path).items():
        across = as_blocks(given_).T
        assert np.array_equal(across.bounds, first.bounds), name
        assert np.array_equal(together(across), X.T), name


def test_small_data_is_one_block():
    assert len(as_blocks(table())) == 1
    assert len(as_blocks(sparse.csr_array(table()))) == 1


def test_blocks_are_a_few_megabytes():
    blocks = as_blocks(np.zeros((30_000, 100)))
    assert len(blocks) > 3
    assert all(blocks[i].nbytes <= base.BLOCK_BYTES for i in range(len(blocks)))


@pytest.mark.parametrize("n, d, count", [(200_000, 2, 4), (50_000, 20, 4), (30_000, 20, 2), (5_000, 20, 1)])
def test_blocks_are_even_and_small_data_gives_threads_some(n, d, count):
    blocks = as_blocks(np.zeros((n, d), np.float32))
    assert len(blocks) == count
    assert len(set(np.diff(blocks.bounds))) == 1


def test_a_row_wider_than_a_block_is_one_block(small_blocks):
    blocks = as_blocks(np.zeros((3, 2000)))
    assert np.array_equal(blocks.bounds, [0, 1, 2, 3])


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix])
@dtypes
def test_sparse_blocks_hold_the_same_rows(kind, dtype, small_blocks):
    D = np.where(np.abs(table(2000, 9, dtype)) < 1, 0, table(2000, 9, dtype)).astype(dtype)
    blocks = as_blocks(kind(D))
    assert len(blocks) > 3 and blocks.is_sparse and blocks.dtype == dtype
    assert np.array_equal(together(blocks), D)
    assert np.array_equal(together(blocks.T), D.T)


def test_skewed_sparse_rows_balance(small_blocks):
    D = np.zeros((300, 200))
    D[:10] = 1.0  # nearly all values lie in ten rows
    D[10:, 0] = 1.0
    blocks = as_blocks(sparse.csr_array(D))
    stored = [blocks[i].nnz for i in range(len(blocks))]
    assert max(stored) <= 2 * 4096 / 12 + 200 and len(stored) > 4


def test_duplicate_entries_are_summed_without_touching_the_input():
    S = sparse.csr_array((np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 3))
    assert np.array_equal(together(as_blocks(S)), [[0, 3, 0], [5, 0, 0]])
    assert S.nnz == 3 and np.array_equal(S.data, [1, 2, 5])


@given(n=st.integers(1, 3000), d=st.integers(1, 300), single=st.booleans())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_cuts_cover_every_row_once(n, d, single):
    blocks = as_blocks(np.broadcast_to(np.zeros(1, np.float32 if single else np.float64), (n, d)))
    assert blocks.bounds[0] == 0 and blocks.bounds[-1] == n and np.all(np.diff(blocks.bounds) > 0)
    assert len(set(np.diff(blocks.bounds)[:-1])) <= 1


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, bool, np.float16, ">f8", ">f4"])
def test_numbers_of_any_kind_become_floats(dtype, tmp_path):
    X = np.rint(table() * 3).clip(0, 1).astype(dtype)
    np.save(tmp_path / "x.npy", X)
    for given_ in (X, tmp_path / "x.npy"):
        blocks = as_blocks(given_)
        assert blocks[0].dtype == blocks.dtype in (np.float32, np.float64) and blocks.dtype.isnative
        assert np.array_equal(together(blocks), X.astype(float))


def test_parquet_types(tmp_path):
    frame = pl.DataFrame({"a": [1, 2, None], "b": [True, False, True], "c": [0.5, None, 1.5]})
    frame.write_parquet(tmp_path / "x.parquet")
    blocks = as_blocks(tmp_path / "x.parquet")
    np.testing.assert_array_equal(together(blocks), [[1, 1, 0.5], [2, 0, np.nan], [np.nan, 1, 1.5]])
    assert blocks.source.columns == ["a", "b", "c"]


def test_rows_are_cut_like_the_blocks(small_blocks):
    blocks, w = as_blocks(table()), np.arange(500.0)
    assert np.array_equal(np.concatenate(blocks.rows(w)), w)
    assert [len(part) for part in blocks.rows(w)] == list(np.diff(blocks.bounds))
    assert list(blocks.rows(None)) == [None] * len(blocks)


def test_pandas_frames_with_gaps_read_as_nan():
    frame = pd.DataFrame({"a": [1.0, None], "b": [2.0, 3.0]})
    np.testing.assert_array_equal(together(as_blocks(frame)), [[1, 2], [np.nan, 3]])


def test_every_source_says_the_same_of_the_same_table(tmp_path):
    """What a source leaves to the base class is what it would say itself: kind, size, names, engine."""
    X = np.arange(12.0).reshape(4, 3) % 5
    np.save(tmp_path / "x.npy", X)
    pl.DataFrame(X, schema=["a", "b", "c"]).write_parquet(tmp_path / "x.parquet")
    S = sparse.csr_array(X)
    for source in (as_blocks(X).source, as_blocks(tmp_path / "x.npy").source, as_blocks(tmp_path / "x.parquet").source):
        assert not source.is_sparse and source.n_stored == X.size and source.indptr is None
        assert source.engine() is None and not source.is_lazy and source.finer(1) is source
        np.testing.assert_array_equal(source.divide_columns(np.array([1.0, 2.0, 4.0])).read(1, 3), X[1:3] / [1, 2, 4])
        np.testing.assert_array_equal(source.across().read(0, 2), X.T[:2])
    stored = as_blocks(S).source
    assert stored.is_sparse and stored.in_memory and stored.n_stored == S.nnz
    assert len(stored.finer(2).bounds) > len(stored.bounds)
    assert as_blocks(tmp_path / "x.parquet").source.columns == ["a", "b", "c"]


def test_a_source_must_say_how_it_is_read():
    with pytest.raises(TypeError, match="abstract"):
        base.Source()


def _write(folder, X, kind, cuts=(0, 1, 40, 40, 100)):
    """Rows of X as several files of a kind, one of them empty."""
    folder.mkdir(exist_ok=True)
    for i, (a, b) in enumerate(pairwise(cuts)):
        path, names = folder / f"part{i}.{kind}", [f"c{j}" for j in range(X.shape[1])]
        if kind == "npy":
            np.save(path, X[a:b])
        elif kind == "npz":
            sparse.save_npz(path, X[a:b])
        elif kind == "parquet":
            pl.DataFrame(X[a:b], schema=dict.fromkeys(names, pl.Float64)).write_parquet(path)
        elif b > a:  # an empty CSV file has no numbers to tell their kind by
            pl.DataFrame(X[a:b], schema=names).write_csv(path)
    return folder


@pytest.mark.parametrize("kind", ["npy", "parquet", "csv", "npz"])
def test_a_folder_or_pattern_is_one_table(kind, small_blocks, tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 30)).round(3)
    X = sparse.csr_array(np.maximum(X, 0)) if kind == "npz" else X
    folder = _write(tmp_path / "parts", X, kind)
    expected = as_blocks(X)
    for where in (folder, str(folder / f"*.{kind}")):
        blocks = as_blocks(where)
        assert np.array_equal(blocks.bounds, expected.bounds) and len(blocks) > 3 and blocks.dtype == expected.dtype
        for i in range(len(blocks)):
            assert (blocks[i] != expected[i]).sum() == 0
        copied = pickle.loads(pickle.dumps(blocks.source))
        part, first = copied.part(30, 50)
        assert (part.read(30 - first, 50 - first) != X[30:50]).sum() == 0
        assert (blocks.T[0] != expected.T[0]).sum() == 0


def test_parquet_that_the_budget_does_not_hold_is_decoded_once(small_blocks, tmp_path, monkeypatch):
    X = table(2_000)
    folder = _write(tmp_path / "parts", X, "parquet", (0, 900, 2_000))
    calls, collect = [], ParquetSource._collect
    monkeypatch.setattr(ParquetSource, "_collect", lambda *args: calls.append(1) or collect(*args))
    monkeypatch.setattr(parquet, "CHUNK_BLOCKS", 1)
    blocks = as_blocks(folder)
    for file in blocks.source.files:
        file.at_once = 3  # columns
    for source in (blocks.source, pickle.loads(pickle.dumps(blocks.source))):  # as a task on a worker has it
        for _ in range(2):
            assert np.array_equal(together(Blocks(source)), X)
    assert len(calls) == 2 * 3

    def refuse(*args):
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(decoded, "_transfer", refuse)
    assert np.array_equal(together(as_blocks(folder)), X)  # again and again, if the disk has no room


def test_sparse_files_that_the_budget_does_not_hold_are_read_by_ranges(small_blocks, tmp_path, monkeypatch):
    X = sparse.random_array((400, 30), density=0.3, rng=0, format="csr")
    source = as_blocks(_write(tmp_path / "parts", X, "npz", (0, 150, 150, 400))).source
    store = decoded.Decoded()
    for file in source.files:
        file.decoded = store
    for _ in range(2):
        assert (sparse.vstack([source.read(a, a + 50) for a in range(0, 400, 50)]) != X).nnz == 0
        assert all(file.whole is None for file in source.files)
        monkeypatch.setattr(NpzSource, "load", None)  # once was enough


def test_a_worker_keeps_nothing_that_a_task_has_read(small_blocks, tmp_path):
    pytest.importorskip("distributed")
    from twofold.core.engine.dask import FileRows, _run_group
    from twofold.core.engine.local import Parts, add

    X = table()
    source = as_blocks(_write(tmp_path / "parts", X, "parquet", (0, 100, 500))).source
    for view, expected in ((source, X), (source.divide_columns(np.full(7, 2.0)), X / 2)):
        stretch = FileRows(view, 50, 250)
        group = (Parts(lambda rows: rows.sum(0), (Blocks,)), np.array([50, 150, 250]), add, False)
        assert np.allclose(_run_group((10**6, 1), group, [stretch]), expected[50:250].sum(0))
        assert not any(file._kept for file in source.files)
        stretch.source.read(50, 250)
        assert any(file._kept for file in source.files)


def test_some_columns_and_other_units_of_a_folder_are_read_from_the_files_they_need(small_blocks, tmp_path):
    X, scale = np.random.default_rng(0).normal(size=(100, 30)), np.arange(1.0, 31.0)
    blocks = as_blocks(_write(tmp_path / "parts", X, "parquet"))
    some, scaled = ColumnsOf(blocks.source, np.array([2, 5])), blocks.divide_columns(scale).source
    assert some.columns == ["c2", "c5"] and some.shape == (100, 2)
    for source, expected in ((some, X[:, [2, 5]]), (scaled, X / scale)):
        part, first = pickle.loads(pickle.dumps(source)).part(30, 50)
        assert source.elsewhere and part.elsewhere and part.shape[0] < 100
        assert np.array_equal(part.read(30 - first, 50 - first), expected[30:50])
        assert np.array_equal(source.read(0, 100), expected)


def test_files_that_disagree_are_refused_by_name(tmp_path):
    _write(tmp_path / "a", np.ones((100, 3)), "npy")
    np.save(tmp_path / "a" / "part9.npy", np.ones((5, 4)))
    with pytest.raises(InputError, match=r"part9.npy has columns 4, and .*part0.npy has 3"):
        as_blocks(tmp_path / "a")
    np.save(tmp_path / "a" / "part9.npy", np.ones((5, 3), np.float32))
    with pytest.raises(InputError, match=r"part9.npy has numbers of type float32"):
        as_blocks(tmp_path / "a")
    _write(tmp_path / "b", np.ones((100, 3)), "csv")
    (tmp_path / "b" / "part9.csv").write_text("c0,c2,c1\n1,2,3\n")
    with pytest.raises(InputError, match=r"part9.csv has the columns"):
        as_blocks(tmp_path / "b")
    (tmp_path / "b" / "part9.csv").write_text("c0,c1,c2\n1,2,x\n")
    with pytest.raises(InputError, match=r'part9.csv, column "c2" is String'):
        as_blocks(tmp_path / "b")
    with pytest.raises(InputError, match="matches no file"):
        as_blocks(str(tmp_path / "b" / "*.npy"))
    (tmp_path / "c").mkdir()
    with pytest.raises(InputError, match=r"holds no tables .* but nothing"):
        as_blocks(tmp_path / "c")


@pytest.mark.parametrize("kind", ["npy", "parquet", "csv", "npz"])
def test_a_file_that_is_cut_off_is_named(kind, tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 30))
    folder = _write(tmp_path / "parts", sparse.csr_array(X) if kind == "npz" else X, kind)
    blocks, path = as_blocks(folder), folder / f"part3.{kind}"
    path.write_bytes(path.read_bytes()[:700])
    with pytest.raises(InputError, match=rf"part3.{kind}"):  # while it is read
        pickle.loads(pickle.dumps(blocks.source)).read(0, 100)
    if kind not in ("csv", "npy"):  # of a part of a CSV file nobody can tell that there was more
        with pytest.raises(InputError, match=rf"part3.{kind}"):
            as_blocks(folder)
