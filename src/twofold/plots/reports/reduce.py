"""A reduction in one figure: the variance of each component, the rows, the weights of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from twofold.plots.labels import HALO, shorten_name, write_beside
from twofold.plots.reports._heat_map import draw_heat_map
from twofold.plots.style import COLORS, PALE, add_title, draw_origin, new_figure, show_percent, style

MAX_COMPONENTS = 8  # in the table of weights
MAX_POINTS = 20_000  # more would cover each other


def reduction_figure(
    ratios: np.ndarray,
    k: int,
    scores: np.ndarray,
    weights: np.ndarray,
    columns: Sequence[str],
    *,
    title: str = "",
    groups: Sequence[str] | None = None,
    group_name: str = "",
    seed: int = 0,
) -> Figure:
    """Draw a reduction to k components.

    `ratios` are the shares of the variance of each component, `scores` (n,k) the rows, `weights` (k,d) of columns.
    `groups` color the rows, and `group_name` is the title of their legend; `seed` draws rows where there are very many.
    """
    with style():
        table = 1.1 + 0.36 * min(len(weights), MAX_COMPONENTS)  # inches
        figure = new_figure(11, 4.4 + table)
        halves = figure.add_gridspec(2, 1, height_ratios=[4.4, table])
        top = halves[0].subgridspec(1, 2, width_ratios=[1, 1.15])
        spectrum(figure.add_subplot(top[0]), ratios, k)
        rows(figure.add_subplot(top[1]), scores, ratios, groups, group_name, seed)
        loadings(figure, figure.add_subplot(halves[1]), weights, columns)
        add_title(figure, title, 14)
    return figure


def spectrum(ax: Axes, ratios: np.ndarray, k: int) -> None:
    """Draw bars for each component, kept ones dark, and the running total above them."""
    shown = min(len(ratios), max(20, k + 5), 60)
    x = np.arange(1, shown + 1)
    ax.bar(x, ratios[:shown], width=0.72, color=[COLORS[0] if c <= k else "#c3d3e2" for c in x])
    total = np.cumsum(ratios)[:shown]
    ax.plot(x, total, color=COLORS[1], lw=1.8, marker="o", ms=3.5 if shown <= 30 else 0)
    held = total[min(k, shown) - 1]
    ax.plot([k], [held], "o", ms=8, mfc="white", mec=COLORS[1], mew=2)
    room = k <= 0.65 * shown  # the curve is concave, so to the lower right of a point there is nothing
    shift, side = ((9, -13), "left") if room else ((6, -26), "right")
    look: Any = {"color": COLORS[1], "fontweight": "bold", "path_effects": HALO}
    write_beside(ax, f"{k} kept: {held:.0%}", (k, held), shift, ha=side, **look)
    ax.set(title="Variance held", xlabel="component", ylim=(0, 1.06), xlim=(0.4, shown + 0.6))
    show_percent(ax.yaxis)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    ax.grid(axis="x", visible=False)


def rows(
    ax: Axes, scores: np.ndarray, ratios: np.ndarray, groups: Sequence[str] | None, group_name: str, seed: int
) -> None:
    """Draw the rows on the first two components (or a histogram of the only one), colored by group."""
    n, k = scores.shape
    pick = np.arange(n)
    if n > MAX_POINTS and k > 1:
        pick = np.sort(np.random.default_rng(seed).choice(n, MAX_POINTS, replace=False))
    labels = np.full(n, "") if groups is None else np.asarray(groups)
    kinds = sorted(set(labels.tolist()))
    parts = [pick[labels[pick] == kind] for kind in kinds]
    colors = [COLORS[i % len(COLORS)] for i in range(len(kinds))]
    names = [shorten_name(kind, 22) for kind in kinds]
    ax.set_xlabel(f"PC1 ({ratios[0]:.0%})")
    if k == 1:
        ax.hist([scores[part, 0] for part in parts], bins=40, stacked=True, color=colors, label=names)
        ax.set(title="Rows", ylabel="rows")
    else:
        size = float(np.clip(9000 / len(pick), 2.5, 38))
        alpha = float(np.clip(300 / len(pick) ** 0.75, 0.15, 0.85))
        draw_origin(ax, PALE, 1.2)
        for part, color, name in zip(parts, colors, names, strict=True):
            x, y = scores[part, 0], scores[part, 1]
            ax.scatter(x, y, s=size, alpha=alpha, color=color, label=name, linewidths=0, rasterized=True)
        some = "" if len(pick) == n else f" ({len(pick):,} of {n:,} drawn)"
        ax.set(title=f"Rows{some}", ylabel=f"PC2 ({ratios[1]:.0%})")
    if groups is not None:
        handles = [Line2D([], [], marker="o", ls="", ms=6, color=color) for color in colors]
        ax.legend(handles, names, title=group_name, loc="best", borderpad=0.2, handletextpad=0.2)


def loadings(figure: Figure, ax: Axes, weights: np.ndarray, columns: Sequence[str]) -> None:
    """Draw weights as a colored table: components down, the columns of most weight across."""
    k, shown = len(weights), min(len(weights), MAX_COMPONENTS)
    names = [f"PC{c + 1}" for c in range(shown)]
    limit = float(np.abs(weights[:shown]).max()) or 1.0
    some_d = draw_heat_map(figure, ax, weights[:shown], columns, names, limit, digits=2)
    some_k = f", {shown} of {k} components" if shown < k else ""
    ax.set_title(f"Weights of the columns{some_d}{some_k}")
