"""Figures of the completion models: tables filling up, held-out curves, landscapes, phase diagrams, maps of items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from twofold.plots.labels import label_points, write_beside
from twofold.plots.models.images import DIGIT_COLORS
from twofold.plots.style import (
    COLORS,
    GREY,
    INK,
    PALE,
    SEQUENTIAL,
    add_colorbar,
    draw_origin,
    new_figure,
    new_panels,
    show_percent,
    strip_axes,
    style,
)

HOLE = PALE  # an unknown cell


def tables_figure(tables: Mapping[str, np.ndarray], limits: tuple[float, float], label: str = "") -> Figure:
    """Draw tables side by side in one scale from low to high, which `label` names; holes, NaN, are pale."""
    first = next(iter(tables.values()))
    tall = first.shape[0] / first.shape[1]
    colors = SEQUENTIAL.with_extremes(bad=HOLE)
    with style():
        figure, axes = new_panels(len(tables), 11, 10.2 / len(tables) * tall + 0.9)
        for ax, (name, table) in zip(axes, tables.items(), strict=True):
            image = ax.imshow(table, cmap=colors, vmin=limits[0], vmax=limits[1], interpolation="none", aspect="auto")
            ax.set_title(name, fontsize=10.5)
            strip_axes(ax)
        add_colorbar(figure, image, list(axes), fraction=0.015, pad=0.012, label=label)
    return figure


def curves_figure(curves: Mapping[str, Mapping[str, Sequence[float]]], ylabel: str, xlabel: str = "sweep") -> Figure:
    """Draw errors sweep by sweep, one panel a model with a curve for each name.

    The least value of a curve whose name starts with "held" is marked.
    """
    with style():
        figure, axes = new_panels(len(curves), min(11, 4.6 * len(curves) + 1), 3.4, sharey=True)
        for ax, (title, lines) in zip(axes, curves.items(), strict=True):
            for color, (name, values) in zip((COLORS[0], COLORS[1], GREY), lines.items(), strict=False):
                at = np.arange(1, len(values) + 1)
                ax.plot(at, values, color=color, lw=2, marker="o", ms=3.5 if len(at) <= 30 else 0, label=name)
                if name.startswith("held"):
                    best = int(np.argmin(values))
                    ax.plot([best + 1], [values[best]], "o", ms=11, mfc="none", mec=INK, mew=1.5, zorder=5)
                    write_beside(ax, f"{values[best]:.3f}", (best + 1, values[best]), (4, 10))
            ax.set(title=title, xlabel=xlabel)
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes[0].set_ylabel(ylabel)
        axes[-1].legend()
    return figure


def draw_landscape(ax: Axes, x: float, reg: float = 0.0, reach: float = 2.6) -> None:
    """Draw the heights of ½(x − uz)² + ½ reg (u² + z²) in the plane of u and z, and the curve u z = x."""
    grid = np.linspace(-reach, reach, 401)
    u, z = np.meshgrid(grid, grid)
    height = 0.5 * (x - u * z) ** 2 + 0.5 * reg * (u**2 + z**2)
    low = float(height.min())
    levels = low + np.geomspace(0.008, height.max() - low, 22)
    shade = ax.contourf(u, z, np.maximum(height, levels[0]), levels=levels, cmap=SEQUENTIAL.reversed(), norm=LogNorm())
    shade.set_rasterized(True)
    ax.contour(u, z, height, levels=levels[::2], colors="white", linewidths=0.5, alpha=0.6)
    if reg == 0:
        for side in (-1, 1):
            t = side * np.geomspace(abs(x) / reach, reach, 200)
            ax.plot(t, x / t, color=COLORS[1], lw=2)
    elif reg < abs(x):
        best = np.sqrt(abs(x) - reg)
        for side in (-1, 1):
            look: Any = {"ms": 9, "color": COLORS[1], "mec": "white", "mew": 1.4, "zorder": 6}
            ax.plot([side * best], [side * np.sign(x) * best], "o", **look)
    ax.plot([0], [0], "x", ms=9, mew=2.2, color=COLORS[3], zorder=6)
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="u", ylabel="z", aspect="equal")
    ax.grid(visible=False)


def landscape_figure(
    x: float, panels: Mapping[str, tuple[float, Mapping[str, np.ndarray]]], reach: float = 2.6
) -> Figure:
    """Draw the scalar case of factorization, u z = x, seen from above, with the paths of algorithms.

    Each panel has its penalty `reg` and paths (t,2) of (u, z) by name; `reach` is the largest coordinate.
    """
    with style():
        figure, axes = new_panels(len(panels), 3.9 * len(panels), 4.3)
        for ax, (title, (reg, paths)) in zip(axes, panels.items(), strict=True):
            draw_landscape(ax, x, reg, reach)
            for color, (name, path) in zip((INK, COLORS[4], COLORS[5]), paths.items(), strict=False):
                outline = [withStroke(linewidth=3.4, foreground="white")]
                ax.plot(*path.T, color=color, lw=1.6, path_effects=outline, label=name)
                ax.plot(*path.T, "o", ms=3.4, color=color, mec="white", mew=0.6)
                ax.plot(*path[0], "s", ms=6.5, color=color, mec="white", mew=1.2, zorder=7)
            ax.set_title(title, fontsize=10.5)
            if paths:
                ax.legend(loc="lower left", fontsize=8.5)
    return figure


def phase_figure(
    success: Mapping[str, np.ndarray], fractions: np.ndarray, ranks: np.ndarray, size: tuple[int, int]
) -> Figure:
    """Draw the share of random tables (n,d) recovered, over ranks and over fractions of known cells.

    The line is where there are as many known cells as degrees of freedom.
    """
    n, d = size
    fine = np.linspace(0.0, ranks[-1] + 0.5, 200)
    need = fine * (n + d - fine) / (n * d)
    edges = [np.append(a - np.diff(a).mean() / 2, a[-1] + np.diff(a).mean() / 2) for a in (fractions, ranks)]
    with style():
        figure, axes = new_panels(len(success), 4.9 * len(success) + 0.9, 4.0, sharey=True)
        for ax, (title, share) in zip(axes, success.items(), strict=True):
            image = ax.pcolormesh(*edges, share, cmap=SEQUENTIAL, vmin=0, vmax=1, rasterized=True)
            ax.plot(need, fine, color=COLORS[1], lw=2.2, label="cells seen = degrees of freedom")
            ax.set(title=title, xlabel="cells seen", xlim=(edges[0][0], edges[0][-1]), ylim=(edges[1][0], edges[1][-1]))
            show_percent(ax.xaxis)
            ax.grid(visible=False)
        axes[0].set_ylabel("rank")
        axes[0].legend(loc="upper left", fontsize=9)
        show_percent(add_colorbar(figure, image, list(axes), fraction=0.04, pad=0.02, label="recovered").ax.yaxis)
    return figure


def items_figure(
    at: np.ndarray, names: Sequence[str], groups: Sequence[str], weights: np.ndarray, labeled: int = 24
) -> Figure:
    """Draw items by two of their factors: those that the same people like are close.

    Dots are as large as `weights`, the counts of ratings; the `labeled` items of most weight are named.
    """
    kinds = sorted(set(groups))
    with style():
        figure = new_figure(11, 6.2)
        ax = figure.subplots()
        sizes = 14 + 110 * weights / weights.max()
        for color, kind in zip(cycle(DIGIT_COLORS), kinds, strict=False):
            own = np.array([g == kind for g in groups])
            ax.scatter(at[own, 0], at[own, 1], s=sizes[own], color=color, alpha=0.75, linewidths=0, label=kind)
        label_points(ax, at, names, np.argsort(-weights, kind="stable"), labeled)
        draw_origin(ax)
        ax.set(xticks=[], yticks=[])
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), markerscale=0.9)
    return figure
