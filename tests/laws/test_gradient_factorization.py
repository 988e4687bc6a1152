"""Laws of gradient descent over known cells."""

import numpy as np
import pytest

import twofold
from tests.laws.completion import compute_objective as objective
from tests.laws.completion import plant
from twofold import ALS, Biases, GradientFactorization
from twofold.completion import gradient_factorization as descent
from twofold.core.data.blocks import as_blocks
from twofold.core.data.known_cells import find_known_cells
from twofold.core.numerics.alternating_ridge import make_plan
from twofold.core.seeds import generator

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
both = pytest.mark.parametrize("biases", [False, True], ids=["factors", "biases"])
solvers = pytest.mark.parametrize("solver", ["sgd", "gradient"])


def fit(X, k=3, sample_weight=None, reg=0.1, **options):
    return GradientFactorization(k, reg=reg, random_state=0, **options).fit(X, sample_weight=sample_weight)


@both
def test_objective_of_full_gradients_is_the_formula(biases):
    X, w = plant(120, 80), np.random.default_rng(1).random((120, 80)) + 0.1
    for weights in (None, w):
        model = fit(X, solver="gradient", biases=biases, max_iter=5, sample_weight=weights)
        np.testing.assert_allclose(model.history_["objective"][-1], objective(model, X, weights), rtol=1e-10)


@both
def test_objective_of_sgd_is_what_cells_cost_in_their_turn(biases):
    """With steps too small to matter, that is the formula at the start; each cell pays its share of the ridge."""
    X = plant(120, 80)
    model = fit(X, biases=biases, max_iter=1, learning_rate=1e-9)
    np.testing.assert_allclose(model.history_["objective"][-1], objective(model, X), rtol=1e-5)


@both
def test_gradients_are_those_of_the_objective(biases):
    X = plant(12, 9)
    cells = find_known_cells(as_blocks(X))
    problem = make_plan(cells, 2, reg=0.3, biases=bool(biases), power=0.5)
    mean, spread, lam = problem.mean, problem.spread, problem.ridge.lam
    plan = descent.Plan(cells, 2, mean, np.sqrt(spread), *descent.hold_sides(problem))
    rng = np.random.default_rng(1)
    U, Z = rng.normal(size=(12, 2 + biases)), rng.normal(size=(9, 2 + biases))
    G, _ = descent.compute_gradients(cells.rows, U, Z, plan)
    seen, _ = descent.features(Z, 2, mean, np.sqrt(spread))
    for i in range(12):
        known = ~np.isnan(X[i])
        bound = (seen[known] ** 2).sum() + lam * np.sqrt(known.sum())
        for c in range(2 + biases):
            at = np.zeros_like(U)
            at[i, c] = 1e-5
            slope = (descent.compute_objective(U + at, Z, plan) - descent.compute_objective(U - at, Z, plan)) / 2e-5
            np.testing.assert_allclose(G[i, c] * 2 * bound, slope, rtol=1e-5, atol=1e-5)


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setattr(descent, "MIN_TILE_CELLS", 64)


@pytest.mark.usefixtures("small_tiles")
def test_tiles_of_a_stratum_share_no_row_and_no_column():
    cells = find_known_cells(as_blocks(plant(120, 80)))
    strata = descent.deal_tiles(cells, np.random.default_rng(0))
    B = len(strata)
    assert B > 4 and all(len(tiles) == B for tiles in strata)
    for tiles in strata:
        for which in ("rows", "cols"):
            seen = [set(getattr(t, which).tolist()) for t in tiles]
            assert sum(map(len, seen)) == len(set().union(*seen))


@pytest.mark.usefixtures("small_tiles")
def test_every_cell_is_dealt_once_with_its_value_and_weight():
    X, w = plant(120, 80), np.random.default_rng(1).random((120, 80)) + 0.1
    tiles = [
        t
        for stratum in descent.deal_tiles(find_known_cells(as_blocks(X), w), np.random.default_rng(0))
        for t in stratum
    ]
    rows, cols, x, weight = (np.concatenate(column) for column in zip(*tiles, strict=True))
    assert len(x) == (~np.isnan(X)).sum() == len(set(zip(rows.tolist(), cols.tolist(), strict=True)))
    assert np.array_equal(x, X[rows, cols]) and np.array_equal(weight, w[rows, cols])
    big = max(tiles, key=lambda t: len(t.x))
    assert np.any(np.diff(big.rows) < 0) and np.any(np.diff(big.cols) < 0)  # shuffled


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_show(dtype):
    X, found = plant(120, 80).astype(dtype), []
    for threads in (1, 2, 3):
        with twofold.config(threads=threads):
            model = fit(X, max_iter=5)
        found.append((model.row_factors_.tobytes(), model.components_.tobytes(), model.row_bias_.tobytes()))
    assert found[0] == found[1] == found[2]


@pytest.mark.usefixtures("small_tiles")
@both
@solvers
def test_it_comes_down_to_where_als_does(solver, biases):
    X = plant(120, 80)
    best = ALS(3, reg=0.1, biases=biases, tol=1e-6, max_iter=300, random_state=0).fit(X)
    here = fit(X, solver=solver, biases=biases, tol=1e-5, max_iter=400)
    assert objective(here, X) < 1.05 * best.history_["objective"][-1]


@solvers
@both
@pytest.mark.parametrize("unit", [1e-8, 1e6])
def test_units_do_not_matter(solver, biases, unit):
    X, options = plant(120, 80), {"solver": solver, "biases": biases, "max_iter": 10}
    here, there = fit(X, **options), fit(X * unit, **options)
    np.testing.assert_allclose(there.predict(X * unit) / unit, here.predict(X), rtol=1e-7, atol=1e-7)
    ratio = np.array(there.history_["objective"]) / np.array(here.history_["objective"])
    np.testing.assert_allclose(ratio, unit**2, rtol=1e-9)


@solvers
def test_a_weight_of_two_is_the_cell_twice_in_the_objective(solver):
    """Where full gradients stand still, no change helps the weighted formula; sgd comes close to the same place."""
    X, w = plant(60, 40), np.random.default_rng(1).integers(0, 3, (60, 40)).astype(float)
    best = ALS(2, reg=0.1, tol=1e-10, max_iter=1000, random_state=0).fit(X, sample_weight=w)
    model = fit(X, 2, solver=solver, sample_weight=w, tol=1e-6, max_iter=1000)
    assert objective(model, X, w) < 1.05 * best.history_["objective"][-1]
    assert objective(fit(X, 2, solver=solver, tol=1e-6, max_iter=1000), X, w) > objective(model, X, w)


def test_a_planted_table_is_recovered():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 60))
    X = np.where(rng.random(truth.shape) < 0.5, truth, np.nan)
    for solver, error in (("gradient", 1e-2), ("sgd", 0.05)):
        model = fit(X, 2, solver=solver, reg=1e-6, biases=False, tol=1e-7, max_iter=2000)
        held = np.isnan(X)
        assert np.linalg.norm(model.predict(*np.nonzero(held)) - truth[held]) < error * np.linalg.norm(truth[held])


def test_momentum_is_quicker():
    X = plant(120, 80)
    slow, quick = (fit(X, solver="gradient", momentum=m, tol=0.0, max_iter=30) for m in (0.0, 0.9))
    assert quick.history_["objective"][-1] < slow.history_["objective"][-1]


def test_the_start_is_balanced():
    model = fit(plant(120, 80), max_iter=1, learning_rate=1e-9, biases=False)
    sizes = [(a**2).mean() for a in (model.row_factors_, model.components_)]
    np.testing.assert_allclose(sizes[0], sizes[1], rtol=0.25)


@solvers
def test_auto_is_the_biases_where_factors_are_noise(solver):
    rng = np.random.default_rng(0)
    truth = 3 + rng.normal(size=(150, 1)) + rng.normal(size=80)
    X = np.where(rng.random(truth.shape) < 0.1, truth + rng.normal(size=truth.shape), np.nan)
    model, plain = fit(X, 10, solver=solver, reg="auto"), Biases().fit(X)
    assert not model.components_.any()
    errors = [np.sqrt(((m.predict(X) - truth) ** 2).mean()) for m in (model, plain)]
    assert errors[0] < 1.1 * errors[1]


def test_plain_steps_are_those_of_the_textbook():
    """One sweep in the order in which the cells are dealt: u ← u + η/s (e z − λ u), and z by the u of before."""
    X = plant(20, 15)
    model = fit(X, 2, biases=False, solver="plain-sgd", learning_rate=0.05, max_iter=1, tol=0)
    cells = find_known_cells(as_blocks(X))
    problem = model._find(cells, 0)[0]
    plan = descent.Plan(cells, 2, problem.mean, np.sqrt(problem.spread), *descent.hold_sides(problem))
    U, Z = model._draw(plan, 0)
    (of_rows, of_cols), rate = plan.shares, 0.05 / problem.spread
    for tiles in descent.deal_tiles(cells, generator(0, 1)):
        for tile in tiles:
            for i, j, x in zip(tile.rows, tile.cols, tile.x, strict=True):
                u, z = U[i].copy(), Z[j].copy()
                e = x - problem.mean - u @ z
                U[i] += rate * (e * z - of_rows[i, 0] * u)
                Z[j] += rate * (e * u - of_cols[j, 0] * z)
    np.testing.assert_allclose(model.row_factors_, U, rtol=1e-10)
    np.testing.assert_allclose(model.components_.T, Z, rtol=1e-10)
