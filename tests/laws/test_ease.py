"""Laws of the linear autoencoder with a zero diagonal, against regressions made one by one, and of popularity."""

import numpy as np
import pytest
from scipy import sparse

from twofold import EASE, InputError, Popularity
from twofold.completion.ease import leave_out_rows


def make_seen(n=80, d=30, seed=0):
    """People of three kinds see the columns of their kind; row 4 and column 2 are empty."""
    rng = np.random.default_rng(seed)
    kind, of = rng.integers(3, size=n), rng.integers(3, size=d)
    X = (rng.random((n, d)) < np.where(kind[:, None] == of, 0.5, 0.1)).astype(float)
    X[4], X[:, 2] = 0, 0
    return X


def by_regressions(X, reg):
    """B, each column a ridge regression on all the others."""
    d = X.shape[1]
    B = np.zeros((d, d))
    for j in range(d):
        rest = np.arange(d) != j
        A = X[:, rest]
        B[rest, j] = np.linalg.solve(A.T @ A + reg * np.eye(d - 1), A.T @ X[:, j])
    return B


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_weights_are_the_regressions_of_every_column_on_the_others(make):
    X = make_seen()
    model = EASE(reg=7.0).fit(make(X))
    B = by_regressions(X, 7.0)
    np.testing.assert_allclose(model.weights_, B, atol=1e-12)
    np.testing.assert_allclose(model.predict(X), X @ B, atol=1e-12)
    cost = ((X - X @ B) ** 2).sum() + 7.0 * (B**2).sum()
    np.testing.assert_allclose(model.history_["objective"][-1], cost)


def test_an_intercept_centres_columns_and_ends_at_popularity():
    X = make_seen()
    rows = X.any(axis=1)
    p = X.sum(axis=0) / rows.sum()
    C = (X - p)[rows]
    np.testing.assert_allclose(EASE(reg=7.0, intercept=True).fit(X).predict(X), p + (X - p) @ by_regressions(C, 7.0))
    far = EASE(reg=1e12, intercept=True).fit(X).predict(X)
    np.testing.assert_allclose(far, np.broadcast_to(p, X.shape), atol=1e-8)
    np.testing.assert_allclose(Popularity().fit(X).predict(X), np.broadcast_to(p, X.shape))


@pytest.mark.parametrize("intercept", [False, True])
def test_columns_that_do_not_speak_are_regressed_on_those_that_do(intercept):
    X = make_seen()
    model = EASE(reg=7.0, max_items=12, intercept=intercept).fit(X)
    heads = model.columns_
    assert len(heads) == 12 and X.sum(axis=0)[heads].min() >= np.delete(X.sum(axis=0), heads).max()
    p = X.sum(axis=0) / X.any(axis=1).sum() * intercept
    C = (X - p)[X.any(axis=1)]
    H = C[:, heads]
    B = np.linalg.solve(H.T @ H + 7.0 * np.eye(12), H.T @ C)
    B[:, heads] = by_regressions(H, 7.0)
    np.testing.assert_allclose(model.predict(X), p + (X - p)[:, heads] @ B, atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"intercept": True}, {"max_items": 12, "intercept": True}])
def test_contributions_add_up_to_the_prediction(options):
    X = make_seen()
    model = EASE(reg=7.0, **options).fit(X)
    at, nobody = np.flatnonzero(X[9]), model.predict(np.zeros((1, 30)))[0]
    for target in range(30):
        shares = model.contributions(at, X[9, at], target)
        np.testing.assert_allclose(nobody[target] + shares.sum(), model.predict([9], [target])[0], atol=1e-12)
    with pytest.raises(InputError, match="target is 30; the fitted table has columns 0 to 29"):
        model.contributions(at, X[9, at], 30)


def test_a_row_left_out_is_predicted_as_by_a_fit_without_it():
    X = make_seen()[5:]
    errors = []
    for i in range(len(X)):
        B = by_regressions(np.delete(X, i, axis=0), 7.0)
        errors.append(((X[i] - X[i] @ B) ** 2).mean())
    np.testing.assert_allclose(leave_out_rows(X.T @ X, X, 7.0), np.mean(errors))


def test_a_row_left_out_leaves_the_means_too():
    X = make_seen(40)[5:]
    errors, n = [], len(X)
    for i in range(n):
        rest = np.delete(X, i, axis=0)
        p = rest.mean(axis=0)
        errors.append(((X[i] - p - (X[i] - p) @ by_regressions(rest - p, 7.0)) ** 2).mean())
    C = X - X.mean(axis=0)
    there = np.sqrt(n / (n - 1))
    np.testing.assert_allclose(leave_out_rows(C.T @ C, C * there, 7.0) * there**2, np.mean(errors))
    few = EASE(intercept=True).fit(np.repeat(X[:8], 3, axis=1))  # fewer rows than columns: the means alone fit them
    assert few.reg_ > 0.1


def test_the_ridge_found_is_about_the_best_for_rows_left_out():
    X = make_seen(300)[5:]
    G = X.T @ X
    found = EASE().fit(X).reg_
    grid = [leave_out_rows(G, X, reg) for reg in np.geomspace(0.1, 1e4, 40)]
    assert leave_out_rows(G, X, found) < min(grid) * 1.002


def test_little_to_learn_means_a_large_ridge():
    rng = np.random.default_rng(0)
    alike = (rng.random((300, 30)) < rng.random(30)).astype(float)
    kinds = make_seen(300)
    assert EASE(intercept=True).fit(alike).reg_ > 10 * EASE(intercept=True).fit(kinds).reg_


def test_columns_that_are_alike_need_a_ridge_that_counts():
    X = np.repeat(make_seen()[:, 5:6], 3, axis=1).astype(np.float32)
    with pytest.raises(InputError, match=r"reg=1e-30 is too small"):
        EASE(reg=1e-30).fit(X)


def test_popularity_counts_those_who_have_seen():
    X = np.array([[3.0, 0, np.nan], [1, 0, 2], [np.nan, 0, 5], [7, 0, np.nan]])
    model = Popularity().fit(X)
    np.testing.assert_allclose(model.predict(X), np.tile([0.75, 0, 0.5], (4, 1)))
    np.testing.assert_allclose(model.fold_in(X), np.ones((4, 1)))
