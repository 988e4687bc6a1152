"""Laws of neighborhoods: the obvious dense computation, without the table of all similarities."""

import numpy as np
import pytest

from twofold import Biases, InputError, Neighborhood, config

both_kinds = pytest.mark.parametrize("kind", ["item", "user"])


def table(n=50, d=14, share=0.5, seed=0, dtype=np.float64):
    """Groups of columns that go together, biases, noise; an empty row and an empty column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=(n, d)) + 3
    X[rng.random(X.shape) > share] = np.nan
    X[4], X[:, 6] = np.nan, np.nan
    return X.astype(dtype)


def all_similarities(R, g, shrinkage):
    """Every pair of columns of the deviations R (NaN where unknown), with square roots of weights g."""
    S = np.zeros((R.shape[1],) * 2)
    for j, o in np.ndindex(S.shape):
        common = ~np.isnan(R[:, j]) & ~np.isnan(R[:, o])
        a, b, w = R[common, j], R[common, o], (g[:, j] * g[:, o])[common]
        count, size = w.sum() - 1, (w @ a**2) * (w @ b**2)
        if j != o and count > 0 and size > 0:
            S[j, o] = count / (count + shrinkage) * (w @ (a * b)) / np.sqrt(size)
    return S


def strongest(S, max_neighbors):
    """S with only the strongest of each row."""
    rank = np.argsort(np.argsort(-np.abs(S), axis=1, kind="stable"), axis=1)
    return np.where(rank < max_neighbors, S, 0)


def brute_force(model, X, w=None):
    """Similarities and the prediction of every cell, the obvious way."""
    R = X - Biases().fit(X, sample_weight=w).predict(*np.nonzero(np.ones(X.shape))).reshape(X.shape)
    g = np.ones(X.shape) if w is None else np.sqrt(w)
    if model.kind == "user":
        R, g = R.T, g.T
    S = strongest(all_similarities(R, g, model.shrinkage), model.n_similar)
    out = np.zeros(R.shape)
    for i, j in np.ndindex(R.shape):
        order = np.argsort(-np.abs(S[j]), kind="stable")
        near = order[(S[j, order] != 0) & ~np.isnan(R[i, order])][: model.n_neighbors]
        v = np.sign(S[j, near]) * np.abs(S[j, near]) ** model.power
        out[i, j] = v @ R[i, near] / (np.abs(v).sum() + model.damping) if len(near) else 0
    return S, X - (R if model.kind == "item" else R.T), out if model.kind == "item" else out.T


def everywhere(model, shape):
    """predict(rows, cols) in all cells."""
    return model.predict(*np.nonzero(np.ones(shape))).reshape(shape)


@both_kinds
@pytest.mark.parametrize(
    "options",
    [{}, {"n_neighbors": 2, "n_similar": 5, "shrinkage": 3.0}, {"power": 1.0, "damping": 0.0, "shrinkage": 0.0}],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_what_brute_force_finds(kind, options, weighted):
    X = table()
    w = np.random.default_rng(1).random(X.shape) + 0.5 if weighted else None
    model = Neighborhood(kind=kind, **options).fit(X, sample_weight=w)
    S, _, said = brute_force(model, X, w)
    np.testing.assert_allclose(model.similarities_.toarray(), S, atol=1e-12)
    np.testing.assert_allclose(everywhere(model, X.shape), everywhere(model.baseline_, X.shape) + said, atol=1e-10)


def test_by_items_even_the_known_cells_of_a_fitted_row_are_predicted_alike():
    X = table()
    model = Neighborhood().fit(X)
    np.testing.assert_allclose(model.predict(X), everywhere(model, X.shape), rtol=1e-10)


@both_kinds
def test_threads_and_blocks_do_not_matter(kind, small_blocks, monkeypatch):
    from twofold.completion import neighborhood

    monkeypatch.setattr(neighborhood, "WORK", 500)
    monkeypatch.setattr(neighborhood, "REQUESTS", 37)
    X = table(n=80)
    results = []
    for threads in (1, 3):
        with config(threads=threads):
            model = Neighborhood(kind=kind).fit(X)
            results.append((model.similarities_.toarray(), everywhere(model, X.shape), model.transform(X)))
    monkeypatch.undo()
    model = Neighborhood(kind=kind).fit(X)
    results.append((model.similarities_.toarray(), everywhere(model, X.shape), model.transform(X)))
    for one, other in (results[:2], results[1:]):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@both_kinds
def test_sorting_the_similarities_by_column_changes_nothing(kind):
    X = table()
    model = Neighborhood(2, kind=kind).fit(X)
    expected, filled = everywhere(model, X.shape), model.transform(X)
    model.similarities_.sort_indices()
    np.testing.assert_array_equal(everywhere(model, X.shape), expected)
    np.testing.assert_array_equal(model.transform(X), filled)


@both_kinds
def test_a_prediction_is_the_baseline_and_what_the_known_cells_add(kind):
    X = table()
    model = Neighborhood(5, kind=kind).fit(X)
    rng = np.random.default_rng(5)
    new = np.where(rng.random(14) < 0.5, rng.normal(size=14), np.nan)[None]
    cols = rng.permutation(np.nonzero(~np.isnan(new[0]))[0])
    baseline, predicted = model.baseline_.predict(new)[0], model.predict(new)[0]
    for target in np.nonzero(np.isnan(new[0]))[0]:
        added = model.contributions(cols, new[0, cols], int(target))
        assert added.shape == cols.shape and (target == 6 or np.count_nonzero(added) > 1)
        assert baseline[target] + added.sum() == pytest.approx(predicted[target], rel=1e-10)


@both_kinds
def test_contributions_refuse_what_is_no_row(kind):
    model = Neighborhood(kind=kind).fit(table())
    assert model.contributions([], [], 2).shape == (0,)
    with pytest.raises(InputError, match=r"cols\[1\] is 14; the fitted table has columns 0 to 13"):
        model.contributions([1, 14], [1.0, 2.0], 3)
    with pytest.raises(InputError, match="each column once"):
        model.contributions([1, 1], [1.0, 2.0], 3)


@both_kinds
@pytest.mark.parametrize(
    "X",
    [
        np.array([[2.0]]),
        np.array([[np.nan, 4.0], [np.nan, np.nan]]),
        np.full((4, 3), 5.0),
        np.where(np.eye(4) > 0, 3.0, np.nan),
    ],
    ids=["one cell", "one known", "all equal", "diagonal"],
)
def test_tables_with_one_value_are_filled_with_it(kind, X):
    model = Neighborhood(kind=kind).fit(X)
    np.testing.assert_allclose(model.transform(X), np.nanmean(X), rtol=1e-7)
    np.testing.assert_allclose(everywhere(model, X.shape), np.nanmean(X), rtol=1e-7)


@both_kinds
def test_rows_and_columns_without_cells_get_the_baseline(kind):
    X = table()
    model = Neighborhood(kind=kind).fit(X)
    new = np.full((1, 14), np.nan)
    baseline = model.baseline_
    np.testing.assert_allclose(model.predict(new)[0], baseline.mean_ + baseline.column_bias_)
    np.testing.assert_array_equal(everywhere(model, X.shape)[4], baseline.predict(new)[0])
    np.testing.assert_array_equal(everywhere(model, X.shape)[:, 6], everywhere(baseline, X.shape)[:, 6])


@both_kinds
def test_neighbours_know_more_than_biases(kind):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(150, 2)) @ rng.normal(size=(2, 60))
    X = np.where(rng.random(truth.shape) < 0.4, truth, np.nan)
    holes = np.isnan(X)
    left = [np.mean((m.fit(X).transform(X) - truth)[holes] ** 2) for m in (Biases(), Neighborhood(kind=kind))]
    assert left[1] < 0.5 * left[0]
