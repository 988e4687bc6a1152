"""A channel of an image as planes of coefficients, which hold few large numbers, and back.

    blocks     every 8 x 8 block in an orthonormal basis; plane k is the k-th coefficient of all blocks
               the basis: cosines, or the principal directions of the image's own blocks
    wavelets   averages and differences of neighbors, halving the averages again and again; a plane is a band
    lapped     for signals as rows: cosines under overlapping windows; a plane is a signal, windows by frequencies

Each predicts the magnitude of a coefficient: from frequencies close by, or from the next coarser band.
References: Wallace 1992 (JPEG); Cohen, Daubechies & Feauveau 1992 (the 9/7 wavelet); Daubechies & Sweldens 1998 (its
four steps); Princen & Bradley 1986 (lapped cosines).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from scipy import fft

from twofold.core.engine.local import single_blas
from twofold.signals.bases.basis import apply_along_each
from twofold.signals.bases.dct import DCT

SIDE = 8
ATOM_STEPS = 16  # a learned atom is stored in multiples of 1 / ATOM_STEPS
LIFTING_WEIGHTS = (
    -1.586134342059924,
    -0.052980118572961,
    0.882911075530934,
    0.443506852043971,
)  # difference, average, again
AVERAGE_SCALE = 1.149604398860241  # of averages, which makes the wavelet almost orthonormal
WINDOW = 512  # numbers of a signal from one window to the next
MIN_SIDE_TO_HALVE = 16  # pixels


@dataclass(frozen=True)
class Blocks:
    """Blocks in a basis; close[k]: earlier planes, with weights, from which the magnitudes of plane k are predicted."""

    atoms: np.ndarray  # (k, 64)
    smooth: ClassVar[bool] = True  # the first plane, so that its numbers are guessed from their neighbors
    close: tuple[tuple[tuple[int, int], ...], ...]

    def planes(self, channel: np.ndarray) -> list[np.ndarray]:
        B = cut_blocks(channel)
        with single_blas():
            return list((self.atoms.astype(B.dtype) @ B.reshape(len(B), -1)).reshape(-1, *B.shape[1:]))

    def channel(self, planes: list[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
        C = np.stack(planes)
        with single_blas():
            B = self.atoms[: len(C)].T.astype(C.dtype) @ C.reshape(len(C), -1)
        B = B.reshape(SIDE, SIDE, *C.shape[1:]).transpose(2, 0, 3, 1)
        return B.reshape(C.shape[1] * SIDE, -1)[: shape[0], : shape[1]]

    def shapes(self, shape: tuple[int, int]) -> list[tuple[int, int]]:
        return [(-(-shape[0] // SIDE), -(-shape[1] // SIDE))] * len(self.atoms)

    def predict_sizes(self, sizes: list[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
        """The likely magnitudes in the next plane, from those in the planes before."""
        total = np.zeros(shape, np.int64)
        for k, weight in self.close[len(sizes)]:
            total += weight * sizes[k]
        return total


def cut_blocks(channel: np.ndarray) -> np.ndarray:
    """Pixels by their place in a block: (64, blocks down, blocks across), the last row and column repeated."""
    h, w = channel.shape
    padded = np.pad(channel, ((0, -h % SIDE), (0, -w % SIDE)), mode="edge")
    down, across = (n // SIDE for n in padded.shape)
    return padded.reshape(down, SIDE, across, SIDE).transpose(1, 3, 0, 2).reshape(SIDE * SIDE, down, across)


@cache
def make_cosine_blocks() -> Blocks:
    """From low to high frequencies; the magnitude at (u,v) is predicted from the next lower ones."""
    order = sorted(np.ndindex(SIDE, SIDE), key=lambda f: (sum(f), f))
    place = {frequency: k for k, frequency in enumerate(order)}
    del place[0, 0]  # the mean predicts nothing
    steps = ((1, 0, 2), (0, 1, 2), (1, 1, 1), (2, 0, 1), (0, 2, 1))
    close = tuple(
        tuple((place[u - a, v - b], weight) for a, b, weight in steps if (u - a, v - b) in place) for u, v in order
    )
    atoms = DCT(ndim=2).matrix((SIDE, SIDE))
    return Blocks(atoms[[u * SIDE + v for u, v in order]], close)


def find_principal_atoms(channels: list[np.ndarray]) -> np.ndarray:
    """The principal directions of all blocks, as whole numbers: coefficients of cosines, in steps of 1 / ATOM_STEPS."""
    moment, cosine = np.zeros((SIDE * SIDE, SIDE * SIDE)), make_cosine_blocks().atoms
    largest = max(float(np.abs(channel).max()) for channel in channels) or 1.0
    for channel in channels:
        for top in range(0, len(channel), 32 * SIDE):  # a strip at a time
            B = cut_blocks(channel[top : top + 32 * SIDE]).reshape(SIDE * SIDE, -1) / np.float64(largest)
            with single_blas():
                moment += B @ B.T
    with single_blas():
        axes = np.linalg.eigh(cosine @ moment @ cosine.T)[1][:, ::-1].T
    return np.rint(axes * ATOM_STEPS).astype(np.int32)


def make_learned_blocks(whole: np.ndarray) -> Blocks:
    """Blocks in the basis of these whole numbers (k, 64), made orthonormal again."""
    with single_blas():
        Q, R = np.linalg.qr(whole.T / ATOM_STEPS)
        atoms = (Q * np.where(np.diag(R) < 0, -1, 1)).T @ make_cosine_blocks().atoms
    return Blocks(atoms, tuple(tuple((j, 1) for j in range(max(1, k - 6), k)) for k in range(len(whole))))


@dataclass(frozen=True)
class Pyramid:
    """Bands of the 9/7 wavelet, mirrored at the borders: the coarsest averages, then the details of every size."""

    smooth: ClassVar[bool] = True

    def planes(self, channel: np.ndarray) -> list[np.ndarray]:
        rest, bands = channel, list[np.ndarray]()
        for h, w in self._halve_sizes(channel.shape):
            both = apply_along_each(_split_level, rest, 2)
            bands = [both[:h, w:], both[h:, :w], both[h:, w:], *bands]
            rest = both[:h, :w]
        return [rest, *bands]

    def channel(self, planes: list[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
        shapes = self.shapes(shape)
        planes = planes + [np.zeros(s, planes[0].dtype) for s in shapes[len(planes) :]]
        rest = planes[0]
        for k in range(1, len(planes), 3):
            across, down, both = planes[k : k + 3]
            rest = apply_along_each(_join_level, np.block([[rest, across], [down, both]]), 2)
        return rest

    def shapes(self, shape: tuple[int, int]) -> list[tuple[int, int]]:
        found, last = list[tuple[int, int]](), shape
        for h, w in self._halve_sizes(shape):
            found = [(h, last[1] - w), (last[0] - h, w), (last[0] - h, last[1] - w), *found]
            last = h, w
        return [last, *found]

    def predict_sizes(self, sizes: list[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
        """Twice the magnitude at the same place of the next coarser band."""
        coarse = sizes[-3] if len(sizes) > 3 else np.zeros((0, 0), np.int64)
        if 0 in coarse.shape:
            return np.zeros(shape, np.int64)
        i, j = (np.minimum(np.arange(n) // 2, m - 1) for n, m in zip(shape, coarse.shape, strict=True))
        return 2 * coarse[np.ix_(i, j)].astype(np.int64)

    def _halve_sizes(self, shape: tuple[int, ...]) -> list[tuple[int, int]]:
        found, (h, w) = list[tuple[int, int]](), shape
        while max(h, w) >= MIN_SIDE_TO_HALVE:
            h, w = (h + 1) // 2, (w + 1) // 2
            found.append((h, w))
        return found


@dataclass(frozen=True)
class Lapped:
    """Signals (c,d) in cosines under windows of 2 WINDOW numbers, each half over the next: orthonormal, seamless."""

    smooth: ClassVar[bool] = False

    def planes(self, channel: np.ndarray) -> list[np.ndarray]:
        h, d = channel.shape
        frames = self.shapes((h, d))[0][0]
        long = np.pad(channel, ((0, 0), (WINDOW, frames * WINDOW - d)), "symmetric")
        pairs = np.lib.stride_tricks.sliding_window_view(long, 2 * WINDOW, axis=1)[:, ::WINDOW]
        a, b, c, e = np.split(pairs * make_window(channel.dtype), 4, axis=-1)  # halves of WINDOW
        folded = np.concatenate([-c[..., ::-1] - e, a - b[..., ::-1]], axis=-1)
        return list(fft.dct(folded, type=4, norm="ortho"))

    def channel(self, planes: list[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
        silent = np.zeros(self.shapes(shape)[0], planes[0].dtype)
        folded = fft.idct(np.stack(planes + [silent] * (shape[0] - len(planes))), type=4, norm="ortho")
        first, second = np.split(folded, 2, axis=-1)
        pairs = np.concatenate([second, -second[..., ::-1], -first[..., ::-1], -first], axis=-1)
        pairs = pairs * make_window(folded.dtype)
        long = pairs[:, 1:, :WINDOW] + pairs[:, :-1, WINDOW:]  # two windows overlap at each place
        return long.reshape(len(long), -1)[:, : shape[1]]

    def shapes(self, shape: tuple[int, int]) -> list[tuple[int, int]]:
        return [(-(-shape[1] // WINDOW) + 1, WINDOW)] * shape[0]

    def predict_sizes(self, sizes: list[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
        """Twice the magnitude in the signal before."""
        return 2 * sizes[-1].astype(np.int64) if sizes else np.zeros(shape, np.int64)


def make_window(dtype: np.dtype) -> np.ndarray:
    """The half period of a sine: its square and that of the next window add up to 1."""
    return np.sin(np.pi * (np.arange(2 * WINDOW) + 0.5) / (2 * WINDOW)).astype(dtype)


def _split_level(X: np.ndarray) -> np.ndarray:
    """One level along the last axis: the averages, then the differences."""
    if X.shape[-1] < 2:
        return X
    even, odd = X[..., ::2].copy(), X[..., 1::2].copy()
    for t, weight in enumerate(LIFTING_WEIGHTS):
        _lift(even, odd, weight, t)
    return np.concatenate([even * X.dtype.type(AVERAGE_SCALE), odd / X.dtype.type(AVERAGE_SCALE)], axis=-1)


def _join_level(C: np.ndarray) -> np.ndarray:
    """The reverse: every step undone, the last first."""
    n = C.shape[-1]
    if n < 2:
        return C
    even, odd = (
        C[..., : (n + 1) // 2] / C.dtype.type(AVERAGE_SCALE),
        C[..., (n + 1) // 2 :] * C.dtype.type(AVERAGE_SCALE),
    )
    for t, weight in reversed(list(enumerate(LIFTING_WEIGHTS))):
        _lift(even, odd, -weight, t)
    out = np.empty_like(C)
    out[..., ::2], out[..., 1::2] = even, odd
    return out


def _lift(even: np.ndarray, odd: np.ndarray, weight: float, step: int) -> None:
    """Add to the differences (even steps) or to the averages (odd steps) a multiple of both neighbors."""
    weight, short = even.dtype.type(weight), odd.shape[-1] - (even.shape[-1] - 1)  # 1 if the last one is odd
    if step % 2 == 0:
        odd += weight * even[..., : odd.shape[-1]]
        odd[..., : even.shape[-1] - 1] += weight * even[..., 1:]
        odd[..., odd.shape[-1] - short :] += weight * even[..., even.shape[-1] - short :]
    else:
        even[..., 1:] += weight * odd[..., : even.shape[-1] - 1]
        even[..., : odd.shape[-1]] += weight * odd
        even[..., :1] += weight * odd[..., :1]
        if not short:
            even[..., -1] += weight * odd[..., -1]
