"""K-SVD finds the atoms that signals were made of, and never gets worse."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import DictionaryLearning

from twofold import KSVD, InputError, datasets
from twofold.signals.dictionaries import ksvd

pytestmark = pytest.mark.filterwarnings("ignore:KSVD did not converge")


def plant(n=1500, k=30, d=20, s=3, seed=0):
    rng = np.random.default_rng(seed)
    D = rng.normal(size=(k, d))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    U = np.zeros((n, k))
    for row in U:
        row[rng.choice(k, s, replace=False)] = rng.normal(size=s)
    return U @ D, D


def count_found(model, D):
    """The share of planted atoms that were found."""
    likeness = np.abs(model.components_ @ D.T)
    rows, columns = linear_sum_assignment(-likeness)
    return (likeness[rows, columns] > 0.97).mean()


@pytest.mark.parametrize("solver", ["approximate", "exact"])
def test_planted_atoms_are_found(solver):
    X, D = plant()
    model = KSVD(30, n_nonzero=3, solver=solver, max_iter=80, tol=0, random_state=0).fit(X)
    assert count_found(model, D) > 0.8
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    assert ((model.transform(X) != 0).sum(axis=1) <= 3).all()


@pytest.mark.parametrize("solver", ["approximate", "exact"])
@pytest.mark.parametrize("init", ["samples", "noise", "dct"])
def test_the_error_never_rises(solver, init):
    X = np.random.default_rng(0).normal(size=(200, 16))
    history = KSVD(24, n_nonzero=3, solver=solver, init=init, tol=0, max_iter=15, random_state=0).fit(X).history_
    assert (np.diff(history["objective"]) <= 1e-9).all()


def test_more_sweeps_follow_when_fresh_codes_raise_the_error(monkeypatch):
    calls, encode = [], ksvd.encode
    monkeypatch.setattr(ksvd, "encode", lambda *args: calls.append(1) or encode(*args))
    X, start = np.random.default_rng(0).normal(size=(60, 16)), np.random.default_rng(1).normal(size=(24, 16))
    model = KSVD(24, n_nonzero=5, init=start, tol=0, max_iter=30).fit(X)
    assert len(calls) > model.n_iter_ and (np.diff(model.history_["objective"]) <= 1e-9).all()


def test_the_atoms_serve_the_pursuit_that_uses_them():
    """Pursuit over the atoms finds codes about as good as those that the atoms were learned with."""
    X = np.random.default_rng(0).normal(size=(150, 16))
    for seed in range(3):
        model = KSVD(30, n_nonzero=4, random_state=seed).fit(X)
        assert -len(X) * model.score(X) < 1.1 * model.history_["objective"][-1]


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_weights_are_repeated_rows(share):
    X, _ = plant(n=200)
    X = np.where(np.random.default_rng(2).random(X.shape) < share, np.nan, X)
    w, start = np.random.default_rng(1).integers(0, 4, len(X)), np.random.default_rng(0).normal(size=(30, 20))
    model = KSVD(30, n_nonzero=3, init=start, max_iter=3, tol=0)
    heavy = model.fit(X, sample_weight=w).components_
    np.testing.assert_allclose(heavy, model.fit(np.repeat(X, w, axis=0)).components_, atol=1e-8)


def test_atoms_that_nobody_uses_become_badly_coded_signals():
    X, D = plant(n=400, k=12, d=12, s=1)
    start = np.vstack([D[:11], -D[:1]])  # the twelfth is missing, and the first is there twice
    model = KSVD(12, n_nonzero=1, init=start, tol=0, max_iter=5).fit(X)
    assert count_found(model, D) == 1.0 and model.history_["objective"][-1] < 1e-12


def test_of_two_twins_one_is_freed_for_what_nobody_codes():
    rng = np.random.default_rng(0)
    X = np.zeros((220, 3))
    X[:200, 0], X[:200, 1] = rng.uniform(1, 2, 200), rng.uniform(-0.05, 0.05, 200)  # two near atoms could share these
    X[200:, 2] = 0.5
    start = np.array([[1.0, 0.03, 0.0], [1.0, -0.03, 0.0]])
    atoms = KSVD(2, n_nonzero=1, init=start, tol=0, max_iter=5).fit(X).components_
    assert np.abs(atoms[:, 2]).max() > 0.999 and np.abs(atoms[:, 0]).max() > 0.999


def test_holes_do_not_hide_the_atoms():
    X, D = plant(n=2500)
    holes = np.random.default_rng(1).random(X.shape) < 0.2
    model = KSVD(30, n_nonzero=3, max_iter=60, tol=0, random_state=0).fit(np.where(holes, np.nan, X))
    assert count_found(model, D) > 0.7
    filled = model.inverse_transform(model.transform(np.where(holes, np.nan, X)))
    assert np.abs(filled - X)[holes].mean() < 0.5 * np.abs(X)[holes].mean()


def test_an_error_is_met_with_few_atoms():
    X, _ = plant()
    model = KSVD(30, error=0.1, random_state=0).fit(X)
    assert (np.linalg.norm(X - model.inverse_transform(model.transform(X)), axis=1) <= 0.1 + 1e-9).all()
    assert (np.diff(model.history_["objective"])[:3] < 0).all()  # ever fewer atoms


def test_it_codes_about_as_well_as_the_peer_at_equal_sparsity():
    X = datasets.digits().data[:200] / 16
    X = X - X.mean(axis=1, keepdims=True)
    ours = KSVD(24, n_nonzero=3, max_iter=20, random_state=0).fit(X)
    peer = DictionaryLearning(
        24, alpha=0.5, max_iter=5, transform_algorithm="omp", transform_n_nonzero_coefs=3, random_state=0
    ).fit(X)
    theirs = X - peer.transform(X) @ peer.components_
    assert ours.history_["objective"][-1] <= 1.05 * 0.5 * (theirs**2).sum()


def test_edges():
    X = np.random.default_rng(0).normal(size=(10, 6))
    more_atoms_than_signals = KSVD(15, n_nonzero=2, random_state=0).fit(X)
    assert more_atoms_than_signals.components_.shape == (15, 6)
    nothing = KSVD(3, n_nonzero=2, random_state=0).fit(np.zeros((5, 4)))
    assert np.isfinite(nothing.components_).all() and not nothing.transform(np.zeros((5, 4))).any()
    twice = KSVD(4, n_nonzero=1, init=np.repeat(X[:2], 2, axis=0), random_state=0).fit(X)
    likeness = np.abs(twice.components_ @ twice.components_.T) - np.eye(4)
    assert likeness.max() < 0.999  # twins were parted
    with pytest.raises(InputError, match="init must be"):
        KSVD(4, init=np.ones((3, 3))).fit(X)
