"""A dictionary learned from mini-batches finds what K-SVD finds, and goes on with streams."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import make_sparse_coded_signal

from twofold import KSVD, InputError, OnlineDictionary, SparseCoder
from twofold.core.data.blocks import as_blocks
from twofold.signals.dictionaries.online_dictionary import MiniBatches, half_step, merge, take_step
from twofold.signals.sparse_coding.pursuits import prepare_coding

pytestmark = pytest.mark.filterwarnings("ignore:.* did not converge")


def plant(n=4000, k=30, d=20, s=3):
    """Signals of s atoms each, and the atoms."""
    X, D, _ = make_sparse_coded_signal(n, n_components=k, n_features=d, n_nonzero_coefs=s, random_state=0)
    return X, D


def count_found(D, plant):
    likeness = np.abs(D @ plant.T)
    rows, columns = linear_sum_assignment(-likeness)
    return (likeness[rows, columns] > 0.97).mean()


def test_planted_atoms_are_found():
    X, D = plant()
    model = OnlineDictionary(30, n_nonzero=3, max_iter=20, tol=0, random_state=0).fit(X)
    assert count_found(model.components_, D) > 0.7
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    assert model.history_["objective"][-1] < 0.3 * model.history_["objective"][0]


def test_it_codes_new_signals_as_well_as_ksvd():
    X, _ = plant()
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


def test_weights_are_repeated_rows():
    X, _ = plant(n=400)
    w, start = np.random.default_rng(1).integers(0, 4, 400), np.random.default_rng(0).normal(size=(30, 20))
    model = OnlineDictionary(30, n_nonzero=3, init=start, max_iter=3, tol=0, batch_size=2000)
    heavy = model.fit(X, sample_weight=w).components_
    np.testing.assert_allclose(heavy, model.fit(np.repeat(X, w, axis=0)).components_, atol=1e-8)


def test_lost_atoms_are_replaced():
    X, D = plant(n=3000, k=12, d=12, s=1)
    start = np.vstack([D[:11], np.roll(D[:1], 5)])
    start[11] = 0  # nobody can use it
    model = OnlineDictionary(12, n_nonzero=1, init=start, tol=0, max_iter=8, random_state=0).fit(X)
    assert count_found(model.components_, D) == 1.0


def test_an_error_is_met_with_ever_fewer_atoms():
    X, _ = plant()
    model = OnlineDictionary(30, error=0.5, max_iter=8, tol=0, random_state=0).fit(X)
    assert (np.linalg.norm(X - model.inverse_transform(model.transform(X)), axis=1) <= 0.5 + 1e-9).all()
    assert model.history_["objective"][-1] < 0.8 * model.history_["objective"][0]


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


def test_refusals():
    X, _ = plant(n=50)
    with pytest.raises(InputError, match="init must be"):
        OnlineDictionary(4, init=np.ones((3, 3))).fit(X)
    model = OnlineDictionary(4, random_state=0).partial_fit(X)
    X[7, 3] = np.nan
    before = model.components_.copy()
    with pytest.raises(InputError, match=r"X\[7, 3\] is nan"):
        model.partial_fit(X)
    assert np.array_equal(model.components_, before)
