"""Overlapping patches of an image: taken out, coded over atoms learned from them, and laid back over each other.

    place (i,j), i ≤ h − p, j ≤ w − p  ↔  patch image[i:i+p, j:j+p] as a row of p² numbers

A large image has too many to hold them all, so they come in strips of places. The cuts depend on the shape alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Rows
from twofold.core.engine.local import Engine
from twofold.core.progress import part
from twofold.signals.ksvd import KSVD

STRIPS_PER_REPORT = 16
PLACES_PER_STRIP = 16_384  # about: 4 MB of patches of 8 x 8 in single precision


def check_patches(patch: Any, n_atoms: Any, max_iter: Any) -> None:
    """Refuse sizes with which no dictionary of patches can be learned."""
    for name, value, least in (("patch", patch, 1), ("n_atoms", n_atoms, 1), ("max_iter", max_iter, 0)):
        if not isinstance(value, Integral) or value < least:
            raise InputError(f"{name}={value!r}: a whole number of at least {least} is needed.")


def cut_strips(shape: tuple[int, int], size: int) -> list[range]:
    """The rows of places, cut into runs."""
    down, across = shape[0] - size + 1, shape[1] - size + 1
    step = max(1, PLACES_PER_STRIP // across)
    return [range(a, min(a + step, down)) for a in range(0, down, step)]


def take_patches(image: np.ndarray, size: int, rows: range) -> np.ndarray:
    """All patches (m, size²) of `image` (h,w) whose first row is among `rows`, by rows of places."""
    windows = sliding_window_view(image[rows.start : rows.stop + size - 1], (size, size))
    return windows.reshape(-1, size * size)


def take_patches_at(image: np.ndarray, size: int, places: np.ndarray) -> np.ndarray:
    """The patches at some places, counted along the rows: (m, size²)."""
    windows = sliding_window_view(image, (size, size))
    i, j = np.divmod(places, windows.shape[1])
    return windows[i, j].reshape(-1, size * size)


def count_places(shape: tuple[int, int], size: int) -> int:
    """Number of patches in an image."""
    return (shape[0] - size + 1) * (shape[1] - size + 1)


def sum_patches(patches: np.ndarray, size: int, width: int) -> np.ndarray:
    """Sum of the patches of whole rows of places, each where it belongs: (rows + size − 1, width)."""
    across = width - size + 1
    grid = patches.reshape(-1, across, size, size)
    out = np.zeros((len(grid) + size - 1, width), patches.dtype)
    for a in range(size):
        for b in range(size):
            out[a : a + len(grid), b : b + across] += grid[:, :, a, b]
    return out


def count_patches(shape: tuple[int, int], size: int) -> np.ndarray:
    """Number of patches that hold each pixel: (h,w) in single precision, which is exact."""
    down, across = (
        np.minimum(np.minimum(np.arange(1, n + 1), np.arange(n, 0, -1)), min(size, n - size + 1)).astype(np.float32)
        for n in shape
    )
    return np.outer(down, across)


def make_cosine_atoms(n: int, size: int) -> np.ndarray:
    """Products of a wave down and a wave across, as atoms (n, size²) of length 1; more than size² are a frame.

    Every wave but the first, which is constant, has mean 0.
    """
    side = math.ceil(math.sqrt(n))
    waves = np.cos(np.pi / side * np.outer(np.arange(side), np.arange(size)))
    waves[1:] -= waves[1:].mean(axis=1, keepdims=True)
    length = np.linalg.norm(waves, axis=1, keepdims=True)
    waves /= np.where(length > 0, length, 1)
    return np.kron(waves, waves)[:n]


def learn_atoms(patches: np.ndarray, atoms: np.ndarray, n_nonzero: int, error: float, max_iter: int) -> np.ndarray:
    """The atoms after K-SVD of patches, NaN where a pixel is missing, from these atoms."""
    model = KSVD(len(atoms), n_nonzero=n_nonzero, error=error, init=atoms, tol=0, max_iter=max_iter, random_state=0)
    with loop.quietly():
        return model.fit(patches).components_


def sum_over_strips(recode: Callable, shared: tuple, size: int, totals: tuple) -> tuple[np.ndarray, ...]:
    """Totals (h,w), each with what `recode(rows of places, *shared)` gives for it added, strip by strip."""
    engine, runs = Engine(), cut_strips(totals[0].shape, size)
    held = [engine.broadcast(value) for value in shared]
    for first in range(0, len(runs), STRIPS_PER_REPORT):
        some = runs[first : first + STRIPS_PER_REPORT]
        with part(first, first + len(some), len(runs)):
            for rows, found in zip(some, engine.gather(engine.map(recode, Rows(some), *held)), strict=True):
                for total, strip in zip(totals, found, strict=True):
                    total[rows.start : rows.stop + size - 1] += strip
    return totals
