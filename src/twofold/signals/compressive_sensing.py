"""Compressive sensing: a signal from fewer measurements than it has numbers, because it is sparse in some basis.

    y = A x + noise,  x = Ψ c      x signal or image   A (m,d) random   Ψ a basis   c few numbers that matter

    recover    minimize ‖c‖₁  with  ‖A Ψ c − y‖ ≤ σ√m         σ = 0: A Ψ c = y; or by a pursuit

If A has orthonormal rows (fast measurements) and Ψ Ψᵀ = I, then c = Ψᵀ x and the nearest x that explains y is
x + Aᵀ (y − A x), shortened to stop at the ball: a step costs two fast transforms each way, and nothing is solved.

    matrices    A (m,d) of random numbers
    fast rows   m rows of an orthonormal transform, A Aᵀ = I: never a matrix, so an image of any size
                of signals  in random order with random signs, which spreads every sparse basis over all rows
                of images   as they are, low frequencies rather than high ones: the row of frequency r (1 at the end
                            of an axis) is likely as 1 / (0.1 + r)³, the lowest ones are certain

References: Candès & Tao 2006; Do, Gan, Nguyen & Tran 2012 (random order and signs); Lustig, Donoho & Pauly 2007
(density).
"""

from __future__ import annotations

from functools import cache, partial
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import hadamard
from scipy.optimize import brentq
from scipy.sparse.linalg import LinearOperator
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from twofold.core.checks import InputError
from twofold.core.estimator import Model, fitting
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table
from twofold.signals.bases import DCT, Basis, Fourier, Haar, Wavelet, apply_along_each
from twofold.signals.basis_pursuit import basis_pursuit, basis_pursuit_denoise, minimize_sum
from twofold.signals.overcomplete import Gabor, Shifted
from twofold.signals.phase_diagram import MAX_DEVIATIONS, compute_curve_point
from twofold.signals.pursuits import matching_pursuit, orthogonal_matching_pursuit

MATRICES, FAST = ("gaussian", "rademacher"), ("fourier", "hadamard")
HADAMARD_SIZE = 16  # of the matrix that does the first steps of a transform
MAX_MATRIX_NUMBERS = 100_000_000  # 800 MB
TOL = 1e-7
PURSUITS = "omp", "matching_pursuit"
PURSUIT_TOLERANCE = 1e-7  # of the length of measurements without noise
MAX_MATCHING_STEPS = 10_000
MAX_STEPS, MAX_SHIFTED_STEPS = 300, 60  # enough for sparse signals, and for images to some 0.01 dB


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


def measurements_needed(K: int, D: int) -> int:
    """The number of Gaussian measurements that basis pursuit needs for K numbers among D, with an even chance.

    ``m = min over τ of  K (1 + τ²) + (D − K) E[(|g| − τ)₊²]``, g normal: Donoho & Tanner's weak threshold, for m. It
    holds for Gaussian measurements without noise of signals with exactly K numbers that are not zero (in a known
    basis), for large D. Somewhat more, say a tenth and ten, make it nearly certain; a fifth fewer nearly always fail.

    Parameters
    ----------
    K : int
        Numbers that are not zero.
    D : int
        Length of the signal.

    Returns
    -------
    m : int

    References
    ----------
    Donoho & Tanner (2009), *J. American Mathematical Society* 22, 1-53. Amelunxen, Lotz, McCoy & Tropp (2014),
    *Information and Inference* 3, 224-294.

    Examples
    --------
    >>> from twofold.signals import measurements_needed
    >>> measurements_needed(10, 1000), measurements_needed(100, 1000)
    (62, 329)
    """
    if not 0 <= K <= D:
        raise InputError(f"K={K!r} and D={D!r}: numbers that are not zero are from 0 to the length of the signal.")
    if K in (0, D):
        return int(K)
    z = brentq(lambda z: np.prod(compute_curve_point(z)) - K / D, 0, MAX_DEVIATIONS)
    return int(np.ceil(D * compute_curve_point(z)[0] - 1e-9))


class CompressiveSensing(Model):
    """Random measurements of signals or images, and the sparsest signal that explains them.

    Parameters
    ----------
    n_measurements : int or None, default=None
        m; None means a quarter of the numbers in a signal.
    kind : {"gaussian", "rademacher", "fourier", "hadamard"}, default="gaussian"
        Matrices of normal numbers or of signs, scaled by 1/√m; or m rows of a fast orthonormal transform, never written
        out, which is what images need. Fast measurements of signals are of their numbers in random order with random
        signs, and every row is equally likely; those of images are of the image itself, low frequencies rather than
        high ones, and always its mean.
    basis : Basis or None, default=None
        In which signals are sparse; None means `DCT` for signals. Of images with fast measurements it means that the
        mean of ‖c‖₁ over four `Shifted` copies of Haar's basis is made small, which is worth several decibels; with
        matrices, `Wavelet` "sym8".
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    shape_ : tuple
        (d,) or (h, w), of one signal.
    basis_ : Basis
    n_measurements_ : int
    measuring_ : Measuring
        What was drawn: the matrix, or the rows, order and signs.

    Notes
    -----
    Photographs are only nearly sparse. From a third of the measurements those with edges come back decibels better than
    from as many cosines of the lowest frequencies and no recovery, those with fine texture hardly; from a tenth the
    cosines can be better.

    "hadamard" takes any length: an axis of an image is cut into powers of two (321 = 256 + 64 + 1); a signal has one
    transform on its first and one on its last p numbers, p the largest power of two in it.

    References
    ----------
    Candès, Romberg & Tao (2006), *IEEE Trans. Information Theory* 52, 489-509; (2006), *Comm. Pure Appl. Math.* 59,
    1207-1223 (noise). Donoho (2006), *IEEE Trans. Information Theory* 52, 1289-1306.

    Examples
    --------
    Three waves, recovered from 50 of 200 numbers, and nearly so under noise:

    >>> from twofold import CompressiveSensing
    >>> from twofold.signals import DCT
    >>> c = np.zeros(200)
    >>> c[[5, 40, 77]] = [3, -2, 1]
    >>> x = DCT().synthesize(c)
    >>> sensing = CompressiveSensing(50, kind="hadamard", random_state=0).fit(x)
    >>> y = sensing.measure(x)
    >>> bool(np.allclose(sensing.recover(y), x, atol=1e-5))
    True
    >>> noisy = y + 0.01 * np.random.default_rng(0).normal(size=50)
    >>> bool(np.linalg.norm(sensing.recover(noisy, sigma=0.01) - x) < 0.25)
    True
    """

    _records: ClassVar[tuple] = (Measuring, DCT, Fourier, Gabor, Haar, Shifted, Wavelet)
    _parameter_constraints: ClassVar[dict] = {
        "n_measurements": [None, Interval(Integral, 1, None, closed="left")],
        "kind": [StrOptions({*MATRICES, *FAST})],
        "basis": [None, Basis],
        "random_state": ["random_state", np.random.Generator],
    }
    _allow_sparse: ClassVar[bool] = False
    shape_: tuple
    basis_: Basis
    measuring_: Measuring

    def __init__(
        self,
        n_measurements: int | None = None,
        *,
        kind: str = "gaussian",
        basis: Basis | None = None,
        random_state: Seed = None,
    ):
        self.n_measurements = n_measurements
        self.kind = kind
        self.basis = basis
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None) -> CompressiveSensing:
        """Draw the measurements for signals shaped like these: their values do not matter.

        Without a basis X is one signal (d,), one image (h,w) or several (n,h,w). With one it is signals (..., d), or
        images (..., h, w), as the basis has it.
        """
        if X is None:
            raise InputError("X is None: CompressiveSensing needs a signal (d,) or an image (h, w), for its shape.")
        given = shape = check_array(X, ensure_2d=False, allow_nd=True, input_name="X").shape
        basis = self.basis if self.basis is not None else _choose_basis(len(shape), self.kind)
        shape = shape[max(len(shape) - basis.ndim, 0) :]
        d = int(np.prod(shape))
        if len(shape) != basis.ndim or d == 0:
            raise InputError(f"X has shape {given}; {basis!r} takes signals with {basis.ndim} axes, none empty.")
        m = -(-d // 4) if self.n_measurements is None else int(self.n_measurements)
        if m > d:
            raise InputError(f"n_measurements={m} is more than the {d} numbers of a signal. Ask for {d} at most.")
        self.shape_, self.basis_, self.n_measurements_ = shape, basis, m
        self.n_features_in_ = shape[-1]
        self.measuring_ = draw_measurements(self.kind, shape, m, generator(seed_of(self.random_state)))
        self.history_: dict = {"objective": [], "seconds": []}
        return self

    def measure(self, X: Table) -> np.ndarray:
        """y = A x: measurements (..., m) of signals (..., d) or images (..., h, w)."""
        check_is_fitted(self)
        X = self._numbers(X, self.shape_, "X", "signals")
        return self.measuring_.forward(X.astype(np.float64)).astype(X.dtype)

    def recover(
        self, y: Any, sigma: float = 0.0, *, method: str = "basis_pursuit", n_nonzero: int | None = None
    ) -> np.ndarray:
        """The sparse signals that explain measurements (..., m), up to noise of standard deviation `sigma`.

        Parameters
        ----------
        y : array of shape (..., m)
        sigma : float, default=0.0
        method : {"basis_pursuit", "omp", "matching_pursuit"}, default="basis_pursuit"
            The least ‖c‖₁; or one atom after the other, by orthogonal matching pursuit or by plain matching pursuit,
            until the residual is at most that of noise, σ√m. Pursuits are for signals, or small images.
        n_nonzero : int, optional
            Of the pursuits: atoms at most.
        """
        check_is_fitted(self)
        Y = self._numbers(y, (self.n_measurements_,), "y", "measurements")
        if not 0 <= sigma < np.inf:
            raise InputError(f"sigma={sigma!r}: the standard deviation of the noise is a number >= 0.")
        if method not in ("basis_pursuit", *PURSUITS):
            raise InputError(f'method="{method}" is not one of basis_pursuit, {", ".join(PURSUITS)}.')
        if method == "basis_pursuit":
            if n_nonzero is not None:
                raise InputError(f'n_nonzero={n_nonzero!r} is for method="omp": the least sum counts no atoms.')
            codes = self._solver(float(sigma))
        else:
            codes = self._pursuit(method, float(sigma), n_nonzero)
        flat = [self.basis_.synthesize(codes(row)) for row in Y.astype(np.float64).reshape(-1, Y.shape[-1])]
        return np.reshape(flat, (*Y.shape[:-1], *self.shape_)).astype(Y.dtype)

    def _numbers(self, X: Any, shape: tuple, name: str, noun: str) -> np.ndarray:
        """X as float32 or float64, checked."""
        X = np.asarray(X)
        if X.dtype.kind not in "fiub" or X.shape[max(X.ndim - len(shape), 0) :] != shape:
            raise InputError(f"{name} has shape {X.shape} of {X.dtype}; real {noun} of shape {shape} are needed.")
        if not np.isfinite(X).all():
            at = tuple(int(i) for i in np.argwhere(~np.isfinite(X))[0])
            raise InputError(f"{name}[{', '.join(map(str, at))}] is {X[at]}; {noun} must be finite numbers.")
        return X if X.dtype == np.float32 else X.astype(np.float64)

    def _solver(self, sigma: float) -> Any:
        """The function y (m,) ↦ coefficients that suits the measurements and the basis."""
        A, basis = self.measuring_, self.basis_
        if A.matrix is None and (basis.orthonormal or isinstance(basis, Shifted)):
            return partial(_recover_by_fast_steps, A, basis, sigma)
        inner, B = basis.coefficients(self.shape_), self._measure_atoms()
        if sigma == 0:
            return lambda y: basis_pursuit(B, y).reshape(inner)
        return lambda y: basis_pursuit_denoise(B, y, sigma=sigma).reshape(inner)

    def _pursuit(self, method: str, sigma: float, n_nonzero: int | None) -> Any:
        """The function y (m,) ↦ coefficients that chooses one atom after the other."""
        B, inner = self._measure_atoms(), self.basis_.coefficients(self.shape_)
        if B.shape[0] * B.shape[1] > MAX_MATRIX_NUMBERS:
            raise InputError(
                f'method="{method}" needs the atoms as measured, {B.shape[0]:,} x {B.shape[1]:,} numbers, and '
                f'{MAX_MATRIX_NUMBERS:,} are the most. Use method="basis_pursuit", which needs none.'
            )
        D = (B if isinstance(B, np.ndarray) else B @ np.eye(B.shape[1])).T
        limits: dict = {"n_nonzero": n_nonzero, "error": sigma * np.sqrt(len(D.T)), "relative_error": PURSUIT_TOLERANCE}
        if method == "omp":
            return lambda y: orthogonal_matching_pursuit(D, y, **limits).reshape(inner)
        return lambda y: matching_pursuit(D, y, n_steps=MAX_MATCHING_STEPS, **limits).codes.reshape(inner)

    def _measure_atoms(self) -> Any:
        """A Ψᵀ (m,k), the atoms as measured: an array, or an operator."""
        A, basis = self.measuring_, self.basis_
        inner = basis.coefficients(self.shape_)
        if A.matrix is not None:
            return basis.analyze(A.matrix.reshape(-1, *self.shape_)).reshape(len(A.matrix), -1)
        return LinearOperator(
            (self.n_measurements_, int(np.prod(inner))),
            matvec=lambda c: A.forward(basis.synthesize(c.reshape(inner))),
            rmatvec=lambda y: basis.analyze(A.transpose(y.ravel())).ravel(),
            dtype=np.float64,
        )


def _choose_basis(ndim: int, kind: str) -> Basis:
    if ndim == 1:
        return DCT()
    return Shifted(2, Wavelet(2, "haar")) if kind in FAST else Wavelet(2, "sym8")


def _recover_by_fast_steps(A: Measuring, basis: Basis, sigma: float, y: np.ndarray) -> np.ndarray:
    """The coefficients of least ‖c‖₁, where A Aᵀ = I and Ψ Ψᵀ = I."""
    radius = sigma * np.sqrt(len(y))

    def project(c: np.ndarray) -> np.ndarray:
        x = basis.synthesize(c)
        missing = y - A.forward(x)
        far = float(np.linalg.norm(missing))
        reach = 1 - radius / far if far > radius else 0.0
        return basis.analyze(x + A.transpose(reach * missing))

    steps = MAX_STEPS if basis.orthonormal else MAX_SHIFTED_STEPS
    return minimize_sum(project, np.zeros(basis.coefficients(A.shape)), TOL, steps)[0]
