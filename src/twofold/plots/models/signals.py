"""Figures of sparse codes: one signal in several bases, signals before and after, the limits of recovery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from scipy.signal import spectrogram

from twofold.plots.style import (
    COLORS,
    GREY,
    INK,
    SEQUENTIAL,
    add_colorbar,
    add_title,
    new_figure,
    new_panels,
    show_percent,
    style,
)
from twofold.signals.bases import Basis
from twofold.signals.phase_diagram import PhaseDiagram, donoho_tanner
from twofold.signals.thresholding import keep_largest

MIN_ENERGY_LOST = 1e-5  # a smaller share is not drawn
MAX_SIGNALS, ENLARGED_NUMBERS = 4, 400
MAX_RUNS = 2000  # that a wide panel can show
MIN_WINDOW, MAX_WINDOW, WINDOWS_PER_SECOND = 16, 1024, 25  # numbers of a window of a spectrogram
DYNAMIC_RANGE = 70  # decibels below the loudest wave that a spectrogram shows
ROUNDING_RESIDUAL = 1e-12  # a residual of this length is rounding


# --- bases --------------------------------------------------------------------------------------------------


def compute_energy_lost(codes: np.ndarray) -> np.ndarray:
    """(d + 1,) the share of Σ c² that is lost when the largest 0, 1, 2, ... coefficients are kept.

    >>> compute_energy_lost(np.array([1.0, 0.0, -3.0])).round(3).tolist()
    [1.0, 0.1, 0.0, 0.0]
    """
    squares = np.sort(np.square(codes, dtype=np.float64).ravel())
    total = np.concatenate([[0.0], np.cumsum(squares)])[::-1]
    return total / max(total[0], np.finfo(np.float64).tiny)


def bases_figure(signal: np.ndarray, bases: Mapping[str, Basis], kept: int) -> Figure:
    """Draw a signal (d,) made from its `kept` largest coefficients in each orthonormal basis.

    Beside it is the energy lost with more or fewer of them.
    """
    with style():
        figure = new_figure(11, 1.25 * len(bases) + 1.0)
        grid = figure.add_gridspec(len(bases), 2, width_ratios=[1.5, 1])
        right = figure.add_subplot(grid[:, 1])
        for i, (name, basis) in enumerate(bases.items()):
            codes, color = basis.analyze(signal), COLORS[i]
            few, lost = keep_largest(codes, kept)
            ax = figure.add_subplot(grid[i, 0])
            ax.plot(signal, color=GREY, lw=2.4, alpha=0.5)
            ax.plot(basis.synthesize(few), color=color, lw=1.3)
            ax.set_title(f"{name}: {kept} of {len(signal):,} numbers keep {1 - lost / float(signal @ signal):.1%}")
            ax.set(yticks=[])
            ax.margins(x=0.01)
            if i < len(bases) - 1:
                ax.tick_params(labelbottom=False)
            right.plot(compute_energy_lost(codes)[: 6 * kept + 1], color=color, lw=2.2, label=name)
        right.axvline(kept, color=GREY, lw=1, ls=(0, (3, 2)))
        right.set(title="Energy lost", xlabel="coefficients kept, the largest first", yscale="log", ylim=(None, 1.3))
        right.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
        right.yaxis.set_minor_formatter(NullFormatter())
        right.set_ylim(bottom=max(right.get_ylim()[0], MIN_ENERGY_LOST))
        right.legend()
    return figure


def compare_signals_figure(
    before: np.ndarray,
    after: np.ndarray,
    names: Sequence[str],
    rate: int | None = None,
    title: str = "",
    labels: tuple[str, str] = ("before", "after"),
) -> Figure:
    """Draw the first few signals (c,d) before and after, whole and, if they are long, a part of each enlarged.

    `rate` is the number of values a second; None counts values instead. Sound, which has one, is drawn once more as a
    spectrogram before and after.
    """
    rows, d = min(len(before), MAX_SIGNALS), before.shape[1]
    heard = rows if rate is not None and d >= 4 * MIN_WINDOW else 0
    parts = [slice(0, d)]
    if d > 2 * ENLARGED_NUMBERS:
        parts.append(slice((d - ENLARGED_NUMBERS) // 2, (d + ENLARGED_NUMBERS) // 2))
    with style():
        figure = new_figure(11, 2.1 * rows + 2.6 * heard + 0.9)
        halves: Any = figure.subfigures(2, 1, height_ratios=[2.1 * rows, 2.6 * heard]) if heard else [figure]
        grid = halves[0].subplots(rows, len(parts), squeeze=False, width_ratios=[1.6, 1][: len(parts)])
        for i in range(rows):
            for ax, part in zip(grid[i], parts, strict=True):
                _draw_signal(ax, before[i], part, rate, color=GREY, alpha=0.55, lw=0.8, label=labels[0])
                _draw_signal(ax, after[i], part, rate, color=COLORS[0], lw=1.3, label=labels[1])
                ax.margins(x=0.01)
            grid[i][0].set_title(names[i])
        for ax in grid[-1]:
            ax.set_xlabel("seconds" if rate else "row")
        grid[0][0].legend(loc="upper right", ncols=2)
        if len(parts) > 1:
            grid[0][1].set_title("enlarged")
        if heard and rate:
            axes = halves[1].subplots(rows, 2, squeeze=False, sharex=True, sharey=True)
            for i in range(rows):
                _draw_spectrograms(axes[i], (before[i], after[i]), [f"{names[i]}, {label}" for label in labels], rate)
            for ax in axes[-1]:
                ax.set_xlabel("seconds")
        add_title(figure, title)
    return figure


def _draw_spectrograms(axes: Sequence[Axes], pair: Sequence[np.ndarray], titles: Sequence[str], rate: int) -> None:
    """Draw how loud each frequency is over time, in decibels below the loudest of the first signal."""
    n = len(pair[0])
    size = int(np.clip(2 ** round(np.log2(rate / WINDOWS_PER_SECOND)), MIN_WINDOW, min(MAX_WINDOW, n // 4)))
    step = max(size // 4, n // MAX_RUNS)
    found = [spectrogram(np.asarray(x, np.float64), rate, "hann", size, max(size - step, 0)) for x in pair]
    loudest = max(float(found[0][2].max()), np.finfo(float).tiny)
    for ax, title, (frequencies, times, power) in zip(axes, titles, found, strict=True):
        decibels = 10 * np.log10(np.maximum(power / loudest, 10 ** (-DYNAMIC_RANGE / 10)))
        image = ax.pcolormesh(times, frequencies / 1000, decibels, cmap=SEQUENTIAL, vmin=-DYNAMIC_RANGE, vmax=0)
        image.set_rasterized(True)
        ax.set_title(title)
        ax.grid(visible=False)
    axes[0].set_ylabel("kHz")
    add_colorbar(axes[0].figure, image, list(axes), fraction=0.03, pad=0.02, label="dB")


def _draw_signal(ax: Axes, x: np.ndarray, part: slice, rate: int | None, **look: Any) -> None:
    """Draw a line; of more numbers than the figure has dots, the least and the largest of each run."""
    places, values = np.arange(len(x))[part] / (rate or 1), np.asarray(x[part])
    run = len(values) // MAX_RUNS
    if run > 2:
        used = len(values) - len(values) % run
        runs = values[:used].reshape(-1, run)
        values = np.column_stack([runs.min(axis=1), runs.max(axis=1)]).ravel()
        places = np.repeat(places[:used:run], 2)
    ax.plot(places, values, **look)


# --- phase transition ---------------------------------------------------------------------------------------


def transition_figure(diagrams: Mapping[str, PhaseDiagram]) -> Figure:
    """Draw the share of signals recovered, over δ = m/n and ρ = K/m, with the curves of theory and of half success."""
    fine = np.linspace(0.0, 1.0, 201)
    curve = donoho_tanner(fine)
    with style():
        figure, axes = new_panels(len(diagrams), 4.9 * len(diagrams) + 0.9, 4.3, sharey=True)
        for ax, (title, found) in zip(axes, diagrams.items(), strict=True):
            sides = _edges(found.delta)
            for i, (rho, share) in enumerate(zip(found.rho, found.success, strict=True)):  # K/m differ: m is whole
                cells = sides[i : i + 2], _edges(rho), share[:, None]
                image = ax.pcolormesh(*cells, cmap=SEQUENTIAL, vmin=0, vmax=1, rasterized=True)  # no hairlines
            ax.plot(fine, curve, color=INK, lw=1.6, ls=(0, (4, 2)), label="Donoho–Tanner, n → ∞")
            ax.plot(found.delta, found.curve50, color=COLORS[1], lw=2.2, label="half recovered")
            xlabel = f"measurements for each of n = {found.n} unknowns, m/n"
            ax.set(title=title, xlabel=xlabel, xlim=(0, 1), ylim=(0, 1))
            ax.grid(visible=False)
        axes[0].set_ylabel("numbers not zero for each measurement, K/m")
        axes[0].legend(loc="upper left", fontsize=9)
        show_percent(add_colorbar(figure, image, list(axes), fraction=0.04, pad=0.02, label="recovered").ax.yaxis)
    return figure


def _edges(middles: np.ndarray) -> np.ndarray:
    """Return the borders of cells around these points, within 0 and 1."""
    between = (middles[1:] + middles[:-1]) / 2
    return np.concatenate([[0.0], between, [1.0]])
