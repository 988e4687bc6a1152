"""Sparse tables on disk: the cuts, the values and so the bits of the same table in memory, within the budget."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import twofold
from twofold import InputError
from twofold.core.data import sources
from twofold.core.data.blocks import as_blocks
from twofold.core.data.csr_folder import write_csr


def counts(n=400, d=30, dtype=np.int32, seed=0):
    X = np.random.default_rng(seed).poisson(0.4, size=(n, d)).astype(dtype)
    X[7] = 0
    return sparse.csr_array(X)


def store(X, folder, pieces=3):
    cuts = np.linspace(0, X.shape[0], pieces + 1).astype(int)
    return write_csr(folder / "x.csr", (X[a:b] for a, b in itertools.pairwise(cuts)))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.float32, np.float64, bool])
def test_cuts_and_blocks_are_those_of_memory(dtype, tmp_path, small_blocks):
    X = counts(dtype=dtype)
    here, there = as_blocks(X), as_blocks(store(X, tmp_path))
    assert len(here) > 3 and np.array_equal(here.bounds, there.bounds)
    for trait in ("shape", "dtype", "is_sparse", "block_bytes"):
        assert getattr(here, trait) == getattr(there, trait), trait
    for a, b in zip(here, there, strict=True):
        for name in ("data", "indices", "indptr"):
            one, other = getattr(a, name), getattr(b, name)
            assert one.dtype == other.dtype and np.array_equal(one, other), name
    for a, b in zip(here.T, there.T, strict=True):
        assert np.array_equal(a.toarray(), b.toarray())


def test_finer_cuts_are_those_of_memory_too(tmp_path, small_blocks):
    X = counts()
    here, there = as_blocks(X).source.finer(50), as_blocks(store(X, tmp_path)).source.finer(50)
    assert len(here.bounds) > 2 * len(as_blocks(X).bounds) and np.array_equal(here.bounds, there.bounds)
    assert np.array_equal(here.read(3, 9).toarray(), there.read(3, 9).toarray())


@given(lengths=st.lists(st.integers(0, 400), min_size=1, max_size=60), cells=st.integers(1, 500))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_sparse_cuts_cover_every_row_once(lengths, cells):
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    bounds = sources.cuts_by_stored(indptr, np.dtype(np.float64), cells)
    assert bounds[0] == 0 and bounds[-1] == len(lengths) and np.all(np.diff(bounds) > 0)
    held = np.diff(indptr[bounds])
    assert held.max() < cells + max(lengths) + 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: twofold.PCA(3, random_state=0),
        lambda: twofold.PCA(3, svd_solver="arpack", random_state=0),
        lambda: twofold.PCA(3, svd_solver="gram", random_state=0),
        lambda: twofold.PCA(3, scale=True, random_state=0),
        lambda: twofold.KMeans(4, random_state=0),
        lambda: twofold.LSA(3, random_state=0),
    ],
    ids=["pca", "arpack", "gram", "scaled", "kmeans", "lsa"],
)
def test_a_fit_from_disk_has_the_bits_of_one_from_memory(make, tmp_path, small_blocks):
    X = counts()
    path = store(X, tmp_path)
    here, there = make().fit(X), make().fit(path)
    name = "cluster_centers_" if hasattr(here, "cluster_centers_") else "components_"
    assert getattr(here, name).tobytes() == getattr(there, name).tobytes()
    assert here.transform(X).tobytes() == there.transform(path).tobytes()


def test_what_is_written_is_sorted_and_summed(tmp_path):
    X = sparse.csr_array((np.array([1, 2, 5, 3]), np.array([1, 1, 2, 0]), np.array([0, 2, 4])), shape=(2, 3))
    path = write_csr(tmp_path / "x.csr", [X])
    assert np.array_equal(as_blocks(path)[0].toarray(), [[0, 3, 0], [3, 0, 5]])
    assert X.nnz == 4 and np.array_equal(X.indices, [1, 1, 2, 0])


def test_a_table_without_values_is_read(tmp_path):
    path = write_csr(tmp_path / "x.csr", [sparse.csr_array((5, 4))])
    assert np.array_equal(as_blocks(path)[0].toarray(), np.zeros((5, 4)))


def test_a_failed_write_leaves_nothing_behind_and_the_old_folder_alone(tmp_path):
    X = counts()
    path = store(X, tmp_path)

    def fail_midway():
        yield X[:10]
        raise RuntimeError("the disk is on fire")

    with pytest.raises(RuntimeError):
        write_csr(path, fail_midway())
    assert [p.name for p in tmp_path.iterdir()] == ["x.csr"]
    assert as_blocks(path).shape == X.shape
    write_csr(path, [X[:10]])  # and a whole one takes its place
    assert as_blocks(path).shape == (10, X.shape[1]) and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    "name, blocks, what",
    [
        ("x.npy", [counts()], "must end"),
        ("taken.csr", [counts()], "no sparse table"),
        ("x.csr", [], "no blocks"),
        ("x.csr", [counts(), counts(d=31)], "31"),
        ("nowhere/x.csr", [counts()], "does not exist"),
    ],
)
def test_what_cannot_be_written_is_refused(name, blocks, what, tmp_path):
    (tmp_path / "taken.csr").mkdir()
    (tmp_path / "taken.csr" / "precious.txt").write_text("mine")
    with pytest.raises(InputError, match=what):
        write_csr(tmp_path / name, blocks)
    assert (tmp_path / "taken.csr" / "precious.txt").read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["taken.csr"]


def change_array(change):
    """Do something to the array in a file."""
    return lambda path: np.save(path, change(np.load(path)))


def write_at(at, number):
    return change_array(lambda a: np.where(np.arange(len(a)) == at, number, a))


HARMS = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "empty": lambda path: path.write_bytes(b""),
    "longer": change_array(lambda a: np.append(a, 1)),
    "words": change_array(lambda a: np.full(a.shape, "a")),
    "beyond": write_at(5, 99),
    "unsorted": change_array(lambda a: a[[1, 0, *range(2, len(a))]]),
    "falling": write_at(3, 10**6),
}


@pytest.mark.parametrize(
    "file, harm",
    [(f"{name}.npy", harm) for name in ("data", "indices", "indptr") for harm in ("cut", "empty", "longer", "words")]
    + [("meta.json", "cut"), ("meta.json", "empty"), ("indptr.npy", "falling")]
    + [("indices.npy", "beyond"), ("indices.npy", "unsorted")],
)
def test_a_damaged_folder_is_refused_by_the_name_of_the_file(file, harm, tmp_path):
    path = store(counts(), tmp_path)
    HARMS[harm](tmp_path / "x.csr" / file)
    with pytest.raises(InputError, match=file.replace(".", r"\.")):
        list(as_blocks(path))


@pytest.mark.parametrize("file", ["data.npy", "indices.npy", "indptr.npy", "meta.json"])
def test_a_missing_file_is_named(file, tmp_path):
    path = store(counts(), tmp_path)
    (tmp_path / "x.csr" / file).unlink()
    with pytest.raises(InputError, match=file.replace(".", r"\.")):
        as_blocks(path)


def test_a_missing_folder_and_a_foreign_note_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        as_blocks(tmp_path / "none.csr")
    path = store(counts(), tmp_path)
    (tmp_path / "x.csr" / "meta.json").write_text(json.dumps({"format": "csc", "shape": [1, 1]}))
    with pytest.raises(InputError, match=r"meta\.json"):
        as_blocks(path)


def test_along_its_columns_a_table_larger_than_the_budget_is_refused(tmp_path):
    path = write_csr(tmp_path / "x.csr", [counts(4000, 60)])
    with twofold.config(memory=2**20), pytest.raises(InputError, match="columns"):
        twofold.PCA(2, svd_solver="gram").fit(path)
