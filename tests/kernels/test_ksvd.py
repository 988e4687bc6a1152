"""K-SVD's kernels against the same steps in whole arrays."""

import numpy as np
import pytest
from scipy import sparse

from twofold.kernels.ksvd import descend_atoms, update_atoms, update_atoms_seen


def plainly(X, seen, D, U):
    """Atom by atom: one power step, or with holes the least-squares atom, then the coefficients of its signals."""
    D, U = D.copy(), U.copy()
    for j in range(len(D)):
        use = np.flatnonzero(U[:, j])
        if not len(use):
            continue
        E, S = X[use] - U[use] @ D + np.outer(U[use, j], D[j]), seen[use]
        v = U[use, j]
        if seen.all():
            atom = v @ E
        else:
            weight = v**2 @ S
            atom = np.where(weight > 0, (v @ np.where(S, E, 0)) / np.where(weight > 0, weight, 1), D[j])
        D[j] = atom / np.linalg.norm(atom)
        U[use, j] = np.where(S, E, 0) @ D[j] / (S @ D[j] ** 2)
    return D, U


@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_atoms(holes):
    rng = np.random.default_rng(0)
    X, D = rng.normal(size=(80, 12)), rng.normal(size=(9, 12))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    U = rng.normal(size=(80, 9)) * (rng.random((80, 9)) < 0.3)
    U[:, 4] = 0  # an atom nobody uses
    seen = rng.random(X.shape) >= holes
    expected = plainly(X, seen, D, U)
    codes = sparse.csc_array(U)
    R, atoms = np.where(seen, X - U @ D, 0), D.copy()
    if holes:
        update_atoms_seen(R, seen, atoms, codes.indptr, codes.indices, codes.data)
    else:
        update_atoms(R, atoms, codes.indptr, codes.indices, codes.data)
    np.testing.assert_allclose(atoms, expected[0], atol=1e-10)
    np.testing.assert_allclose(codes.toarray(), expected[1], atol=1e-10)
    np.testing.assert_allclose(R, np.where(seen, X - expected[1] @ expected[0], 0), atol=1e-10)
    assert (R**2).sum() < (np.where(seen, X - U @ D, 0) ** 2).sum()


def test_descend():
    rng = np.random.default_rng(0)
    D, U, X = rng.normal(size=(9, 12)), rng.normal(size=(80, 9)), rng.normal(size=(80, 12))
    U[:, 4] = 0  # an atom nobody uses
    UU, UX, atoms = U.T @ U, U.T @ X, D.copy()
    descend_atoms(atoms, UU, UX, 1e-9)
    for j in range(9):
        if j != 4:  # least squares of what the others leave
            D[j] = np.linalg.lstsq(U[:, [j]], X - U @ D + np.outer(U[:, j], D[j]), rcond=None)[0]
    np.testing.assert_allclose(atoms, D, atol=1e-10)
