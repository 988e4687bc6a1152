"""Bases, measurements and recoveries of `sense`."""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold
from twofold.analyses.sense.answer import VARIANCE_SHARE, Sparsity, Trial
from twofold.analyses.sense.read import Data
from twofold.core.progress import report

FAST = ("fourier", "hadamard")  # the others are matrices


def find_sparser_basis(data: Data) -> Sparsity:
    """The basis with the fewest coefficients in the channel that needs most, cosines or wavelets."""
    from twofold.signals import DCT, Wavelet

    axes = tuple(range(1, data.X.ndim))
    X = data.X - data.X.mean(axis=axes, keepdims=True)
    found = []
    for basis, atoms in ((DCT(len(axes)), "cosines"), (Wavelet(len(axes), "sym8"), "wavelets")):
        power = np.square(basis.analyze(X)).reshape(len(X), -1)
        share = np.cumsum(-np.sort(-power, axis=1), axis=1)
        found.append(
            Sparsity(basis, atoms, int((np.argmax(share >= VARIANCE_SHARE * share[:, -1:], axis=1) + 1).max()))
        )
    best, other = sorted(found, key=lambda sparsity: sparsity.held)
    data.before.notes.append(
        f"{best.held:,} {best.atoms} hold {VARIANCE_SHARE:.0%} of the variance; it takes {other.held:,} {other.atoms}"
    )
    return best


def draw_measurements(data: Data, fraction: float, kind: str, basis: Any, seed: int) -> Any:
    m = max(1, round(fraction * data.size))
    return twofold.CompressiveSensing(m, kind=kind, basis=basis, random_state=seed).fit(data.X[0])


def recover(data: Data, model: Any) -> np.ndarray:
    """Measure every channel or signal, and recover it."""
    recovered = np.empty_like(data.X)
    for i, x in enumerate(data.X):
        recovered[i] = model.recover(model.measure(x))
        report(i + 1, len(data.X))
    return data.clip(recovered)


def solve_least_squares(data: Data, model: Any) -> np.ndarray:
    """The shortest signals that explain the measurements."""
    Y = model.measure(data.X)
    A = model.measuring_.matrix
    if A is None:  # rows of an orthonormal transform
        return data.clip(model.measuring_.transpose(Y))
    return data.clip(np.linalg.lstsq(A, Y.T)[0].T.reshape(data.X.shape))


def measure_error(data: Data, fraction: float, model: Any, recovered: np.ndarray) -> Trial:
    from twofold.metrics import psnr

    error = float(np.linalg.norm(data.X - recovered) / (np.linalg.norm(data.X) or 1.0))
    return Trial(fraction, model.n_measurements_, error, psnr(data.X, recovered, data.peak))
