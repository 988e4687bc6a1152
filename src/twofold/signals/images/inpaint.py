"""Inpainting: the missing pixels of a sparse patch follow from its known pixels.

    minimize  Σ_ij ‖M_ij (R_ij X − m_ij − u_ij D)‖²  with few numbers in u_ij, and X as it is where it is known
    X (h,w) image   R_ij takes the patch (p²) at ij, m_ij its mean, M_ij its known pixels   D (k,p²) atoms

First  K-SVD of patches with holes, from cosines, gives D
then   patches that show enough are coded by what is seen; elsewhere a smooth surface is laid
then   all patches with holes are coded as they are now, with smaller and smaller errors: from the border inwards
last   holes wider than a patch are filled with patches from elsewhere in the image (`exemplars.py`)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from twofold.core.checks import InputError
from twofold.core.engine.local import single_blas
from twofold.core.progress import part, report_share_to
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed
from twofold.signals.images.channels import check_image, join_channels, split_channels
from twofold.signals.images.exemplars import fill_from_elsewhere, find_wide, find_window
from twofold.signals.images.patches import (
    check_patches,
    count_places,
    learn_atoms,
    make_cosine_atoms,
    sum_over_strips,
    sum_patches,
    take_patches,
    take_patches_at,
)
from twofold.signals.pursuits import Coding, encode_rows, prepare_coding

PATCH = 8
MIN_SEEN, MIN_SEEN_OF_QUARTER = 1 / 3, 1 / 4  # of a patch that is coded by its known pixels alone
MAX_TRAINING_PATCHES = 20_000
MIN_PATCHES_PER_ATOM = 4  # with fewer the atoms stay cosines
TRAINING_ATOMS, TRAINING_ERROR = 3, 3 / 255  # most atoms a patch; error of a pixel, of the range, to stop at
FILLING_ATOMS, FILLING_ERROR = 16, 1.5 / 255  # the same when filling
PASS_ERRORS = 5 / 255, 4 / 255, 3 / 255, 2 / 255  # the same for the passes after
TENSION = 1 / 4  # one over the square of the width, in pixels, from which a gap is wide
CG_TOLERANCE, MAX_CG_STEPS = 1e-4, 50


def inpaint_image(
    image: Any,
    mask: Any,
    *,
    method: str | None = None,
    patch: int = PATCH,
    n_atoms: int = 256,
    max_iter: int = 10,
    random_state: Seed = None,
    progress: Callable[[float], Any] | None = None,
) -> np.ndarray:
    """Fill the missing pixels of an image with a dictionary learned from the others, or with patches from elsewhere.

    Holes wider than a patch are filled with known patches, found from coarse to fine copies of the image: each patch
    over a hole looks for the nearest known one, and a pixel is the mean of what those over it say. For other holes a
    patch, without its mean, is a few atoms, found by orthogonal matching pursuit on what is seen of it: atoms are cut
    to the seen pixels and compared by their length there. The fillings of overlapping patches are averaged.

    Parameters
    ----------
    image : array of shape (h, w) or (h, w, c)
        Gray or red, green, blue, of any range; integers or floats. Of 2 or 4 channels the last is alpha, which stays.
        What it holds where pixels are missing does not matter.
    mask : bool array of shape (h, w)
        True where a pixel is missing.
    method : {"dictionary", "exemplars"}, optional
        Fill every hole in one way. None means patches from elsewhere for wide holes, a dictionary for others.
    patch : int, default=8
        Patches of the dictionary are patch x patch pixels; smaller if the image is.
    n_atoms : int, default=256
    max_iter, random_state, progress
        As in :func:`denoise_image`.

    Returns
    -------
    ndarray
        Of the same shape and dtype; known pixels are unchanged.

    Notes
    -----
    Atoms are learned from patches of which a third is known, and a quarter of each quarter; where these are too few,
    as with 80 % of the pixels missing at random, the atoms stay cosines, and linear interpolation may do better. With
    ``method="dictionary"``, holes larger than a patch are filled by a smooth surface, and texture grows into them by a
    few pixels only: nearer in the mean square, but blurred.

    References
    ----------
    Mairal, Elad & Sapiro (2008), *IEEE Trans. Image Processing* 17, 53-69. Guleryuz (2006), *IEEE Trans. Image
    Processing* 15, 539-554. Wexler, Shechtman & Irani (2007), *IEEE Trans. Pattern Analysis* 29, 463-476. Newson and
    others (2014), *SIAM Journal on Imaging Sciences* 7, 1993-2019.

    Examples
    --------
    >>> from twofold.signals import inpaint_image
    >>> rows, columns = np.mgrid[:48, :48]
    >>> image = np.sin(rows / 3) + np.cos((rows + columns) / 4)
    >>> missing = np.random.default_rng(0).random(image.shape) < 0.5
    >>> filled = inpaint_image(image, missing, n_atoms=64, max_iter=3, random_state=0)
    >>> bool(np.abs(filled - image).max() < 0.2), bool((filled == image)[~missing].all())
    (True, True)
    """
    if method not in (None, "dictionary", "exemplars"):
        raise InputError(f'method="{method}": choose "dictionary" or "exemplars".')
    check_patches(patch, n_atoms, max_iter)
    given = np.array(image)
    missing = _check_mask(mask, given)
    colors = given[..., :-1] if given.ndim == 3 and given.shape[2] in (2, 4) else given
    colors[missing] = 0
    check_image(given)
    if not missing.any():
        return given
    channels, seed = split_channels(given), seed_of(random_state)
    job = _Job(missing, min(int(patch), *given.shape[:2]), int(n_atoms), int(max_iter))
    wide = find_wide(missing, int(patch)) if method is None else missing & (method == "exemplars")
    around = find_window(wide) if (wide == missing).all() else None
    if around is not None and wide[around].size < wide.size:  # the rest of a large image plays no part
        found = inpaint_image(
            given[around], missing[around], method="exemplars", random_state=random_state, progress=progress
        )
        given[around] = found
        return given
    share = 0.8 if wide.any() else 1.0
    with report_share_to(progress):
        for i in range(len(channels)):
            with part(share * i, share * (i + 1), len(channels)):
                if (wide == missing).all():  # a first guess, which patches from elsewhere replace
                    channels[i] = _fill_smoothly(channels[i], missing)
                else:
                    channels[i] = _fill_channel(channels[i], job, generator(seed, i))
        if wide.any():
            with part(share, 1):
                channels = _fill_wide(channels, wide, generator(seed, len(channels)))
    out = join_channels(channels, given)
    out[~missing] = given[~missing]
    return out


def _fill_smoothly(channel: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """The channel with a smooth surface in its holes."""
    known = channel[~missing]
    low, spread = known.min(), known.max() - known.min()
    return fit_surface((channel - low) / spread, missing) * spread + low if spread else np.where(missing, low, channel)


def _fill_wide(channels: list[np.ndarray], wide: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """The channels, which have a first guess everywhere, with patches from elsewhere in wide holes."""
    window = find_window(wide)
    missing = wide[window]
    X = np.stack([channel[window] for channel in channels], axis=2)
    low, spread = X[..., 0].min(), np.ptp(X[..., 0])
    found = fill_from_elsewhere((X - low) / (spread or 1), missing, rng)
    for channel, plane in zip(channels, [] if found is None else np.moveaxis(found, 2, 0), strict=found is not None):
        channel[window][missing] = plane[missing] * (spread or 1) + low
    return channels


class _Job(NamedTuple):
    """The options that all channels share."""

    missing: np.ndarray  # (h,w)
    size: int
    n_atoms: int
    max_iter: int


def _check_mask(mask: Any, image: np.ndarray) -> np.ndarray:
    mask = np.asarray(mask)
    if mask.shape != image.shape[:2]:
        raise InputError(f"mask has shape {mask.shape}, the image {image.shape}; a mask is (h, w), one for all.")
    if mask.dtype != bool:
        raise InputError(f"mask holds {mask.dtype}; True marks what is missing. Give mask > 0, or mask.astype(bool).")
    if mask.all() and mask.size:
        raise InputError("mask is True everywhere: nothing is left to learn from. True marks what is missing.")
    return mask


def _fill_channel(channel: np.ndarray, job: _Job, rng: np.random.Generator) -> np.ndarray:
    """One channel without its holes."""
    known = channel[~job.missing]
    low, high = float(known.min()), float(known.max())
    if low == high:
        return np.where(job.missing, known[0], channel)
    Y = (channel - np.asarray(low, channel.dtype)) / np.asarray(high - low, channel.dtype)
    X, atoms = fit_surface(Y, job.missing), make_cosine_atoms(job.n_atoms, job.size).astype(Y.dtype)
    if job.max_iter:
        with part(0, 0.5):
            atoms = _learn_atoms(X, atoms, job, rng)
    with part(0.5, 1):
        for i, (by_seen, error) in enumerate([(True, FILLING_ERROR), *((False, error) for error in PASS_ERRORS)]):
            c = prepare_coding(atoms, Y.dtype, FILLING_ATOMS if by_seen else None, error * job.size)
            with part(i, i + 1, 1 + len(PASS_ERRORS)):
                X = _recode_patches(X, job.missing, by_seen, c)
    return X * np.asarray(high - low, X.dtype) + np.asarray(low, X.dtype)


def _learn_atoms(X: np.ndarray, atoms: np.ndarray, job: _Job, rng: np.random.Generator) -> np.ndarray:
    """The atoms after K-SVD of patches that are mostly known."""
    count = count_places(X.shape, job.size)
    places = rng.choice(count, min(count, 4 * MAX_TRAINING_PATCHES), replace=False)
    seen = take_patches_at(~job.missing, job.size, places)
    able = np.flatnonzero(_is_mostly_known(seen, job.size))[:MAX_TRAINING_PATCHES]
    if len(able) < MIN_PATCHES_PER_ATOM * len(atoms):
        return atoms
    seen, patches = seen[able], take_patches_at(X, job.size, places[able])
    patches = np.where(seen, patches - patches.mean(axis=1, keepdims=True), np.nan)
    error = TRAINING_ERROR * float(np.sqrt(seen.sum(axis=1).mean()))
    return learn_atoms(patches, atoms, TRAINING_ATOMS, error, job.max_iter).astype(X.dtype)


def _is_mostly_known(seen: np.ndarray, size: int) -> np.ndarray:
    """The patches (m,) with enough known pixels, and some in each quarter."""
    cuts = [0, size // 2]
    quarters = np.add.reduceat(
        np.add.reduceat(seen.reshape(-1, size, size), cuts, axis=1, dtype=np.int32), cuts, axis=2
    )
    sides = np.array([max(size // 2, 1), size - size // 2])
    return (seen.mean(axis=1) >= MIN_SEEN) & (quarters >= MIN_SEEN_OF_QUARTER * np.outer(sides, sides)).all(axis=(1, 2))


def _recode_patches(X: np.ndarray, missing: np.ndarray, by_seen: bool, c: Coding) -> np.ndarray:
    """The image with its missing pixels replaced by the mean of the coded patches over them, where there are any.

    The weight of a patch is the share of it that is known.
    """
    size, zeros = round(c.atoms.shape[1] ** 0.5), (np.zeros_like(X), np.zeros_like(X))
    total, votes = sum_over_strips(_recode_strip, (X, missing, by_seen, size, c), size, zeros)
    filled = missing & (votes > 0)
    out = X.copy()
    out[filled] = total[filled] / votes[filled]
    return out


def _recode_strip(
    rows: range, X: np.ndarray, missing: np.ndarray, by_seen: bool, size: int, c: Coding
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the coded patches, and their weights over each pixel; those without holes are left out."""
    seen = take_patches(~missing, size, rows)
    share = seen.mean(axis=1)
    chosen = np.flatnonzero((share < 1) & (_is_mostly_known(seen, size) if by_seen else share > 0))
    patches, seen = take_patches(X, size, rows)[chosen], seen[chosen]
    means = patches.mean(axis=1, keepdims=True)
    patches = patches - means
    codes = encode_rows(np.where(seen, patches, 0) if by_seen else patches, seen if by_seen else None, c)
    coded, votes = np.zeros((len(share), size * size), X.dtype), np.zeros((len(share), size * size), X.dtype)
    votes[chosen] = share[chosen, None]
    coded[chosen] = (codes @ c.atoms + means) * votes[chosen]
    return sum_patches(coded, size, X.shape[1]), sum_patches(votes, size, X.shape[1])


# ---- a smooth surface through the known pixels --------------------------------------------------------------------


def fit_surface(channel: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """The channel (h,w) with its missing pixels filled, within the range of the known ones.

        minimize  ‖ΔX‖² + t‖∇X‖²  with X as it is where it is known
        Δ: the sum of the four neighbors, minus four times the pixel;  ∇: the differences of neighbors

    The first term goes on with slopes, which suits gaps of a few pixels; over wide ones it would swing beyond what is
    around them, and the tension t holds it there. First for the image at half its size, and so on; every size starts
    from the next smaller one, and a few conjugate gradients do the rest.
    """
    known = channel[~missing]
    with single_blas():
        found = _smooth(np.where(missing, 0, channel).astype(np.float64), missing, TENSION)
    return np.where(missing, np.clip(found, known.min(), known.max()), channel).astype(channel.dtype)


def _smooth(X: np.ndarray, missing: np.ndarray, tension: float) -> np.ndarray:
    """The surface through X, which is 0 where it is missing."""
    n = int(missing.sum())
    if n == 0:
        return X
    h, w = X.shape
    fours = (np.pad(A, ((0, h % 2), (0, w % 2))).reshape(-(-h // 2), 2, -(-w // 2), 2) for A in (X, ~missing))
    total, count = (A.sum(axis=(1, 3)) for A in fours)
    half = _smooth(total / np.maximum(count, 1), count == 0, 4 * tension)
    start = _double_rows(_double_rows(half).T).T[:h, :w]

    def force(Y: np.ndarray) -> np.ndarray:
        bend = _apply_laplacian(Y)
        return (_apply_laplacian(bend) - tension * bend)[missing]

    def bent(hidden: np.ndarray) -> np.ndarray:
        Y = np.zeros((h, w))
        Y[missing] = hidden
        return force(Y)

    operator = LinearOperator((n, n), matvec=bent, dtype=np.float64)
    target = -force(X)
    out = X.copy()
    out[missing] = cg(operator, target, x0=start[missing], rtol=CG_TOLERANCE, maxiter=MAX_CG_STEPS)[0]
    return out


def _apply_laplacian(X: np.ndarray) -> np.ndarray:
    out = np.zeros_like(X)
    down, across = X[1:] - X[:-1], X[:, 1:] - X[:, :-1]
    out[:-1] += down
    out[1:] -= down
    out[:, :-1] += across
    out[:, 1:] -= across
    return out


def _double_rows(A: np.ndarray) -> np.ndarray:
    """Twice as many rows, interpolated linearly."""
    around = np.concatenate([A[:1], A, A[-1:]])
    return np.stack([0.75 * A + 0.25 * around[:-2], 0.75 * A + 0.25 * around[2:]], axis=1).reshape(-1, A.shape[1])
