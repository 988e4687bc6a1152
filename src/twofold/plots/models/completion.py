"""Figures of the completion models: tables filling up, held-out curves, landscapes, phase diagrams, maps of items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator, PercentFormatter

from twofold.plots.labels import label_points
from twofold.plots.style import COLORS, GREY, INK, PALE, SEQUENTIAL, new_figure, strip_axes, style

HOLE = PALE  # a cell nobody has seen


def tables_figure(tables: Mapping[str, np.ndarray], limits: tuple[float, float], label: str = "") -> Figure:
    """Tables side by side in one scale; holes are left pale.

    Parameters
    ----------
    tables : mapping from str to ndarray of shape (n, d)
        NaN is a hole.
    limits : (low, high)
    label : str
        What the colors mean.
    """
    first = next(iter(tables.values()))
    tall = first.shape[0] / first.shape[1]
    colors = SEQUENTIAL.with_extremes(bad=HOLE)
    with style():
        figure = new_figure(11, 10.2 / len(tables) * tall + 0.9)
        axes = figure.subplots(1, len(tables), squeeze=False).ravel()
        for ax, (name, table) in zip(axes, tables.items(), strict=True):
            image = ax.imshow(table, cmap=colors, vmin=limits[0], vmax=limits[1], interpolation="none", aspect="auto")
            ax.set_title(name, fontsize=10.5)
            strip_axes(ax)
        bar = figure.colorbar(image, ax=list(axes), fraction=0.015, pad=0.012, label=label)
        bar.outline.set_visible(False)
    return figure


def curves_figure(curves: Mapping[str, Mapping[str, Sequence[float]]], ylabel: str, xlabel: str = "sweep") -> Figure:
    """Error on the cells fitted and on cells held out, sweep by sweep, one panel a model.

    Parameters
    ----------
    curves : mapping from panel to (name → values)
        The least value of a curve whose name starts with "held" is marked.
    ylabel, xlabel : str
    """
    with style():
        figure = new_figure(min(11, 4.6 * len(curves) + 1), 3.4)
        axes = figure.subplots(1, len(curves), sharey=True, squeeze=False).ravel()
        for ax, (title, lines) in zip(axes, curves.items(), strict=True):
            for color, (name, values) in zip((COLORS[0], COLORS[1], GREY), lines.items(), strict=False):
                at = np.arange(1, len(values) + 1)
                ax.plot(at, values, color=color, lw=2, marker="o", ms=3.5 if len(at) <= 30 else 0, label=name)
                if name.startswith("held"):
                    best = int(np.argmin(values))
                    ax.plot([best + 1], [values[best]], "o", ms=11, mfc="none", mec=INK, mew=1.5, zorder=5)
                    ax.annotate(
                        f"{values[best]:.3f}", (best + 1, values[best]), xytext=(4, 10), textcoords="offset points"
                    )
            ax.set(title=title, xlabel=xlabel)
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes[0].set_ylabel(ylabel)
        axes[-1].legend()
    return figure


def draw_landscape(ax: Axes, x: float, reg: float = 0.0, reach: float = 2.6) -> None:
    """Heights of ½(x − uz)² + ½ reg (u² + z²) in the plane of u and z, and the curve u z = x."""
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
            ax.plot(
                [side * best], [side * np.sign(x) * best], "o", ms=9, color=COLORS[1], mec="white", mew=1.4, zorder=6
            )
    ax.plot([0], [0], "x", ms=9, mew=2.2, color=COLORS[3], zorder=6)
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="u", ylabel="z", aspect="equal")
    ax.grid(visible=False)


def landscape_figure(
    x: float, panels: Mapping[str, tuple[float, Mapping[str, np.ndarray]]], reach: float = 2.6
) -> Figure:
    """The scalar case of factorization, seen from above, with the ways that algorithms take.

    Parameters
    ----------
    x : float
        The one number that u z should equal.
    panels : mapping from title to (reg, paths)
        Paths are arrays of shape (t, 2) of (u, z), by name.
    reach : float
    """
    with style():
        figure = new_figure(3.9 * len(panels), 4.3)
        for ax, (title, (reg, paths)) in zip(
            figure.subplots(1, len(panels), squeeze=False).ravel(), panels.items(), strict=True
        ):
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
    """How often a random table of each rank is recovered from each share of its cells.

    Parameters
    ----------
    success : mapping from title to ndarray of shape (len(ranks), len(fractions))
    fractions, ranks : ndarray
    size : (n, d)
        The line is drawn where the cells seen are as many as the numbers that make up the table.
    """
    n, d = size
    fine = np.linspace(0.0, ranks[-1] + 0.5, 200)
    need = fine * (n + d - fine) / (n * d)
    edges = [np.append(a - np.diff(a).mean() / 2, a[-1] + np.diff(a).mean() / 2) for a in (fractions, ranks)]
    with style():
        figure = new_figure(4.9 * len(success) + 0.9, 4.0)
        axes = figure.subplots(1, len(success), sharey=True, squeeze=False).ravel()
        for ax, (title, share) in zip(axes, success.items(), strict=True):
            image = ax.pcolormesh(*edges, share, cmap=SEQUENTIAL, vmin=0, vmax=1, rasterized=True)
            ax.plot(need, fine, color=COLORS[1], lw=2.2, label="cells seen = degrees of freedom")
            ax.set(title=title, xlabel="cells seen", xlim=(edges[0][0], edges[0][-1]), ylim=(edges[1][0], edges[1][-1]))
            ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            ax.grid(visible=False)
        axes[0].set_ylabel("rank")
        axes[0].legend(loc="upper left", fontsize=9)
        bar = figure.colorbar(image, ax=list(axes), fraction=0.04, pad=0.02, label="recovered")
        bar.ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        bar.outline.set_visible(False)
    return figure


def items_figure(
    at: np.ndarray, names: Sequence[str], groups: Sequence[str], weights: np.ndarray, labeled: int = 24
) -> Figure:
    """Items by two of their factors: what the same people like lies close.

    Parameters
    ----------
    at : ndarray of shape (m, 2)
    names, groups : sequence of str
    weights : ndarray of shape (m,)
        How often each was rated: sets the size of its dot, and the most rated are named.
    labeled : int, default=24
    """
    kinds = sorted(set(groups))
    with style():
        figure = new_figure(11, 6.2)
        ax = figure.subplots()
        sizes = 14 + 110 * weights / weights.max()
        for color, kind in zip((*COLORS, "#4b5563", "#d16d9e"), kinds, strict=False):
            own = np.array([g == kind for g in groups])
            ax.scatter(at[own, 0], at[own, 1], s=sizes[own], color=color, alpha=0.75, linewidths=0, label=kind)
        label_points(ax, at, names, np.argsort(-weights, kind="stable"), labeled)
        ax.axhline(0, color=GREY, lw=0.7)
        ax.axvline(0, color=GREY, lw=0.7)
        ax.set(xticks=[], yticks=[])
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), markerscale=0.9)
    return figure
