"""Laws of GloVe: its objective, its strata, and the two weightings that have other solutions."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import twofold
from twofold import ALS, Cooccurrence, GloVe, linalg
from twofold.core.engine.strata import groups, strata
from twofold.words.glove import _steps

both = pytest.mark.parametrize("biases", [False, True], ids=["factors", "biases"])


def corpus(lines=400, words=60, seed=0):
    """Lines that each keep to a topic, from a vocabulary with frequent and rare words."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(20 / (1 + np.arange(words)), size=4)
    return [[f"w{j}" for j in rng.choice(words, size=12, p=topics[rng.integers(4)])] for _ in range(lines)]


@pytest.fixture(scope="module")
def pairs():
    return Cooccurrence(window=5, min_count=1).fit(corpus())


@pytest.fixture
def many_steps(monkeypatch):
    monkeypatch.setattr(_steps, "MIN_TILE_PAIRS", 64)
    monkeypatch.setattr(_steps, "MAX_TILE_BYTES", 1024)
    monkeypatch.setattr(_steps, "MIN_GROUPS", 4)


def gaps(model, goal):
    return model.row_factors_ @ model.components_ + model.row_bias_[:, None] + model.column_bias_ - goal


def cost(model, counts, x_max, alpha):
    """The formula, term by term."""
    n = counts.toarray()
    f = np.minimum(1, (n / x_max) ** alpha) * (n > 0)
    return 0.5 * (f * gaps(model, np.log(np.where(n > 0, n, 1))) ** 2).sum() / (n > 0).sum()


def bits(model):
    arrays = (model.row_factors_, model.components_, model.row_bias_, model.column_bias_)
    return [a.tobytes() for a in arrays], model.history_["objective"]


# ---- strata ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 7])
def test_groups_are_even_in_lines_and_in_cells(count):
    cells = np.random.default_rng(0).zipf(1.5, 3000).clip(max=2000)
    group = groups(cells, count, np.random.default_rng(1))
    lines, sums = np.bincount(group, minlength=count), np.bincount(group, cells, minlength=count)
    assert lines.max() - lines.min() <= 1 and sums.max() - sums.min() <= cells.max()


@pytest.mark.parametrize("count", [1, 2, 7])
def test_strata_visit_every_tile_once_and_share_no_group(count):
    visited = strata(count, np.random.default_rng(0))
    for side in (0, 1):
        assert np.array_equal(np.sort(visited[:, :, side], axis=1), np.tile(np.arange(count), (count, 1)))
    assert len(np.unique(visited.reshape(-1, 2), axis=0)) == count**2


@pytest.mark.usefixtures("many_steps")
def test_every_pair_is_dealt_once_with_its_logarithm(pairs):
    from twofold.core.data.blocks import as_blocks

    found = _steps.make_tiling(as_blocks(pairs.counts_), 5, np.random.default_rng(0))
    n = np.zeros(pairs.counts_.shape)
    for tile in range(25):
        cells, (r, c) = found.tiles.read(tile), divmod(tile, 5)
        rows = found.rows.order[found.rows.bounds[r] + cells["row"]]
        n[rows, found.cols.order[found.cols.bounds[c] + cells["col"]]] += np.exp(cells["log"])
    np.testing.assert_allclose(n, pairs.counts_.toarray(), rtol=1e-5)


# ---- the objective ---------------------------------------------------------------------------------------------


@both
@pytest.mark.usefixtures("many_steps")
@pytest.mark.parametrize(("x_max", "alpha"), [(100.0, 0.75), (3.0, 0.5), (3.0, 0.0)])
def test_the_objective_is_the_formula(pairs, biases, x_max, alpha):
    """With steps of nothing every pair is met by the vectors as they are in the end."""
    options = {"x_max": x_max, "alpha": alpha, "biases": biases, "max_iter": 1, "random_state": 0}
    model = GloVe(4, learning_rate=1e-12, **options).fit(pairs)
    np.testing.assert_allclose(model.history_["objective"][0], cost(model, pairs.counts_, x_max, alpha), rtol=1e-5)


@pytest.mark.usefixtures("many_steps")
def test_epochs_bring_the_cost_down(pairs):
    model = GloVe(4, x_max=10, max_iter=12, random_state=0).fit(pairs)
    met = np.array(model.history_["objective"])
    assert np.all(np.diff(met) < 0) and cost(model, pairs.counts_, 10, 0.75) < met[-1]
    assert model.n_iter_ == 12 and model.converged_


def test_planted_products_are_found():
    rng, V, k = np.random.default_rng(0), 60, 2
    u, z, b, c = rng.normal(size=(V, k)), rng.normal(size=(V, k)), rng.normal(size=(V, 1)), rng.normal(size=V)
    given = Cooccurrence(vocabulary=[f"w{i}" for i in range(V)]).fit([["w0", "w1"]])
    given.counts_ = sparse.csr_array(np.exp(u @ z.T + b + c).astype(np.float32))
    model = GloVe(k, x_max=1e-9, learning_rate=0.1, max_iter=300, random_state=0).fit(given)
    assert np.std(gaps(model, np.log(given.counts_.toarray()))) < 0.1 * np.std(np.log(given.counts_.toarray()))


@pytest.mark.usefixtures("many_steps")
def test_pairs_of_equal_weight_come_down_to_where_least_squares_does(pairs):
    """With alpha = 0 the steps solve what weighting="observed" solves, but for its ridge."""
    best = GloVe(2, weighting="observed", reg=1e-6, tol=1e-6, max_iter=300, random_state=0).fit(pairs)
    here = GloVe(2, alpha=0, learning_rate=0.1, max_iter=100, random_state=0).fit(pairs)
    least = cost(best, pairs.counts_, 1, 0)
    assert least <= cost(here, pairs.counts_, 1, 0) < 1.02 * least


# ---- the same bits ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("many_steps")
@pytest.mark.parametrize("weighting", ["power", "all", "observed"])
def test_threads_do_not_show(pairs, weighting):
    found = []
    for threads in (1, 2, 3):
        with twofold.config(threads=threads):
            found.append(bits(GloVe(4, weighting=weighting, max_iter=3, random_state=0).fit(pairs)))
    assert found[0] == found[1] == found[2]


@pytest.mark.usefixtures("many_steps")
def test_it_does_not_matter_where_pairs_and_steps_lie(tmp_path, monkeypatch, pairs):
    wanted = bits(GloVe(4, max_iter=2, random_state=0).fit(pairs))
    stored = Cooccurrence(window=5, min_count=1).fit(corpus(), to=tmp_path / "pairs.csr")
    assert bits(GloVe(4, max_iter=2, random_state=0).fit(stored)) == wanted
    monkeypatch.setattr(_steps, "PAIRS_PER_BLOCK", 200)  # many blocks, each with a share of every tile
    assert bits(GloVe(4, max_iter=2, random_state=0).fit(stored)) == wanted
    files, make = [], _steps.tempfile.TemporaryFile
    monkeypatch.setattr(
        _steps, "tempfile", SimpleNamespace(TemporaryFile=lambda **o: files.append(make(**o)) or files[-1])
    )
    monkeypatch.setattr(_steps, "config", lambda: SimpleNamespace(memory=100))
    assert bits(GloVe(4, max_iter=2, random_state=0).fit(stored)) == wanted
    assert len(files) == 1 and files[0].closed


def test_the_order_differs_from_epoch_to_epoch(pairs, monkeypatch):
    seen, keep = [], _steps.shuffle_cells
    monkeypatch.setattr(_steps, "shuffle_cells", lambda cells, seed: seen.append(keep(cells, seed)) or seen[-1])
    GloVe(2, max_iter=2, random_state=0).fit(pairs)
    assert len(seen) == 2 and len(seen[0]) == len(seen[1]) and not np.array_equal(seen[0], seen[1])


# ---- weights that have another solution ------------------------------------------------------------------------


def test_every_cell_alike_without_biases_is_a_singular_value_decomposition(pairs):
    M = np.log1p(pairs.counts_.toarray().astype(float))
    model = GloVe(5, weighting="all", biases=False, random_state=0).fit(pairs)
    np.testing.assert_allclose(model.row_factors_ @ model.components_, linalg.low_rank(M, 5), atol=1e-4)
    s = np.linalg.svd(M, compute_uv=False)
    np.testing.assert_allclose(model.history_["objective"][0], 0.5 * (s[5:] ** 2).sum() / M.size, rtol=1e-4)


def test_every_cell_alike_with_biases_is_one_of_what_the_means_leave(pairs):
    M = np.log1p(pairs.counts_.toarray().astype(float))
    model = GloVe(5, weighting="all", random_state=0).fit(pairs)
    left = gaps(model, M)
    inner = M - M.mean(axis=0) - M.mean(axis=1, keepdims=True) + M.mean()
    np.testing.assert_allclose(model.row_factors_ @ model.components_, linalg.low_rank(inner, 5), atol=1e-4)
    np.testing.assert_allclose(left.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(left.mean(axis=1), 0, atol=1e-5)
    np.testing.assert_allclose(model.history_["objective"][0], 0.5 * (left**2).mean(), rtol=1e-4)


@both
@pytest.mark.parametrize("k", [3, 14], ids=["cholesky", "cg"])
def test_every_pair_alike_is_completion_of_the_logarithms(pairs, biases, k):
    n = pairs.counts_
    logs = sparse.csr_array((np.log(n.data), n.indices, n.indptr), shape=n.shape)
    options = {"reg": 0.05, "biases": biases, "tol": 1e-3, "max_iter": 200, "random_state": 0}
    here, there = GloVe(k, weighting="observed", **options).fit(pairs), ALS(k, **options).fit(logs)
    assert np.array_equal(here.row_factors_, there.row_factors_) and np.array_equal(here.components_, there.components_)
    i, j = np.indices(n.shape).reshape(2, -1)
    np.testing.assert_allclose(gaps(here, 0).ravel(), there.predict(i, j), rtol=1e-4, atol=1e-4)
    ratio = np.array(here.history_["objective"]) / np.array(there.history_["objective"])
    np.testing.assert_allclose(ratio, 0.5 / n.nnz)
