"""Denoising: patches of an image are few numbers over directions or atoms learned from the image, and noise is not.

With groups of similar patches, each with principal directions of its own (`similar_patches.py`); or with one dictionary
for all patches:

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
from twofold.core.declaration import join_words
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
from twofold.signals.images.similar_patches import choose_size, clean_similar
from twofold.signals.pursuits import Coding, encode_rows, prepare_coding
from twofold.signals.thresholding import RULES, Thresholding, check_sigma, estimate_noise

METHODS = "pca", "ksvd", *RULES
PATCH = 8  # of dictionaries
RESIDUAL_OVER_NOISE, GAIN_PIXELS = 1.15, 64  # C: the allowed length of a residual over that of noise, for 64 pixels
LAMBDA_SIGMA, MAX_LAMBDA = 30 / 255, 15.0  # λ σ over the spread of the values: 30 for 8 bits
MAX_TRAINING_PATCHES = 65_536
MAX_DRAWN_PATCHES = 4 * MAX_TRAINING_PATCHES  # of which those that are nothing but noise are left out
MIN_NOISE = 1e-5  # of the range of values: the image stays as it is below
MIN_NOISE_FLOAT32 = 1e-3  # of the range of values: below, squares in single precision are too rough
MIN_NOISE_FLOAT32_GROUPS = 1e-2  # the same for covariances, which are inverted
ROUNDING_FACTOR = 1.01  # of the allowed square of a residual


def denoise_image(
    image: Any,
    sigma: float | None = None,
    *,
    method: str | None = None,
    basis: Any = None,
    level: str | float | None = None,
    shifts: int | None = None,
    patch: int | None = None,
    n_atoms: int | None = None,
    max_iter: int | None = None,
    random_state: Seed = None,
    progress: Callable[[float], Any] | None = None,
) -> np.ndarray:
    """Remove white noise from an image, by groups of similar patches, a learned dictionary, or thresholds in a basis.

    With groups, the patches most like the one at a place, within 31 x 31 places, are shrunk in the principal directions
    of their group: a coefficient of variance λ, noise included, is multiplied by ``(λ − σ²) / λ``. A second pass takes
    groups and variances from the first result, and multiplies those of the noisy patches by ``λ / (λ + σ²)``.

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
    method : {"pca", "ksvd", "hard", "soft"}, optional
        Groups of similar patches; a dictionary; or a hard or soft threshold of the coefficients in a basis, which is
        quickest. None means "pca", or "ksvd" if ``n_atoms`` or ``max_iter`` is given.
    basis : Basis, optional
        Of thresholds: an orthonormal one with ndim=2; None means ``Wavelet(2, "sym8")``.
    level : {"universal", "sure"} or float, optional
        The threshold, as in :func:`denoise_signal`.
    shifts : int, optional
        Cycle spinning: the mean over shifts along each axis. None means 4 with wavelets, 1 with other bases.
    patch : int, optional
        Patches are patch x patch pixels; smaller if the image is. None means 7 for groups, 8 for dictionaries.
    n_atoms : int, optional
        Of dictionaries; None means 256.
    max_iter : int, optional
        Sweeps of K-SVD; 0 leaves the overcomplete cosines that it starts from. None means 10.
    random_state : int, RandomState, Generator or None, default=None
        Draws the patches from which the atoms of a dictionary are learned.
    progress : callable, optional
        Called with the share of the work that is done, up to 1.0.

    Returns
    -------
    ndarray
        Of the same shape and dtype; integers are rounded and clipped to their range.

    Notes
    -----
    Colors are decorrelated first; patches of similar lightness are a group in each channel, and each channel
    has a dictionary of its own. With a dictionary, a patch that would need more atoms
    than half its pixels stays as it is, and so does an image whose noise is less than 1e-5 of its range. Patches are
    coded a strip at a time, so that memory stays at a few copies of the image.

    References
    ----------
    Zhang, Dong, Zhang & Shi (2010), *Pattern Recognition* 43, 1531-1549. Lebrun, Buades & Morel (2013), *SIAM Journal
    on Imaging Sciences* 6, 1665-1688. Elad & Aharon (2006), *IEEE Trans. Image Processing* 15, 3736-3745.

    Examples
    --------
    >>> from twofold.signals import denoise_image
    >>> rows, columns = np.mgrid[:64, :64]
    >>> clean = 100.0 * (rows > columns) + rows
    >>> noisy = clean + np.random.default_rng(0).normal(scale=20, size=clean.shape)
    >>> denoised = denoise_image(noisy, sigma=20)
    >>> bool(np.std(denoised - clean) < 6)                # of 20
    True
    """
    image = check_image(image)
    method = _choose_method(method, n_atoms, max_iter)
    n_atoms, max_iter = (256 if n_atoms is None else n_atoms), (10 if max_iter is None else max_iter)
    check_patches(PATCH if patch is None else patch, n_atoms, max_iter)
    sigma = check_sigma(sigma)
    thresholding = _choose_thresholding(method, basis, level, shifts)
    channels, seed = split_channels(image), seed_of(random_state)
    noises = [float(estimate_noise(channel)) if sigma is None else sigma for channel in channels]
    with report_share_to(progress):
        if method == "pca":
            _denoise_groups(channels, noises, choose_size(image.shape, patch))
            return join_channels(channels, image)
        size = min(int(patch or PATCH), *image.shape[:2])
        for i, noise in enumerate(noises):
            with part(i, i + 1, len(channels)):
                if thresholding is None:
                    rng = generator(seed, i)
                    channels[i] = _denoise_channel(channels[i], noise, size, int(n_atoms), int(max_iter), rng)
                else:
                    channels[i] = thresholding.denoise(channels[i], noise)
    return join_channels(channels, image)


def _choose_method(method: str | None, n_atoms: Any, max_iter: Any) -> str:
    """The method by name; options of dictionaries ask for one."""
    given = [(name, value) for name, value in (("n_atoms", n_atoms), ("max_iter", max_iter)) if value is not None]
    if method is None:
        return "ksvd" if given else "pca"
    if method not in METHODS:
        raise InputError(f'method="{method}": choose {join_words(METHODS)}.')
    if given and method != "ksvd":
        raise InputError(f'{given[0][0]}={given[0][1]!r} is for dictionaries. Use it with method="ksvd".')
    return method


def _choose_thresholding(method: str, *options: Any) -> Thresholding | None:
    """The thresholding that is asked for; None for patches."""
    if method in RULES:
        basis, *rest = options
        return Thresholding(2, basis, method, *rest)
    for name, value in zip(("basis", "level", "shifts"), options, strict=True):
        if value is not None:
            raise InputError(f'{name}={value!r} is for thresholds. Use it with method="hard" or method="soft".')
    return None


def _find_range(channel: np.ndarray) -> tuple[float, float]:
    return float(channel.min()), float(channel.max())


def _is_noisy(channel: np.ndarray, sigma: float) -> bool:
    """Check that the noise is more than rounding."""
    low, high = _find_range(channel)
    return low < high and sigma > MIN_NOISE * (high - low)


def _set_noise_to_one(
    channel: np.ndarray, sigma: float, min_noise: float = MIN_NOISE_FLOAT32
) -> tuple[np.ndarray, float]:
    """The channel in units of its noise, whatever its own were, in place if it can be; and what was subtracted."""
    low, high = _find_range(channel)
    middle = low + (high - low) / 2
    Y = channel.astype(channel.dtype if sigma > min_noise * (high - low) else np.float64, copy=False)
    Y -= middle
    Y /= sigma
    return Y, middle


def _denoise_groups(channels: list[np.ndarray], noises: list[float], size: int) -> None:
    """Replace the channels by clean ones."""
    noisy = [i for i, channel in enumerate(channels) if _is_noisy(channel, noises[i])]
    if not noisy:
        return
    dtype, guide = channels[0].dtype, None if noisy[0] == 0 else channels[0]
    ready = [_set_noise_to_one(channels[i], noises[i], MIN_NOISE_FLOAT32_GROUPS) for i in noisy]
    Y = np.stack([channel for channel, _ in ready])
    middles = [middle for _, middle in ready]
    ready.clear()  # to save memory
    for i in noisy:
        channels[i] = None  # type: ignore[call-overload]
    cleaned = clean_similar(Y, size, None if guide is None else guide.astype(Y.dtype, copy=False))
    for i, X, middle in zip(noisy, cleaned, middles, strict=True):
        X *= noises[i]
        X += middle
        channels[i] = X.astype(dtype, copy=False)


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
    if not _is_noisy(channel, sigma):
        return channel
    Y, middle = _set_noise_to_one(channel, sigma)
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
