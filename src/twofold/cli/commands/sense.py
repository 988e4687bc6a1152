"""`twofold sense`: a picture or signal measured fewer times than it has numbers, and recovered from that."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl
import typer

from twofold.cli._console import Writer, table_writer, waiting
from twofold.cli._pictures import (
    AsJson,
    Compare,
    Force,
    Fraction,
    Outcome,
    Quiet,
    Seed,
    check_outputs,
    check_pictures,
    decibels,
    deliver,
    figure_writer,
    fraction_bar,
    picture_writer,
    size_facts,
    size_line,
)
from twofold.core.checks import InputError
from twofold.io.images import ENDINGS, READ, Picture, read_image
from twofold.io.tables.read import read_table
from twofold.io.tables.table import unique_names

KINDS = ("fourier", "hadamard", "gaussian", "rademacher")
FAST = KINDS[:2]  # the others are matrices
TABLES = (".csv", ".tsv", ".txt", ".dat", ".npy", ".npz", ".parquet", ".jsonl")
SIGNALS = (".csv", ".tsv", ".parquet", ".npy")
TAKES = f"A picture ({READ}), or signals: a column each of CSV, TSV, Parquet, .npy."
RESULTS = "What was recovered: a picture, or signals as .csv .tsv .parquet .npy; repeatable."
SHARE = "Measurements, as a share of the numbers there are."
FRACTIONS = (0.1, 0.2, 0.3, 0.5)  # tried beside the one asked for
MOST_TRIED = 100_000  # numbers; of more, only the fraction asked for is tried
HELD = 0.99  # of the variance, in the coefficients counted
LEAST, MOST_DRAWN = 8, 4  # numbers in a signal; signals in the figure


@dataclass
class Given:
    """What is measured: the channels of a picture (c,h,w), or signals (c,d)."""

    X: np.ndarray
    names: list[str]
    source: str
    notes: list[str] = field(default_factory=list)
    picture: Picture | None = None

    @property
    def size(self) -> int:
        """Numbers in one signal or channel."""
        return int(self.X[0].size)


@dataclass
class Trial:
    fraction: float
    measurements: int
    recovered: np.ndarray
    relative_error: float  # ‖x − x̂‖ / ‖x‖
    psnr: float

    def facts(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "recovered"}


def sense(
    source: Annotated[str, typer.Argument(metavar="INPUT", help=TAKES)],
    fraction: Annotated[float, typer.Option(min=0, max=1, metavar="F", help=SHARE)] = 0.3,
    kind: Annotated[str | None, typer.Option(metavar="NAME", help=f"{', '.join(KINDS)}.")] = None,
    out: Annotated[list[Path] | None, typer.Option("-o", "--out", metavar="FILE", help=RESULTS)] = None,
    compare: Compare = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    out = out or []
    if kind not in (None, *KINDS):
        raise InputError(f"--kind {kind}: choose {', '.join(KINDS[:-1])} or {KINDS[-1]}.")
    if not fraction:
        raise InputError("--fraction 0: nothing comes of no measurement. Give a share such as 0.3.")
    check_outputs(out, compare, force, [source], SIGNALS if is_table(source) else ENDINGS)
    with waiting("reading", quiet):
        given = read_signals(source) if is_table(source) else read_channels(source)
        if given.picture is not None:
            check_pictures(out, given.picture)
    best, outcome = sensed(given, fraction, kind, seed, quiet)
    if not (out or compare):
        outcome.notes.append("nothing is written; -o keeps what was recovered, --compare both.png shows it")
    writers = {path: writer(path, given, best) for path in out}
    if compare is not None:
        writers[compare] = figure_writer(compare, figure(given, best, outcome), outcome)
    deliver(outcome, writers, as_json, quiet)


def is_table(source: str) -> bool:
    return Path(source.split("::")[0].removesuffix(".gz")).suffix.lower() in TABLES


def read_channels(source: str) -> Given:
    picture = read_image(source)
    pixels = picture.pixels.astype(np.float64)
    X = pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, 2, 0)
    return Given(X, ["red", "green", "blue"] if len(X) == 3 else ["grey"], picture.source, picture.notes, picture)


def read_signals(source: str) -> Given:
    """Each column a signal (of a bare array: each row); an evenly rising first column only says when."""
    table = read_table(source)
    X = table.array()
    X = np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float64)
    names, notes = list(table.columns), list(table.notes)
    blank = np.argwhere(np.isnan(X))
    if len(blank):
        row, column = (int(i) for i in blank[0])
        raise InputError(
            f'{source}: row {row + 1} of "{names[column]}" is blank. Fill it first: twofold complete {source}.'
        )
    if is_array(source) and X.shape[1] > 1:
        notes.append(f"each of the {len(X):,} rows is a signal of {X.shape[1]:,} numbers")
        X, names = X.T, [f"row {i + 1}" for i in range(len(X))]
    elif X.shape[1] > 1 and evenly(X[:, 0]):
        notes.append(f'"{names[0]}" rises evenly and is taken for time')
        X, names = X[:, 1:], names[1:]
    if len(X) < LEAST:
        raise InputError(
            f"{source}: signals of {len(X)} numbers are too short to measure less often. Give {LEAST} or more."
        )
    return Given(np.ascontiguousarray(X.T), names, table.source, notes)


def is_array(source: str) -> bool:
    return Path(source.split("::")[0]).suffix.lower() in (".npy", ".npz")


def evenly(x: np.ndarray) -> bool:
    """Whether numbers rise by the same step."""
    steps = np.diff(x)
    return len(steps) > 1 and bool(steps[0] > 0) and np.allclose(steps, steps[0], rtol=1e-3, atol=0)


def sensed(given: Given, fraction: float, kind: str | None, seed: int, quiet: bool) -> tuple[Trial, Outcome]:
    """What comes back from so many measurements, and from fewer and more of them."""
    start = time.perf_counter()
    notes = given.notes
    if kind is None:
        kind, how = (
            ("fourier", "waves, mostly long ones") if given.picture else ("hadamard", "random sums of all numbers")
        )
        notes.append(f"measured by {how}: --kind {kind}")
    sparse = sparsest(given)
    pictured = given.picture is not None and kind in FAST
    basis = None if pictured else sparse.basis  # pictures have a better way back than any one basis
    notes.append(f"recovered as few {'wavelets at every shift' if pictured else sparse.atoms}")
    few = given.X.size <= (MOST_TRIED if kind in FAST else MOST_TRIED // 100)
    fractions = sorted({fraction, *(FRACTIONS if few else ())})
    trials = []
    with fraction_bar("measuring and recovering", quiet) as progress, warnings.catch_warnings(record=True) as said:
        done = count(progress, len(fractions) * len(given.X))
        for share in fractions:
            trials.append(tried(given, share, kind, basis, seed, done))
    if said:
        notes.append(
            "some recoveries stopped before they had settled: figures may be a little low (hadamard settles fast)"
        )
    best = trials[fractions.index(fraction)]
    return best, told(given, kind, sparse, best, trials, round(time.perf_counter() - start, 3))


def count(progress: Fraction | None, n: int) -> Iterator[None]:
    """Each `next` says that one more of n is done."""
    for i in range(n):
        if progress is not None:
            progress((i + 1) / n)
        yield


class Sparse(NamedTuple):
    """The basis that needs fewest numbers, their name, and how many hold nearly all of the variance."""

    basis: Any
    atoms: str
    held: int


def sparsest(given: Given) -> Sparse:
    """Of two bases, the one in which the picture or the signals are sparser, by the channel that needs most."""
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


def told(given: Given, kind: str, sparse: Sparse, best: Trial, trials: list[Trial], seconds: float) -> Outcome:
    """The trials side by side, and what theory makes of the picture or signals."""
    from twofold.signals.sensing.compressive_sensing import measurements_needed

    held, needed = sparse.held, measurements_needed(sparse.held, given.size)
    lines = [
        f"{HELD:.0%} of the variance is in {held:,} of {given.size:,} {sparse.atoms}; "
        f"to find that many, theory asks for about {needed:,} measurements ({needed / given.size:.0%})"
    ]
    rows = [[f"{t.fraction:.0%}", f"{t.measurements:,}", f"{t.relative_error:.2%}", decibels(t.psnr)] for t in trials]
    facts = (
        facts_of(given)
        | {"kind": kind}
        | best.facts()
        | {"basis": sparse.atoms, "sparsity": held, "measurements_needed": needed}
    )
    facts |= {"tried": [t.facts() for t in trials], "seconds": seconds}
    way = f"recovered from {best.measurements:,} measurements ({best.fraction:.0%}), {decibels(best.psnr)}"
    head = ["measured", "measurements", "error", "PSNR"]
    return Outcome(f"{title_of(given)} → {way}", head, rows, lines, facts, given.notes)


def tried(given: Given, fraction: float, kind: str, basis: Any, seed: int, done: Iterator[None]) -> Trial:
    """Measure everything so many times, and recover it."""
    from twofold.metrics import psnr
    from twofold.signals.sensing.compressive_sensing import CompressiveSensing

    m = max(1, round(fraction * given.size))
    model = CompressiveSensing(m, kind=kind, basis=basis, random_state=seed).fit(given.X[0])
    recovered = np.empty_like(given.X)
    for i, x in enumerate(given.X):
        recovered[i] = model.recover(model.measure(x))
        next(done)
    peak = float(np.ptp(given.X)) or 1.0
    if given.picture is not None:
        peak = given.picture.peak
        recovered = np.clip(recovered, 0, peak)
    error = float(np.linalg.norm(given.X - recovered) / (np.linalg.norm(given.X) or 1.0))
    return Trial(fraction, m, recovered, error, psnr(given.X, recovered, peak))


def facts_of(given: Given) -> dict[str, Any]:
    if given.picture is not None:
        return size_facts(given.picture)
    return {"input": given.source, "signals": given.names, "length": given.size}


def title_of(given: Given) -> str:
    if given.picture is not None:
        return size_line(given.picture)
    count = len(given.X)
    return f"{given.source}: {count:,} signal{'s' if count > 1 else ''} of {given.size:,} numbers"


def writer(path: Path, given: Given, best: Trial) -> Writer:
    """The function that writes what was recovered as the file's ending says."""
    if given.picture is not None:
        return picture_writer(path, replace(given.picture, pixels=pixels_of(given, best)))
    if path.suffix.lower() == ".npy":
        return lambda to: np.save(to, best.recovered[0] if len(best.recovered) == 1 else best.recovered)
    names, _ = unique_names(given.names)
    return table_writer(path.suffix.lower(), pl.DataFrame(dict(zip(names, best.recovered, strict=True))))


def pixels_of(given: Given, trial: Trial) -> np.ndarray:
    """The recovered channels as a picture of the kind that was given."""
    assert given.picture is not None
    like = given.picture.pixels
    flat = trial.recovered[0] if like.ndim == 2 else np.moveaxis(trial.recovered, 0, 2)
    return np.clip(np.rint(flat), 0, given.picture.peak).astype(like.dtype)


def figure(given: Given, best: Trial, outcome: Outcome) -> Any:
    from twofold.plots.models.images import comparison_figure, signals_figure

    if given.picture is not None:
        after = f"recovered from {best.fraction:.0%}, {decibels(best.psnr)}"
        panels = [("original", given.picture.pixels), (after, pixels_of(given, best))]
        return comparison_figure(panels, outcome.title)
    pairs = zip(given.names[:MOST_DRAWN], zip(given.X, best.recovered, strict=True), strict=False)
    return signals_figure(dict(pairs), outcome.title)
