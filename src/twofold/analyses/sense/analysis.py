"""An image or signals measured fewer times than they have numbers, and recovered from that.

Random measurements, and of all that explain them the one with the least sum of coefficients in a basis. Beside it
stands the shortest one that explains them: least squares, which knows nothing of a basis.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

import twofold
from twofold.analyses._tables import as_table
from twofold.analyses._targets import Writer
from twofold.analyses.answer import Grid, analysis, count
from twofold.analyses.common.images import (
    ComparedAnswer,
    as_image,
    decibels,
    image_in_code,
    image_writer,
    size_facts,
    size_line,
    with_alpha,
)
from twofold.analyses.progress import SILENT, Progress
from twofold.core.checks import InputError
from twofold.io.images import ENDINGS, Picture
from twofold.io.tables.table import unique_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("fourier", "hadamard", "gaussian", "rademacher")
FAST = KINDS[:2]  # the others are matrices
TABLES = (".csv", ".tsv", ".txt", ".dat", ".npy", ".npz", ".parquet", ".jsonl")
SIGNALS = (".csv", ".tsv", ".parquet", ".npy")
FRACTIONS = (0.1, 0.2, 0.3, 0.5)  # tried beside the one asked for
MOST_TRIED = 100_000  # numbers; of more, only the fraction asked for is tried
HELD = 0.99  # of the variance, in the coefficients counted
LEAST, MOST_DRAWN = 8, 4  # numbers in a signal; signals in the figure


@dataclass
class Given:
    """What is measured: the channels of an image (c,h,w), or signals (c,d)."""

    X: np.ndarray
    names: list[str]
    source: str
    notes: list[str] = field(default_factory=list)
    image: Picture | None = None

    @property
    def size(self) -> int:
        """Numbers in one signal or channel."""
        return int(self.X[0].size)

    @property
    def peak(self) -> float:
        """What an error is compared with."""
        return float(np.ptp(self.X)) or 1.0 if self.image is None else self.image.peak

    def like(self, recovered: np.ndarray) -> np.ndarray:
        """Values that cannot be are set to the nearest that can."""
        return recovered if self.image is None else np.clip(recovered, 0, self.image.peak)


class Trial(NamedTuple):
    """What comes back from so many measurements."""

    fraction: float
    measurements: int
    relative_error: float  # ‖x − x̂‖ / ‖x‖
    psnr: float


class Sparse(NamedTuple):
    """The basis that needs fewest numbers, their name, and how many hold nearly all of the variance."""

    basis: Any
    atoms: str
    held: int


@dataclass(kw_only=True, repr=False, eq=False)
class Sensing(ComparedAnswer):
    """What was recovered from few measurements: a `SensedImage`, or `SensedSignals`."""

    given: Given
    kind: str
    sparse: Sparse
    best: Trial
    trials: list[Trial]
    recovered: np.ndarray  # shaped as what was measured: (c,h,w) or (c,d)

    def what(self) -> str:
        """What was measured, in a few words."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        best = self.best
        way = f"recovered from {best.measurements:,} measurements ({best.fraction:.0%}), {decibels(best.psnr)}"
        return f"{self.what()} → {way}"

    def grids(self) -> list[Grid]:
        rows = [
            [f"{t.fraction:.0%}", f"{t.measurements:,}", f"{t.relative_error:.2%}", decibels(t.psnr)]
            for t in self.trials
        ]
        return [Grid(["measured", "measurements", "error", "PSNR"], rows, right=(1, 2, 3))]

    def lines(self) -> list[str]:
        held, size = self.sparse.held, self.given.size
        needed = self.measurements_needed
        return [
            f"least squares, which knows no basis, gives {decibels(self.baseline['psnr'])} from the same measurements",
            f"{HELD:.0%} of the variance is in {held:,} of {size:,} {self.sparse.atoms}; to find that many, theory "
            f"asks for about {needed:,} measurements ({needed / size:.0%})",
        ]

    @cached_property
    def measurements_needed(self) -> int:
        from twofold.signals import measurements_needed

        return measurements_needed(self.sparse.held, self.given.size)

    def facts(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "fraction": self.best.fraction,
            "measurements": self.best.measurements,
            "basis": self.sparse.atoms,
            "sparsity": self.sparse.held,
            "measurements_needed": self.measurements_needed,
            "tried": [trial._asdict() for trial in self.trials],
        }


@dataclass(kw_only=True, repr=False, eq=False)
class SensedImage(Sensing):
    """A recovered image."""

    before: Picture

    endings: ClassVar[tuple[str, ...]] = (*ENDINGS, ".html")

    def what(self) -> str:
        return size_line(self.before)

    @cached_property
    def after(self) -> Picture:
        """The recovered channels as an image of the kind that was given."""
        like = self.before.pixels
        flat = self.recovered[0] if like.ndim == 2 else np.moveaxis(self.recovered, 0, 2)
        return replace(self.before, pixels=np.clip(np.rint(flat), 0, self.before.peak).astype(like.dtype))

    @property
    def image(self) -> np.ndarray:
        """The result; transparency, which is not measured, is the last channel."""
        return with_alpha(self.after)

    @cached_property
    def table(self) -> pl.DataFrame:
        """What comes back from how many measurements."""
        return pl.DataFrame(self.trials, Trial._fields, orient="row")

    def facts(self) -> dict[str, Any]:
        return size_facts(self.before) | super().facts()

    def plot(self) -> Figure:
        from twofold.plots.models.images import comparison_figure

        after = f"recovered from {self.best.fraction:.0%}, {decibels(self.best.psnr)}"
        return comparison_figure([("original", self.before.pixels), (after, self.after.pixels)], self.title)

    def writer(self, path: Path) -> Writer:
        return image_writer(path, self.after) if path.suffix.lower() in ENDINGS else super().writer(path)


@dataclass(kw_only=True, repr=False, eq=False)
class SensedSignals(Sensing):
    """Recovered signals."""

    endings: ClassVar[tuple[str, ...]] = (*SIGNALS, ".html")

    def what(self) -> str:
        return f"{self.source}: {count(len(self.given.X), 'signal')} of {self.given.size:,} numbers"

    @cached_property
    def table(self) -> pl.DataFrame:
        """A signal in each column."""
        names, _ = unique_names(self.given.names)
        return pl.DataFrame(dict(zip(names, self.recovered, strict=True)))

    def facts(self) -> dict[str, Any]:
        return {"signals": self.given.names, "length": self.given.size} | super().facts()

    def plot(self) -> Figure:
        from twofold.plots.models.images import signals_figure

        pairs = zip(self.given.names[:MOST_DRAWN], zip(self.given.X, self.recovered, strict=True), strict=False)
        return signals_figure(dict(pairs), self.title)

    def writer(self, path: Path) -> Writer:
        if path.suffix.lower() != ".npy":
            return super().writer(path)
        return lambda to: np.save(to, self.recovered[0] if len(self.recovered) == 1 else self.recovered)


@analysis
def sense(
    data: Any, *, fraction: float = 0.3, kind: str | None = None, seed: int = 0, progress: Progress = SILENT
) -> SensedImage | SensedSignals:
    """Measure an image or signals a few times at random, and recover them.

    Parameters
    ----------
    data : path, frame or array
        An image: a file, or uint8 or uint16 of shape (h, w) or (h, w, 3). Or signals: the columns of a table or frame,
        where one that rises evenly first is time; the rows of an array of floats, or one signal (d,).
    fraction : float
        Measurements, as a share of the numbers there are.
    kind : {"fourier", "hadamard", "gaussian", "rademacher"} or None
        What is measured. None: Fourier for images, Hadamard for signals.
    seed, progress
        The seed of everything random; who is told what goes on.

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
    if kind not in (None, *KINDS):
        raise InputError(f"--kind {kind}: choose {', '.join(KINDS[:-1])} or {KINDS[-1]}.")
    if not 0 < fraction <= 1:
        raise InputError(f"--fraction {fraction:g}: measurements are a share above 0 and up to 1, such as 0.3.")
    with progress.doing("reading"):
        given = as_signals(data) if is_signals(data) else as_channels(data)
        sparse = sparsest(given)
    notes, pictured = given.notes, given.image is not None
    if kind is None:
        kind, how = ("fourier", "waves, mostly long ones") if pictured else ("hadamard", "random sums of all numbers")
        notes.append(f"measured by {how}: --kind {kind}")
    fast = pictured and kind in FAST
    basis = None if fast else sparse.basis  # images have a better way back than any one basis
    notes.append(f"recovered as few {'wavelets at every shift' if fast else sparse.atoms}")
    few = given.X.size <= (MOST_TRIED if kind in FAST else MOST_TRIED // 100)
    fractions = sorted({fraction, *(FRACTIONS if few else ())})
    trials: list[Trial] = []
    with progress.share("measuring and recovering") as tell, warnings.catch_warnings(record=True) as said:
        for i, share in enumerate(fractions):
            model = measuring(given, share, kind, basis, seed)
            recovered = recover(given, model, part_of(tell, i, len(fractions)))
            trials.append(judge(given, share, model, recovered))
            if share == fraction:
                best, chosen, result = trials[-1], model, recovered
    if said:
        notes.append(
            "some recoveries stopped before they had settled: figures may be a little low (hadamard settles fast)"
        )
    squares = judge(given, fraction, chosen, least_squares(given, chosen))
    common: dict[str, Any] = {
        "source": given.source,
        "model": chosen,
        "figures": {
            "what": "error of what was recovered, against what was measured; PSNR in dB",
            "relative_error": best.relative_error,
            "psnr": best.psnr,
        },
        "baseline": {"method": "least squares", "relative_error": squares.relative_error, "psnr": squares.psnr},
        "notes": notes,
        "call": {"verb": "sense", "data": image_in_code(data), "fraction": fraction, "kind": kind, "seed": seed},
        "given": given,
        "kind": kind,
        "sparse": sparse,
        "best": best,
        "trials": trials,
        "recovered": result,
    }
    return SensedSignals(**common) if given.image is None else SensedImage(**common, before=given.image)


# --- what is measured ---------------------------------------------------------------------------------------


def is_signals(data: Any) -> bool:
    """Tables, frames and floats are signals; image files and bytes are images."""
    if isinstance(data, (str, os.PathLike)):
        return is_table(os.fspath(data))
    return not isinstance(data, Picture) and getattr(data, "dtype", None) not in (np.uint8, np.uint16)


def is_table(source: str) -> bool:
    return Path(source.split("::")[0].removesuffix(".gz")).suffix.lower() in TABLES


def as_channels(data: Any) -> Given:
    image = as_image(data)
    pixels = image.pixels.astype(np.float64)
    X = pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, 2, 0)
    return Given(X, ["red", "green", "blue"] if len(X) == 3 else ["grey"], image.source, image.notes, image)


def as_signals(data: Any) -> Given:
    """Each column a signal (of a bare array: each row); an evenly rising first column only says when."""
    if isinstance(data, np.ndarray) and data.ndim == 1:
        data = data[:, None]
    table = as_table(data)
    X = table.array()
    X = np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float64)
    names, notes = list(table.columns), list(table.notes)
    blank = np.argwhere(np.isnan(X))
    if len(blank):
        row, column = (int(i) for i in blank[0])
        raise InputError(
            f'{table.source}: row {row + 1} of "{names[column]}" is blank. Fill it first: twofold complete.'
        )
    if is_array(data) and X.shape[1] > 1:
        notes.append(f"each of the {len(X):,} rows is a signal of {X.shape[1]:,} numbers")
        X, names = X.T, [f"row {i + 1}" for i in range(len(X))]
    elif X.shape[1] > 1 and rises_evenly(X[:, 0]):
        notes.append(f'"{names[0]}" rises evenly and is taken for time')
        X, names = X[:, 1:], names[1:]
    if len(X) < LEAST:
        raise InputError(
            f"{table.source}: signals of {len(X)} numbers are too short to measure less often. Give {LEAST} or more."
        )
    return Given(np.ascontiguousarray(X.T), names, table.source, notes)


def is_array(data: Any) -> bool:
    if isinstance(data, (str, os.PathLike)):
        return Path(os.fspath(data).split("::")[0]).suffix.lower() in (".npy", ".npz")
    return isinstance(data, np.ndarray)


def rises_evenly(x: np.ndarray) -> bool:
    """Whether numbers rise by the same step."""
    steps = np.diff(x)
    return len(steps) > 1 and bool(steps[0] > 0) and np.allclose(steps, steps[0], rtol=1e-3, atol=0)


def sparsest(given: Given) -> Sparse:
    """Of two bases, the one in which the image or the signals are sparser, by the channel that needs most."""
    from twofold.signals import DCT, Wavelet

    axes = tuple(range(1, given.X.ndim))
    X = given.X - given.X.mean(axis=axes, keepdims=True)
    found = []
    for basis, atoms in ((DCT(len(axes)), "cosines"), (Wavelet(len(axes), "sym8"), "wavelets")):
        power = np.square(basis.analyze(X)).reshape(len(X), -1)
        share = np.cumsum(-np.sort(-power, axis=1), axis=1)
        found.append(Sparse(basis, atoms, int((np.argmax(share >= HELD * share[:, -1:], axis=1) + 1).max())))
    best, other = sorted(found, key=lambda one: one.held)
    given.notes.append(
        f"{best.held:,} {best.atoms} hold {HELD:.0%} of the variance; it takes {other.held:,} {other.atoms}"
    )
    return best


# --- measuring and recovering -------------------------------------------------------------------------------


def measuring(given: Given, fraction: float, kind: str, basis: Any, seed: int) -> Any:
    m = max(1, round(fraction * given.size))
    return twofold.CompressiveSensing(m, kind=kind, basis=basis, random_state=seed).fit(given.X[0])


def recover(given: Given, model: Any, tell: Callable[[float], Any]) -> np.ndarray:
    """Measure every channel or signal, and recover it."""
    recovered = np.empty_like(given.X)
    for i, x in enumerate(given.X):
        recovered[i] = model.recover(model.measure(x))
        tell((i + 1) / len(given.X))
    return given.like(recovered)


def least_squares(given: Given, model: Any) -> np.ndarray:
    """The shortest signals that explain the measurements."""
    Y = model.measure(given.X)
    A = model.measuring_.matrix
    if A is None:  # rows of an orthonormal transform
        return given.like(model.measuring_.transpose(Y))
    found = np.linalg.lstsq(A, Y.T)[0].T
    return given.like(found.reshape(given.X.shape))


def judge(given: Given, fraction: float, model: Any, recovered: np.ndarray) -> Trial:
    from twofold.metrics import psnr

    error = float(np.linalg.norm(given.X - recovered) / (np.linalg.norm(given.X) or 1.0))
    return Trial(fraction, model.n_measurements_, error, psnr(given.X, recovered, given.peak))


def part_of(tell: Callable[[float], Any] | None, i: int, n: int) -> Callable[[float], Any]:
    """Tells the share of part i of n as a share of all."""
    return lambda done: tell((i + done) / n) if tell is not None else None
