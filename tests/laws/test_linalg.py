"""Laws of the small linear algebra: singular vectors, eigenvectors, thresholds, projections, norms."""

import numpy as np
import pytest
import scipy.linalg as sla
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator
from sklearn.exceptions import ConvergenceWarning

import twofold
from twofold import InputError
from twofold.linalg import low_rank, norm, power_iteration, project, robust_pca, shrink, truncated_svd

SOLVERS = ("auto", "covariance_eigh", "gram", "full", "power", "em", "randomized", "arpack")
SHAPES = {"tall": (60, 12), "wide": (12, 60), "square": (20, 20)}


def matrix(shape, seed=0):
    """Singular values 1, 0.7, 0.49, …: apart enough for every solver."""
    rng = np.random.default_rng(seed)
    n, d = shape
    r = min(n, d)
    U, V = sla.orth(rng.normal(size=(n, r))), sla.orth(rng.normal(size=(d, r)))
    return (U * 0.7 ** np.arange(r)) @ V.T * 10


def angle(A, B):
    """The largest principal angle between the spans of the rows."""
    return sla.subspace_angles(A.T, B.T).max()


# ---- singular vectors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", ["tall", "wide", "square"])
def test_truncated_svd_is_numpy_s(shape, solver, kind, center):
    A = matrix(SHAPES[shape]) + (3.0 if center else 0.0)
    X = kind(A)
    if sparse.issparse(X) and solver == "full":
        pytest.skip("needs a dense table")
    U, s, Zt = truncated_svd(X, 4, svd_solver=solver, center=center, tol=1e-15)
    reference = np.linalg.svd(A - A.mean(axis=0) if center else A, full_matrices=False)
    np.testing.assert_allclose(s, reference[1][:4], rtol=1e-9)
    assert angle(Zt, reference[2][:4]) < 1e-6
    np.testing.assert_allclose(U.T @ U, np.eye(4), atol=1e-9)
    np.testing.assert_allclose(Zt @ Zt.T, np.eye(4), atol=1e-9)
    best = (reference[0][:, :4] * reference[1][:4]) @ reference[2][:4]
    np.testing.assert_allclose((U * s) @ Zt, best, atol=1e-5)


@given(seed=st.integers(0, 1000), n=st.integers(1, 15), d=st.integers(1, 15))
@settings(max_examples=40)
def test_no_matrix_of_rank_k_is_nearer(seed, n, d):
    rng = np.random.default_rng(seed)
    A, k = rng.normal(size=(n, d)), int(rng.integers(1, min(n, d) + 1))
    s = np.linalg.svd(A, compute_uv=False)
    near = low_rank(A, k)
    assert np.linalg.norm(A - near) == pytest.approx(np.sqrt((s[k:] ** 2).sum()), abs=1e-6)
    assert np.linalg.norm(A - near, 2) == pytest.approx(s[k] if k < len(s) else 0.0, abs=1e-6)
    assert np.linalg.matrix_rank(near, tol=1e-6) <= k
    other = rng.normal(size=(n, k)) @ rng.normal(size=(k, d))
    step = near + 1e-2 * other  # another matrix of rank at most 2k, cut back to k
    U, t, Vt = np.linalg.svd(step, full_matrices=False)
    assert np.linalg.norm(A - (U[:, :k] * t[:k]) @ Vt[:k]) >= np.linalg.norm(A - near) - 1e-9


@pytest.mark.parametrize("solver", ["auto", "covariance_eigh", "gram", "full", "power", "em", "randomized"])
@pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
def test_truncated_svd_of_a_matrix_without_full_rank(shape, solver):
    rng = np.random.default_rng(3)
    A = rng.normal(size=(shape[0], 2)) @ rng.normal(size=(2, shape[1]))
    for k in (2, 5, 8):
        U, s, Zt = truncated_svd(A, k, svd_solver=solver)
        assert U.shape == (shape[0], k) and Zt.shape == (k, shape[1])
        np.testing.assert_allclose((U * s) @ Zt, A, atol=1e-5)
        np.testing.assert_allclose(U.T @ U, np.eye(k), atol=1e-8)
        np.testing.assert_allclose(Zt @ Zt.T, np.eye(k), atol=1e-8)
        assert np.all(s[2:] < 1e-6 * s[0]) and np.isfinite(s).all()


@pytest.mark.parametrize("solver", ["auto", "covariance_eigh", "gram", "full", "randomized"])
def test_truncated_svd_of_edges(solver):
    for A in (np.ones((5, 1)), np.ones((1, 5)), np.array([[2.0]]), matrix((6, 6)), matrix((9, 4)), matrix((4, 9))):
        k = min(A.shape)
        U, s, Zt = truncated_svd(A, k, svd_solver=solver)
        np.testing.assert_allclose((U * s) @ Zt, A, atol=1e-7)
        np.testing.assert_allclose(s, np.linalg.svd(A, compute_uv=False), atol=1e-6)


@pytest.mark.parametrize("solver", ["auto", "covariance_eigh", "gram", "full", "power", "em", "randomized"])
@pytest.mark.parametrize("zero", [np.zeros((6, 4)), np.zeros((4, 6)), sparse.csr_array((6, 4))])
def test_truncated_svd_of_zeros(solver, zero):
    if sparse.issparse(zero) and solver == "full":
        pytest.skip("needs a dense table")
    U, s, Zt = truncated_svd(zero, 2, svd_solver=solver)
    assert np.array_equal(s, [0.0, 0.0])
    assert np.isfinite(U).all() and np.isfinite(Zt).all()
    np.testing.assert_allclose(Zt @ Zt.T, np.eye(2), atol=1e-12)


def test_truncated_svd_keeps_single_precision():
    A = matrix((50, 10)).astype(np.float32)
    parts = truncated_svd(A, 3)
    assert all(part.dtype == np.float32 for part in parts)
    np.testing.assert_allclose(parts[1], np.linalg.svd(A, compute_uv=False)[:3], rtol=1e-4)


@pytest.mark.parametrize("k", [0, 5, -1])
def test_truncated_svd_refuses_ranks_that_cannot_be(k):
    with pytest.raises(InputError, match=rf"k={k}.*4"):
        truncated_svd(np.eye(4), k)


def test_truncated_svd_refuses_what_is_not_finite():
    A = np.eye(5)
    A[1, 2] = np.nan
    for solver in SOLVERS:
        with pytest.raises(InputError, match=r"X\[1, 2\] is nan"):
            truncated_svd(A, 2, svd_solver=solver)
    with pytest.raises(InputError, match="solver"):
        truncated_svd(np.eye(4), 2, svd_solver="magic")


# ---- power iteration ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array, aslinearoperator])
def test_power_iteration_is_eigh_s(wrap):
    A = matrix((30, 8))
    S = A.T @ A
    values, vectors = power_iteration(wrap(S), k=3, random_state=0)
    expected = np.linalg.eigh(S)
    np.testing.assert_allclose(values, expected[0][::-1][:3], rtol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(vectors * expected[1][:, ::-1][:, :3], axis=0)), 1.0, atol=1e-9)
    np.testing.assert_allclose(S @ vectors, vectors * values, atol=1e-4)


def test_power_iteration_deflates_without_changing_the_matrix():
    S = np.diag([5.0, 3.0, 2.0, 1.0])
    before = S.copy()
    values, vectors = power_iteration(S, k=4, random_state=1)
    np.testing.assert_allclose(values, [5, 3, 2, 1], rtol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-7)
    assert np.array_equal(S, before)


def test_power_iteration_of_zeros_and_of_low_rank():
    values, vectors = power_iteration(np.zeros((4, 4)), k=2, random_state=0)
    assert np.array_equal(values, [0.0, 0.0]) and np.isfinite(vectors).all()
    v = np.ones(4) / 2
    values, vectors = power_iteration(3 * np.outer(v, v), k=3, random_state=0)
    np.testing.assert_allclose(values, [3, 0, 0], atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-7)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "spectrum",
    [
        (1.0, -3.0, 2.0),  # the dominant one is negative
        (-1.0, -2.0, -5.0, -0.5),
        (3.0, -3.0, 1.0),  # a pair ±λ
        (2.0, -5.0, 5.0, -2.0, 1.0),
        (4.0, -3.999, 1.0),  # nearly a pair: ten thousand steps would not part them
        (-4.0, 3.9999, 1.0, -2.0),
        (3.0, 3.0, -3.0, 1.0),
        (1e-9, -3e-9, 3e-9),
        (0.0, -2.0, 0.0),
    ],
)
def test_power_iteration_finds_negative_eigenvalues_and_pairs(spectrum, seed):
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(spectrum), len(spectrum))))
    A = (Q * spectrum) @ Q.T
    k, size = len(spectrum), np.abs(spectrum).max()
    values, vectors = power_iteration(A, k=k, random_state=seed)
    expected = sorted(spectrum, key=lambda v: (-abs(v), -v))
    np.testing.assert_allclose(values, expected, atol=1e-9 * size)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-5)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=2e-5 * size)
    np.testing.assert_allclose(power_iteration(A, random_state=seed)[0], expected[:1], atol=1e-9 * size)


@pytest.mark.parametrize("gap", [1e-3, 1e-6])
def test_power_iteration_says_when_eigenvalues_are_too_close(gap):
    """The residual is small long before the vector is right: 1e-6 of λ for any mixture of both vectors."""
    with pytest.warns(ConvergenceWarning, match="max_iter=100 steps"):
        power_iteration(np.diag([1.0, 1 - gap, 0.5]), max_iter=100, random_state=0)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from([0.5, 0.9, 0.97]))
def test_a_power_iteration_without_a_warning_has_the_vectors(seed, ratio):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    A = (Q * [1.0, ratio, ratio**2, -0.1, 0.05]) @ Q.T
    _, vectors = power_iteration(A, 2, max_iter=100_000, random_state=seed)
    np.testing.assert_allclose(np.abs(np.sum(vectors * Q[:, :2], axis=0)), 1.0, atol=1e-9)


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_power_iteration_of_a_matrix_that_is_not_symmetric(seed):
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(5, 5)) + 3 * np.eye(5)
    A = S @ np.diag([5.0, -3.0, 2.0, 1.0, 0.5]) @ np.linalg.inv(S)
    values, vectors = power_iteration(A, 3, random_state=seed)
    size = np.linalg.norm(A, 2) * np.linalg.cond(S)
    np.testing.assert_allclose(values, [5, -3, 2], atol=1e-5 * size)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=1e-5 * size)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1.0)


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array, aslinearoperator])
def test_power_iteration_needs_no_symmetry(wrap):
    A = np.array([[3.0, 5.0], [0.0, 1.0]])
    values, vectors = power_iteration(wrap(A), 2, random_state=0)
    np.testing.assert_allclose(values, [3, 1], atol=1e-5)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=1e-5)


@pytest.mark.parametrize("A", [[[0.0, -2.0], [2.0, 0.0]], [[1.0, 5.0], [0.0, -1.0]]])
def test_power_iteration_refuses_two_eigenvalues_of_one_size(A):
    with pytest.raises(InputError, match="two of its eigenvalues"):
        power_iteration(A, max_iter=200, random_state=0)


def test_power_iteration_gives_its_path():
    """The angle to the first vector falls by |λ₂/λ₁| a step."""
    _, _, path = power_iteration(np.diag([2.0, 1.0]), 1, random_state=0, return_path=True)
    tangents = np.abs(path[0][:, 1] / path[0][:, 0])
    np.testing.assert_allclose(tangents[1:] / tangents[:-1], 0.5, rtol=1e-6)


# ---- threshold and projection ------------------------------------------------------------------------------------


@given(seed=st.integers(0, 1000), tau=st.sampled_from([0.0, 0.3, 1.0, 3.0, 100.0]))
@settings(max_examples=40)
def test_shrink_is_the_proximal_step_of_the_nuclear_norm(seed, tau):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, 4))
    Y = shrink(X, tau)
    cost = lambda M: 0.5 * np.linalg.norm(X - M) ** 2 + tau * np.linalg.norm(M, "nuc")  # noqa: E731
    for size in (1e-4, 1e-2, 1.0):
        assert cost(Y) <= cost(Y + size * rng.normal(size=X.shape)) + 1e-12
    expected = np.maximum(np.linalg.svd(X, compute_uv=False) - tau, 0)
    np.testing.assert_allclose(np.linalg.svd(Y, compute_uv=False), expected, atol=1e-10)
    np.testing.assert_allclose(shrink(sparse.csr_array(X), tau), Y, atol=1e-12)


def test_shrink_keeps_single_precision_and_refuses_negative_thresholds():
    assert shrink(np.eye(3, dtype=np.float32), 0.5).dtype == np.float32
    with pytest.raises(InputError, match="tau=-1"):
        shrink(np.eye(3), -1)


@pytest.mark.parametrize("basis", ["orthonormal", "skew", "dependent", "zero"])
def test_projection_is_idempotent_and_leaves_a_right_angle(basis):
    rng = np.random.default_rng(5)
    X, B = rng.normal(size=(9, 6)), rng.normal(size=(3, 6))
    if basis == "orthonormal":
        B = sla.orth(B.T).T
    elif basis == "dependent":
        B = np.vstack([B, B[0] + 2 * B[1]])
    elif basis == "zero":
        B = np.zeros((2, 6))
    P = project(X, B)
    np.testing.assert_allclose(P, X @ np.linalg.pinv(B) @ B, atol=1e-12)
    np.testing.assert_allclose(project(P, B), P, atol=1e-12)
    np.testing.assert_allclose((X - P) @ B.T, 0, atol=1e-12)
    np.testing.assert_allclose(project(sparse.csr_array(X), B), P, atol=1e-12)
    np.testing.assert_allclose(project(X[0], B), P[0], atol=1e-12)
    assert np.all(np.linalg.norm(P, axis=1) <= np.linalg.norm(X, axis=1) + 1e-12)


def test_projection_refuses_another_width():
    with pytest.raises(InputError, match=r"3 columns.*2"):
        project(np.ones((4, 3)), np.ones((1, 2)))


def test_a_budget_too_small_for_the_products_changes_no_bit_of_a_sparse_decomposition():
    X = sparse.random_array((900, 800), density=0.05, format="csr", rng=np.random.default_rng(0))
    X = sparse.csr_array(X @ sparse.diags_array(1 / np.arange(1.0, 801)))
    made = []
    for memory in (2**20, 10**9):  # 20 columns of 800 numbers, again and again
        with twofold.config(memory=memory):
            made.append(truncated_svd(X, 10, svd_solver="randomized", tol=1e-6))
    assert all(np.array_equal(one, other) for one, other in zip(*made, strict=True))
    wanted = np.linalg.svd(X.toarray(), compute_uv=False)[:10]
    assert np.allclose(made[0][1], wanted, rtol=1e-3)


# ---- norms -----------------------------------------------------------------------------------------------------


NORM_SHAPES = [*SHAPES.values(), (15, 1), (1, 15)]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("shape", NORM_SHAPES)
def test_norms_are_the_textbook_s(shape, kind):
    A = np.where(np.random.default_rng(1).random(shape) < 0.4, matrix(shape), 0.0)
    X, s = kind(A), np.linalg.svd(A, compute_uv=False)
    expected = {
        "frobenius": np.linalg.norm(A),
        "spectral": np.linalg.norm(A, 2),
        "nuclear": np.linalg.norm(A, "nuc"),
        "schatten-1": s.sum(),
        "schatten-2": np.linalg.norm(A),
        "schatten-3": (s**3).sum() ** (1 / 3),
        "schatten-1.5": (s**1.5).sum() ** (1 / 1.5),
        "schatten-inf": s.max(),
        "induced-1": np.linalg.norm(A, 1),
        "induced-2": np.linalg.norm(A, 2),
        "induced-inf": np.linalg.norm(A, np.inf),
    }
    for name, value in expected.items():
        assert norm(X, name) == pytest.approx(value, rel=1e-7), name
    assert norm(X, "schatten", p=3) == pytest.approx(expected["schatten-3"])
    assert norm(X, "induced", p=1) == pytest.approx(expected["induced-1"])


def test_weighted_frobenius_norm():
    A, w = matrix((6, 5)), np.random.default_rng(2).random((6, 5))
    expected = np.sqrt((w * A**2).sum())
    assert norm(A, weight=w) == pytest.approx(expected)
    assert norm(sparse.csr_array(A), weight=w) == pytest.approx(expected)
    assert norm(A, weight=np.ones_like(A)) == pytest.approx(norm(A))


@given(seed=st.integers(0, 1000), p=st.sampled_from([1.0, 1.5, 2.0, 3.0, np.inf]))
@settings(max_examples=40)
def test_schatten_norms_are_norms_and_dual_pairs_bound_the_inner_product(seed, p):
    rng = np.random.default_rng(seed)
    A, B, c = rng.normal(size=(7, 4)), rng.normal(size=(7, 4)), rng.normal()
    size = lambda M, p: norm(M, "schatten", p=p)  # noqa: E731
    assert size(c * A, p) == pytest.approx(abs(c) * size(A, p))
    assert size(A + B, p) <= size(A, p) + size(B, p) + 1e-9
    q = np.inf if p == 1 else 1.0 if np.isinf(p) else p / (p - 1)
    assert abs(np.vdot(A, B)) <= size(A, p) * size(B, q) + 1e-9  # Hölder
    U, s, Vt = np.linalg.svd(A, full_matrices=False)  # and the bound is attained
    t = np.ones_like(s) if p == 1 else (s == s.max()).astype(float) if np.isinf(p) else s ** (p - 1)
    best = (U * t) @ Vt
    assert np.vdot(A, best) == pytest.approx(size(A, p) * size(best, q))


def test_norm_of_nothing_and_of_zeros():
    for kind in ("frobenius", "spectral", "nuclear", "schatten-3", "induced-1"):
        assert norm(np.zeros((4, 3)), kind) == 0.0
        assert norm(sparse.csr_array((4, 3)), kind) == 0.0


@pytest.mark.parametrize(
    "options, match",
    [
        ({"kind": "manhattan"}, "manhattan"),
        ({"kind": "schatten"}, "needs p"),
        ({"kind": "schatten-0.5"}, "p >= 1"),
        ({"kind": "schatten-x"}, "not a number"),
        ({"kind": "induced-3"}, "NP-hard"),
        ({"kind": "nuclear", "weight": np.ones((2, 2))}, "weight"),
        ({"weight": -np.ones((2, 2))}, ">= 0"),
        ({"weight": np.ones((3, 2))}, "weight"),
    ],
)
def test_norms_that_are_none(options, match):
    with pytest.raises(InputError, match=match):
        norm(np.eye(2), **options)


# ---- low rank plus sparse ----------------------------------------------------------------------------------------


def spoil(n=60, d=40, rank=3, share=0.08, seed=0):
    """A matrix of low rank, and gross errors in a share of its cells."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    return L, np.where(rng.random((n, d)) < share, 50 * rng.normal(size=(n, d)), 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_gross_errors_are_taken_off_exactly(seed):
    L, S = spoil(seed=seed)
    split = robust_pca(L + S)
    np.testing.assert_allclose(split.low_rank, L, atol=1e-3)
    np.testing.assert_allclose(split.sparse, S, atol=1e-3)
    assert np.linalg.norm(low_rank(L + S, 3) - L) > 100 * np.linalg.norm(split.low_rank - L)  # what PCA makes of them


def test_unknown_cells_are_filled_beside_gross_errors():
    L, S = spoil(n=80, d=60, rank=2, share=0.04)
    holes = np.random.default_rng(1).random(L.shape) < 0.2
    split = robust_pca(np.where(holes, np.nan, L + S))
    np.testing.assert_allclose(split.low_rank, L, atol=1e-2)
    assert not split.sparse[holes].any()


@given(st.integers(0, 1000), st.floats(0.05, 0.5))
@settings(max_examples=20)
def test_the_split_is_optimal(seed, weight):
    """The problem is convex, so no step lowers the cost, in any direction."""
    X = np.random.default_rng(seed).normal(size=(12, 9))
    L, S, _ = robust_pca(X, weight, tol=1e-9, max_iter=20_000)
    np.testing.assert_allclose(L + S, X, atol=1e-6)
    cost = norm(L, "nuclear") + weight * np.abs(S).sum()
    rng = np.random.default_rng(seed)
    for _ in range(50):  # no other split is cheaper
        D = rng.normal(size=X.shape) * rng.choice([1e-3, 1e-1, 1.0])
        assert norm(L + D, "nuclear") + weight * np.abs(X - L - D).sum() >= cost - 1e-5
        pair = np.outer(rng.normal(size=12), rng.normal(size=9))
        assert norm(L + 1e-2 * pair, "nuclear") + weight * np.abs(X - L - 1e-2 * pair).sum() >= cost - 1e-5
    assert cost <= min(norm(X, "nuclear"), weight * np.abs(X).sum()) + 1e-6


def test_robust_pca_refuses_what_it_cannot_use():
    with pytest.raises(InputError, match=r"X\[0, 1\] is inf"):
        robust_pca([[1.0, np.inf]])
    with pytest.raises(InputError, match="weight=0 must be > 0"):
        robust_pca(np.ones((2, 2)), 0)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        robust_pca(sum(spoil()), max_iter=2)
    assert not robust_pca(np.zeros((3, 2))).low_rank.any()
