"""An image or signals recovered from fewer measurements than they have numbers.

Of all signals that explain the measurements the one with the least sum of coefficients in a basis is taken. It is
compared with least squares, the shortest signal that explains them, which knows nothing of a basis. The measurements
are given, with the matrix that made them or its seed (`measured.py`); or, as a test, they are simulated here.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import polars as pl

import twofold
from twofold.analyses.common.analysis import OneFile, Seed, analysis
from twofold.analyses.common.answer import FRAMES, Grid
from twofold.analyses.common.images import ComparedAnswer, ImageAnswer, decibels
from twofold.analyses.common.signals import SignalAnswer
from twofold.analyses.sense.data import Data, holds_signals, read_channels, read_signals
from twofold.analyses.sense.measured import (
    Measured,
    RecoveredImage,
    RecoveredSignals,
    check_endings,
    draw_model,
    read_matrix,
    recover_measured,
)
from twofold.core.checks import InputError
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing, part, report
from twofold.core.seeds import generator
from twofold.io.images import Picture
from twofold.io.recordings import Recording

VARIANCE_SHARE = 0.99  # held by the coefficients that are counted
FAST = ("fourier", "hadamard")  # the others are matrices
FRACTIONS = (0.1, 0.2, 0.3, 0.5)  # tried beside the one asked for
MAX_NUMBERS_TO_COMPARE = 100_000  # of data on which other fractions are tried; by matrices a hundredth of that


class Trial(NamedTuple):
    """The error of a recovery from a number of measurements."""

    fraction: float
    measurements: int
    relative_error: float  # ‖x − x̂‖ / ‖x‖
    psnr: float


class Sparsity(NamedTuple):
    """The sparser of two bases, the name of its atoms, and how many hold nearly all of the variance."""

    basis: Any
    atoms: str
    held: int


@dataclass(kw_only=True, repr=False, eq=False)
class Sensing(ComparedAnswer):
    """The base of `SensedImage` and `SensedSignals`."""

    kind: str
    size: int  # numbers in one signal or channel
    sparsity: Sparsity
    best: Trial
    trials: list[Trial]

    @property
    def hint(self) -> str:
        return "⟨out⟩ keeps what was recovered, ⟨compare=both.png⟩ shows it"

    @property
    def outcome(self) -> str:
        best = self.best
        return f"recovered from {best.measurements:,} measurements ({best.fraction:.0%}), {decibels(best.psnr)}"

    def grids(self) -> list[Grid]:
        rows = [
            [f"{t.fraction:.0%}", f"{t.measurements:,}", f"{t.relative_error:.2%}", decibels(t.psnr)]
            for t in self.trials
        ]
        return [Grid(["measured", "measurements", "error", "PSNR"], rows, right=(1, 2, 3))]

    def lines(self) -> list[str]:
        held, needed = self.sparsity.held, self.measurements_needed
        return [
            f"least squares, which knows no basis, gives {decibels(self.baseline['psnr'])} from the same measurements",
            f"{VARIANCE_SHARE:.0%} of the variance is in {held:,} of {self.size:,} {self.sparsity.atoms}; to find that "
            f"many, theory asks for about {needed:,} measurements ({needed / self.size:.0%})",
        ]

    @cached_property
    def measurements_needed(self) -> int:
        from twofold.signals import measurements_needed

        return measurements_needed(self.sparsity.held, self.size)

    def facts(self) -> dict[str, Any]:
        return super().facts() | {
            "kind": self.kind,
            "fraction": self.best.fraction,
            "measurements": self.best.measurements,
            "basis": self.sparsity.atoms,
            "sparsity": self.sparsity.held,
            "measurements_needed": self.measurements_needed,
            "tried": [trial._asdict() for trial in self.trials],
        }


@dataclass(kw_only=True, repr=False, eq=False)
class SensedImage(Sensing, ImageAnswer):
    """A recovered image; its transparency, if there is any, was not measured."""

    @cached_property
    def table(self) -> pl.DataFrame:
        """Error of the recovery by number of measurements."""
        return pl.DataFrame(self.trials, Trial._fields, orient="row")


@dataclass(kw_only=True, repr=False, eq=False)
class SensedSignals(Sensing, SignalAnswer):
    """Recovered signals."""

    endings: ClassVar[tuple[str, ...]] = (*FRAMES, ".npy", ".html")
    labels = ("signal", "recovered")

    @classmethod
    def fits(cls, data: Any) -> bool:
        return holds_signals(data)

    @cached_property
    def table(self) -> pl.DataFrame:
        """A signal in each column."""
        return self.frame()


def find_sparser_basis(data: Data) -> Sparsity:
    """The basis with the fewest coefficients in the channel that needs most, cosines or wavelets."""
    from twofold.signals import DCT, Wavelet

    axes = tuple(range(1, data.X.ndim))
    X = data.X - data.X.mean(axis=axes, keepdims=True)
    found = []
    for basis, atoms in ((DCT(len(axes)), "cosines"), (Wavelet(len(axes), "sym8"), "wavelets")):
        power = np.square(basis.analyze(X)).reshape(len(X), -1)
        share = np.cumsum(-np.sort(-power, axis=1), axis=1)
        held = 1 + int(np.argmax(share >= VARIANCE_SHARE * share[:, -1:], axis=1).max())
        found.append(Sparsity(basis, atoms, held))
    best, other = sorted(found, key=lambda sparsity: sparsity.held)
    data.before.notes.append(
        f"{best.held:,} {best.atoms} hold {VARIANCE_SHARE:.0%} of the variance; it takes {other.held:,} {other.atoms}"
    )
    return best


def recover(data: Data, model: Any, sigma: float, seed: int) -> np.ndarray:
    """Measure every channel or signal, with noise if there is to be some, and recover it."""
    recovered = np.empty_like(data.X)
    for i, x in enumerate(data.X):
        y = model.measure(x)
        noise = generator(seed, 1 + i).normal(0, sigma, y.shape) if sigma else 0.0
        recovered[i] = model.recover(y + noise, sigma)
        report(i + 1, len(data.X))
    return data.clip(recovered)


def solve_least_squares(data: Data, model: Any) -> np.ndarray:
    """The shortest signals that explain the measurements."""
    Y = model.measure(data.X)
    A = model.measuring_.matrix
    if A is None:  # rows of an orthonormal transform
        return data.clip(model.measuring_.transpose(Y))
    return data.clip(np.linalg.lstsq(A, Y.T)[0].T.reshape(data.X.shape))


def measure_error(data: Data, fraction: float, model: Any, recovered: np.ndarray) -> Trial:
    from twofold.metrics import psnr

    error = float(np.linalg.norm(data.X - recovered) / (np.linalg.norm(data.X) or 1.0))
    return Trial(fraction, model.n_measurements_, error, psnr(data.X, recovered, data.peak))


def parse_shape(text: str) -> tuple[int, ...]:
    """The length of a signal, or height and width of an image.

    >>> parse_shape("256"), parse_shape("48x64")
    ((256,), (48, 64))
    """
    parts = str(text).lower().replace("×", "x").split("x")
    if len(parts) > 2 or not all(part.strip().isdigit() and int(part) for part in parts):
        raise InputError(
            f"⟨length={text}⟩: give the numbers of a signal, such as 256, or height x width, such as 48x64."
        )
    return tuple(int(part) for part in parts)


@analysis()
def sense(
    data: OneFile,
    *,
    matrix: Annotated[Any, Flag(unit="FILE")] = None,
    length: Annotated[Any, Flag(unit="N", parse=parse_shape)] = None,
    sigma: Annotated[float, Flag(min=0, unit="S")] = 0.0,
    simulate: bool = False,
    fraction: Annotated[float | None, Flag(min=0, max=1, unit="F")] = None,
    kind: Literal["fourier", "hadamard", "gaussian", "rademacher"] | None = None,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> Measured | RecoveredSignals | RecoveredImage | SensedSignals | SensedImage:
    """Recover an image or signal from fewer measurements than it has numbers.

    Parameters
    ----------
    data : path, frame or array
        The measured numbers, with `matrix` or `length`: each column of a table or frame, or each row of an array, is
        what was measured of one signal. To simulate: an image (a file, or uint8 or uint16 of shape (h, w) or
        (h, w, 3)), or signals.
    matrix : path, array or None
        What was measured: the row of a measurement has its weight for each number of the signal.
    length
        Numbers of the signal, or height x width of an image. Without a matrix: the measurements are those that `kind`
        and `seed` draw for it.
    sigma
        Standard deviation of the noise of a measurement.
    simulate
        Measure the data here, recover it, and compare: a test.
    fraction
        Simulated measurements, as a share of the numbers there are. Default: 0.3. Simulates.
    kind
        What is measured. Default: gaussian; simulated: fourier for images, hadamard for signals.

    Returns
    -------
    RecoveredSignals, RecoveredImage, SensedSignals or SensedImage
        ``image`` holds a recovered image, ``table`` recovered signals, ``model`` the measurements.

    Examples
    --------
    >>> time = np.arange(128)
    >>> signal = np.cos(0.3 * time) + np.cos(0.9 * time)
    >>> A = np.random.default_rng(0).normal(size=(64, 128))
    >>> answer = sense(A @ signal, matrix=A)
    >>> bool(np.linalg.norm(answer.signals[0] - signal) < 0.3 * np.linalg.norm(signal))
    True
    """
    simulate = simulate or fraction is not None
    if simulate and (matrix is not None or length is not None):
        raise InputError("⟨simulate⟩ measures here: leave out ⟨matrix⟩ and ⟨length⟩, which say what was measured.")
    if simulate:
        return simulate_measuring(data, 0.3 if fraction is None else fraction, kind, sigma, seed)
    if matrix is None and length is None:
        raise InputError(
            f"{data if isinstance(data, (str, os.PathLike)) else 'the data'}: nothing says how it was measured. Give "
            "⟨matrix=matrix.npy⟩; ⟨length=256⟩ with the kind and seed that drew it; or ⟨simulate⟩ to measure it here."
        )
    with doing("reading"):
        measured = read_signals(data)
        model = (
            read_matrix(matrix, length, measured) if matrix is not None else draw_model(length, kind, measured, seed)
        )
    return recover_measured(measured, model, sigma, seed, drawn=matrix is None)


def simulate_measuring(data: Any, fraction: float, kind: str | None, sigma: float, seed: int) -> Any:
    """Measure an image or signals, recover them, and compare."""
    if fraction == 0:
        raise InputError(f"⟨fraction={fraction:g}⟩: measurements are a share above 0 and up to 1, such as 0.3.")
    with doing("reading"):
        given = read_signals(data) if holds_signals(data) else read_channels(data)
        check_endings((SensedSignals if isinstance(given.before, Recording) else SensedImage).endings)
        sparsity = find_sparser_basis(given)
    notes, is_image = given.before.notes, isinstance(given.before, Picture)
    if kind is None:
        kind, how = ("fourier", "waves, mostly long ones") if is_image else ("hadamard", "random sums of all numbers")
        notes.append(f"measured by {how}: ⟨kind={kind}⟩")
    fast = is_image and kind in FAST
    basis = None if fast else sparsity.basis  # images have a better way back than any one basis
    notes.append(f"recovered as few {'wavelets at every shift' if fast else sparsity.atoms}")
    few = given.X.size <= MAX_NUMBERS_TO_COMPARE // (1 if kind in FAST else 100)
    fractions = sorted({fraction, *(FRACTIONS if few else ())})
    trials: list[Trial] = []
    with doing("measuring and recovering"), warnings.catch_warnings(record=True) as caught:
        for i, share in enumerate(fractions):
            m = max(1, round(share * given.size))
            model = twofold.CompressiveSensing(m, kind=kind, basis=basis, random_state=seed).fit(given.X[0])
            with part(i, i + 1, len(fractions)):
                recovered = recover(given, model, sigma, seed)
            trials.append(measure_error(given, share, model, recovered))
            if share == fraction:
                best, chosen, result = trials[-1], model, recovered
    if caught:
        notes.append("some recoveries stopped early: figures may be a little low (hadamard settles fast)")
    squares = measure_error(given, fraction, chosen, solve_least_squares(given, chosen))
    answer: Any = SensedImage if is_image else SensedSignals
    return answer(
        source=given.before.source,
        model=chosen,
        figures={
            "what": "error of what was recovered, against what was measured; PSNR in dB",
            "relative_error": best.relative_error,
            "psnr": best.psnr,
        },
        baseline={"method": "least squares", "relative_error": squares.relative_error, "psnr": squares.psnr},
        notes=notes,
        chosen={"kind": kind, "fraction": fraction},
        before=given.before,
        after=given.restore(result),
        kind=kind,
        size=given.size,
        sparsity=sparsity,
        best=best,
        trials=trials,
    )
