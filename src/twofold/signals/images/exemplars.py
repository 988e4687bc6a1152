"""Large holes filled with patches from elsewhere in the image, from coarse to fine.

    for the image at 1/8, 1/4, 1/2 of its size, and whole:
        repeat   every patch over a hole finds the known patch that is nearest to what it is now
                 every missing pixel ← the mean of what these say of it, near patches first

Reference: Wexler, Shechtman & Irani 2007; Newson and others 2014.
"""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from twofold.core.progress import part, report
from twofold.kernels.patch_match import improve_matches, measure_matches, vote

PATCH = 7
SWEEPS, ROUNDS, LAST_ROUNDS = 4, 6, 3  # of the search in a round; rounds at each size of the image, and at the last
MAX_LEVELS = 6
MIN_MARGIN = 256  # pixels around the holes in which patches are looked for, or as many as the holes are across
TEXTURE_PIXELS, TEXTURE_WEIGHT = 9, 2.0  # side of the squares in which texture is measured; its weight beside colors
QUANTILE = 0.75  # of the distances, which says what near means


def find_wide(missing: np.ndarray, patch: int) -> np.ndarray:
    """The missing pixels of holes wider than a patch, with what is near in their narrow ends."""
    core = measure_depth(missing) > patch / 2
    return missing & (ndimage.distance_transform_edt(~core) <= 0.75 * patch) if core.any() else core


def find_window(wide: np.ndarray) -> tuple[slice, slice]:
    """The part of the image around its holes in which patches are looked for."""
    ends = [np.flatnonzero(wide.any(axis=axis))[[0, -1]] for axis in (1, 0)]
    margins = [max(MIN_MARGIN, int(high - low)) for low, high in ends]
    rows, columns = (
        slice(max(int(low) - margin, 0), int(high) + 1 + margin)
        for (low, high), margin in zip(ends, margins, strict=True)
    )
    return rows, columns


def measure_depth(missing: np.ndarray) -> np.ndarray:
    """Distance of each missing pixel to the nearest known one."""
    return ndimage.distance_transform_edt(missing)


def fill_from_elsewhere(X: np.ndarray, missing: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """The image (h,w,c), whose missing pixels hold a first guess, with patches of its known parts there.

    None if no known patch is large enough to be taken.
    """
    size, c = PATCH, X.shape[2]
    if min(missing.shape) < 2 * size or not find_usable(missing, size).any():
        return None
    texture = TEXTURE_WEIGHT * measure_texture(X[..., 0], missing)
    images, masks = [np.concatenate([X, texture], axis=2).astype(np.float32)], [missing]
    while len(images) < MAX_LEVELS and measure_depth(masks[-1]).max() > size / 2 and min(masks[-1].shape) >= 4 * size:
        smaller, mask = halve(images[-1], masks[-1])
        if not find_usable(mask, size).any():
            break
        images.append(smaller)
        masks.append(mask)
    state = rng.integers(1, 2**62, 1).astype(np.uint64)
    guess, matches = images[-1], None
    for level in range(len(images) - 1, -1, -1):
        with part(len(images) - 1 - level, len(images) - level, len(images)):
            if matches is not None:
                matches = double_matches(matches, masks[level], size)
                guess = images[level]
            guess, matches = refine(guess, masks[level], size, matches, state, ROUNDS if level else LAST_ROUNDS)
    return guess[..., :c]


def measure_texture(plane: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Mean size of the differences of neighbors, down and across (h,w,2), about each pixel; holes take the nearest.

    Small copies of the image lose what is fine in it, but not how much of that there was.
    """
    steps = [np.abs(np.diff(plane, axis=axis, append=plane.take([-1], axis))) for axis in (0, 1)]
    unsure = ndimage.binary_dilation(missing)
    weight = ndimage.uniform_filter((~unsure).astype(np.float64), TEXTURE_PIXELS)
    near = ndimage.distance_transform_edt(weight < 1e-6, return_distances=False, return_indices=True)
    found = [ndimage.uniform_filter(np.where(unsure, 0.0, step), TEXTURE_PIXELS) for step in steps]
    return np.stack([(one / np.maximum(weight, 1e-6))[tuple(near)] for one in found], axis=-1)


def halve(image: np.ndarray, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The image at half its size: means of four; a pixel is missing if one of its four is."""
    h, w = missing.shape[0] // 2 * 2, missing.shape[1] // 2 * 2
    fours = image[:h, :w].reshape(h // 2, 2, w // 2, 2, -1)
    mask = np.logical_or.reduce(missing[:h, :w].reshape(h // 2, 2, w // 2, 2), axis=(1, 3))
    return np.ascontiguousarray(fours.mean(axis=(1, 3))), mask


def find_usable(missing: np.ndarray, size: int) -> np.ndarray:
    """The places (h − p + 1, w − p + 1) of patches without a missing pixel."""
    windows = np.lib.stride_tricks.sliding_window_view(missing, (size, size))
    return np.logical_not(windows.any(axis=(2, 3)))


def refine(
    image: np.ndarray, missing: np.ndarray, size: int, matches: np.ndarray | None, state: np.ndarray, rounds: int
) -> tuple[np.ndarray, np.ndarray]:
    """The image with its holes filled again, round by round, and the matches of the last round."""
    usable = find_usable(missing, size)
    places = np.argwhere(~usable)
    sources = np.argwhere(usable)
    depth = measure_depth(missing)
    trust = 1.3 ** -np.lib.stride_tricks.sliding_window_view(depth, (size, size)).mean(axis=(2, 3))[~usable]
    found = np.zeros((*usable.shape, 2), np.int64)
    out = image.copy()
    if matches is None:
        found[~usable] = sources[np.arange(len(places)) % len(sources)]
    else:
        found[~usable] = matches[~usable]
        wrong = places[~usable[tuple(found[~usable].T)]]
        found[tuple(wrong.T)] = sources[np.arange(len(wrong)) % len(sources)]
        out = average_votes(out, missing, places, found, trust, size)
    for turn in range(rounds):
        distances = np.full(usable.shape, np.inf, np.float32)
        measure_matches(out, places, found, size, distances)
        for sweep in range(SWEEPS):
            improve_matches(out, places, usable, size, found, distances, sweep % 2 == 1, state)
        near = distances[~usable]
        scale = max(float(np.quantile(near, QUANTILE)), 1e-12)
        out = average_votes(out, missing, places, found, trust * np.exp(-near / (2 * scale)), size)
        report(turn + 1, rounds)
    return out, found


def average_votes(
    image: np.ndarray, missing: np.ndarray, places: np.ndarray, matches: np.ndarray, weights: np.ndarray, size: int
) -> np.ndarray:
    """The image whose missing pixels are weighted means of the matches over them."""
    sums, counts = np.zeros_like(image), np.zeros(missing.shape, image.dtype)
    vote(image, places, matches, (weights + 1e-12).astype(image.dtype), size, sums, counts)
    out = image.copy()
    out[missing] = sums[missing] / counts[missing][:, None]
    return out


def double_matches(matches: np.ndarray, missing: np.ndarray, size: int) -> np.ndarray:
    """The matches of an image of twice the size."""
    h, w = missing.shape[0] - size + 1, missing.shape[1] - size + 1
    i, j = np.meshgrid(np.arange(h), np.arange(w), indexing="ij")
    u, v = np.minimum(i // 2, matches.shape[0] - 1), np.minimum(j // 2, matches.shape[1] - 1)
    found = 2 * matches[u, v] + np.stack([i - 2 * u, j - 2 * v], axis=-1)
    return np.clip(found, 0, [h - 1, w - 1])
