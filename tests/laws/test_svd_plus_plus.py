"""Laws of variational factors with an implicit term, and of the prior that follows from which cells are known."""

import numpy as np
import pytest

from tests.laws.completion import plant
from twofold import Biases, InputError, SVDPlusPlus
from twofold.completion import svd_plus_plus
from twofold.completion.svd_plus_plus import Plan, Posterior, compute_moments, start_state, sweep
from twofold.core.data.blocks import as_blocks
from twofold.core.data.known_cells import find_known_cells

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
LOWER = np.tril_indices(3)


def fit(X, k=2, sample_weight=None, **options):
    return SVDPlusPlus(k, random_state=0, **options).fit(X, sample_weight=sample_weight)


def unpack(V):
    full = np.zeros((len(V), 3, 3))
    full[:, LOWER[0], LOWER[1]] = V
    full[:, LOWER[1], LOWER[0]] = V
    return full


def scale_down(known):
    """F, written down."""
    return known / np.sqrt(np.maximum(known.sum(axis=1), 1))[:, None]


# ---- the bound ---------------------------------------------------------------------------------------------------


def exact(F, known):
    """The pattern with its spectrum as it is, not as a few probes see it."""
    values = np.maximum(np.linalg.eigvalsh(scale_down(known) @ scale_down(known).T), 0)
    return F._replace(nodes=values, shares=np.ones(len(values)))


def problem(X, w=None):
    cells = find_known_cells(as_blocks(X), w)
    mean, spread = svd_plus_plus.spread_of(cells)
    rng, known = np.random.default_rng(0), ~np.isnan(X)
    rows = exact(svd_plus_plus.link_pattern(cells.rows, cells.cols, rng), known)
    cols = exact(svd_plus_plus.link_pattern(cells.cols, cells.rows, rng), known.T)
    return Plan(cells, rows, cols, mean, spread)


def biases_of(X, w=None):
    return Biases().fit(X, sample_weight=w)


def squares(x, U, A, Z, B):
    """E (x − b − c − ⟨u, z⟩)² for Gaussians (u, b) and (z, c) with covariances A and B."""
    u, z = U[:2], Z[:2]
    spread = np.trace(A[:2, :2] @ B[:2, :2]) + z @ A[:2, :2] @ z + u @ B[:2, :2] @ u + A[2, 2] + B[2, 2]
    spread += 2 * z @ A[:2, 2] + 2 * u @ B[:2, 2]
    return (x - U[2] - Z[2] - u @ z) ** 2 + spread


def prior_terms(link, q, F):
    """−E log p(T | Y) − H(T) + KL(Y), from dense matrices, a column of T at a time."""
    cov, total = unpack(q.cov), 0.0
    n, d = F.shape
    for c in range(3):
        lam, rho, T, Y = link.precision[c], link.strength[c], q.mean[:, c], link.Y[:, c]
        S = np.linalg.inv(lam * F.T @ F + rho * np.eye(d))
        apart = ((T - F @ Y) ** 2).sum() + cov[:, c, c].sum() + np.trace(F @ S @ F.T)
        total += 0.5 * (n * np.log(2 * np.pi / lam) + lam * apart)
        total += 0.5 * (rho * (Y @ Y + np.trace(S)) - d - d * np.log(rho) - np.linalg.slogdet(S)[1])
    return total - 0.5 * sum(3 * np.log(2 * np.pi * np.e) + np.linalg.slogdet(A)[1] for A in cov)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_bound_is_the_formula(weighted):
    X = plant(14, 9, 2)
    w = np.random.default_rng(1).random(X.shape) + 0.5 if weighted else None
    plan = problem(X, w)
    state, weights = start_state(plan, biases_of(X, w), 2, 0), np.ones(X.shape) if w is None else w
    for _ in range(4):
        tau = plan.cells.rows.mass.sum() / state.left
        state, bound, extra, *_ = sweep(state, plan)
        np.testing.assert_allclose(extra["noise"], plan.spread**2 / tau, rtol=1e-12)
    known = ~np.isnan(X)
    A, B = unpack(state.U.cov), unpack(state.Z.cov)
    left = sum(
        weights[i, j] * squares((X[i, j] - plan.mean) / plan.spread, state.U.mean[i], A[i], state.Z.mean[j], B[j])
        for i, j in zip(*np.nonzero(known), strict=True)
    )
    np.testing.assert_allclose(state.left, left, rtol=1e-8)
    data = 0.5 * (tau * left + weights[known].sum() * np.log(2 * np.pi / tau))
    priors = prior_terms(state.rows, state.U, scale_down(known)) + prior_terms(state.cols, state.Z, scale_down(known.T))
    np.testing.assert_allclose(bound, data + priors, rtol=1e-8)


def test_moments_are_means_over_draws():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 3, 3))
    cov, mean = root @ root.transpose(0, 2, 1), rng.normal(size=(4, 3))
    found = compute_moments(Posterior(mean, cov[:, LOWER[0], LOWER[1]]))
    for j in range(4):
        draws = rng.multivariate_normal(mean[j], cov[j], 400_000)
        phi, c = np.column_stack([draws[:, :2], np.ones(len(draws))]), draws[:, 2]
        size = 1 + np.abs(cov[j]).max()
        np.testing.assert_allclose(found.Q[j], (phi.T @ phi / len(phi))[LOWER], atol=0.02 * size)
        np.testing.assert_allclose(found.F[j], phi.mean(axis=0), atol=0.02 * size)
        np.testing.assert_allclose(found.G[j], (phi * c[:, None]).mean(axis=0), atol=0.02 * size)
        np.testing.assert_allclose(found.h[j], [c.mean(), (c**2).mean()], atol=0.02 * size)


# ---- the prior ---------------------------------------------------------------------------------------------------


def link_cells(known, seed=0):
    cells = find_known_cells(as_blocks(np.where(known, 1.0, np.nan)))
    return svd_plus_plus.link_pattern(cells.rows, cells.cols, np.random.default_rng(seed))


def some(n, d, share=0.3, seed=0):
    known = np.random.default_rng(seed).random((n, d)) < share
    known[3] = False
    return known


def test_a_pattern_applies_as_the_matrix_it_stands_for():
    known, rng = some(30, 20), np.random.default_rng(1)
    F, D = link_cells(known), scale_down(known)
    Y, T = rng.normal(size=(20, 3)), rng.normal(size=(30, 3))
    np.testing.assert_allclose(F.apply(Y), D @ Y, atol=1e-12)
    np.testing.assert_allclose(F.back(T), D.T @ T, atol=1e-12)
    assert F.apply(Y.astype(np.float32)).dtype == np.float32


FUNCTIONS = {
    "inverse": lambda x: 1 / (x + 0.3),
    "share": lambda x: x / (x + 0.3),
    "logarithm": lambda x: np.log(x + 0.3),
    "square": lambda x: x**2,
}


@pytest.mark.parametrize("shape", [(30, 20), (20, 30), (5, 5), (38, 3)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_quadrature_is_exact_for_its_probes_on_small_tables(shape, name):
    """With as many Lanczos steps as rows, each random sign v has Σ shares f(nodes) = n vᵀ f(FFᵀ) v."""
    known, f = some(*shape), FUNCTIONS[name]
    F = link_cells(known, seed=7)
    values, vectors = np.linalg.eigh(scale_down(known) @ scale_down(known).T)
    V = np.random.default_rng(7).choice([-1.0, 1.0], size=(shape[0], svd_plus_plus.PROBES))
    inside = ((vectors.T @ V) ** 2 * f(np.maximum(values, 0))[:, None]).sum() / svd_plus_plus.PROBES
    np.testing.assert_allclose((F.shares * f(F.nodes)).sum(), inside, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "square"])
def test_quadrature_is_near_the_trace_on_larger_ones(name):
    known, f = some(300, 200, 0.1), FUNCTIONS[name]
    F = link_cells(known)
    trace = f(np.maximum(np.linalg.eigvalsh(scale_down(known) @ scale_down(known).T), 0)).sum()
    np.testing.assert_allclose((F.shares * f(F.nodes)).sum(), trace, rtol=0.05)
    np.testing.assert_allclose(F.shares.sum(), 300, rtol=1e-9)


def test_coefficients_are_a_ridge_regression(monkeypatch):
    known, rng = some(30, 20), np.random.default_rng(1)
    F, D, T, ridge = link_cells(known), scale_down(known), rng.normal(size=(30, 3)), np.array([0.1, 1.0, 10.0])
    dense = np.column_stack([np.linalg.solve(D.T @ D + r * np.eye(20), D.T @ T[:, c]) for c, r in enumerate(ridge)])

    def cost(Y):
        return ((T - D @ Y) ** 2).sum(axis=0) + ridge * (Y**2).sum(axis=0)

    start = rng.normal(size=(20, 3))
    few = svd_plus_plus._regress_link(F, start, T, ridge)
    assert np.all(cost(few) < cost(start)) and np.all(cost(few) >= cost(dense) - 1e-12)
    monkeypatch.setattr(svd_plus_plus, "STEPS", 60)
    np.testing.assert_allclose(svd_plus_plus._regress_link(F, start, T, ridge), dense, atol=1e-8)


def test_the_prior_of_a_link_is_its_pattern_times_its_coefficients():
    plan = problem(plant(14, 9, 2))
    state = start_state(plan, biases_of(plant(14, 9, 2)), 2, 0)
    for _ in range(3):
        state = sweep(state, plan).state
    known = ~np.isnan(plant(14, 9, 2))
    np.testing.assert_allclose(state.rows.mean, scale_down(known) @ state.rows.Y, atol=1e-10)
    np.testing.assert_allclose(state.cols.mean, scale_down(known.T) @ state.cols.Y, atol=1e-10)


# ---- what it is good for -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.2, 1.0])
def test_the_noise_is_found(noise):
    model = fit(plant(200, 120, 2, noise=noise), max_iter=150)
    np.testing.assert_allclose(np.sqrt(model.noise_variance_), noise, rtol=0.06)
    np.testing.assert_allclose(model.history_["noise"][-1], model.noise_variance_, rtol=1e-12)


def test_the_planted_table_is_found_within_the_noise():
    rng, (n, d) = np.random.default_rng(0), (200, 120)
    truth = 3 + rng.normal(size=(n, 1)) + rng.normal(size=d) + rng.normal(size=(n, 2)) @ rng.normal(size=(2, d))
    X = np.where(rng.random((n, d)) < 0.3, truth + 0.5 * rng.normal(size=(n, d)), np.nan)
    error = fit(X, 5, max_iter=150).predict(X) - truth  # more factors than there are: they are switched off
    assert np.sqrt((error**2).mean()) < 0.6 * 0.5


@pytest.mark.parametrize("unit", [1e-6, 0.05, 20.0, 1e6])
def test_units_do_not_matter(unit):
    X = plant(60, 40, 2)
    here, there = fit(X, max_iter=15), fit(X * unit, max_iter=15)
    np.testing.assert_allclose(there.predict(X * unit) / unit, here.predict(X), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(there.noise_variance_ / unit**2, here.noise_variance_, rtol=1e-6)


def choose(n, d, telling, seed=0):
    """Values <u, z> + much noise; which few cells are known follows the values, or chance."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n, 2)) @ rng.normal(size=(2, d))
    liked = truth + 0.3 * rng.normal(size=(n, d)) if telling else rng.normal(size=(n, d))
    known = liked > np.quantile(liked, 0.88, axis=1, keepdims=True)
    known |= rng.random((n, d)) < 0.02
    return truth, np.where(known, truth + rng.normal(size=(n, d)), np.nan)


def error_of_new_rows(model, truth, X):
    holes = np.isnan(X)
    return np.sqrt(((model.predict(X) - truth)[holes] ** 2).mean())


def test_which_cells_are_known_helps_where_it_tells():
    truth, X = choose(500, 60, telling=True)
    model = fit(X[:400], 2)
    informed = error_of_new_rows(model, truth[400:], X[400:])
    model.implicit_ = np.zeros_like(model.implicit_)
    assert informed < 0.9 * error_of_new_rows(model, truth[400:], X[400:])


def test_which_cells_are_known_says_little_where_chance_chose_them():
    sizes = []
    for telling in (False, True):
        model = fit(choose(400, 60, telling)[1], 2)
        said = model.fold_in(np.where(np.isnan(X := choose(100, 60, telling, seed=1)[1]), np.nan, X))
        known = ~np.isnan(X)
        sizes.append(np.linalg.norm(scale_down(known) @ model.implicit_[:, :2]) / np.linalg.norm(said))
    assert sizes[0] < 0.5 * sizes[1]


@pytest.mark.parametrize("seed", range(3))
def test_without_anything_to_learn_it_is_the_biases(seed):
    """Few cells of much noise: factors that fit them do not change the prediction."""
    rng = np.random.default_rng(seed)
    truth = 3 + rng.normal(size=(150, 1)) + rng.normal(size=80)
    X = np.where(rng.random(truth.shape) < 0.08, truth + rng.normal(size=truth.shape), np.nan)
    model, plain = fit(X, 8), Biases().fit(X)
    errors = [np.sqrt(((m.predict(X) - truth) ** 2).mean()) for m in (model, plain)]
    assert errors[0] < 1.1 * errors[1]


def test_variances_are_those_of_draws():
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(2, 3, 3)) * 0.4
    (A, B), (u, z) = roots @ roots.transpose(0, 2, 1), rng.normal(size=(2, 3))
    packed = [Posterior(mean[None], cov[None][:, LOWER[0], LOWER[1]]) for mean, cov in ((u, A), (z, B))]
    U, Z = rng.multivariate_normal(u, A, 400_000), rng.multivariate_normal(z, B, 400_000)
    drawn = U[:, 2] + Z[:, 2] + (U[:, :2] * Z[:, :2]).sum(axis=1)
    np.testing.assert_allclose(svd_plus_plus.compute_variances(*packed)[0], drawn.var(), rtol=0.03)


@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_standard_deviations_are_as_large_as_the_errors(noise):
    rng, (n, d) = np.random.default_rng(0), (200, 100)
    truth = 3 + rng.normal(size=(n, 1)) + rng.normal(size=d) + rng.normal(size=(n, 2)) @ rng.normal(size=(2, d))
    full = truth + noise * rng.normal(size=(n, d))
    known = rng.random((n, d)) < rng.uniform(0.05, 0.5, size=(n, 1))  # some rows have few cells, some many
    model = fit(np.where(known, full, np.nan), 3)
    rows, cols = np.nonzero(~known)
    said, std = model.predict(rows, cols, return_std=True)
    np.testing.assert_array_equal(said, model.predict(rows, cols))
    assert 0.85 < np.sqrt((((said - full[rows, cols]) / std) ** 2).mean()) < 1.15
    few = known.sum(axis=1)[rows] < 10
    assert std[few].mean() > std[~few].mean()


def test_only_a_distribution_knows_how_sure_it_is():
    X = plant(60, 40, 2)
    with pytest.raises(InputError, match=r"Biases does not know how sure it is. SVDPlusPlus does"):
        Biases().fit(X).predict([0], [0], return_std=True)
    with pytest.raises(InputError, match="rows and cols"):
        fit(X, max_iter=3).predict(X, return_std=True)
