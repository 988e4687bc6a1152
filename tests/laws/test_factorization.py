"""One language, many models: with its loss and its constraints said, each classical model's optimum comes out."""

import numpy as np
import pytest
from scipy.special import expit, xlogy

from twofold import ALS, NMF, PCA, PLSA, Factorization, KMeans
from twofold.datasets.bundled import digits
from twofold.factors import (
    L1,
    Absolute,
    Free,
    KSparse,
    Logistic,
    NonNegative,
    OneHot,
    Orthonormal,
    Poisson,
    Ridge,
    Simplex,
    UnitNorm,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
TIGHT = {"tol": 1e-11, "max_iter": 3000, "random_state": 0}


def end(model):
    return model.history_["objective"][-1]


def parts(n=100, d=20, k=4, noise=0.2, seed=0):
    """Positive rows of k parts, and a little noise."""
    rng = np.random.default_rng(seed)
    return rng.gamma(0.5, size=(n, k)) @ rng.gamma(0.5, size=(k, d)) + noise * rng.random((n, d))


def images(n=300):
    return digits().data[:n].astype(float)


# ---- linear ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("right", [Orthonormal(), Free()], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_pca(right, weighted):
    X = images()
    w = np.random.default_rng(0).random(len(X)) if weighted else None
    model = Factorization(5, right=right, intercept=True, **TIGHT).fit(X, sample_weight=w)
    pca = PCA(5).fit(X, sample_weight=w)
    rest = X - pca.inverse_transform(pca.transform(X))
    assert end(model) == pytest.approx(0.5 * (np.ones(len(X)) if w is None else w) @ (rest**2).sum(axis=1), rel=1e-8)
    both = np.linalg.qr(model.components_.T)[0].T @ pca.components_.T
    assert np.linalg.svd(both, compute_uv=False).min() > 1 - 1e-6
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X - rest, atol=1e-3)


def test_sparse_pca_is_pca_without_a_penalty_and_sparser_with_one():
    X = images() - images().mean(axis=0)
    zeros = []
    for alpha in (0.0, 30.0, 300.0):
        model = Factorization(4, left=Ridge(1.0), right=L1(alpha), tol=1e-7, random_state=0).fit(X)
        zeros.append(np.mean(model.components_[:, X.std(axis=0) > 0] == 0))
    assert zeros[0] == 0 and zeros[0] < zeros[1] < zeros[2] < 1


# ---- parts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_nmf(seed):
    X, init = parts(seed=seed), np.random.default_rng(seed).random((4, 20))
    model = Factorization(4, left=NonNegative(), right=NonNegative(), init=init, tol=1e-9, max_iter=3000).fit(X)
    theirs = NMF(4, init=init, tol=1e-9, max_iter=3000).fit(X)
    assert end(model) == pytest.approx(0.5 * theirs.reconstruction_err_**2, rel=1e-3)


def test_nmf_meets_the_conditions_of_a_minimum():
    X = parts()
    model = Factorization(5, left=NonNegative(), right=NonNegative(), tol=1e-12, max_iter=5000, random_state=1)
    U, Z = model.fit_transform(X), model.components_
    R = U @ Z - X
    for gradient, factor in ((R @ Z.T, U), (U.T @ R, Z)):
        scale = np.abs(X).max() * factor.max()
        assert factor.min() >= 0 and gradient.min() > -1e-3 * scale
        assert np.abs(gradient * factor).max() < 1e-3 * scale * factor.max()


def log_likelihood(X, U, Z):
    """The mean log-likelihood a token of PLSA."""
    P = U @ Z
    return xlogy(X, P / P.sum(axis=1, keepdims=True)).sum() / X.sum()


@pytest.mark.parametrize("left", [NonNegative(), Simplex()], ids=repr)
def test_plsa(left):
    rng = np.random.default_rng(0)
    X = rng.poisson(60 * rng.dirichlet([0.3] * 3, size=80) @ rng.dirichlet([0.3] * 15, size=3)).astype(float)
    X, init = X[X.sum(axis=1) > 0], rng.random((3, 15)) + 0.1
    length = X.sum(axis=1)
    model = Factorization(3, loss=Poisson(), left=left, right=Simplex(), init=init, tol=1e-8, max_iter=1000)
    if isinstance(left, Simplex):  # shares of each row's words, every row as heavy as it has words
        U = model.fit(X / length[:, None], sample_weight=length).transform(X / length[:, None])
        np.testing.assert_allclose(U.sum(axis=1), 1)
    else:
        U = model.fit_transform(X)
        np.testing.assert_allclose(U.sum(axis=1), length, rtol=1e-4)  # as at any optimum of KL
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    theirs = PLSA(3, init=init, tol=1e-9, max_iter=1000).fit(X)
    assert log_likelihood(X, U, model.components_) == pytest.approx(theirs.fit_log_likelihood(X), rel=1e-4)


# ---- clusters --------------------------------------------------------------------------------------------------


def lloyd(X, centers):
    """k-means, plainly."""
    for _ in range(100):
        label = ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        centers = np.array([X[label == c].mean(axis=0) for c in range(len(centers))])
    return label, centers


@pytest.mark.parametrize("seed", range(3))
def test_k_means(seed):
    X = images()
    start = X[np.random.default_rng(seed).choice(len(X), 8, replace=False)]
    label, centers = lloyd(X, start)
    model = Factorization(8, left=OneHot(), init=start, tol=0.0).fit(X)
    codes = model.transform(X)
    np.testing.assert_array_equal(codes.argmax(axis=1), label)
    np.testing.assert_allclose(model.components_, centers, atol=1e-10)
    theirs = KMeans(8, init=start, max_iter=300).fit(X)
    np.testing.assert_array_equal(theirs.predict(X), label)
    assert end(model) == pytest.approx(0.5 * theirs.inertia_, rel=1e-10)


def test_k_medians():
    """The same with |x − m|: a center is the median of its rows, and a row has the nearest of the centers."""
    X = images(200)
    model = Factorization(4, loss=Absolute(), left=OneHot(), init=X[:4], tol=1e-8, max_iter=1000).fit(X)
    label = model.transform(X).argmax(axis=1)
    away = np.abs(X[:, None] - model.components_).sum(axis=2)
    np.testing.assert_array_equal(label, away.argmin(axis=1))
    medians = np.array([np.median(X[label == c], axis=0) for c in range(4)])
    assert end(model) == pytest.approx(np.abs(X - medians[label]).sum(), rel=1e-3)


# ---- holes and weights -----------------------------------------------------------------------------------------


def ridge_rows(X, W, Z, ridge):
    """u_i = argmin ½ Σ_j w_ij (x_ij − u_i z_j)² + ½ ridge ‖u_i‖², every row by itself."""
    H = np.einsum("ij,aj,bj->iab", W, Z, Z) + ridge * np.eye(len(Z))
    return np.linalg.solve(H, ((W * X) @ Z.T)[:, :, None])[:, :, 0]


def alternating_ridge(X, W, Z, left, right, sweeps=400):
    for _ in range(sweeps):
        U = ridge_rows(X, W, Z, left)
        Z = ridge_rows(X.T, W.T, U.T, right).T
    penalty = 0.5 * left * (U**2).sum() + 0.5 * right * (Z**2).sum()
    return 0.5 * (W * (X - U @ Z) ** 2).sum() + penalty, U @ Z


def low_rank(n=40, d=20, k=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, k)) @ rng.normal(size=(k, d)) + 0.3 * rng.normal(size=(n, d)), rng


@pytest.mark.parametrize("kind", ["holes", "weights", "both"])
def test_weighted_low_rank(kind):
    X, rng = low_rank()
    W = (rng.random(X.shape) < 0.6) * (1.0 if kind == "holes" else rng.gamma(1.0, size=X.shape))
    Z = rng.normal(size=(2, X.shape[1]))
    expected, values = alternating_ridge(X, W, Z, 0.5, 2.0)
    model = Factorization(2, left=Ridge(0.5), right=Ridge(2.0), init=Z, tol=1e-12, max_iter=2000)
    H = X if kind == "weights" else np.where(W > 0, X, np.nan)
    model.fit(H, sample_weight=None if kind == "holes" else W)
    assert end(model) == pytest.approx(expected, rel=1e-6)
    if kind == "holes":
        np.testing.assert_allclose(model.inverse_transform(model.transform(H)), values, atol=1e-3)


def test_als():
    """Whose ridge is by the number of known cells: the same for every row, and for every column, of this table."""
    X, _ = low_rank()
    here = (np.arange(40)[:, None] + np.arange(20)) % 5 < 3  # 12 cells a row, 24 a column
    H = np.where(here, X, np.nan)
    theirs = ALS(2, reg=0.05, biases=False, solver="cholesky", tol=1e-12, max_iter=3000, random_state=0).fit(H)
    left, right = Ridge(12 * theirs.reg_), Ridge(24 * theirs.reg_)
    model = Factorization(2, left=left, right=right, init=theirs.components_, tol=1e-12, max_iter=2000).fit(H)
    assert end(model) == pytest.approx(0.5 * end(theirs), rel=1e-8)
    np.testing.assert_allclose(model.complete(H), theirs.complete(H), atol=1e-4)


# ---- dictionaries ----------------------------------------------------------------------------------------------


def pursuit(x, D, s):
    chosen, f = [], np.zeros(len(D))
    for _ in range(s):
        chosen.append(int(np.abs(D @ (x - f @ D)).argmax()))
        f = np.zeros(len(D))
        f[chosen] = np.linalg.lstsq(D[chosen].T, x, rcond=None)[0]
    return f


def k_svd(X, D, s, sweeps):
    """Aharon, Elad & Bruckstein's, slowly: codes by pursuit, then atom by atom with the codes of its users."""
    D = D.copy()
    for _ in range(sweeps):
        U = np.array([pursuit(x, D, s) for x in X])
        for c in range(len(D)):
            users = np.flatnonzero(U[:, c])
            if len(users):
                rest = X[users] - U[users] @ D + np.outer(U[users, c], D[c])
                left, sizes, right = np.linalg.svd(rest, full_matrices=False)
                U[users, c], D[c] = left[:, 0] * sizes[0], right[0]
    return 0.5 * ((X - U @ D) ** 2).sum()


def test_dictionary_learning_is_as_good_as_k_svd():
    X = images(100) - images().mean(axis=0)
    ours, theirs = [], []
    for seed in range(3):
        start = X[np.random.default_rng(seed).choice(len(X), 8, replace=False)]
        start /= np.linalg.norm(start, axis=1, keepdims=True)
        theirs.append(k_svd(X, start, 2, 10))
        model = Factorization(8, left=KSparse(2), right=UnitNorm(), init=start, tol=1e-5).fit(X)
        ours.append(end(model))
        codes = model.transform(X)
        assert np.count_nonzero(codes, axis=1).max() <= 2
        np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    assert np.mean(ours) <= 1.02 * np.mean(theirs) and min(ours) <= 1.02 * min(theirs)


# ---- yes or no -------------------------------------------------------------------------------------------------


def test_logistic_pca_is_likelier_than_pca():
    X = (images() > 7).astype(float)
    X = X[:, X.std(axis=0) > 0]
    k = 5
    model = Factorization(k, loss=Logistic(), intercept=True, tol=1e-4, max_iter=100, random_state=0).fit(X)
    P = model.inverse_transform(model.transform(X))
    pca = PCA(k).fit(X)
    values = pca.inverse_transform(pca.transform(X))
    # PCA's values made probabilities as well as any two numbers can: clipped, or through the best logistic curve.
    clipped = [np.clip(values, e, 1 - e) for e in (0.001, 0.01, 0.03, 0.1)]
    curved = [expit(a * (values - b)) for a in (4, 6, 8, 10) for b in (0.4, 0.5, 0.6)]
    loglik = lambda P: float(np.mean(X * np.log(P) + (1 - X) * np.log(1 - P)))  # noqa: E731
    assert loglik(np.clip(P, 1e-12, 1 - 1e-12)) > 0.8 * max(map(loglik, clipped + curved))


def test_logistic_meets_the_conditions_of_a_minimum():
    rng = np.random.default_rng(0)
    X = (rng.random((80, 12)) < expit(rng.normal(size=(80, 2)) @ rng.normal(size=(2, 12)))).astype(float)
    model = Factorization(2, loss=Logistic(), left=Ridge(0.3), right=Ridge(0.5), intercept=True, **TIGHT)
    U, Z = model.fit_transform(X), model.components_
    R = expit(U @ Z + model.intercept_) - X
    np.testing.assert_allclose(R @ Z.T + 0.3 * U, 0, atol=2e-3)
    np.testing.assert_allclose(U.T @ R + 0.5 * Z, 0, atol=2e-3)
    np.testing.assert_allclose(R.sum(axis=0), 0, atol=2e-3)
