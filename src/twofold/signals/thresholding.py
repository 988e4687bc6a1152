"""Denoising by thresholding: in the right basis a signal is few large numbers, and noise is many small ones.

    y = x + σ g                 x signal or image   g white noise   Ψ an orthonormal basis
    x̂ = Ψᵀ threshold(Ψ y)       hard or soft, at σ √(2 log d), or where Stein's estimate of the risk is least

In an orthonormal basis the squared error of the signal is the sum of the squares of what was taken away. With noise of
1, the risk of a soft threshold E‖soft(c) − truth‖² is on average n − 2 #{|c| ≤ t} + Σ min(|c|, t)² (Stein).
Cycle spinning does it to the signal moved by 0, 1, 2, ... steps, moves the results back, and takes their mean: errors
that depend on where the signal lies in the grid of the wavelets average out.
References: Donoho & Johnstone 1994, 1995.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np

from twofold.core.checks import InputError
from twofold.core.progress import part, report, report_share_to
from twofold.signals.bases import Basis, Wavelet
from twofold.signals.basis_pursuit import shrink
from twofold.signals.images.channels import cast_values, check_image, split_channels
from twofold.signals.pca_basis import PCABasis

RULES = ("hard", "soft")
NORMAL_MAD = 0.674_489_750_196_082  # median of |x| for a standard normal x
SHIFTS = {1: 16, 2: 4}  # of cycle spinning with wavelets, along each axis
MIRRORED_PIXELS = 32  # by which an image is continued on each side
LEVELS = ("universal", "sure")


def threshold(codes: Any, level: float, method: str = "hard") -> tuple[np.ndarray, float]:
    """Coefficients below `level` in size set to zero, and the energy lost by it.

    Parameters
    ----------
    codes : array
        Coefficients, of one signal or of many.
    level : float
    method : {"hard", "soft"}, default="hard"
        Whether the others stay as they are, or come nearer to zero by `level`.

    Returns
    -------
    codes, lost : array, float
        What is left, and Σ c² of what was taken away.

    Examples
    --------
    >>> from twofold.signals import threshold
    >>> threshold([3.0, -0.5, 0.1, -2.0], 1.0)
    (array([ 3., -0.,  0., -2.]), 0.26)
    >>> threshold([3.0, -0.5, 0.1, -2.0], 1.0, "soft")
    (array([ 2., -0.,  0., -1.]), 2.26)
    """
    codes = np.asarray(codes)
    if not level >= 0:
        raise InputError(f"level={level!r}: a threshold is a number >= 0.")
    if method not in RULES:
        raise InputError(f'method="{method}": choose "hard" or "soft".')
    if method == "hard":
        return _keep(codes, np.abs(codes) >= level)
    left = shrink(codes, level)
    gone = (codes - left).astype(np.float64).ravel()
    return left, float(gone @ gone)


def universal_level(n: int) -> float:
    """√(2 log n): the largest of n numbers of pure noise of 1 hardly ever exceeds it."""
    return float(np.sqrt(2 * np.log(max(n, 1))))


def sure_level(codes: np.ndarray) -> float:
    """The soft threshold of least estimated risk, for coefficients with noise of 1; 0 to the universal level.

    Where there is hardly more than noise the estimate is too rough to choose by, and the universal level is taken.
    """
    squares = np.sort(np.square(codes, dtype=np.float64).ravel())
    n, most = len(squares), universal_level(codes.size)
    if squares.sum() - n <= np.sqrt(n) * np.log2(max(n, 2)) ** 1.5:
        return most
    squares = np.concatenate([[0.0], squares[squares <= most**2]])  # the risk is least at a coefficient, or at 0
    below = np.arange(len(squares))  # coefficients other than 0 up to each
    risks = n - 2 * below + np.cumsum(squares) + (n - below) * squares
    return float(np.sqrt(squares[np.argmin(risks)]))


def keep_largest(codes: Any, n: int) -> tuple[np.ndarray, float]:
    """The `n` coefficients that are largest in size, over all of the array, and the energy lost by dropping the rest.

    Of equally large ones the first are kept.

    Examples
    --------
    >>> from twofold.signals import keep_largest
    >>> keep_largest([3.0, -0.5, 0.1, -2.0], 1)
    (array([ 3., -0.,  0., -0.]), 4.26)
    """
    codes = np.asarray(codes)
    if n < 0:
        raise InputError(f"n={n!r}: keep 0 coefficients or more.")
    order = np.argsort(-np.abs(codes), axis=None, kind="stable")
    kept = np.zeros(codes.size, dtype=bool)
    kept[order[:n]] = True
    return _keep(codes, kept.reshape(codes.shape))


def _keep(codes: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, float]:
    dropped = codes[~kept].astype(np.float64)
    return codes * kept, float(dropped @ dropped)


def estimate_sigma(data: Any) -> float:
    """The standard deviation of white noise in a signal or an image.

    The median size of the finest wavelets, over 0.6745: edges and waves leave most of these alone. Of colors, the root
    of the mean square over the channels.

    Parameters
    ----------
    data : array of shape (d,), (h, w) or (h, w, c)
        A signal, or an image, gray or in colors.

    References
    ----------
    Donoho & Johnstone (1994), *Biometrika* 81, 425-455.

    Examples
    --------
    >>> from twofold.signals import estimate_sigma
    >>> rng = np.random.default_rng(0)
    >>> 9.5 < estimate_sigma(np.linspace(0, 200, 128) + rng.normal(scale=10, size=(128, 128))) < 10.5
    True
    >>> 0.9 < estimate_sigma(np.sin(np.arange(4000) / 50) + rng.normal(size=4000)) < 1.1
    True
    """
    if np.ndim(data) == 1:
        return estimate_noise(check_signals(data))
    return float(np.sqrt(np.mean([estimate_noise(channel) ** 2 for channel in split_channels(check_image(data))])))


def estimate_noise(X: np.ndarray) -> float:
    """The standard deviation of the noise in one signal (d,) or one channel (h,w)."""
    if min(X.shape) < 2:
        return 0.0
    finest = Wavelet(X.ndim, levels=1).analyze(X)[tuple(slice(n - n // 2, None) for n in X.shape)]
    return float(np.median(np.abs(finest))) / NORMAL_MAD


def denoise_signal(
    x: Any,
    sigma: float | None = None,
    *,
    basis: Any = None,
    method: str = "hard",
    level: str | float | None = None,
    shifts: int | None = None,
    progress: Callable[[float], Any] | None = None,
) -> np.ndarray:
    """Remove white noise from signals by thresholding their coefficients in a basis.

    Parameters
    ----------
    x : array of shape (..., d)
        One signal or several, each along the last axis; integers or floats.
    sigma : float, optional
        Standard deviation of the noise, in the signal's own units. None: estimated, for each signal.
    basis : Basis or PCABasis, optional
        An orthonormal one, in which the signals are sparse; None means ``Wavelet(wavelet="sym8")``.
    method : {"hard", "soft"}, default="hard"
        Whether coefficients above the threshold stay as they are, or come nearer to zero by as much as it.
    level : {"universal", "sure"} or float, optional
        The threshold: σ √(2 log d), which hardly any noise exceeds; for "soft", where Stein's estimate of the risk is
        least, in each octave; or a number, in units of σ. None means "universal" for "hard", "sure" for "soft".
    shifts : int, optional
        Cycle spinning: the mean over shifts by 0, 1, 2, .... None means 16 with wavelets, 1 with other bases.
    progress : callable, optional
        As in :func:`denoise_image`.

    Returns
    -------
    ndarray
        Of the shape and dtype of x; integers are rounded and clipped to their range.

    Notes
    -----
    With a basis that is given the signal is taken to repeat itself; without one it is mirrored at its end first, so
    that nothing jumps there. The coarsest averages of wavelets, and the constant of cosines, are kept.

    References
    ----------
    Donoho & Johnstone (1994), *Biometrika* 81, 425-455; (1995), *J. American Statistical Association* 90, 1200-1224.
    Coifman & Donoho (1995), *Wavelets and Statistics*, 125-150.

    Examples
    --------
    >>> from twofold.signals import Haar, denoise_signal
    >>> clean = np.repeat([0.0, 4.0, 1.0, 3.0], 256)
    >>> noisy = clean + np.random.default_rng(0).normal(size=1024)
    >>> bool(np.std(denoise_signal(noisy) - clean) < 0.5)                  # of 1
    True
    >>> bool(np.std(denoise_signal(noisy, basis=Haar()) - clean) < 0.3)    # steps are sparse in steps
    True
    """
    X = check_signals(x)
    sigma = check_sigma(sigma)
    thresholding = Thresholding(1, basis, method, level, shifts)
    rows = X.reshape(-1, X.shape[-1])
    with report_share_to(progress):
        for i in range(len(rows)):
            noise = estimate_noise(rows[i]) if sigma is None else sigma
            with part(i, i + 1, len(rows)):
                rows[i] = thresholding.denoise(rows[i], noise)
    return cast_values(rows.reshape(X.shape), np.asarray(x).dtype)


def check_sigma(sigma: Any) -> float | None:
    if sigma is None or (isinstance(sigma, Real) and 0 <= float(sigma) < np.inf):
        return None if sigma is None else float(sigma)
    raise InputError(f"sigma={sigma!r}: the noise's standard deviation is a number >= 0, or None to estimate it.")


def check_signals(x: Any) -> np.ndarray:
    """A copy of the signals (..., d) as finite floats."""
    X = np.asarray(x)
    if not X.ndim or 0 in X.shape or X.dtype.kind not in "fiu":
        raise InputError(f"x has shape {X.shape} of {X.dtype}; signals are numbers along the last axis, (..., d).")
    if not np.isfinite(X).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(X))[0])
        raise InputError(f"x[{', '.join(map(str, at))}] is {X[at]}. Fill gaps first, with numpy.interp.")
    return X.astype(np.float32 if X.dtype in (np.float16, np.float32) else np.float64)


class Thresholding:
    """Thresholding of signals or channels, by a basis, a rule, a level, and shifts."""

    ndim: int
    basis: Any
    method: str
    level: str | float
    shifts: int

    def __init__(self, ndim: int, basis: Any, method: str, level: str | float | None, shifts: int | None):
        self.mirrored = basis is None
        basis = Wavelet(ndim, "sym8") if basis is None else basis
        if not isinstance(basis, PCABasis) and (not isinstance(basis, Basis) or not basis.orthonormal):
            raise InputError(
                f"basis={basis!r}: a threshold needs an orthonormal basis, such as DCT, Haar or Wavelet. Of more atoms "
                "than dimensions choose some with basis_pursuit_denoise."
            )
        if ndim != (1 if isinstance(basis, PCABasis) else basis.ndim):
            raise InputError(f"basis={basis!r} has not ndim={ndim}; 1 is for signals, 2 for images.")
        if method not in RULES:
            raise InputError(f'method="{method}": choose "hard" or "soft".')
        level = LEVELS[method == "soft"] if level is None else level
        if level not in LEVELS if isinstance(level, str) else not level >= 0:
            raise InputError(f'level={level!r}: choose "universal", "sure", or a number >= 0, in units of sigma.')
        if level == "sure" and method == "hard":
            raise InputError('level="sure" is for method="soft": of a hard threshold the risk has no such estimate.')
        if shifts is None:
            shifts = SHIFTS[ndim] if isinstance(basis, Wavelet) else 1
        if not isinstance(shifts, Integral) or shifts < 1:
            raise InputError(f"shifts={shifts!r}: the mean is over 1 shift or more, along each axis.")
        self.ndim, self.basis, self.method, self.level, self.shifts = ndim, basis, method, level, int(shifts)

    def denoise(self, X: np.ndarray, sigma: float) -> np.ndarray:
        """One signal (d,) or one channel (h,w) without its noise."""
        if sigma <= 0 or sigma <= 1e-12 * float(np.abs(X).max()):
            return X
        if self.mirrored:
            reach = [(0, n) if self.ndim == 1 else (min(n, MIRRORED_PIXELS),) * 2 for n in X.shape]
            inside = tuple(slice(before, before + n) for (before, _), n in zip(reach, X.shape, strict=True))
            return self._spin(np.pad(X, reach, "symmetric"), sigma)[inside]
        return self._spin(X, sigma)

    def _spin(self, X: np.ndarray, sigma: float) -> np.ndarray:
        learned, axes = isinstance(self.basis, PCABasis), tuple(range(self.ndim))
        middle = 0.0 if learned else float(X.min() / 2 + X.max() / 2)  # numbers about 0 have more digits
        bands = np.ones(len(self.basis.components_), int) if learned else self.basis._bands(X.shape)
        total = np.zeros(X.shape)
        moves = list(itertools.product(*(range(min(self.shifts, n)) for n in X.shape)))
        for i, move in enumerate(moves):
            codes = self.basis.analyze(np.roll(X - middle, move, axes)[None])[0] / sigma
            for some, level in self._choose_levels(codes, bands):
                codes[some] = threshold(codes[some], level, self.method)[0]
            moved = self.basis.synthesize(sigma * codes[None])[0]
            total += np.roll(moved, [-m for m in move], axes)
            report(i + 1, len(moves))
        return (total / len(moves) + middle).astype(X.dtype)

    def _choose_levels(self, C: np.ndarray, bands: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
        """Coefficients with noise of 1 that are thresholded together, and where; those of band 0 stay."""
        if self.level != "sure":
            yield bands > 0, universal_level(C.size) if self.level == "universal" else float(self.level)
            return
        for band in range(1, int(bands.max()) + 1):
            some = bands == band
            if some.any():
                yield some, sure_level(C[some])
