"""Promises of the completion models alone: which cells are known, what is filled, and where."""

import numpy as np
import pytest
from scipy import sparse

import twofold

from .helpers import assert_alike, differences
from .registry import table, those, with_holes

every = those(completes=True)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X, y = table(60)
H = with_holes(X, 0.3)
KNOWN = ~np.isnan(H)


def fit(case, X=H, **options):
    """A fit of a few sweeps, which is enough to keep a promise."""
    few = {"max_iter": 5} if "max_iter" in case().get_params() else {}
    return case.fit(X, y, **{**few, **options})


def store_known(H):
    rows, cols = np.nonzero(~np.isnan(H))
    return sparse.csr_array((H[rows, cols], (rows, cols)), shape=H.shape)


@every
def test_only_holes_are_filled(case):
    model = fit(case)
    filled = model.transform(H)
    assert np.array_equal(filled[KNOWN], H[KNOWN]) and np.isfinite(filled).all()
    np.testing.assert_allclose(filled[~KNOWN], model.predict(H)[~KNOWN], rtol=1e-12)
    assert np.array_equal(filled, model.complete(H)) and np.array_equal(filled, model.transform(store_known(H)))
    new = with_holes(table(9, seed=3)[0], 0.5)
    assert np.array_equal(model.complete(new)[~np.isnan(new)], new[~np.isnan(new)])


@every
def test_stored_nan_is_a_hole(case):
    assert not differences(fit(case, store_known(H)), fit(case, sparse.csr_array(H)))


@every
def test_holes_of_fitted_rows_are_what_folding_in_says(case):
    if case.model in ("GradientFactorization", "SVDImpute", "SVP", "SVT", "SoftImpute"):
        pytest.skip("its rows are where the steps left them, not the best given the columns")
    model = fit(case)
    rows, cols = np.nonzero(~KNOWN)
    np.testing.assert_allclose(model.predict(rows, cols), model.predict(H)[rows, cols], rtol=1e-6)


@every
def test_cells_are_predicted_in_any_order(case):
    model = fit(case)
    rows, cols = np.array([5, 0, 5, 59]), np.array([7, 1, 0, 7])
    said = model.predict(rows, cols)
    assert said.shape == (4,) and np.isfinite(said).all()
    one = np.concatenate([model.predict([i], [j]) for i, j in zip(rows, cols, strict=True)])
    np.testing.assert_allclose(said, one, rtol=1e-12)


@every
def test_cells_outside_the_table_are_refused(case):
    model = fit(case)
    for rows, cols, match in (
        ([0, 60], [0, 0], r"rows\[1\] is 60.*0 to 59"),
        ([0, 0], [-1, 0], r"cols\[0\] is -1.*0 to 7"),
        ([0.5], [0], "whole numbers"),
        ([0, 1], [0], "one pair a cell"),
    ):
        with pytest.raises(twofold.InputError, match=match):
            model.predict(rows, cols)


@every
def test_rows_and_columns_without_a_known_cell(case):
    gaps = H.copy()
    gaps[4], gaps[:, 2] = np.nan, np.nan
    model = fit(case, gaps)
    assert np.isfinite(model.predict([4, 0, 4], [0, 2, 2])).all()
    assert np.isfinite(model.transform(gaps)).all()


@every
@pytest.mark.parametrize("n, d", [(1, 5), (5, 1), (1, 1), (3, 3)])
def test_hardly_a_table(case, n, d):
    tiny = np.full((n, d), np.nan)
    tiny[0, 0] = 3.0
    smallest = {"n_components": None} if "n_components" in case.params else {}
    model = fit(case, tiny, **smallest)
    assert np.isfinite(model.transform(tiny)).all() and model.transform(tiny)[0, 0] == 3.0
    full = fit(case, np.full((n, d), 3.0), **smallest)
    assert np.isfinite(full.predict(tiny)).all()


@every
def test_nothing_known(case):
    with pytest.raises(twofold.InputError, match=r"\(60, 8\) has no known cell"):
        fit(case, np.full_like(X, np.nan))
    with pytest.raises(twofold.InputError, match="no known cell"):
        fit(case, sparse.csr_array(X.shape))


@every
def test_a_cell_of_weight_zero_is_a_hole(case):
    w = KNOWN.astype(float)
    model = fit(case, X, sample_weight=w)
    assert not differences(model, fit(case, H))
    assert not differences(model, fit(case, X, sample_weight=sparse.csr_array(w)))


@every
def test_a_weight_a_cell_may_be_dense_or_sparse(case):
    if not case.weights:
        pytest.skip("takes no weights")
    w = np.random.default_rng(3).random(X.shape)
    model = fit(case, sample_weight=w)
    assert not differences(model, fit(case, store_known(H), sample_weight=sparse.csr_array(w)))
    rows = np.random.default_rng(4).random(len(X))
    assert not differences(
        fit(case, sample_weight=rows), fit(case, sample_weight=np.broadcast_to(rows[:, None], X.shape))
    )


@every
def test_weights_of_another_shape_and_bad_ones_are_refused_with_their_place(case):
    with pytest.raises(twofold.InputError, match=r"\(60, 7\)"):
        fit(case, sample_weight=np.ones((60, 7)))
    for bad in (-1.0, np.nan, np.inf):
        w = np.ones(X.shape)
        w[3, 5] = bad
        for given in (w, sparse.csr_array(w)):
            with pytest.raises(twofold.InputError, match=rf"sample_weight\[3, 5\] is {bad}"):
                fit(case, X, sample_weight=given)


@every
def test_the_order_of_rows_does_not_matter(case):
    if case.model in ("GradientFactorization", "SVDPlusPlus"):
        pytest.skip("every row starts from its own draw")
    if case.model == "ALS" and case.label == "auto":
        pytest.skip("draws which cells are put aside")
    turn = np.random.default_rng(5).permutation(len(X))
    assert_alike(case.fit(H, y), case.fit(H[turn], y), H, rtol=1e-3)


@every
def test_score_is_minus_the_error_of_cells_not_shown(case):
    model = fit(case)
    even = np.add.outer(np.arange(60), np.arange(8)) % 2 == 0
    shown, asked = np.where(even, H, np.nan), np.where(even, np.nan, H)
    error = (model.predict(shown) - asked)[~np.isnan(asked)]
    np.testing.assert_allclose(model.score(H), -np.sqrt((error**2).mean()), rtol=1e-9)
    np.testing.assert_allclose(model.score(shown, asked), model.score(H), rtol=1e-9)
