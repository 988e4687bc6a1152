"""An image or signals measured fewer times than they have numbers, and recovered from that.

The measurements are random; of all signals that explain them the one with the least sum of coefficients in a basis is
taken. It is compared with least squares, the shortest signal that explains them, which knows nothing of a basis.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import polars as pl

import twofold
from twofold.analyses.common.analysis import OneFile, Seed, analysis, list_planned_files
from twofold.analyses.common.answer import FRAMES, Grid
from twofold.analyses.common.images import ComparedAnswer, ImageAnswer, as_image, check_formats, decibels
from twofold.analyses.common.signals import SignalAnswer
from twofold.analyses.common.tables import as_table
from twofold.core.checks import InputError
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing, part, report
from twofold.io.images import Picture
from twofold.io.recordings import Recording
from twofold.io.tables.table import unique_names

ARRAYS = (".npy", ".npz")
TABLES = (*ARRAYS, ".csv", ".tsv", ".txt", ".dat", ".parquet", ".jsonl")
MIN_LENGTH = 8  # numbers in a signal
VARIANCE_SHARE = 0.99  # held by the coefficients that are counted
FAST = ("fourier", "hadamard")  # the others are matrices
FRACTIONS = (0.1, 0.2, 0.3, 0.5)  # tried beside the one asked for
MAX_NUMBERS_TO_COMPARE = 100_000  # of data on which other fractions are tried; by matrices a hundredth of that


@dataclass
class Data:
    """The channels of an image (c,h,w), or signals (c,d)."""

    X: np.ndarray
    before: Picture | Recording

    @property
    def size(self) -> int:
        """Numbers in one signal or channel."""
        return int(self.X[0].size)

    @property
    def peak(self) -> float:
        """The range that an error is compared with."""
        return self.before.peak if isinstance(self.before, Picture) else float(np.ptp(self.X)) or 1.0

    def clip(self, recovered: np.ndarray) -> np.ndarray:
        """The values, set to the nearest that an image can have."""
        return np.clip(recovered, 0, self.before.peak) if isinstance(self.before, Picture) else recovered

    def restore(self, recovered: np.ndarray) -> Picture | Recording:
        """An image or signals of the kind that was given."""
        if isinstance(self.before, Recording):
            return replace(self.before, signals=recovered)
        like = self.before.pixels
        flat = recovered[0] if like.ndim == 2 else np.moveaxis(recovered, 0, 2)
        return replace(self.before, pixels=np.clip(np.rint(flat), 0, self.before.peak).astype(like.dtype))


def holds_signals(data: Any) -> bool:
    """True for signals (tables, frames and floats), false for an image (image files and bytes)."""
    if isinstance(data, (str, os.PathLike)):
        return Path(os.fspath(data).split("::")[0].removesuffix(".gz")).suffix.lower() in TABLES
    return not isinstance(data, Picture) and getattr(data, "dtype", None) not in (np.uint8, np.uint16)


def read_channels(source: Any) -> Data:
    image = as_image(source)
    check_formats(list_planned_files(), image)
    pixels = image.pixels.astype(np.float64)
    return Data(pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, 2, 0), image)


def read_signals(data: Any) -> Data:
    """Each column is a signal (of a bare array: each row), but an evenly rising first column is time."""
    if isinstance(data, np.ndarray) and data.ndim == 1:
        data = data[:, None]
    table = as_table(data)
    X = table.array()
    X = np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float64)
    names, notes = list(table.columns), list(table.notes)
    blank = np.argwhere(np.isnan(X))
    if len(blank):
        row, column = (int(i) for i in blank[0])
        raise InputError(f'{table.source}: row {row + 1} of "{names[column]}" is blank. Fill it: twofold complete.')
    path = Path(os.fspath(data).split("::")[0]) if isinstance(data, (str, os.PathLike)) else None
    several, steps = X.shape[1] > 1, np.diff(X[:, 0])
    if several and (path.suffix.lower() in ARRAYS if path else isinstance(data, np.ndarray)):
        notes.append(f"each of the {len(X):,} rows is a signal of {X.shape[1]:,} numbers")
        X, names = X.T, [f"row {i + 1}" for i in range(len(X))]
    elif several and len(steps) > 1 and steps[0] > 0 and np.allclose(steps, steps[0], rtol=1e-3, atol=0):
        notes.append(f'"{names[0]}" rises evenly and is taken for time')
        X, names = X[:, 1:], names[1:]
    if len(X) < MIN_LENGTH:
        raise InputError(f"{table.source}: signals of {len(X)} numbers are too short. Give {MIN_LENGTH} or more.")
    signals = np.ascontiguousarray(X.T)
    return Data(signals, Recording(signals, unique_names(names)[0], notes=notes, source=table.source))


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


def recover(data: Data, model: Any) -> np.ndarray:
    """Measure every channel or signal, and recover it."""
    recovered = np.empty_like(data.X)
    for i, x in enumerate(data.X):
        recovered[i] = model.recover(model.measure(x))
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


@analysis()
def sense(
    data: OneFile,
    *,
    fraction: Annotated[float, Flag(min=0, max=1, unit="F")] = 0.3,
    kind: Literal["fourier", "hadamard", "gaussian", "rademacher"] | None = None,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> SensedSignals | SensedImage:
    """Recover an image or signal from fewer random measurements than it has numbers.

    Parameters
    ----------
    data : path, frame or array
        An image: a file, or uint8 or uint16 of shape (h, w) or (h, w, 3). Or signals: the columns of a table or frame,
        where one that rises evenly first is time; the rows of an array of floats, or one signal (d,).
    fraction
        Measurements, as a share of the numbers there are.
    kind
        What is measured. Default: fourier for images, hadamard for signals.

    Returns
    -------
    SensedImage or SensedSignals
        ``image`` holds a recovered image, ``table`` recovered signals, ``model`` the measurements that were drawn.

    Examples
    --------
    >>> time = np.arange(128)
    >>> answer = sense(np.cos(0.3 * time) + np.cos(0.9 * time), fraction=0.5)
    >>> bool(answer.figures["psnr"] > answer.baseline["psnr"])
    True
    """
    if fraction == 0:
        raise InputError(f"⟨fraction={fraction:g}⟩: measurements are a share above 0 and up to 1, such as 0.3.")
    with doing("reading"):
        given = read_signals(data) if holds_signals(data) else read_channels(data)
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
                recovered = recover(given, model)
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
        chosen={"kind": kind},
        before=given.before,
        after=given.restore(result),
        kind=kind,
        size=given.size,
        sparsity=sparsity,
        best=best,
        trials=trials,
    )
