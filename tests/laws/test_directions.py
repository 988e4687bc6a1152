"""Laws of the linear autoencoder and of Fisher's discriminant."""

import numpy as np
import pytest
import scipy.linalg as sla
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from twofold import PCA, FisherLDA, LinearAutoencoder
from twofold.linalg import low_rank


def angle(A, B):
    return sla.subspace_angles(A.T, B.T).max()


def rows(n=300, d=8, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * [5, 4, 3, 1, 1, 0.5, 0.5, 0.5] @ sla.orth(rng.normal(size=(d, d))) + 10


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("k", [1, 3])
def test_the_autoencoder_s_subspace_is_pca_s(tied, k):
    X = rows()
    pca, net = PCA(k).fit(X), LinearAutoencoder(k, tied=tied, random_state=0, tol=1e-13).fit(X)
    assert angle(pca.components_, net.components_) < 1e-2
    assert net.principal_angle_ == pytest.approx(angle(pca.components_, net.components_), abs=1e-6)
    best = pca.inverse_transform(pca.transform(X))
    np.testing.assert_allclose(net.inverse_transform(net.transform(X)), best, atol=0.05)
    assert net.history_["objective"][-1] >= 0.5 * ((X - best) ** 2).sum(axis=1).mean() - 1e-9


@pytest.mark.parametrize("tied", [False, True])
def test_the_autoencoder_s_loss_is_half_the_squared_error(tied):
    X = rows()
    net = LinearAutoencoder(2, tied=tied, random_state=0).fit(X)
    lost = ((X - net.inverse_transform(net.transform(X))) ** 2).sum(axis=1).mean()
    assert net.history_["objective"][-1] == pytest.approx(lost / 2, rel=1e-6)
    assert net.score(X) == pytest.approx(-lost)
    np.testing.assert_allclose(net.transform(X), (X - X.mean(axis=0)) @ net.encoder_.T, atol=1e-9)
    np.testing.assert_array_equal(net.components_, net.decoder_.T)
    if tied:
        np.testing.assert_allclose(net.decoder_, net.encoder_.T)
        np.testing.assert_allclose(net.encoder_ @ net.encoder_.T, np.eye(2), atol=1e-2)


def test_the_autoencoder_says_that_its_axes_are_not_pca_s():
    X = rows()
    found = [LinearAutoencoder(3, random_state=s).fit(X).identifiability_ for s in range(5)]
    assert all(0 < f <= 1 + 1e-12 for f in found) and np.std(found) > 1e-3  # any basis of the plane will do
    assert LinearAutoencoder(1, random_state=0).fit(X).identifiability_ == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ordered_units_are_the_principal_axes(tied, seed):
    X = rows()
    pca = PCA(3).fit(X)
    net = LinearAutoencoder(3, ordered=True, tied=tied, random_state=seed, tol=1e-12, max_iter=20_000).fit(X)
    unit = net.components_ / np.linalg.norm(net.components_, axis=1, keepdims=True)
    np.testing.assert_allclose(np.abs(np.sum(unit * pca.components_, axis=1)), 1, atol=1e-3)  # in their order
    assert net.identifiability_ > 0.999
    for j in (1, 2, 3):  # the first j units alone are the best j units
        again = net.transform(X)[:, :j] @ net.components_[:j] + net.mean_
        best = low_rank(X - X.mean(axis=0), j)
        assert ((X - again) ** 2).sum() <= 1.001 * ((X - X.mean(axis=0) - best) ** 2).sum()


def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.mark.parametrize("balanced", [True, False])
def test_fisher_s_directions_are_scikit_learn_s(balanced):
    X, y = iris()
    if not balanced:
        X, y = X[20:], y[20:]
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    ours = FisherLDA().fit(X, y)
    assert ours.components_.shape == (2, 4)
    cosines = np.sum(ours.components_.T * theirs.scalings_[:, :2], axis=0)
    cosines /= np.linalg.norm(ours.components_, axis=1) * np.linalg.norm(theirs.scalings_[:, :2], axis=0)
    np.testing.assert_allclose(np.abs(cosines), 1.0, atol=1e-8)
    np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-7)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    # scikit-learn divides the scatter within classes by n, the unbiased estimate by n − classes
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=0.02)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y))


def test_classes_have_unit_spread_along_fisher_s_directions():
    X, y = iris()
    U = FisherLDA().fit(X, y).transform(X)
    within = sum((U[y == c] - U[y == c].mean(axis=0)).T @ (U[y == c] - U[y == c].mean(axis=0)) for c in set(y))
    np.testing.assert_allclose(within / (len(X) - 3), np.eye(2), atol=1e-9)


def test_no_direction_separates_more():
    X, y = iris()
    lda, rng = FisherLDA(1).fit(X, y), np.random.default_rng(0)

    def ratio(v):
        u = X @ v
        means = np.array([u[y == c].mean() for c in lda.classes_])
        spread = sum(((u[y == c] - m) ** 2).sum() for c, m in zip(lda.classes_, means, strict=True))
        return 50 * ((means - u.mean()) ** 2).sum() / spread

    best = ratio(lda.components_[0])
    for size in (1e-3, 1e-1, 1.0):
        assert ratio(lda.components_[0] + size * rng.normal(size=4)) <= best + 1e-9


def test_fisher_does_not_care_about_units_or_offsets():
    X, y = iris()
    scaled = X * [1, 10, 0.1, 3] + 1000
    np.testing.assert_allclose(
        FisherLDA().fit(X, y).predict_proba(X), FisherLDA().fit(scaled, y).predict_proba(scaled), atol=1e-6
    )


@pytest.mark.parametrize("shrinkage", [0.1, 1.0])
def test_shrinkage_is_scikit_learn_s(shrinkage):
    X, y = iris()
    theirs = LinearDiscriminantAnalysis(solver="eigen", shrinkage=shrinkage).fit(X, y)
    ours = FisherLDA(shrinkage=shrinkage).fit(X, y)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.98


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = rng.normal(size=(30, 60)) + 3 * (rng.normal(size=(3, 60))[y])
    new = rng.normal(size=(30, 60)) + 0
    model = FisherLDA(shrinkage=0.5).fit(X, y)
    assert model.score(X, y) == 1.0 and np.isfinite(model.predict_proba(new)).all()


def test_constant_columns_say_nothing():
    X, y = iris()
    wider = np.column_stack([X, np.full(150, 3.0)])
    np.testing.assert_allclose(
        FisherLDA().fit(wider, y).predict_proba(wider), FisherLDA().fit(X, y).predict_proba(X), atol=1e-7
    )
