"""How well holes are filled: known pixels are hidden in holes of the same shape, elsewhere in the image.

site     a hole moved to where its pixels are known; single pixels, where those that are missing are scattered
figure   PSNR over the sites, in which each distance to the nearest known pixel weighs as it does in the holes
spread   how far the PSNR of the holes may be from that: sites differ, and the holes are as few or as many themselves
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import ndimage

from twofold.core.seeds import generator

HIDDEN_SHARE, MAX_HIDDEN_SHARE = 0.05, 0.2  # of the known pixels: to hide, and at most, for MIN_SITES
MIN_SITES, MIN_HIDDEN = 8, 400
MAX_SHIFTS = 40  # moves of the holes that are tried
MIN_KNOWN_SHARE = 0.9  # of a hole where it is moved to
MAX_SCATTERED_DEPTH = 2.5  # pixels to the nearest known one: holes are scattered pixels
MIN_PIECE, DEPTHS_PER_PIECE = 48, 6  # pixels across a piece of a long hole; or as many as it is deep, times this
MIN_REACH_PIXELS = 24  # how far a hole is moved at first, beside its own size
DEPTH_EDGES = 1.2, 1.8, 2.5, 4, 6, 9, 13, 19, 28  # pixels: bins of the distance to the nearest known one
RESAMPLES = 400
MIN_SPREAD = 0.3  # dB: hidden pixels leave fewer known ones
CONFIDENCE = 0.99


class Quality(NamedTuple):
    """PSNR in dB, and how far the truth may be from it."""

    psnr: float
    spread: float


def hide_pixels(holes: np.ndarray, seed: int) -> np.ndarray:
    """The site of each known pixel (h,w) that is to be hidden, 1, 2, ...; 0 elsewhere."""
    rng, known = generator(seed, 1), int((~holes).sum())
    labels = cut_holes(holes)
    sites = np.zeros(holes.shape, np.int64)
    if not labels.any() or not known:
        return sites
    sizes = np.bincount(labels.ravel())[1:]
    wanted = max(HIDDEN_SHARE * known, min(MIN_SITES * float(np.mean(sizes)), MAX_HIDDEN_SHARE * known), 1)
    pieces = ndimage.find_objects(labels)
    corners = np.array([[axis.start for axis in piece] + [axis.stop for axis in piece] for piece in pieces])
    across = float(np.max(corners[:, 2:] - corners[:, :2], initial=1))
    for turn in range(MAX_SHIFTS):
        hidden = int((sites > 0).sum())
        if hidden >= wanted:
            break
        reach = np.minimum(across + MIN_REACH_PIXELS * (1 + turn // 8), holes.shape).astype(int)  # near is more alike
        move_holes(labels, corners, sites, wanted - hidden, rng.integers(1 - reach, reach), rng)
    if (sites > 0).sum() < min(wanted, MIN_HIDDEN) / 2:
        fill_up(holes, sites, wanted, rng)
    return sites


def find_neighborhood(holes: np.ndarray) -> tuple[slice, slice]:
    """The part of a large image where pixels are hidden: around its holes, with room for their pieces."""
    ends = [np.flatnonzero(holes.any(axis=axis))[[0, -1]] for axis in (1, 0)]
    inner = tuple(slice(low, high + 1) for low, high in ends)
    pieces = ndimage.find_objects(cut_holes(holes[inner]))
    margin = 2 * max(axis.stop - axis.start for piece in pieces for axis in piece) + 6 * MIN_REACH_PIXELS
    rows, columns = (slice(max(low - margin, 0), high + 1 + margin) for low, high in ends)
    return rows, columns


def cut_holes(holes: np.ndarray) -> np.ndarray:
    """The number of the hole that a pixel (h,w) is in, 1, 2, ...; long ones are cut into pieces; 0 is known."""
    labels, count = ndimage.label(holes)
    if not count:
        return labels
    depth = ndimage.distance_transform_edt(holes)
    rows, columns = np.nonzero(holes)
    which = labels[rows, columns] - 1
    sides = np.maximum(
        MIN_PIECE, np.ceil(DEPTHS_PER_PIECE * ndimage.maximum(depth, labels, range(1, count + 1)))
    ).astype(int)
    starts = np.array([[axis.start for axis in piece] for piece in ndimage.find_objects(labels)])
    keys = np.stack([which, (rows - starts[which, 0]) // sides[which], (columns - starts[which, 1]) // sides[which]])
    labels[rows, columns] = np.unique(keys, axis=1, return_inverse=True)[1].ravel() + 1
    return labels


def move_holes(
    labels: np.ndarray,
    corners: np.ndarray,
    sites: np.ndarray,
    room: float,
    shift: np.ndarray,
    rng: np.random.Generator,
) -> None:
    """Mark holes that are mostly known where they are moved to, as sites until there is no room."""
    shape, last, sizes = np.array(labels.shape), int(sites.max()), np.bincount(labels.ravel())[1:]
    inside = (corners[:, :2] + shift >= 0).all(axis=1) & (corners[:, 2:] + shift <= shape).all(axis=1)
    moved = np.roll(labels, shift, axis=(0, 1))
    free = (labels == 0) & (ndimage.maximum_filter(sites, 5) == 0)
    share = np.bincount(moved[free], minlength=len(sizes) + 1)[1:] / sizes
    able = rng.permutation(np.flatnonzero(inside & (share >= MIN_KNOWN_SHARE))) + 1
    total = np.cumsum(sizes[able - 1])
    able = able[(total <= room) | ((total - sizes[able - 1] < room) & (sizes[able - 1] <= 2 * room))]
    numbers = np.zeros(len(sizes) + 1, np.int64)
    numbers[able] = last + 1 + np.arange(len(able))
    new = np.where(free, numbers[moved], 0)
    sites[new > 0] = new[new > 0]


def fill_up(holes: np.ndarray, sites: np.ndarray, wanted: float, rng: np.random.Generator) -> None:
    """Mark more sites: single pixels if holes are scattered, else what is known of moved holes, in a window."""
    known = np.flatnonzero(~holes & (sites == 0))
    depth = ndimage.distance_transform_edt(holes)
    if np.quantile(depth[holes], 0.95) <= MAX_SCATTERED_DEPTH:
        places = rng.permutation(known)[: int(min(wanted, MAX_HIDDEN_SHARE * len(known))) or 1]
    else:
        moved = np.roll(holes, rng.integers(0, holes.shape), axis=(0, 1)).ravel()[known]
        places = known[moved]
        most = max(int(MAX_HIDDEN_SHARE * len(known)), 1)
        first = int(rng.integers(max(len(places) - most, 0) + 1))
        places = places[first : first + most]  # neighbors stay together
        new = np.zeros(holes.shape, bool)
        new.flat[places] = True
        sites[new] = cut_holes(new)[new] + sites.max()
        return
    sites.flat[places] = sites.max() + 1 + np.arange(len(places))


def measure_on_hidden(
    pixels: np.ndarray, holes: np.ndarray, seed: int, peak: float, fills: dict[str, Callable[..., np.ndarray]]
) -> tuple[int, dict[str, Quality]]:
    """Hide pixels, and return their number and the quality of each function that fills (image, missing)."""
    window = find_neighborhood(holes)
    pixels, holes = pixels[window], holes[window]
    sites = hide_pixels(holes, seed)
    hidden = sites > 0
    missing = holes | hidden
    if not hidden.any() or missing.all():
        return 0, {}
    depths = np.digitize(ndimage.distance_transform_edt(missing), DEPTH_EDGES)
    weights = weigh_depths(depths, holes, hidden)
    groups, number = np.unique(sites[hidden], return_inverse=True)[1], count_sites(cut_holes(holes))
    found = {}
    for name, fill in fills.items():
        error = np.subtract(fill(pixels, missing)[hidden], pixels[hidden], dtype=np.float64)
        squares = np.square(error).reshape(len(error), -1).mean(axis=1) * weights
        found[name] = summarize(squares, weights, groups, number, peak, generator(seed, 2))
    return int(hidden.sum()), found


def weigh_depths(depths: np.ndarray, holes: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Weights of hidden pixels that make depths as frequent as in the holes, where what is deeper is the deepest."""
    deepest = depths[hidden].max()
    want = np.bincount(np.minimum(depths[holes], deepest), minlength=deepest + 1).astype(np.float64)
    have = np.bincount(depths[hidden], minlength=deepest + 1)
    for i in range(deepest, 0, -1):  # depths that were not hidden go to the next
        if not have[i - 1]:
            want[i], want[i - 1] = want[i] + want[i - 1], 0
    weights = (want / np.maximum(have, 1))[depths[hidden]]
    return weights / weights.mean()


def count_sites(labels: np.ndarray) -> float:
    """Count the sites by their pixels: few large ones weigh more than many small ones."""
    sizes = np.bincount(labels[labels > 0]).astype(np.float64)
    return float(sizes.sum() ** 2 / np.square(sizes).sum())


def summarize(
    squares: np.ndarray, weights: np.ndarray, groups: np.ndarray, sites: float, peak: float, rng: np.random.Generator
) -> Quality:
    """PSNR of weighted squared errors, and the spread of one more set of `sites` about it."""
    sums, sizes = np.bincount(groups, squares), np.bincount(groups, weights)
    n, total = len(sums), float(sums.sum() / sizes.sum())
    if total == 0:
        return Quality(np.inf, 0.0)
    quality = 10 * np.log10(peak**2 / total)
    if n < 2:
        return Quality(quality, np.inf)
    drawn = rng.integers(n, size=(RESAMPLES, n))
    means = np.maximum(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), 1e-12 * total)
    effective = float(sizes.sum() ** 2 / np.square(sizes).sum())
    deviation = float(np.std(10 * np.log10(means))) * (1 + effective / sites) ** 0.5
    from scipy.stats import t as student

    width = student.ppf((1 + CONFIDENCE) / 2, max(effective - 1, 1))
    return Quality(quality, MIN_SPREAD + float(width * deviation))


def describe_quality(quality: Quality) -> str:
    """Decibels with their spread.

    >>> describe_quality(Quality(29.44, 0.82))
    '29.4 ± 0.8 dB'
    """
    if not np.isfinite(quality.psnr):
        return "exact"
    about = f"about {quality.psnr:.1f} dB"
    return f"{quality.psnr:.1f} ± {quality.spread:.1f} dB" if np.isfinite(quality.spread) else about
