"""KSVD and OnlineDictionary find the atoms that signals were made of; K-SVD never gets worse, streams go on."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import make_sparse_coded_signal
from sklearn.decomposition import DictionaryLearning

from twofold import KSVD, InputError, OnlineDictionary, SparseCoder, datasets
from twofold.core.data.blocks import as_blocks
from twofold.signals import ksvd
from twofold.signals.online_dictionary import MiniBatches, half_step, merge, take_step
from twofold.signals.pursuits import prepare_coding

pytestmark = pytest.mark.filterwarnings("ignore:.* did not converge")
MODELS = [KSVD, OnlineDictionary]


def plant(n=2500, k=30, d=20, s=3):
    """Signals of s atoms each, and the atoms."""
    X, D, _ = make_sparse_coded_signal(n, n_components=k, n_features=d, n_nonzero_coefs=s, random_state=0)
    return X, D


def count_found(D, planted):
    """The share of planted atoms that were found."""
    likeness = np.abs(D @ planted.T)
    rows, columns = linear_sum_assignment(-likeness)
    return (likeness[rows, columns] > 0.97).mean()


@pytest.mark.parametrize(
    "model",
    [
        KSVD(30, n_nonzero=3, max_iter=60, tol=0, random_state=0),
        KSVD(30, n_nonzero=3, solver="exact", max_iter=60, tol=0, random_state=0),
        OnlineDictionary(30, n_nonzero=3, max_iter=30, tol=0, random_state=0),
    ],
)
def test_planted_atoms_are_found(model):
    X, D = plant()
    model.fit(X)
    assert count_found(model.components_, D) > 0.7
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    assert ((model.transform(X) != 0).sum(axis=1) <= 3).all()
    assert model.history_["objective"][-1] < 0.3 * model.history_["objective"][0]


@pytest.mark.parametrize("Model, share", [(KSVD, 0.0), (KSVD, 0.2), (OnlineDictionary, 0.0)])
def test_weights_are_repeated_rows(Model, share):
    X, _ = plant(n=400)
    X = np.where(np.random.default_rng(2).random(X.shape) < share, np.nan, X)
    w, start = np.random.default_rng(1).integers(0, 4, len(X)), np.random.default_rng(0).normal(size=(30, 20))
    one_batch = {"batch_size": 2000} if Model is OnlineDictionary else {}
    model = Model(30, n_nonzero=3, init=start, max_iter=3, tol=0, **one_batch)
    heavy = model.fit(X, sample_weight=w).components_
    np.testing.assert_allclose(heavy, model.fit(np.repeat(X, w, axis=0)).components_, atol=1e-8)


@pytest.mark.parametrize("Model", MODELS)
def test_an_error_is_met_with_ever_fewer_atoms(Model):
    X, _ = plant()
    model = Model(30, error=0.3, max_iter=8, tol=0, random_state=0).fit(X)
    assert (np.linalg.norm(X - model.inverse_transform(model.transform(X)), axis=1) <= 0.3 + 1e-9).all()
    objective = model.history_["objective"]
    assert objective[-1] < 0.8 * objective[0] and (np.diff(objective)[:3] < 0).all()


@pytest.mark.parametrize("Model", MODELS)
def test_unused_atoms_become_badly_coded_signals(Model):
    X, D = plant(n=3000, k=12, d=12, s=1)
    start = np.vstack([D[:11], -D[:1]])  # the twelfth is missing, and the first is there twice
    if Model is OnlineDictionary:
        start[11] = 0  # no signal can use it
    model = Model(12, n_nonzero=1, init=start, tol=0, max_iter=8, random_state=0).fit(X)
    assert count_found(model.components_, D) == 1.0 and model.history_["objective"][-1] < 1e-12


@pytest.mark.parametrize("Model", MODELS)
def test_atoms_to_begin_with_have_the_shape_of_the_model(Model):
    with pytest.raises(InputError, match="init must be"):
        Model(4, init=np.ones((3, 3))).fit(plant(n=50)[0])


# --- K-SVD --------------------------------------------------------------------------------------------------


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
    assert count_found(model.components_, D) > 0.7
    filled = model.inverse_transform(model.transform(np.where(holes, np.nan, X)))
    assert np.abs(filled - X)[holes].mean() < 0.5 * np.abs(X)[holes].mean()


@pytest.mark.soak
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


# --- mini-batches -------------------------------------------------------------------------------------------


def test_it_codes_new_signals_as_well_as_ksvd():
    X, _ = plant(n=4000)
    X += 0.05 * np.random.default_rng(1).normal(size=X.shape)
    online, whole = (
        M(40, n_nonzero=3, max_iter=10, tol=0, random_state=0).fit(X[:3000]) for M in (OnlineDictionary, KSVD)
    )
    assert online.score(X[3000:]) > 1.05 * whole.score(X[3000:])  # scores are negative


def test_a_stream_learns():
    X, D = plant(n=12000)
    model = OnlineDictionary(30, n_nonzero=3, batch_size=100, random_state=0)
    for part in np.array_split(X, 40):
        model.partial_fit(part)
    assert model.n_iter_ == 40 == len(model.history_["objective"]) and model.n_batches_ == 120
    assert count_found(model.components_, D) > 0.7
    before = model.components_.copy()
    model.partial_fit(X[:100])
    assert 0 < np.abs(model.components_ - before).max() < 0.1  # what it has seen still counts


def test_one_batch_remembers_nothing_but_itself():
    """The sums of a sweep are those of its codes, and its atoms are no worse for them than those before."""
    X, _ = plant(n=300)
    model = OnlineDictionary(30, n_nonzero=3, max_iter=1, batch_size=300, random_state=0).fit(X)
    again = OnlineDictionary(30, n_nonzero=3, max_iter=2, tol=0, batch_size=300, random_state=0).fit(X)
    D = model.components_
    U = SparseCoder(D, transform_n_nonzero_coefs=3).fit().transform(X)
    before = 0.5 * ((X - U @ D) ** 2).sum()
    np.testing.assert_allclose(again.history_["objective"][1], before / 300)
    D, UU, UX = again.components_, again.code_sums_, again.signal_sums_
    after = 0.5 * ((X**2).sum() - 2 * np.vdot(UX, D) + np.vdot(UU, D @ D.T))
    assert after < before


def test_steps_of_a_batch_do_not_depend_on_its_pieces():
    X, _ = plant(n=700)
    model = OnlineDictionary(30, n_nonzero=3, random_state=0)
    start = model._start(as_blocks(X), None, 0)
    shared = prepare_coding(start.D, np.float64, 3, None)
    whole, parts = half_step(X, None, shared), [half_step(x, None, shared) for x in np.array_split(X, 5)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merge(merged, part)
    for a, b in zip(take_step(start, whole, 1.0), take_step(start, merged, 1.0), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)
    np.testing.assert_allclose(whole.worst, merged.worst)


@pytest.mark.parametrize("size, d", [(1, 8), (50, 8), (64, 8), (150, 8), (10**6, 8), (3, 600)])
def test_batches_are_a_partition(size, d, small_blocks):
    X = np.arange(700.0 * d).reshape(700, d)
    batches = MiniBatches(as_blocks(X), np.arange(700.0), size)
    seen, weights, count = [], [], 0
    for blocks, w in batches.iterate_shuffled(np.random.default_rng(0)):
        seen += [blocks[i] for i in range(len(blocks))]
        weights += list(w)
        count += 1
    rows = np.concatenate(seen)[:, 0] / d
    assert count == len(batches) and np.array_equal(np.sort(rows), np.arange(700))
    assert np.array_equal(rows, np.concatenate(weights))


def test_a_refused_part_changes_nothing():
    X, _ = plant(n=50)
    model = OnlineDictionary(4, random_state=0).partial_fit(X)
    X[7, 3] = np.nan
    before = model.components_.copy()
    with pytest.raises(InputError, match=r"X\[7, 3\] is nan"):
        model.partial_fit(X)
    assert np.array_equal(model.components_, before)
