"""Laws of principal component analysis."""

import numpy as np
import pytest
import scipy.linalg as sla
from scipy import sparse
from sklearn.decomposition import PCA as Reference

from twofold import PCA, PPCA
from twofold.core.numerics.spectrum import em_step

SOLVERS = ("covariance_eigh", "gram", "full", "power", "em", "randomized", "arpack")


def plant(n, d, rank, noise=0.1, seed=0):
    """Rows near a subspace of some rank, with variances well apart."""
    rng = np.random.default_rng(seed)
    axes = sla.orth(rng.normal(size=(d, rank)))
    return rng.normal(size=(n, rank)) * (3 + 2 * np.arange(rank)[::-1]) @ axes.T + noise * rng.normal(size=(n, d))


def angle(A, B):
    return sla.subspace_angles(A.T, B.T).max()


TABLES = {
    "tall": plant(300, 12, 4),
    "wide": plant(25, 80, 4),
    "far": plant(300, 12, 4) + 1e8,
    "far and wide": plant(25, 80, 4) + 1e8,
    "sparse": sparse.csr_array(np.where(np.random.default_rng(0).random((200, 30)) < 0.15, plant(200, 30, 4), 0.0)),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_finds_the_same_subspace_as_scikit_learn(name, solver):
    X = TABLES[name]
    if sparse.issparse(X) and solver == "full":
        pytest.skip("needs a dense table")
    dense = X.toarray() if sparse.issparse(X) else X
    expected = Reference(4, svd_solver="full").fit(dense - dense.mean(axis=0))  # centered twice: exact far away
    pca = PCA(4, svd_solver=solver, tol=1e-15, random_state=0).fit(X)
    assert pca.svd_solver_ == solver
    assert angle(pca.components_, expected.components_) < (1e-6 if "far" not in name else 1e-5)
    np.testing.assert_allclose(pca.explained_variance_, expected.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(pca.explained_variance_ratio_, expected.explained_variance_ratio_, rtol=1e-6)
    for attribute in ("singular_values_", "noise_variance_"):
        np.testing.assert_allclose(getattr(pca, attribute), getattr(expected, attribute), rtol=1e-6)
    np.testing.assert_allclose(pca.mean_, dense.mean(axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(4), atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("wide", [False, True])
def test_every_solver_weighs_rows_alike(solver, wide):
    X = plant(30, 60, 3) if wide else plant(200, 10, 3)
    w = np.random.default_rng(1).random(len(X)) + 0.1
    mean = w @ X / w.sum()
    S = ((X - mean) * w[:, None]).T @ (X - mean) / (w.sum() - 1)
    values, vectors = np.linalg.eigh(S)
    pca = PCA(3, svd_solver=solver, tol=1e-15, random_state=0).fit(X, sample_weight=w)
    np.testing.assert_allclose(pca.explained_variance_, values[::-1][:3], rtol=1e-7)
    assert angle(pca.components_, vectors[:, ::-1][:, :3].T) < 1e-6
    assert pca.total_variance_ == pytest.approx(S.trace())


@pytest.mark.parametrize("solver", SOLVERS)
def test_signs_are_fixed(solver):
    pca = PCA(3, svd_solver=solver, random_state=5).fit(TABLES["tall"])
    largest = np.argmax(np.abs(pca.components_), axis=1)
    assert np.all(pca.components_[np.arange(3), largest] > 0)
    turned = PCA(3, svd_solver=solver, random_state=6).fit(-TABLES["tall"])
    np.testing.assert_allclose(turned.components_, pca.components_, atol=1e-3)


def test_no_plane_is_nearer():
    X = TABLES["tall"]
    pca = PCA(3).fit(X)
    rest = ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum()
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1, 1.0):
        Q = np.linalg.qr((pca.components_ + size * rng.normal(size=(3, 12))).T)[0]
        c = X - X.mean(axis=0)
        assert ((c - c @ Q @ Q.T) ** 2).sum() >= rest - 1e-9


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("shape", [(120, 9), (12, 40)])
def test_the_error_is_the_sum_of_the_discarded_eigenvalues(shape, kind):
    X = plant(*shape, 3, noise=1.0)
    everything = PCA().fit(X).explained_variance_
    for k in (1, 3, min(shape) - 1):
        pca = PCA(k).fit(kind(X))
        np.testing.assert_allclose(pca.reconstruction_error(), everything[k:].sum(), rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(pca.reconstruction_error(kind(X)), everything[k:].sum(), rtol=1e-8, atol=1e-9)
        by_hand = ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum() / (len(X) - 1)
        np.testing.assert_allclose(pca.reconstruction_error(), by_hand, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(pca.history_["objective"][-1], by_hand, rtol=1e-8, atol=1e-9)
    assert PCA().fit(X).reconstruction_error() == pytest.approx(0, abs=1e-9)


def test_all_components_lose_nothing_and_keep_distances():
    X = TABLES["tall"]
    pca = PCA().fit(X)
    U = pca.transform(X)
    assert pca.n_components_ == 12
    np.testing.assert_allclose(pca.inverse_transform(U), X, atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(U[0] - U[1:], axis=1), np.linalg.norm(X[0] - X[1:], axis=1), rtol=1e-10)
    np.testing.assert_allclose(np.cov(U.T), np.diag(pca.explained_variance_), atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_whitened_codes_have_unit_covariance(solver):
    X = TABLES["tall"]
    options = {"svd_solver": solver if solver in ("full", "covariance_eigh", "arpack") else "full", "whiten": True}
    pca = PCA(4, svd_solver=solver, whiten=True, tol=1e-15, random_state=0).fit(X)
    U, V = pca.transform(X), Reference(4, **options, random_state=0).fit_transform(X)
    np.testing.assert_allclose(np.cov(U.T), np.eye(4), atol=1e-6)
    np.testing.assert_allclose(np.abs(U), np.abs(V), atol=1e-4)  # up to the signs of the axes
    plain = PCA(4).fit(X)
    np.testing.assert_allclose(pca.inverse_transform(U), plain.inverse_transform(plain.transform(X)), atol=1e-5)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("model", [PCA(3, scale=True), PPCA(3, scale=True)])
def test_scaled_is_fitted_to_standardized_columns(model, kind):
    X = plant(200, 9, 3, noise=1.0) * np.logspace(-2, 2, 9)
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    scaled = model.fit(kind(X))
    plain = type(model)(3).fit(Z)
    assert angle(scaled.components_, plain.components_) < 1e-6
    np.testing.assert_allclose(scaled.transform(kind(X)), plain.transform(Z), rtol=1e-2, atol=1e-2)
    back = scaled.inverse_transform(scaled.transform(X))
    expected = plain.inverse_transform(plain.transform(Z)) * X.std(axis=0, ddof=1) + X.mean(axis=0)
    np.testing.assert_allclose(back / X.std(axis=0), expected / X.std(axis=0), rtol=1e-2, atol=1e-2)
    # densities are those of the rows as they came: the change of units is paid for
    paid = plain.score_samples(Z) - np.log(X.std(axis=0, ddof=1)).sum()
    np.testing.assert_allclose(scaled.score_samples(X), paid, atol=0.1)


# ---- how many ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.99, 0.999999])
def test_a_share_of_the_variance_takes_as_few_as_it_can(share):
    X = plant(200, 10, 5, noise=1.0)
    pca = PCA(share).fit(X)
    every = PCA().fit(X).explained_variance_ratio_
    k = pca.n_components_
    assert every[:k].sum() >= share - 1e-12 and every[: k - 1].sum() < share
    assert k == Reference(share, svd_solver="full").fit(X).n_components_


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_rules_find_a_planted_rank(rank):
    X = plant(400, 20, rank, noise=0.5, seed=rank)
    assert PCA("mle").fit(X).n_components_ == rank == Reference("mle", svd_solver="full").fit(X).n_components_
    assert PCA("gavish-donoho").fit(X).n_components_ == rank


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_knee_and_parallel_analysis_find_a_rank_of_equal_strength(rank):
    rng = np.random.default_rng(rank)
    axes = sla.orth(rng.normal(size=(20, rank)))
    X = 4 * rng.normal(size=(400, rank)) @ axes.T + 0.5 * rng.normal(size=(400, 20))
    assert PCA("knee").fit(X).n_components_ == rank
    assert PCA("parallel", random_state=0).fit(X).n_components_ == rank


@pytest.mark.parametrize("seed", range(4))
def test_mle_is_minka_s_as_scikit_learn_has_it(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 8)) * np.linspace(3, 1, 8) ** seed
    assert PCA("mle").fit(X).n_components_ == Reference("mle", svd_solver="full").fit(X).n_components_


def test_parallel_analysis_of_noise_finds_next_to_nothing():
    X = np.random.default_rng(0).normal(size=(500, 15)) * np.linspace(1, 5, 15)
    assert PCA("parallel", random_state=0).fit(X).n_components_ <= 2


def test_rules_work_for_wide_tables():
    rng = np.random.default_rng(0)
    X = 4 * rng.normal(size=(60, 3)) @ sla.orth(rng.normal(size=(200, 3))).T + 0.2 * rng.normal(size=(60, 200))
    for rule in ("gavish-donoho", "parallel", "knee"):
        assert PCA(rule, random_state=0).fit(X).n_components_ == 3, rule


# ---- batches -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_batches_give_what_one_fit_gives(offset):
    X = plant(300, 8, 3) + offset
    w = np.random.default_rng(0).random(300)
    whole = PCA(3).fit(X, sample_weight=w)
    pca = PCA(3)
    for part in np.array_split(np.arange(300), [1, 40, 41, 200]):
        pca.partial_fit(X[part], sample_weight=w[part])
    for name in ("components_", "explained_variance_", "mean_", "total_variance_", "noise_variance_"):
        np.testing.assert_allclose(getattr(pca, name), getattr(whole, name), rtol=1e-6, atol=1e-8, err_msg=name)
    assert pca.n_iter_ == 5 == len(pca.history_["objective"]) == len(pca.history_["seconds"])


def test_sparse_batches_and_rules():
    X = plant(400, 20, 3, noise=0.5)
    pca = PCA("mle")
    for part in np.array_split(X, 4):
        pca.partial_fit(sparse.csr_array(part))
    assert pca.n_components_ == 3


def test_batches_are_checked():
    pca = PCA(3).partial_fit(plant(50, 8, 3))
    before = pca.components_.copy()
    with pytest.raises(ValueError, match="7 features"):
        pca.partial_fit(plant(50, 7, 3))
    bad = plant(50, 8, 3)
    bad[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"X\[2, 1\] is nan"):
        pca.partial_fit(bad)
    assert np.array_equal(pca.components_, before)
    more = pca.partial_fit(plant(50, 8, 3, seed=1))  # a refused batch leaves no trace
    both = PCA(3).fit(np.vstack([plant(50, 8, 3), plant(50, 8, 3, seed=1)]))
    np.testing.assert_allclose(more.explained_variance_, both.explained_variance_, rtol=1e-9)
    with pytest.raises(ValueError, match="n_components=9"):
        PCA(9).partial_fit(plant(50, 8, 3))


# ---- kin ---------------------------------------------------------------------------------------------------------


def test_holes_are_filled_in_by_ppca():
    rng = np.random.default_rng(0)
    X = plant(300, 10, 3)
    holes = rng.random(X.shape) < 0.2
    H = np.where(holes, np.nan, X)
    pca = PCA(3, random_state=0).fit(H)
    assert pca.svd_solver_ == "ppca"
    assert angle(pca.components_, PPCA(3, random_state=0).fit(H).components_) < 1e-3
    assert angle(pca.components_, PCA(3).fit(X).components_) < 0.02
    # a row with holes gets the codes that fit its observed cells best
    some = H[:20]
    for x, u in zip(some, pca.transform(some), strict=True):
        seen = ~np.isnan(x)
        best = np.linalg.lstsq(pca.components_[:, seen].T, (x - pca.mean_)[seen], rcond=None)[0]
        np.testing.assert_allclose(u, best, rtol=1e-3, atol=1e-3)


def test_sparse_is_never_made_dense(monkeypatch):
    X = sparse.random_array((3000, 200), density=0.02, rng=np.random.default_rng(0), format="csr")

    def dense(self, *args, **kwargs):
        raise AssertionError("a sparse table was made dense")

    monkeypatch.setattr(sparse.csr_array, "toarray", dense)
    monkeypatch.setattr(sparse.csr_array, "todense", dense)
    for solver in ("auto", "covariance_eigh", "randomized", "arpack"):
        pca = PCA(3, svd_solver=solver, tol=1e-4, random_state=0).fit(X)
        pca.transform(X), pca.reconstruction_error(X)


def test_a_step_of_em_is_a_regression_on_projections():
    """Roweis 1998: codes are least squares of the rows on W, then W is least squares of the rows on the codes."""
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(50, 6)), rng.normal(size=(6, 2))
    codes = np.linalg.lstsq(W, X.T)[0].T
    np.testing.assert_allclose(em_step(X.T @ X, W), np.linalg.lstsq(codes, X)[0].T, atol=1e-10)
