"""Promises of every estimator: dtypes, kinds of input, weights, new rows, files, and scikit-learn's tools."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import twofold

from .helpers import assert_alike, differences, fitted, row_methods
from .registry import (
    MODELS,
    every,
    first,
    one_each,
    one_each_package,
    parametrize,
    remove_middle,
    table,
    those,
    with_holes,
)

X, y = table()
NAMES = [f"c{j}" for j in range(X.shape[1])]


def few(case):
    """Parameters of a fit of a few sweeps, which is enough to keep a promise."""
    return {"max_iter": 5} if "max_iter" in case().get_params() else {}


@every
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_is_kept(case, dtype):
    model = case.fit(X.astype(dtype), y)
    for name in ("components_", "mean_", "means_", "loadings_", "encoder_", "decoder_"):
        if isinstance(value := getattr(model, name, None), np.ndarray):
            assert value.dtype == dtype, name
    if hasattr(model, "transform"):
        codes = model.transform(X.astype(dtype))
        assert codes.dtype.kind == "i" if case.labels else codes.dtype == dtype
        if hasattr(model, "inverse_transform"):
            assert model.inverse_transform(codes).dtype == dtype


@every
def test_single_precision_says_what_double_says(case):
    assert_alike(case.get_fitted(), case.fit(X.astype(np.float32), y), X, rtol=2e-2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@first
def test_whole_numbers_are_taken_as_float64(case):
    Xi = np.rint(X * 10).astype(np.int64)
    assert not differences(*(case.fit(rows, y, **few(case)) for rows in (Xi, Xi.astype(np.float64))))


@first
def test_fit_leaves_the_caller_s_data_alone(case):
    before, rows = X.copy(), y.copy()
    case.fit(X, y)
    assert np.array_equal(X, before) and np.array_equal(y, rows)


@those(sparse=True)
def test_sparse_equals_dense(case):
    """Other formats become CSR before a model sees them, so that one fit to CSC of each package is enough."""
    D, S = remove_middle(case, X)
    dense, thin = case.fit(D, y), case.fit(S, y)
    assert_alike(dense, thin, D)
    if case in one_each_package(MODELS):
        assert not differences(thin, case.fit(sparse.csc_matrix(S), y))
    expected = {method: getattr(dense, method)(D) for method in set(row_methods(dense)) - {"impute"}}
    for kind in (sparse.csr_array, sparse.csc_array, sparse.csr_matrix, sparse.csc_matrix):
        for method, said in expected.items():
            found = getattr(dense, method)(kind(S))
            np.testing.assert_allclose(found, said, rtol=1e-7, atol=1e-9 * np.abs(said).max())


@parametrize([case for case in MODELS if case.sparse], quick=one_each_package(MODELS))
def test_sparse_input_is_not_reordered(case):
    D, S = remove_middle(case, X)
    for i in range(len(D)):  # unsorted indices, which are legal
        a, b = S.indptr[i], S.indptr[i + 1]
        S.indices[a:b], S.data[a:b] = S.indices[a:b][::-1].copy(), S.data[a:b][::-1].copy()
    S.has_sorted_indices = False
    before = S.data.copy(), S.indices.copy(), S.indptr.copy()
    model = case.fit(S, y)
    assert all(np.array_equal(a, b) for a, b in zip(before, (S.data, S.indices, S.indptr), strict=True))
    assert not differences(model, case.fit(remove_middle(case, X)[1], y))


@first
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_equal_arrays(case, frame):
    F = frame(dict(zip(NAMES, X.T, strict=True)))
    plain, named = case.get_fitted(), case.fit(F, y)
    assert not differences(plain, named)
    assert list(named.feature_names_in_) == NAMES
    assert not hasattr(plain, "feature_names_in_")
    for method in row_methods(plain):
        np.testing.assert_array_equal(np.asarray(getattr(named, method)(F)), getattr(plain, method)(X))


@those(weights=True, repeats=True)
def test_integer_weights_equal_repeated_rows(case):
    w = np.random.default_rng(2).integers(0, 4, len(X))
    weighted = case.fit(X, y, sample_weight=w)
    repeated = case.fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert_alike(weighted, repeated, X)


@those(weights=True, repeats=True, nan=True)
def test_integer_weights_equal_repeated_rows_with_holes(case):
    H = with_holes(X)
    w = np.random.default_rng(2).integers(0, 4, len(X))
    weighted = case.fit(H, y, sample_weight=w)
    repeated = case.fit(np.repeat(H, w, axis=0), np.repeat(y, w))
    assert_alike(weighted, repeated, X, rtol=1e-3)  # EM stops at its tolerance


@every
def test_same_seed_same_bits(case):
    assert not differences(case.get_fitted(), case.fit(X, y))


@parametrize([case for case in MODELS if "random_state" in case.params], quick=one_each(MODELS))
def test_another_seed_is_as_good(case):
    first, other = case.get_fitted(), case.fit(X, y, random_state=1)
    np.testing.assert_allclose(first.history_["objective"][-1], other.history_["objective"][-1], rtol=1e-2)


@every
def test_rows_are_answered_one_by_one_as_in_bulk(case):
    model = case.get_fitted()
    new = table(12, seed=5)[0]
    for method in row_methods(model):
        bulk = getattr(model, method)(new)
        single = np.concatenate([getattr(model, method)(new[i : i + 1]) for i in range(len(new))])
        np.testing.assert_allclose(single, bulk, rtol=1e-9, atol=1e-12 * np.abs(bulk).max(), err_msg=method)


@every
def test_fit_transform_gives_the_training_codes(case):
    if not hasattr(case(), "transform"):
        pytest.skip("has no codes")
    model = case()
    codes = model.fit_transform(X, y)
    np.testing.assert_allclose(codes, model.transform(X), rtol=1e-8, atol=1e-8)
    assert codes.shape == ((len(X),) if case.labels else (len(X), model.get_feature_names_out().size))


@those(nan=True)
def test_holes_are_taken_and_a_row_of_holes_still_answers(case):
    H = with_holes(X)
    model = case.fit(H, y)
    H[0] = np.nan
    for method in row_methods(model):
        assert np.isfinite(getattr(model, method)(H)).all() if method != "predict" else len(model.predict(H)) == len(H)


@first
def test_saved_and_loaded_is_the_same_model(case, tmp_path):
    F = pd.DataFrame(X, columns=NAMES)
    model = case.fit(F, y)
    model.save(tmp_path / "m.twofold")
    back = twofold.load(tmp_path / "m.twofold")
    assert type(back) is type(model) and back.get_params() == model.get_params()
    assert set(fitted(back)) == set(fitted(model)) and not differences(back, model)
    assert list(back.feature_names_in_) == NAMES
    for method in row_methods(model):
        assert np.array_equal(getattr(back, method)(F), getattr(model, method)(F)), method


@first
def test_pickles(case):
    assert not differences(case.get_fitted(), pickle.loads(pickle.dumps(case.get_fitted())))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@first
def test_works_in_a_pipeline_and_a_grid_search(case):
    scaler = MinMaxScaler(clip=True) if case.completes or case.positive else StandardScaler()
    pipe = make_pipeline(scaler, case(**few(case)))
    step = pipe.steps[-1][0]
    grid = {f"{step}__{name}": case.good for name in case.none}
    scoring = None if hasattr(case(), "score") else (lambda model, X, y: 0.0)
    search = GridSearchCV(pipe, grid, cv=3, scoring=scoring).fit(X, y)
    assert all(search.best_params_[name] in case.good for name in grid)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@first
@pytest.mark.parametrize("kind, frame", [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_set_output(case, kind, frame):
    if not hasattr(case(), "transform") or case.labels:
        pytest.skip("has no columns of codes")
    model = case.fit(X, y).set_output(transform=kind)
    out = model.transform(X)
    assert isinstance(out, frame) and list(out.columns) == list(model.get_feature_names_out())
    if kind == "pandas":
        F = pd.DataFrame(X, columns=NAMES, index=np.arange(len(X)) + 7)
        assert list(case.fit(F, y).set_output(transform="pandas").transform(F).index) == list(F.index)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@first
def test_refitting_forgets(case):
    other, groups = table(150, seed=8)
    model = case.fit(other[:, :6], groups, **few(case))
    again = model.fit(X, y) if case.needs_y else model.fit(X)
    assert not differences(again, case.fit(X, y, **few(case)))
