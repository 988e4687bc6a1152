"""Figures of the linear models: spectra, directions as images, reconstructions, error bars, planes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.special import erfinv

from twofold.plots.labels import write_badge, write_beside
from twofold.plots.models.images import DIGIT_COLORS, PAPER, color_mosaic
from twofold.plots.style import (
    COLORS,
    DIVERGING,
    GREY,
    INK,
    SEQUENTIAL,
    new_figure,
    new_grid,
    new_panels,
    show_percent,
    strip_table,
    style,
)


def spectrum_figure(values: np.ndarray, choices: Mapping[str, int]) -> Figure:
    """Draw eigenvalues, descending, their running total, and the k of each rule in `choices`."""
    values = values[values > 1e-12 * values[0]]
    c = np.arange(1, len(values) + 1)
    with style():
        figure = new_figure(11, 3.9)
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
        left.bar(c, values, width=0.8, color=COLORS[0], alpha=0.85)
        left.set(title="Variance along each axis", xlabel="component", xlim=(0.2, len(c) + 0.8))
        left.grid(axis="x", visible=False)
        _mark_choices(left, choices, values)
        share = np.cumsum(values) / values.sum()
        right.plot(c, share, color=COLORS[1], lw=2)
        right.fill_between(c, share, color=COLORS[1], alpha=0.1, lw=0)
        named = 0
        for k in sorted(set(choices.values())):
            right.plot([k], [share[k - 1]], "o", ms=5, color=COLORS[1])
            if k >= named + 0.04 * len(c):  # closer ones would hide each other
                write_beside(right, f"k = {k}: {share[k - 1]:.0%}", (k, share[k - 1]), (7, -12), fontsize=9.5)
                named = k
        right.set(title="Variance held by the first k", xlabel="k", ylim=(0, 1.04), xlim=(0.2, len(c) + 0.8))
        show_percent(right.yaxis)
        right.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def _mark_choices(ax: Axes, choices: Mapping[str, int], values: np.ndarray) -> None:
    """Draw a flag for each rule, the names at different heights so that none hides another."""
    for i, (name, k) in enumerate(sorted(choices.items(), key=lambda choice: choice[1])):
        height = values[0] * (0.95 - 0.13 * i)
        ax.plot([k + 0.5, k + 0.5], [0, height], color=INK, lw=1, ls=(0, (3, 2)))
        shift, side = (-5, "right") if k > 0.7 * len(values) else (5, "left")
        write_beside(ax, f"{name}: {k}", (k + 0.5, height), (shift, -3), ha=side, va="top", fontsize=9.5)


def directions_figure(mean: np.ndarray, axes: np.ndarray, shares: np.ndarray, per_row: int = 9) -> Figure:
    """Draw the mean image (h,w) and the directions (k,h,w) around it with their shares of the variance.

    Each is on its own scale: blue adds ink, red takes it away.
    """
    tiles = [(color_mosaic(mean[None], PAPER, 0.0, float(mean.max())), "mean")]
    for c, axis in enumerate(axes):
        limit = float(np.abs(axis).max())
        tiles.append((color_mosaic(axis[None], DIVERGING, -limit, limit), f"{c + 1} · {shares[c]:.1%}"))
    with style():
        figure, panels = new_grid(len(tiles), per_row, 11, 1.42)
        for ax, (tile, name) in zip(panels, tiles, strict=True):
            ax.axis("off")
            ax.imshow(tile, interpolation="none")
            ax.set_title(name, fontsize=9.5, fontweight="normal", loc="center", pad=4)
    return figure


def rows_figure(rows: Mapping[str, np.ndarray], limits: tuple[float, float], spread: str = "") -> Figure:
    """Draw named rows of images (m,h,w): the same images in each row, seen in different ways; NaN is a hole.

    `limits` are the values of white and black; the row called `spread` holds standard deviations and is in color.
    """
    names = list(rows)
    scales = {name: (PAPER, *limits) for name in names}
    if spread:
        scales[spread] = (SEQUENTIAL, 0.0, float(rows[spread].max()))
    strips = [color_mosaic(images, *scales[name]) for name, images in rows.items()]
    h, width, _ = strips[0].shape
    canvas = np.concatenate([np.pad(strip, ((0, 2), (0, 0), (0, 0))) for strip in strips])[:-2]
    with style():
        figure = new_figure(11, 9.6 * canvas.shape[0] / width + 0.3)
        ax = figure.subplots()
        ax.imshow(canvas, interpolation="none")
        ax.set_yticks((h - 1) / 2 + (h + 2) * np.arange(len(names)), names)
        ax.set_xticks([])
        strip_table(ax)
    return figure


def calibration_figure(
    errors: np.ndarray, std: np.ndarray, other_errors: Mapping[str, np.ndarray], name: str = "PPCA"
) -> Figure:
    """Check error bars: left, the share of true values within them; right, the size of the errors.

    `errors` and `std` (m,) are errors and predicted deviations of filled cells; `other_errors` are of other models.
    """
    ratio = np.abs(errors) / np.maximum(std, 1e-12)
    promised = np.linspace(0.02, 0.99, 98)
    kept = [(ratio <= np.sqrt(2) * erfinv(p)).mean() for p in promised]
    with style():
        figure = new_figure(11, 3.7)
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.25])
        left.plot([0, 1], [0, 1], color=GREY, lw=1, ls=(0, (3, 2)))
        left.plot(promised, kept, color=COLORS[0], lw=2.2)
        for times, p in ((1, 0.6827), (2, 0.9545)):
            share = (ratio <= times).mean()
            left.plot([p], [share], "o", ms=6, color=COLORS[0])
            look: Any = {"ha": "right", "fontweight": "bold", "color": COLORS[0]}
            write_beside(left, f"±{times} sd: {share:.0%}", (p, share), (-8, 6 if times == 1 else -4), **look)
        left.set(title="Truth inside the error bars", xlabel="share promised", ylabel="share found")
        show_percent(left.xaxis, left.yaxis)
        left.set(xlim=(0, 1), ylim=(0, 1))
        curves = {name: errors, **other_errors}
        far = float(np.quantile(np.abs(np.concatenate(list(curves.values()))), 0.995))
        for color, (label, values) in zip(COLORS, curves.items(), strict=False):
            size = np.sort(np.abs(values))
            shown = np.linspace(0, len(size) - 1, 400).astype(int)
            rms = float(np.sqrt((values**2).mean()))
            right.plot(size[shown], (shown + 1) / len(size), color=color, lw=2.2, label=f"{label} (rms {rms:.2f})")
        right.set(title="Cells filled within an error of", xlabel="error", xlim=(0, far), ylim=(0, 1.02))
        show_percent(right.yaxis)
        right.legend(loc="lower right")
    return figure


def planes_figure(planes: Mapping[str, np.ndarray], labels: np.ndarray) -> Figure:
    """Draw the same rows in several planes (n,2), colored by label, with the label at the middle of each group."""
    kinds = np.unique(labels)
    with style():
        figure, axes = new_panels(len(planes), 11, 11 / len(planes) - 0.4)
        for ax, (title, at) in zip(axes, planes.items(), strict=True):
            for i, kind in enumerate(kinds):
                own = at[labels == kind]
                color = DIGIT_COLORS[i % len(DIGIT_COLORS)]
                ax.scatter(*own.T, s=8, color=color, alpha=0.45, linewidths=0, rasterized=True)
            for i, kind in enumerate(kinds):
                write_badge(ax, np.median(at[labels == kind], axis=0), str(kind), DIGIT_COLORS[i % len(DIGIT_COLORS)])
            ax.set(title=title, xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
    return figure
