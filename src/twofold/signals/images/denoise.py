"""Denoising: an image is sparse over a dictionary that its own patches teach, and noise is not.

    minimize  λ‖X − Y‖² + Σ_ij ‖R_ij X − m_ij − u_ij D‖²  with as few numbers in u_ij as bring its patch within C σ p
    Y (h,w) noisy image   X (h,w) clean one   R_ij takes the patch (p²) at ij, m_ij its mean   D (k,p²) atoms

First  K-SVD of a sample of the patches of Y, from cosines, gives D
then   every patch is coded by orthogonal matching pursuit, and X = (λY + Σ R_ijᵀ (m_ij + u_ij D)) / (λ + Σ R_ijᵀ 1)
Reference: Elad & Aharon 2006.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import gammainc, gammaincinv

from twofold.core.checks import InputError
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed
from twofold.signals._progress import Progress, split_progress
from twofold.signals.bases.wavelet import Wavelet
from twofold.signals.images import _patches
from twofold.signals.images._channels import check_image, join_channels, split_channels
from twofold.signals.sparse_coding.pursuits import Coding, encode_rows, prepare_coding

GAIN, OF = 1.15, 64  # C: what is left of a patch of 64 pixels may be this much longer than noise is
TRUST, MOST = 30 / 255, 15.0  # λ σ over the spread of the image's values: 30 for the values of 8 bits; and λ at most
TAUGHT = 65_536  # patches that teach the atoms, at most,
DRAWN = 4 * TAUGHT  # of at most so many that are looked at: those that are nothing but noise teach none
NORMAL_MAD = 0.674_489_750_196_082  # median of |x| for a standard normal x
NO_NOISE = 1e-5  # of the range of values: less noise than this is none
FAINT = 1e-3  # of the range of values: less noise than this is below what squares in single precision tell
SLACK = 1.01  # of the square of what may be left: rounding


def denoise_image(
    image: Any,
    sigma: float | None = None,
    *,
    patch: int = 8,
    n_atoms: int = 256,
    max_iter: int = 10,
    random_state: Seed = None,
    progress: Progress | None = None,
) -> np.ndarray:
    """Remove white noise from an image with a dictionary learned from the noisy image itself.

    Every overlapping patch, without its mean, is coded with as few atoms as leave ``‖patch − code · atoms‖ ≤ C σ p``.
    The image is ``(λ noisy + Σ coded patches) / (λ + patches over the pixel)``. C = 1.15 for p = 8 pixels across, and
    for other p what is as likely for noise; λ = 30/σ for values that spread over 255, and at most 15.

    Parameters
    ----------
    image : array of shape (h, w) or (h, w, c)
        Grey or red, green, blue, of any range; integers or floats. Of 2 or 4 channels the last is alpha, which stays.
    sigma : float, optional
        Standard deviation of the noise, in the image's own units. None: estimated, for each channel.
    patch : int, default=8
        Patches are patch x patch pixels; smaller if the image is.
    n_atoms : int, default=256
    max_iter : int, default=10
        Sweeps of K-SVD; 0 leaves the overcomplete cosines that it starts from.
    random_state : int, RandomState, Generator or None, default=None
        Draws the patches that teach the atoms.
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
    _patches.check_patches(patch, n_atoms, max_iter)
    if sigma is not None and not (isinstance(sigma, Real) and 0 <= float(sigma) < np.inf):
        raise InputError(f"sigma={sigma!r}: the noise's standard deviation is a number >= 0, or None to estimate it.")
    channels, seed = split_channels(image), seed_of(random_state)
    size = min(int(patch), *image.shape[:2])
    for i in range(len(channels)):
        tell = split_progress(progress, i, len(channels))
        noise = _estimate_noise(channels[i]) if sigma is None else float(sigma)
        channels[i] = _denoise_channel(channels[i], noise, size, int(n_atoms), int(max_iter), generator(seed, i), tell)
        tell(1.0)
    return join_channels(channels, image)


def estimate_sigma(image: Any) -> float:
    """The standard deviation of white noise in an image: the median size of its finest diagonal wavelets, over 0.6745.

    Of colors, the root of the mean square over the channels.

    Examples
    --------
    >>> from twofold.signals.images.denoise import estimate_sigma
    >>> noisy = np.linspace(0, 200, 128) + np.random.default_rng(0).normal(scale=10, size=(128, 128))
    >>> 9.5 < estimate_sigma(noisy) < 10.5
    True
    """
    return float(np.sqrt(np.mean([_estimate_noise(channel) ** 2 for channel in split_channels(check_image(image))])))


def allow_residual(size: int) -> float:
    """How long what is left of a patch may be for noise of 1: as likely for noise of every size as C p is for 8 x 8."""
    likely = gammainc(OF / 2, GAIN**2 * OF / 2)
    return float(np.sqrt(2 * gammaincinv(size * size / 2, likely)))


def limit_atoms(size: int) -> int:
    """Atoms a patch at most: half as many as it has pixels."""
    return max(1, size * size // 2)


def _estimate_noise(channel: np.ndarray) -> float:
    h, w = channel.shape
    if min(h, w) < 2:
        return 0.0
    finest = Wavelet(ndim=2, levels=1).analyze(channel)[h - h // 2 :, w - w // 2 :]
    return float(np.median(np.abs(finest))) / NORMAL_MAD


def _denoise_channel(
    channel: np.ndarray, sigma: float, size: int, n_atoms: int, max_iter: int, rng: np.random.Generator, tell: Progress
) -> np.ndarray:
    """One channel without its noise; the array that came in is used up, for large images have large ones."""
    low, high = float(channel.min()), float(channel.max())
    if low == high or sigma <= NO_NOISE * (high - low):
        return channel
    middle = low + (high - low) / 2
    Y = channel.astype(channel.dtype if sigma > FAINT * (high - low) else np.float64, copy=False)
    Y -= middle
    Y /= sigma  # noise of 1, whatever the units are
    places = _patches.count_places(Y.shape, size)
    training = max_iter * min(TAUGHT, places)
    share = training / (training + places)
    atoms = _patches.make_cosine_atoms(n_atoms, size).astype(Y.dtype)
    if max_iter:
        atoms = _teach_atoms(Y, atoms, size, max_iter, rng, lambda done: tell(share * done))
    trust = min(MOST, TRUST * float(np.subtract(*np.percentile(Y, [99, 1]))))
    X = _recode_patches(Y, atoms, size, lambda done: tell(share + (1 - share) * done))
    Y *= trust
    X += Y
    weights = _patches.count_patches(Y.shape, size)
    weights += trust
    X /= weights
    X *= sigma
    X += middle
    return X.astype(channel.dtype, copy=False)


def _teach_atoms(
    Y: np.ndarray, atoms: np.ndarray, size: int, max_iter: int, rng: np.random.Generator, tell: Progress
) -> np.ndarray:
    """The atoms after K-SVD of patches that are more than noise."""
    count = _patches.count_places(Y.shape, size)
    patches, _, more = _center_patches(
        _patches.take_patches_at(Y, size, rng.choice(count, min(count, DRAWN), replace=False))
    )
    patches = patches[more][:TAUGHT]
    if not len(patches):
        return atoms
    return _patches.learn_atoms(patches, atoms, limit_atoms(size), allow_residual(size), max_iter, tell)


def _recode_patches(Y: np.ndarray, atoms: np.ndarray, size: int, tell: Progress) -> np.ndarray:
    """Sum of all coded patches, each where it belongs."""
    c = prepare_coding(atoms, Y.dtype, limit_atoms(size), allow_residual(size))
    return _patches.sum_over_strips(_recode_strip, (Y, c), size, (np.zeros_like(Y),), tell)[0]


def _recode_strip(rows: range, Y: np.ndarray, c: Coding) -> tuple[np.ndarray]:
    """Coded patches of some rows of places, summed; a patch that is not sparse stays as it is."""
    size = math.isqrt(c.atoms.shape[1])
    patches, means, more = _center_patches(_patches.take_patches(Y, size, rows))
    coded = np.repeat(means, size * size, axis=1)
    patches = patches[more]
    found = encode_rows(patches, c) @ c.atoms
    patches -= found
    missed = _sum_squares(patches) > SLACK * c.tol**2
    found[missed] += patches[missed]
    coded[more] += found
    return (_patches.sum_patches(coded, size, Y.shape[1]),)


def _center_patches(patches: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Patches without their means, the means, and which patches are more than noise."""
    means = patches.mean(axis=1, keepdims=True)
    patches -= means
    return patches, means, _sum_squares(patches) > allow_residual(math.isqrt(patches.shape[1])) ** 2


def _sum_squares(patches: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", patches, patches)
