"""Signals from numbers that were measured, and the matrix that measured them.

    y (m) = A (m,d) x (d) + noise       x: of all that explain y the one with the least sum of coefficients

Some measurements are held out: the basis that predicts them better is taken, and its error is the figure of the answer.
"""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import polars as pl

import twofold
from twofold.analyses.common.analysis import list_planned_files
from twofold.analyses.common.answer import FRAMES, Grid
from twofold.analyses.common.images import ImageAnswer
from twofold.analyses.common.signals import SignalAnswer
from twofold.analyses.common.tables import as_table
from twofold.analyses.sense.data import Data, holds_signals
from twofold.core.checks import InputError
from twofold.core.progress import doing, report
from twofold.core.seeds import generator
from twofold.io.images import ENDINGS, Picture
from twofold.io.recordings import Recording

HELD_OUT = 0.1  # of the measurements
MIN_MEASUREMENTS = 10


@dataclass(kw_only=True, repr=False, eq=False)
class RecoveredAnswer(SignalAnswer):
    """The base of `RecoveredSignals` and `RecoveredImage`."""

    measurements: int
    atoms: str

    labels = ("", "recovered")

    @property
    def hint(self) -> str:
        return "add ⟨out=signal.csv⟩ to keep the signal, ⟨compare=signal.png⟩ to look at it"

    @property
    def heading(self) -> str:
        return f"{self.source}: {self.measurements:,} measurements"

    @property
    def outcome(self) -> str:
        return f"{self.after.describe().partition(': ')[2]}, recovered as few {self.atoms}"

    @cached_property
    def held_out(self) -> pl.DataFrame:
        rows = [("least sum", self.figures["relative_error"]), ("least squares", self.baseline["relative_error"])]
        return pl.DataFrame(rows, ["recovered by", "relative_error"], orient="row")

    def grids(self) -> list[Grid]:
        rows = [[name, f"{error:.1%}"] for name, error in self.held_out.iter_rows()]
        return [Grid(["recovered by", "error of held-out measurements"], rows, right=(1,))]

    def lines(self) -> list[str]:
        own, other = self.figures["relative_error"], self.baseline["relative_error"]
        share = f"held out: {HELD_OUT:.0%} of the measurements were predicted from the others"
        if own > 0.9 * other or own > 0.5:
            return [share, "that is no success: more measurements are needed, or the signal has no few numbers here"]
        return [share]

    def facts(self) -> dict[str, Any]:
        return self.after.facts() | {"measurements": self.measurements, "basis": self.atoms}


@dataclass(kw_only=True, repr=False, eq=False)
class RecoveredSignals(RecoveredAnswer):
    """Signals from measured numbers."""

    endings: ClassVar[tuple[str, ...]] = (*FRAMES, ".npy", ".html")

    @classmethod
    def fits(cls, data: Any) -> bool:
        return False  # a table holds measurements of an image as well: `Measured`

    @cached_property
    def table(self) -> pl.DataFrame:
        """A signal in each column."""
        return self.frame()


@dataclass(kw_only=True, repr=False, eq=False)
class RecoveredImage(ImageAnswer):
    """An image from measured numbers."""

    measurements: int
    atoms: str

    heading, outcome = RecoveredAnswer.heading, RecoveredAnswer.outcome
    held_out, grids, lines, facts = (
        RecoveredAnswer.held_out,
        RecoveredAnswer.grids,
        RecoveredAnswer.lines,
        RecoveredAnswer.facts,
    )

    @property
    def hint(self) -> str:
        return "add ⟨out=image.png⟩ to keep the image"

    def panels(self) -> list[tuple[str, np.ndarray]]:
        return [("", self.after.pixels)]


class Measured(RecoveredSignals):
    """What the answer to a table may be: signals or an image."""

    endings: ClassVar[tuple[str, ...]] = (*RecoveredSignals.endings, *ENDINGS)

    @classmethod
    def fits(cls, data: Any) -> bool:
        return holds_signals(data)


def check_endings(endings: tuple[str, ...]) -> None:
    """Refuse, before anything is computed, files that cannot hold what will come."""
    for path in list_planned_files():
        if path.suffix.lower() not in endings:
            raise InputError(f"{path}: results are written as {', '.join(endings)}; end the name with one of these.")


def read_matrix(matrix: Any, length: Any, measured: Data) -> Any:
    """The model whose measurements are the rows of a matrix, in a file or as an array."""
    path = os.fspath(matrix) if isinstance(matrix, (str, os.PathLike)) else None
    A = np.asarray(as_table(path).array() if path else matrix, np.float64)
    name, (m, d) = path or "the matrix", A.shape if A.ndim == 2 else (0, 0)
    if not np.isfinite(A).all() or not A.size or A.ndim != 2:
        raise InputError(f"{name} has shape {A.shape}; a matrix has a finite number for each measurement and place.")
    if m != measured.size:
        turned = " It fits when it is transposed." if d == measured.size else ""
        raise InputError(
            f"{name} has {m:,} rows, and {measured.size:,} numbers were measured; each row is one.{turned}"
        )
    shape = read_shape(length) if length is not None else (d,)
    if int(np.prod(shape)) != d:
        raise InputError(f"{name} has {d:,} columns, for as many numbers; ⟨length⟩ says {np.prod(shape):,}.")
    model = make_model(m, "gaussian", shape, 0)
    model.measuring_ = model.measuring_._replace(matrix=A)
    return model


def draw_model(length: Any, kind: str | None, measured: Data, seed: int) -> Any:
    """The model whose measurements are drawn by their kind and seed."""
    return make_model(measured.size, kind or "gaussian", read_shape(length), seed)


def read_shape(length: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in np.atleast_1d(length))


def make_model(m: int, kind: str, shape: tuple[int, ...], seed: int) -> Any:
    if m < MIN_MEASUREMENTS:
        raise InputError(f"there are {m} measurements; {MIN_MEASUREMENTS} are the fewest.")
    if m >= int(np.prod(shape)):
        raise InputError(
            f"there are {m:,} measurements of {np.prod(shape):,} numbers, so nothing is missing: solve for the signal "
            "by least squares, numpy.linalg.lstsq."
        )
    return twofold.CompressiveSensing(m, kind=kind, random_state=seed).fit(np.zeros(shape))


def list_bases(model: Any) -> dict[str, Any]:
    """The bases among which one is chosen."""
    from twofold.signals import DCT, Wavelet

    ndim = len(model.shape_)
    if ndim == 2 and model.measuring_.matrix is None:
        return {"wavelets at every shift": model.basis_}  # better than any one basis
    return {"cosines": DCT(ndim), "wavelets": Wavelet(ndim, "sym8")}


def keep_measurements(model: Any, basis: Any, kept: np.ndarray) -> Any:
    """The model with some of its measurements."""
    some, how = copy.copy(model), model.measuring_
    part = {"matrix": how.matrix[kept]} if how.matrix is not None else {"rows": how.rows[kept]}
    some.measuring_, some.basis_, some.n_measurements_ = how._replace(**part), basis, len(kept)
    return some


def solve_least_squares(model: Any, Y: np.ndarray) -> np.ndarray:
    """The shortest signals that explain the measurements."""
    A = model.measuring_.matrix
    if A is None:  # rows of an orthonormal transform
        return model.measuring_.transpose(Y)
    return np.linalg.lstsq(A, Y.T)[0].T.reshape(-1, *model.shape_)


def recover_measured(measured: Data, model: Any, sigma: float, seed: int, drawn: bool) -> Any:
    """The answer: signals or an image from measured numbers."""
    Y, m = measured.X, measured.size
    check_endings((RecoveredSignals if len(model.shape_) == 1 else RecoveredImage).endings)
    order = generator(seed, 3).permutation(m)
    hidden, seen = np.sort(order[: max(round(HELD_OUT * m), 2)]), np.sort(order[max(round(HELD_OUT * m), 2) :])
    length = float(np.linalg.norm(Y[:, hidden])) or 1.0
    test = keep_measurements(model, model.basis_, hidden).measuring_

    def measure_error(X: np.ndarray) -> float:
        return float(np.linalg.norm(test.forward(X) - Y[:, hidden])) / length

    errors, bases = {}, list_bases(model)
    with doing("choosing a basis"):
        for i, (name, basis) in enumerate(bases.items()):
            errors[name] = measure_error(keep_measurements(model, basis, seen).recover(Y[:, seen], sigma))
            report(i + 1, len(bases))
    atoms = min(errors, key=lambda name: errors[name])
    squares = measure_error(solve_least_squares(keep_measurements(model, model.basis_, seen), Y[:, seen]))
    with doing("recovering"):
        model.basis_ = bases[atoms]
        X = model.recover(Y, sigma)
    notes = [*measured.before.notes]
    if drawn:
        notes.append(
            f"measurements are those of CompressiveSensing({m}, kind={model.kind!r}, random_state={seed}).fit(signal)"
        )
    after = as_result(X, measured.before)
    answer: Any = RecoveredSignals if isinstance(after, Recording) else RecoveredImage
    return answer(
        source=measured.before.source,
        model=model,
        figures={
            "what": "error of measurements that were held out, as a share of them",
            "relative_error": errors[atoms],
        },
        baseline={"method": "least squares", "relative_error": squares},
        notes=notes,
        before=after,
        after=after,
        measurements=m,
        atoms=atoms,
    )


def as_result(X: np.ndarray, before: Any) -> Picture | Recording:
    """Signals (c,d) with the names of their measurements; one or three planes (c,h,w) as an image."""
    if X.ndim == 2:
        return Recording(X, before.names, source=before.source)
    if len(X) not in (1, 3):
        raise InputError(f"{before.source} has {len(X)} columns; an image has 1, or 3 for red, green and blue.")
    pixels = np.clip(np.rint(X), 0, 255).astype(np.uint8)
    return Picture(pixels[0] if len(X) == 1 else np.moveaxis(pixels, 0, 2), source=before.source)
