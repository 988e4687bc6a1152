"""Denoising: an image is sparse over a dictionary learned from its own patches, and noise is not.

    minimize  λ‖X − Y‖² + Σ_ij ‖R_ij X − m_ij − u_ij D‖²  with as few numbers in u_ij as bring its patch within C σ p
    Y (h,w) noisy image   X (h,w) clean one   R_ij takes the patch (p²) at ij, m_ij its mean   D (k,p²) atoms

First  K-SVD of a sample of the patches of Y, from cosines, gives D
then   every patch is coded by orthogonal matching pursuit, and X = (λY + Σ R_ijᵀ (m_ij + u_ij D)) / (λ + Σ R_ijᵀ 1)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import gammainc, gammaincinv

from twofold.core.checks import InputError
from twofold.core.progress import part, report_share_to
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed
from twofold.signals.images.channels import check_image, join_channels, split_channels
from twofold.signals.images.patches import (
    check_patches,
    count_patches,
    count_places,
    learn_atoms,
    make_cosine_atoms,
    sum_over_strips,
    sum_patches,
    take_patches,
    take_patches_at,
)
from twofold.signals.pursuits import Coding, encode_rows, prepare_coding
from twofold.signals.thresholding import RULES, Thresholding, check_sigma, estimate_noise

RESIDUAL_OVER_NOISE, GAIN_PIXELS = 1.15, 64  # C: the allowed length of a residual over that of noise, for 64 pixels
LAMBDA_SIGMA, MAX_LAMBDA = 30 / 255, 15.0  # λ σ over the spread of the values: 30 for 8 bits
MAX_TRAINING_PATCHES = 65_536
MAX_DRAWN_PATCHES = 4 * MAX_TRAINING_PATCHES  # of which those that are nothing but noise are left out
MIN_NOISE = 1e-5  # of the range of values: the image stays as it is below
MIN_NOISE_FLOAT32 = 1e-3  # of the range of values: below, squares in single precision are too rough
ROUNDING_FACTOR = 1.01  # of the allowed square of a residual


def denoise_image(
    image: Any,
    sigma: float | None = None,
    *,
    method: str = "ksvd",
    basis: Any = None,
    level: str | float | None = None,
    shifts: int | None = None,
    patch: int = 8,
    n_atoms: int = 256,
    max_iter: int = 10,
    random_state: Seed = None,
    progress: Callable[[float], Any] | None = None,
) -> np.ndarray:
    """Remove white noise from an image, with a dictionary learned from it or by thresholding in a basis.

    With a dictionary, every overlapping patch, without its mean, is coded with as few atoms as leave
    ``‖patch − code · atoms‖ ≤ C σ p``. The image is ``(λ noisy + Σ coded patches) / (λ + patches over the pixel)``.
    C = 1.15 for p = 8 pixels across, and for other p what is as likely for noise; λ = 30/σ for values that spread over
    255, and at most 15.

    Parameters
    ----------
    image : array of shape (h, w) or (h, w, c)
        Gray or red, green, blue, of any range; integers or floats. Of 2 or 4 channels the last is alpha, which stays.
    sigma : float, optional
        Standard deviation of the noise, in the image's own units. None: estimated, for each channel.
    method : {"ksvd", "hard", "soft"}, default="ksvd"
        A dictionary, or a hard or soft threshold of the coefficients in a basis, which is far quicker.
    basis : Basis, optional
        Of thresholds: an orthonormal one with ndim=2; None means ``Wavelet(2, "sym8")``.
    level : {"universal", "sure"} or float, optional
        The threshold, as in :func:`denoise_signal`.
    shifts : int, optional
        Cycle spinning: the mean over shifts along each axis. None means 4 with wavelets, 1 with other bases.
    patch : int, default=8
        Of dictionaries: patches are patch x patch pixels; smaller if the image is.
    n_atoms : int, default=256
    max_iter : int, default=10
        Sweeps of K-SVD; 0 leaves the overcomplete cosines that it starts from.
    random_state : int, RandomState, Generator or None, default=None
        Draws the patches from which the atoms are learned.
    progress : callable, optional
        Called with the share of the work that is done, up to 1.0.

    Returns
    -------
    ndarray
        Of the same shape and dtype; integers are rounded and clipped to their range.

    Notes
    -----
    Colors are decorrelated first, and each channel has a dictionary of its own. A patch that would need more atoms
    than half its pixels stays as it is, and so does an image whose noise is less than 1e-5 of its range. Patches are
    coded a strip at a time, so that memory stays at a few copies of the image.

    References
    ----------
    Elad & Aharon (2006), *IEEE Trans. Image Processing* 15, 3736-3745.

    Examples
    --------
    >>> from twofold.signals import denoise_image
    >>> rows, columns = np.mgrid[:64, :64]
    >>> clean = 100.0 * (rows > columns) + rows
    >>> noisy = clean + np.random.default_rng(0).normal(scale=20, size=clean.shape)
    >>> denoised = denoise_image(noisy, sigma=20, random_state=0)
    >>> bool(np.std(denoised - clean) < 6)                # of 20
    True
    """
    image = check_image(image)
    check_patches(patch, n_atoms, max_iter)
    sigma = check_sigma(sigma)
    thresholding = _choose_thresholding(method, basis, level, shifts)
    channels, seed = split_channels(image), seed_of(random_state)
    size = min(int(patch), *image.shape[:2])
    with report_share_to(progress):
        for i in range(len(channels)):
            noise = estimate_noise(channels[i]) if sigma is None else sigma
            with part(i, i + 1, len(channels)):
                if thresholding is None:
                    rng = generator(seed, i)
                    channels[i] = _denoise_channel(channels[i], noise, size, int(n_atoms), int(max_iter), rng)
                else:
                    channels[i] = thresholding.denoise(channels[i], noise)
    return join_channels(channels, image)


def _choose_thresholding(method: str, *options: Any) -> Thresholding | None:
    """The thresholding that is asked for; None for a dictionary."""
    if method not in ("ksvd", *RULES):
        raise InputError(f'method="{method}": choose "ksvd", "hard" or "soft".')
    if method != "ksvd":
        basis, *rest = options
        return Thresholding(2, basis, method, *rest)
    for name, value in zip(("basis", "level", "shifts"), options, strict=True):
        if value is not None:
            raise InputError(f'{name}={value!r} is for thresholds. Use it with method="hard" or method="soft".')
    return None


def allow_residual(size: int) -> float:
    """The longest residual of a patch under noise of 1: as likely for every size as C p is for 8 x 8."""
    likely = gammainc(GAIN_PIXELS / 2, RESIDUAL_OVER_NOISE**2 * GAIN_PIXELS / 2)
    return float(np.sqrt(2 * gammaincinv(size * size / 2, likely)))


def limit_atoms(size: int) -> int:
    """The most atoms of a patch: half as many as it has pixels."""
    return max(1, size * size // 2)


def _denoise_channel(
    channel: np.ndarray, sigma: float, size: int, n_atoms: int, max_iter: int, rng: np.random.Generator
) -> np.ndarray:
    """One channel without its noise; its array is overwritten, to save memory."""
    low, high = float(channel.min()), float(channel.max())
    if low == high or sigma <= MIN_NOISE * (high - low):
        return channel
    middle = low + (high - low) / 2
    Y = channel.astype(channel.dtype if sigma > MIN_NOISE_FLOAT32 * (high - low) else np.float64, copy=False)
    Y -= middle
    Y /= sigma  # noise of 1, whatever the units are
    places = count_places(Y.shape, size)
    training = max_iter * min(MAX_TRAINING_PATCHES, places)
    share = training / (training + places)
    atoms = make_cosine_atoms(n_atoms, size).astype(Y.dtype)
    if max_iter:
        with part(0, share):
            atoms = _learn_atoms(Y, atoms, size, max_iter, rng)
    lambda_ = min(MAX_LAMBDA, LAMBDA_SIGMA * float(np.subtract(*np.percentile(Y, [99, 1]))))
    with part(share, 1):
        X = _recode_patches(Y, atoms, size)
    Y *= lambda_
    X += Y
    weights = count_patches(Y.shape, size)
    weights += lambda_
    X /= weights
    X *= sigma
    X += middle
    return X.astype(channel.dtype, copy=False)


def _learn_atoms(Y: np.ndarray, atoms: np.ndarray, size: int, max_iter: int, rng: np.random.Generator) -> np.ndarray:
    """The atoms after K-SVD of patches that are more than noise."""
    count = count_places(Y.shape, size)
    patches, _, more = _center_patches(
        take_patches_at(Y, size, rng.choice(count, min(count, MAX_DRAWN_PATCHES), replace=False))
    )
    patches = patches[more][:MAX_TRAINING_PATCHES]
    if not len(patches):
        return atoms
    return learn_atoms(patches, atoms, limit_atoms(size), allow_residual(size), max_iter)


def _recode_patches(Y: np.ndarray, atoms: np.ndarray, size: int) -> np.ndarray:
    """Sum of all coded patches, each where it belongs."""
    c = prepare_coding(atoms, Y.dtype, limit_atoms(size), allow_residual(size))
    return sum_over_strips(_recode_strip, (Y, c), size, (np.zeros_like(Y),))[0]


def _recode_strip(rows: range, Y: np.ndarray, c: Coding) -> tuple[np.ndarray]:
    """The sum of the coded patches of some rows of places; a patch that is not sparse is not changed."""
    size = math.isqrt(c.atoms.shape[1])
    patches, means, more = _center_patches(take_patches(Y, size, rows))
    coded = np.repeat(means, size * size, axis=1)
    patches = patches[more]
    found = encode_rows(patches, None, c) @ c.atoms
    patches -= found
    missed = _sum_squares(patches) > ROUNDING_FACTOR * c.error**2
    found[missed] += patches[missed]
    coded[more] += found
    return (sum_patches(coded, size, Y.shape[1]),)


def _center_patches(patches: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Patches without their means, the means, and which patches are more than noise."""
    means = patches.mean(axis=1, keepdims=True)
    patches -= means
    return patches, means, _sum_squares(patches) > allow_residual(math.isqrt(patches.shape[1])) ** 2


def _sum_squares(patches: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", patches, patches)
