"""Laws of matrix norms."""

import numpy as np
import pytest
import scipy.linalg as sla
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from twofold import InputError
from twofold.linalg import norm

SHAPES = {"tall": (60, 12), "wide": (12, 60), "square": (20, 20), "column": (15, 1), "row": (1, 15)}


def matrix(shape, seed=0):
    """Singular values 1, 0.7, 0.49, …: apart enough for every solver."""
    rng = np.random.default_rng(seed)
    n, d = shape
    r = min(n, d)
    U, V = sla.orth(rng.normal(size=(n, r))), sla.orth(rng.normal(size=(d, r)))
    return (U * 0.7 ** np.arange(r)) @ V.T * 10


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
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
