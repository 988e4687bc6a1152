"""Measuring operators: y (m,) from a signal or an image, and back by the transpose.

    matrices    A (m,d) of random numbers
    fast rows   m rows of an orthonormal transform, A Aᵀ = I: never a matrix, so an image of any size

Which rows, and of what:
    signals     order and signs of the numbers are made random first, which spreads every sparse basis over all rows;
                then any rows will do, and all are equally likely
    images    as they are, and low frequencies rather than high ones, since that is where images are: the row of
                frequency r (1 at the end of an axis) is likely as 1 / (0.1 + r)³, the lowest ones are certain

References: Candès & Tao 2006; Do, Gan, Nguyen & Tran 2012 (random order and signs); Lustig, Donoho & Pauly 2007
(density).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.linalg import hadamard

from twofold.core.checks import InputError
from twofold.signals.bases.basis import apply_along_each
from twofold.signals.bases.fourier import Fourier

MATRICES, FAST = ("gaussian", "rademacher"), ("fourier", "hadamard")
HADAMARD_SIZE = 16  # of the matrix that does the first steps of a transform
MAX_MATRIX_NUMBERS = 100_000_000  # 800 MB


class Measuring(NamedTuple):
    """Measurements of signals of one shape: by `matrix`, or by `rows` of a fast transform of the reordered signal."""

    kind: str
    shape: tuple[int, ...]
    matrix: np.ndarray | None = None  # (m,d)
    rows: np.ndarray | None = None  # (m,)
    order: np.ndarray | None = None  # (d,)
    signs: np.ndarray | None = None  # (d,)

    def forward(self, X: np.ndarray) -> np.ndarray:
        """Measurements (..., m) of signals (..., d) or images (..., h, w)."""
        flat = X.reshape(*X.shape[: X.ndim - len(self.shape)], -1)
        if self.matrix is not None:
            return flat @ self.matrix.T
        if self.order is not None:
            X = flat[..., self.order] * self.signs
        return self._transform(X).reshape(flat.shape)[..., self.rows]

    def transpose(self, Y: np.ndarray) -> np.ndarray:
        """Aᵀ Y, in the shape of signals."""
        batch = Y.shape[:-1]
        if self.matrix is not None:
            return (Y @ self.matrix).reshape(*batch, *self.shape)
        mixed = np.zeros((*batch, int(np.prod(self.shape))))
        mixed[..., self.rows] = Y
        if self.order is None:
            return self._back(mixed.reshape(*batch, *self.shape))
        X = np.empty_like(mixed)
        X[..., self.order] = self._back(mixed) * self.signs
        return X

    def _transform(self, X: np.ndarray) -> np.ndarray:
        if self.kind == "fourier":
            return Fourier(ndim=len(self.shape)).analyze(X)
        if self.signs is None:
            return apply_along_each(transform_walsh, X, 2)
        p = _split_into_powers(X.shape[-1])[0]
        X = np.concatenate([transform_walsh(X[..., :p]) * self.signs[:p], X[..., p:]], axis=-1)
        return _transform_end(X, p) if p < X.shape[-1] else X

    def _back(self, C: np.ndarray) -> np.ndarray:
        if self.kind == "fourier":
            return Fourier(ndim=len(self.shape)).synthesize(C)
        if self.signs is None:
            return apply_along_each(transform_walsh, C, 2)
        p = _split_into_powers(C.shape[-1])[0]
        C = _transform_end(C, p) if p < C.shape[-1] else C
        return np.concatenate([transform_walsh(C[..., :p] * self.signs[:p]), C[..., p:]], axis=-1)


def draw_measurements(kind: str, shape: tuple[int, ...], m: int, rng: np.random.Generator) -> Measuring:
    """Random measurements of that kind."""
    d = int(np.prod(shape))
    if kind in MATRICES:
        if m * d > MAX_MATRIX_NUMBERS:
            raise InputError(
                f'kind="{kind}" needs a matrix of {m:,} x {d:,} numbers for signals of shape {shape}. '
                'Use kind="fourier" or "hadamard", which need none, or fewer measurements.'
            )
        A = rng.standard_normal((m, d)) if kind == "gaussian" else 2.0 * rng.integers(0, 2, (m, d)) - 1
        return Measuring(kind, shape, matrix=A / np.sqrt(m))
    if len(shape) == 2:
        return Measuring(kind, shape, rows=_draw_low_rows(_list_frequencies(kind, shape), m, rng))
    order, signs = rng.permutation(d), 2.0 * rng.integers(0, 2, d) - 1
    return Measuring(kind, shape, rows=np.sort(rng.choice(d, m, replace=False)), order=order, signs=signs)


def _list_frequencies(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Distance from the constant, of every product of waves: (h,w), 1 at the end of an axis."""
    if kind == "fourier":
        axes = [(np.arange(n) + 1) // 2 / max(n // 2, 1) for n in shape]  # 1, cos 1, sin 1, cos 2, ...
    else:
        axes = [np.concatenate([np.arange(p) / p for p in _split_into_powers(n)]) for n in shape]
    return np.hypot(axes[0][:, None], axes[1])


def _draw_low_rows(frequency: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    """Exactly m places, each with its own probability min(1, c / (0.1 + r)³), c such that they add up to m."""
    wish = 1 / (0.1 + frequency.ravel()) ** 3
    wish[0] = 1e15  # the mean is always measured
    falling = np.sort(wish)[::-1]
    left = np.cumsum(falling[::-1])[::-1]  # for the rows that are not certain
    scale = (m - np.arange(len(wish))) / left
    certain = int(np.argmax(scale * falling <= 1)) if m < len(wish) else 0
    chance = np.minimum(1, scale[certain] * wish) if m < len(wish) else np.ones(len(wish))
    order = rng.permutation(len(wish))
    passed = np.floor(np.cumsum(chance[order]) * (m / chance.sum()) * (1 - 1e-12) + rng.uniform(1e-6, 1))
    return np.sort(order[np.diff(passed, prepend=0.0) > 0])


def transform_walsh(X: np.ndarray) -> np.ndarray:
    """The Walsh-Hadamard transform of the last axis, cut into powers of two; rows by rising number of sign changes.

    Orthonormal and symmetric: its own inverse.
    """
    cuts = np.cumsum(_split_into_powers(X.shape[-1]))[:-1]
    return np.concatenate(
        [_transform_butterflies(part)[..., _order_by_changes(part.shape[-1])] for part in np.split(X, cuts, -1)], -1
    )


def _transform_end(X: np.ndarray, p: int) -> np.ndarray:
    return np.concatenate([X[..., :-p], transform_walsh(X[..., -p:])], axis=-1)


def _transform_butterflies(X: np.ndarray) -> np.ndarray:
    """Sums and differences at distance 1, 2, 4, ...: d log d steps, the first ones together as a product."""
    d, batch = X.shape[-1], X.shape[:-1]
    step = min(d, HADAMARD_SIZE)
    X = X.reshape(*batch, -1, step) @ hadamard(step, dtype=np.float64)
    while step < d:
        pairs = X.reshape(*batch, -1, 2, step)
        X = np.stack([pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]], axis=-2)
        step *= 2
    return X.reshape(*batch, d) / np.sqrt(d)


@cache
def _split_into_powers(d: int) -> tuple[int, ...]:
    """The powers of two that add up to d, the largest first."""
    return tuple(1 << b for b in range(d.bit_length() - 1, -1, -1) if d >> b & 1)


@cache
def _order_by_changes(d: int) -> np.ndarray:
    """Places of the rows with 0, 1, ... sign changes in the output of the butterflies: Gray codes, bits reversed."""
    count = np.arange(d)
    gray, places = count ^ (count >> 1), np.zeros(d, dtype=np.int64)
    for bit in range(d.bit_length() - 1):
        places = (places << 1) | ((gray >> bit) & 1)
    return places
