"""The same seed gives the same bits on any workers and wherever the data lies."""

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import twofold

from .helpers import differences, row_methods
from .registry import MODELS, one_each, one_each_package, parametrize, table, with_holes

STREAMING = [c for c in MODELS if c.streams]

FIRST, SPARSE = one_each(STREAMING), one_each([c for c in STREAMING if c.sparse])
WEIGHTED = one_each([c for c in STREAMING if c.weights])
ROWS = 400
streaming = parametrize(STREAMING, quick=FIRST)
pytestmark = [
    pytest.mark.usefixtures("small_blocks"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def fit(case, X, y, **options):
    """A fit of a few sweeps, from two starts where several are usual: bits that part ways do so at once."""
    few = {"max_iter": 3, "n_init": 2 if type(case()).__name__ == "KMeans" else 1}
    few = {name: value for name, value in few.items() if name in case().get_params()}
    return case.fit(X, y, **few, **options)


EXPECTED = {}


def fit_expected(case, at):
    """The fit to the table in memory, on one thread, which all others are compared with: made once."""
    if (str(case), at) not in EXPECTED:
        with twofold.config(threads=1, memory="2MB"):
            EXPECTED[str(case), at] = fit(case, *kinds(case)[at])
    return EXPECTED[str(case), at]


def data(holes=False, dtype=np.float64, rows=ROWS):
    X, y = table(rows, dtype=dtype)
    return (with_holes(X) if holes else X), y


def kinds(case):
    """Whole tables, and tables with holes where the model takes them; fewer rows where blocks are cut finer."""
    if case.completes:
        return [data(True, rows=240)]
    return [data(False), data(True)] if case.nan else [data(False)]


def test_small_blocks_are_in_force(tmp_path):
    da = pytest.importorskip("dask.array")
    from twofold.core.data.blocks import as_blocks

    X, _ = data()
    np.save(tmp_path / "x.npy", X)
    pl.DataFrame(X).write_parquet(tmp_path / "x.parquet")
    for source in (X, tmp_path / "x.npy", tmp_path / "x.parquet", da.from_array(X, chunks=(97, 3))):
        blocks = as_blocks(source)
        assert len(blocks) == 8 and np.array_equal(blocks.bounds, as_blocks(X).bounds)


@parametrize(MODELS)
def test_threads_memory_and_order_do_not_matter(case):
    for at, (X, y) in enumerate(kinds(case)):
        expected = fit_expected(case, at)
        with twofold.config(threads=2, memory="1GB"):
            assert not differences(expected, fit(case, X, y))
            assert not differences(expected, fit(case, np.asfortranarray(X), y))
        with twofold.config(threads=3, memory="2MB"):
            assert not differences(expected, fit(case, np.repeat(X, 2, axis=1)[:, ::2], y))


@parametrize(MODELS, quick=one_each(MODELS))
def test_threads_do_not_matter_in_single_precision(case):
    X, y = data(dtype=np.float32)
    with twofold.config(threads=1):
        expected = fit(case, X, y)
    with twofold.config(threads=2):
        assert not differences(expected, fit(case, X, y))


@streaming
def test_files_equal_memory(case, tmp_path):
    for at, (X, y) in enumerate(kinds(case)):
        np.save(tmp_path / "c.npy", X)
        np.save(tmp_path / "f.npy", np.asfortranarray(X))
        expected = fit_expected(case, at)
        for name in ("c.npy", "f.npy"):
            from_file = fit(case, tmp_path / name, y)
            assert not differences(expected, from_file), name
            for method in row_methods(expected):
                assert np.array_equal(getattr(expected, method)(X), getattr(from_file, method)(str(tmp_path / name)))


@streaming
def test_parquet_equals_memory(case, tmp_path):
    for at, (X, y) in enumerate(kinds(case)):
        names = [f"c{j}" for j in range(X.shape[1])]
        pl.DataFrame(X, schema=names).write_parquet(tmp_path / "x.parquet", row_group_size=150)
        expected, from_file = fit_expected(case, at), fit(case, tmp_path / "x.parquet", y)
        assert not differences(expected, from_file)
        assert list(from_file.feature_names_in_) == names


def cuts(X):
    n = X.shape[0]
    return [0, 1, 100, 100 + n // 3, n]


def in_chunks(X, known=True):
    """A dask array, of sparse chunks if X is sparse, and whether it knows that they are."""
    da = pytest.importorskip("dask.array")
    if not sparse.issparse(X):
        return da.from_array(X, chunks=(tuple(np.diff(cuts(X)).tolist()), (5, 3)))
    from dask import delayed

    meta = {"meta": X[:0]} if known else {}
    parts = [(X[a:b], (b - a, X.shape[1])) for a, b in zip(cuts(X)[:-1], cuts(X)[1:], strict=True)]
    return da.concatenate([da.from_delayed(delayed(part), shape, X.dtype, **meta) for part, shape in parts])


def as_sparse(case):
    """A table with zeros, sparse, and what the model makes of it in memory."""
    X, y = data(rows=kinds(case)[0][0].shape[0])
    X = sparse.csr_array(np.where(np.random.default_rng(1).random(X.shape) < 0.6, X, 0))
    if (str(case), "sparse") not in EXPECTED:
        EXPECTED[str(case), "sparse"] = fit(case, X, y)
    return X, y, EXPECTED[str(case), "sparse"]


@parametrize(FIRST)
def test_dask_without_a_cluster_equals_memory(case):
    for at, (X, y) in enumerate(kinds(case)):
        assert not differences(fit_expected(case, at), fit(case, in_chunks(X), y))


@parametrize(STREAMING, quick=FIRST)
@pytest.mark.parametrize("workers", [3, pytest.param(1, marks=pytest.mark.soak)])
def test_worker_processes_equal_memory(case, workers, client_of):
    with client_of(workers).as_current():
        for at, (X, y) in enumerate(kinds(case)):
            assert not differences(fit_expected(case, at), fit(case, in_chunks(X), y))


@parametrize(SPARSE, quick=one_each_package(SPARSE))
@pytest.mark.parametrize("workers", [3, pytest.param(1, marks=pytest.mark.soak)])
def test_sparse_chunks_on_worker_processes_equal_memory(case, workers, client_of):
    X, y, expected = as_sparse(case)
    with client_of(workers).as_current():
        assert not differences(expected, fit(case, in_chunks(X, known=workers == 3), y))


@parametrize(FIRST, quick=one_each_package(FIRST))
def test_a_folder_read_by_worker_processes_equals_memory(case, client_of, tmp_path, monkeypatch):
    from twofold.core.engine import dask as engine

    monkeypatch.setattr(engine, "INLINE_BYTES", 0)  # as with much data: what can stay with the workers does
    X, y = kinds(case)[0]
    names = [f"c{j}" for j in range(X.shape[1])]
    for i, (a, b) in enumerate(zip(cuts(X)[:-1], cuts(X)[1:], strict=True)):
        pl.DataFrame(X[a:b], schema=names).write_parquet(tmp_path / f"{i}.parquet")
    with client_of(3).as_current():
        assert not differences(fit_expected(case, 0), fit(case, tmp_path, y))


@pytest.mark.parametrize(
    "model",
    [
        "PPCA",
        "GaussianMixture",
        *(pytest.param(m, marks=pytest.mark.soak) for m in ("FactorAnalysis", "MixtureOfPPCA")),
    ],
)
def test_patterns_of_holes_too_many_to_keep_are_found_again(model, client_of, tmp_path):
    from twofold.core.data.missing_patterns import observe

    X = with_holes(data(rows=6000)[0])
    for i, part in enumerate(np.array_split(X, 3)):
        np.save(tmp_path / f"{i}.npy", part)
    make = getattr(twofold, model)
    expected = make(2, random_state=0, max_iter=3).fit(X)
    with twofold.config(memory="1MiB"):
        observed = observe(make(2), tmp_path, None)
        assert set(observed.patterns.local()) == {None} and observed.holes
        assert not differences(expected, make(2, random_state=0, max_iter=3).fit(tmp_path))
        with client_of(3).as_current():
            assert not differences(expected, make(2, random_state=0, max_iter=3).fit(tmp_path))


@streaming
def test_dask_rows_stay_lazy_and_equal_memory(case):
    da = pytest.importorskip("dask.array")
    X, _ = kinds(case)[0]
    model = fit_expected(case, 0)
    lazy = da.from_array(X, chunks=(123, 8))
    for method in {"transform", "predict", "predict_proba", "score_samples"} & set(row_methods(model)):
        out = getattr(model, method)(lazy)
        assert isinstance(out, da.Array), method
        assert np.array_equal(out.compute(), getattr(model, method)(X)), method


@parametrize(WEIGHTED, quick=one_each_package(WEIGHTED))
def test_weights_travel_with_their_rows(case, client_of, tmp_path):
    da = pytest.importorskip("dask.array")
    X, y = kinds(case)[-1]
    w = np.random.default_rng(3).random(len(X))
    expected = fit(case, X, y, sample_weight=w)
    np.save(tmp_path / "x.npy", X)
    assert not differences(expected, fit(case, tmp_path / "x.npy", y, sample_weight=w))
    with client_of(3).as_current():
        assert not differences(expected, fit(case, da.from_array(X, chunks=(101, 8)), y, sample_weight=w))
