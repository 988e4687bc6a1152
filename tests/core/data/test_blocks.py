"""Blocks: the same cuts and the same rows from every kind of input."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from twofold import InputError
from twofold.core.data.blocks import as_blocks
from twofold.core.data.sources import base

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


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    X = table(100, 3)
    for i, part in enumerate(np.array_split(X, 3)):
        pl.DataFrame(part).write_parquet(tmp_path / f"part{i}.parquet")
    assert np.array_equal(together(as_blocks(tmp_path)), X)


def test_rows_are_cut_like_the_blocks(small_blocks):
    blocks, w = as_blocks(table()), np.arange(500.0)
    assert np.array_equal(np.concatenate(blocks.rows(w)), w)
    assert [len(part) for part in blocks.rows(w)] == list(np.diff(blocks.bounds))
    assert list(blocks.rows(None)) == [None] * len(blocks)


def test_a_file_cut_short_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", table())
    whole = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(whole[:-100])
    with pytest.raises(InputError, match=r"x\.npy"):
        together(as_blocks(tmp_path / "x.npy"))


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
        np.testing.assert_array_equal(source.scaled(np.array([1.0, 2.0, 4.0])).read(1, 3), X[1:3] / [1, 2, 4])
        np.testing.assert_array_equal(source.across().read(0, 2), X.T[:2])
    stored = as_blocks(S).source
    assert stored.is_sparse and stored.in_memory and stored.n_stored == S.nnz
    assert len(stored.finer(2).bounds) > len(stored.bounds)
    assert as_blocks(tmp_path / "x.parquet").source.columns == ["a", "b", "c"]


def test_a_source_must_say_how_it_is_read():
    with pytest.raises(TypeError, match="abstract"):
        base.Source()
