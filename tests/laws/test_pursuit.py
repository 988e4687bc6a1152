"""Pursuits: what they promise, and where they fail."""

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import orthogonal_mp

import twofold
from twofold import InputError
from twofold.signals import (
    DCT,
    Gabor,
    Haar,
    Shifted,
    Union,
    babel,
    basis_pursuit,
    certify_recovery,
    coherence,
    matching_pursuit,
    null_space_constant,
    orthogonal_matching_pursuit,
    recovery_bound,
    rip_constant,
    rip_estimate,
    sparsest_code,
)


def dictionary(k=60, d=30, seed=0):
    D = np.random.default_rng(seed).normal(size=(k, d))
    return D / np.linalg.norm(D, axis=1, keepdims=True)


def plainly(D, x, max_atoms, tol=0.0):
    """Orthogonal matching pursuit as it is defined."""
    chosen, residual, c = [], x, np.zeros(0)
    while len(chosen) < max_atoms and np.linalg.norm(residual) > tol:
        chosen.append(int(np.argmax(np.abs(D @ residual))))
        c = np.linalg.lstsq(D[chosen].T, x, rcond=None)[0]
        residual = x - c @ D[chosen]
    codes = np.zeros(len(D))
    codes[chosen] = c
    return codes


@pytest.mark.parametrize("max_atoms", [1, 4, 12])
def test_many_signals_at_once_are_coded_as_one_by_one(max_atoms):
    D, X = dictionary(), np.random.default_rng(1).normal(size=(40, 30))
    found = orthogonal_matching_pursuit(D, X, n_nonzero=max_atoms)
    np.testing.assert_allclose(found.toarray(), [plainly(D, x, max_atoms) for x in X], atol=1e-9)
    np.testing.assert_allclose(found.toarray(), orthogonal_mp(D.T, X.T, n_nonzero_coefs=max_atoms).T, atol=1e-8)


def test_it_stops_at_the_error_asked_for():
    D, X = dictionary(), np.random.default_rng(1).normal(size=(40, 30))
    found = orthogonal_matching_pursuit(D, X, error=1.5)
    np.testing.assert_allclose(found.toarray(), [plainly(D, x, 30, 1.5) for x in X], atol=1e-9)
    assert (np.linalg.norm(X - found @ D, axis=1) <= 1.5).all()


def test_atoms_of_any_length():
    D, X = dictionary(), np.random.default_rng(1).normal(size=(5, 30))
    lengths = np.random.default_rng(2).uniform(0.01, 100, size=(60, 1))
    ours, theirs = (orthogonal_matching_pursuit(A, X, n_nonzero=5) @ A for A in (D * lengths, D))
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_odd_signals(dtype):
    D = dictionary().astype(dtype)
    X = np.zeros((3, 30), dtype)
    X[1] = D[7]
    found = orthogonal_matching_pursuit(D, X, n_nonzero=3)
    assert sparse.issparse(found) and found.dtype == dtype
    assert found[[0]].nnz == 0  # nothing to code
    np.testing.assert_allclose(found.toarray()[1], np.eye(60)[7], atol=1e-5)
    twins = np.vstack([D, D, np.zeros((2, 30), dtype)])
    again = orthogonal_matching_pursuit(twins, X[1] + D[9], n_nonzero=10)
    assert np.isfinite(again).all()
    np.testing.assert_allclose(again @ twins, X[1] + D[9], atol=1e-5)


def test_threads_do_not_matter():
    D, X = dictionary(), np.random.default_rng(1).normal(size=(30_000, 30))
    found = []
    for threads in (1, 2):
        with twofold.config(threads=threads):
            found.append(orthogonal_matching_pursuit(D, X, n_nonzero=4))
    assert (found[0] != found[1]).nnz == 0


def test_missing_numbers_are_not_looked_at():
    rng = np.random.default_rng(0)
    D, codes = dictionary(), sparse.random_array((30, 60), density=0.03, rng=rng).toarray()
    X = codes @ D
    mask = rng.random(X.shape) < 0.3
    mask[:10] = mask[0]
    spoiled = np.where(mask, 1e6, X)
    found = orthogonal_matching_pursuit(D, spoiled, error=1e-8, mask=mask).toarray()
    for x, hidden, c in zip(X, mask, found, strict=True):
        seen = ~hidden
        part = D[:, seen]
        lengths = np.linalg.norm(part, axis=1)
        expected = plainly(part / lengths[:, None], x[seen], 30, 1e-8) / lengths
        np.testing.assert_allclose(c, expected, atol=1e-6)
    all_gone = orthogonal_matching_pursuit(D, X[:2], mask=np.ones((2, 30), dtype=bool))
    assert all_gone.nnz == 0


# ---- matching pursuit ------------------------------------------------------------------------------------------


def test_its_error_falls_by_the_correlation_it_takes():
    D, x = dictionary(), np.random.default_rng(3).normal(size=30)
    found = matching_pursuit(D, x, n_steps=50)
    assert (np.diff(found.errors) <= 0).all()
    np.testing.assert_allclose(found.residual, x - found.codes @ D, atol=1e-12)
    residual = x
    for before, after in zip(found.errors[:-1], found.errors[1:], strict=True):
        best = np.abs(D @ residual).max()
        np.testing.assert_allclose(before**2 - after**2, best**2, atol=1e-9)
        at = np.argmax(np.abs(D @ residual))
        residual = residual - (D[at] @ residual) * D[at]


# ---- how far they can be trusted ---------------------------------------------------------------------------------


def test_coherence_and_babel_by_definition():
    D = dictionary(20, 7)
    G = np.abs(D @ D.T) - np.eye(20)
    np.testing.assert_allclose(coherence(3 * D), G.max())
    for K in (1, 4, 19):
        np.testing.assert_allclose(babel(D, K), np.sort(G, axis=1)[:, -K:].sum(axis=1).max())
        assert babel(D, K) <= K * coherence(D) + 1e-12
    assert coherence(np.eye(4)) == 0 and recovery_bound(np.eye(4)) == np.inf
    welch = np.sqrt((20 - 7) / (7 * (20 - 1)))
    assert coherence(D) >= welch  # no dictionary of this size can do better


def test_null_space_constant_of_a_line():
    h = np.array([4.0, -3.0, 2.0, 1.0])
    A = np.linalg.svd(h[None, :])[2][1:]  # its null space is spanned by h alone
    np.testing.assert_allclose(null_space_constant(A), 0.4)
    np.testing.assert_allclose(null_space_constant(A, 2), 0.7)


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda: orthogonal_matching_pursuit(np.ones(3), np.ones(3)), "rows"),
        (lambda: orthogonal_matching_pursuit(dictionary(), np.ones(4)), "30"),
        (lambda: orthogonal_matching_pursuit(dictionary(), np.full(30, np.nan)), "NaN"),
        (lambda: orthogonal_matching_pursuit(np.full((2, 2), np.inf), np.ones(2)), r"dictionary\[0, 0\]"),
        (lambda: orthogonal_matching_pursuit(dictionary(), np.ones(30), n_nonzero=0), "n_nonzero=0"),
        (lambda: orthogonal_matching_pursuit(dictionary(), np.ones(30), error=-1), "error=-1"),
        (lambda: orthogonal_matching_pursuit(dictionary(), np.ones((1, 30)), mask=np.ones((2, 30))), "mask"),
        (lambda: matching_pursuit(dictionary(), np.ones(4)), "30"),
        (lambda: coherence(np.zeros((2, 2))), "atom 0 is zero"),
        (lambda: coherence(np.ones((1, 2))), "two atoms"),
        (lambda: babel(np.eye(3), 3), "K=3"),
        (lambda: rip_estimate(np.eye(3), 4), "K=4"),
        (lambda: rip_constant(np.eye(3), 0), "K=0"),
        (lambda: rip_constant(np.eye(60), 9), "choices"),
        (lambda: certify_recovery(np.eye(3), 4), "K=4"),
        (lambda: sparsest_code(np.eye(3)[:2], [0.0, 0.0, 1.0]), "leave 1 of it"),
        (lambda: sparsest_code(np.eye(60), np.ones(60)), "choices"),
        (lambda: sparsest_code(DCT(), np.ones(6)), "matrix"),
        (lambda: null_space_constant(np.eye(3), 0), "K=0"),
        (lambda: null_space_constant(np.ones((2, 100)), 5), "linear programs"),
    ],
)
def test_bad_input_is_named(call, word):
    with pytest.raises(InputError, match=word):
        call()


def test_a_relative_error_does_not_mind_the_units():
    D, X = dictionary(), np.random.default_rng(1).normal(size=(20, 30))
    codes = orthogonal_matching_pursuit(D, X, relative_error=0.3)
    left, whole = np.linalg.norm(X - codes @ D, axis=1), np.linalg.norm(X, axis=1)
    assert (left <= 0.3 * whole).all()
    for x, code in zip(X, codes.toarray(), strict=True):
        one_fewer = orthogonal_matching_pursuit(D, x, n_nonzero=np.count_nonzero(code) - 1)
        assert np.linalg.norm(x - one_fewer @ D) > 0.3 * np.linalg.norm(x)
        by_length = orthogonal_matching_pursuit(D, x, error=0.3 * np.linalg.norm(x))
        np.testing.assert_allclose(code, by_length, atol=1e-12)
    scales = 2.0 ** np.arange(-10, 10)
    again = orthogonal_matching_pursuit(D, scales[:, None] * X, relative_error=0.3)
    np.testing.assert_allclose(again.toarray() / scales[:, None], codes.toarray(), atol=1e-12)


@pytest.mark.parametrize("Model", [twofold.KSVD, twofold.OnlineDictionary])
def test_dictionaries_and_coders_take_the_same_limits(Model):
    X = np.random.default_rng(0).normal(size=(200, 4)) @ np.random.default_rng(1).normal(size=(4, 16))
    X += 0.1 * np.random.default_rng(2).normal(size=X.shape)
    X *= 10.0 ** np.linspace(-3, 3, 200)[:, None]
    model = Model(20, relative_error=0.2, tol=0.5, random_state=0).fit(X)
    codes = model.transform(X)
    assert (np.linalg.norm(X - codes @ model.components_, axis=1) <= 0.2001 * np.linalg.norm(X, axis=1)).all()
    coder = twofold.SparseCoder(model.components_, relative_error=0.2)
    np.testing.assert_allclose(coder.transform(X), codes, rtol=1e-6, atol=1e-9)
    assert model.history_["objective"][-1] <= 16  # atoms a signal


def test_matching_pursuit_stops_at_so_many_atoms():
    D, x = dictionary(), np.random.default_rng(1).normal(size=30)
    for K in (1, 3, 7):
        found = matching_pursuit(D, x, n_nonzero=K, n_steps=1000)
        assert np.count_nonzero(found.codes) == K
        before = matching_pursuit(D, x, n_steps=len(found.errors) - 2)
        assert np.count_nonzero(before.codes) == K - 1  # it stopped at once
    found = matching_pursuit(D, x, relative_error=0.1, n_steps=1000)
    assert found.errors[-1] <= 0.1 * found.errors[0] < found.errors[-2]


@pytest.mark.parametrize(
    ("basis", "shape"),
    [
        (Union(DCT(), Haar(), shape=24), (24,)),
        (Gabor(), (40,)),
        (Shifted(1, Haar()), (16,)),
        (Union(DCT(2), Haar(2), shape=(8, 6)), (8, 6)),
        (Union(Shifted(2, Haar(2)), Gabor(2, (0.0, 1.2), 2, 1.5), shape=(8, 8)), (8, 8)),
        (Gabor(2, width=1.0), (9, 7)),
    ],
)
def test_pursuits_over_a_basis_are_those_over_its_matrix(basis, shape):
    x = np.random.default_rng(0).normal(size=shape)
    D = basis.matrix(shape)
    for limits in ({"n_nonzero": 5}, {"relative_error": 0.5}, {"error": 1.0, "n_nonzero": 8}):
        codes = orthogonal_matching_pursuit(basis, x, **limits)
        assert codes.shape == basis.coefficients(shape)
        by_matrix = orthogonal_matching_pursuit(D, x.ravel(), **limits)
        np.testing.assert_allclose(codes.ravel() @ D, by_matrix @ D, atol=1e-8)  # two atoms may be the same
        assert np.count_nonzero(codes) == np.count_nonzero(by_matrix) <= limits.get("n_nonzero", x.size)
    ours, plain = matching_pursuit(basis, x, n_steps=20), matching_pursuit(D, x.ravel(), n_steps=20)
    np.testing.assert_allclose(ours.residual.ravel(), plain.residual, atol=1e-8)
    np.testing.assert_allclose(basis.synthesize(ours.codes) + ours.residual, x, atol=1e-10)


def test_constants_of_isometry_form_a_chain():
    rng = np.random.default_rng(0)
    for k, d in ((9, 6), (12, 8)):
        D = rng.normal(size=(k, d))
        D /= np.linalg.norm(D, axis=1, keepdims=True)
        mu = coherence(D)
        deltas = [rip_constant(D.T, s) for s in range(1, 6)]
        assert deltas[0] < 1e-12
        np.testing.assert_allclose(deltas[1], mu)  # of two atoms it is the cosine
        assert (np.diff(deltas) >= -1e-12).all()
        for s, delta in enumerate(deltas, 1):
            grams = [D[list(c)] @ D[list(c)].T for c in combinations(range(k), s)]
            assert delta == pytest.approx(np.abs(np.linalg.eigvalsh(grams) - 1).max(), abs=1e-12)
            lower, upper = rip_estimate(D.T, s, random_state=0)
            assert lower - 1e-12 <= delta <= upper + 1e-12 <= mu * (s - 1) + 2e-12 or upper == lower
            for _ in range(20):
                z = np.zeros(k)
                z[rng.choice(k, s, replace=False)] = rng.normal(size=s)
                assert abs(np.sum((z @ D) ** 2) / np.sum(z**2) - 1) <= delta + 1e-12


def test_where_it_is_certified_all_three_find_the_sparsest_code():
    rng = np.random.default_rng(0)
    D = np.vstack([np.eye(16), DCT().matrix(16)])
    found = certify_recovery(D, 1)
    assert found.certain and found.coherence == coherence(D) and found.bound == recovery_bound(D)
    for K in (1, 2):
        certain = certify_recovery(D, K)
        for _ in range(10):
            c = np.zeros(32)
            c[rng.choice(32, K, replace=False)] = rng.choice([-1, 1], K) * rng.uniform(1, 3, K)
            shortest = sparsest_code(D, c @ D)
            if certain.certain:
                np.testing.assert_allclose(shortest, c, atol=1e-9)
                np.testing.assert_allclose(basis_pursuit(D.T, c @ D), c, atol=1e-7)
                np.testing.assert_allclose(orthogonal_matching_pursuit(D, c @ D, n_nonzero=K), c, atol=1e-9)
            assert np.count_nonzero(shortest) <= K
    assert not certify_recovery(D, 8).certain
    nearly = np.eye(20) + 0.01  # a coherence of about 0.02, of which three times K is enough
    assert certify_recovery(nearly, int(1 / (3 * coherence(nearly)))).certain


@pytest.mark.parametrize("seed", range(4))
def test_no_pursuit_finds_a_shorter_code_than_the_sparsest(seed):
    rng = np.random.default_rng(seed)
    D = rng.normal(size=(14, 6))
    x = rng.normal(size=6)
    for share in (1e-9, 0.2, 0.5):
        shortest = sparsest_code(D, x, relative_error=share)
        assert np.linalg.norm(x - shortest @ D) <= share * np.linalg.norm(x) + 1e-12
        greedy = orthogonal_matching_pursuit(D, x, relative_error=max(share, 1e-9))
        assert np.count_nonzero(shortest) <= np.count_nonzero(greedy)
    np.testing.assert_array_equal(sparsest_code(D, np.zeros(6)), np.zeros(14))
