"""A filled table in one figure: the filled cells, and the error of each model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twofold.plots.labels import shorten_name
from twofold.plots.style import COLORS, DIVERGING, INK, PALE, add_colorbar, add_title, new_figure, style

MAX_ROWS, MAX_COLUMNS = 40, 24


def filling_figure(
    filled: np.ndarray,
    blank: np.ndarray,
    columns: Sequence[str],
    tried: Mapping[str, float],
    chosen: str,
    title: str = "",
) -> Figure:
    """Draw a filled table (n,d), its blanks marked, and the error of each model tried.

    `blank` (n,d) is True in cells that were filled; `tried` has the error of each model on hidden cells.
    """
    with style():
        figure = new_figure(11, 5.6)
        left, right = figure.subplots(1, 2, width_ratios=[1.5, 1])
        draw_filled(left, filled, blank, columns)
        draw_errors(right, tried, chosen)
        add_title(figure, title, 14)
    return figure


def draw_filled(ax: Axes, filled: np.ndarray, blank: np.ndarray, columns: Sequence[str]) -> None:
    """Draw some rows with blanks, in standard deviations of their columns; a dot marks a filled cell."""
    rows = np.flatnonzero(blank.any(axis=1))[:MAX_ROWS]
    rows = rows if len(rows) else np.arange(min(len(filled), MAX_ROWS))
    cols = np.sort(np.argsort(-blank.sum(axis=0), kind="stable")[:MAX_COLUMNS])
    known = np.ma.masked_invalid(np.where(blank, np.nan, filled))
    scale = known.std(axis=0).filled(0)
    z = ((filled - known.mean(axis=0).filled(np.nan)) / np.where(scale > 0, scale, 1))[np.ix_(rows, cols)]
    colors = DIVERGING.with_extremes(bad=PALE)
    image = ax.imshow(z, cmap=colors, vmin=-2.5, vmax=2.5, aspect="auto", interpolation="none")
    i, j = np.nonzero(blank[np.ix_(rows, cols)])
    ax.scatter(j, i, s=max(6, 500 / len(rows)), marker="o", color=INK, linewidths=0)
    names = [shorten_name(columns[c], 16) for c in cols]
    ax.set_xticks(range(len(cols)), names, rotation=40, ha="right", fontsize=8.5)
    ax.set_yticks([])
    ax.grid(visible=False)
    ax.set_title(f"{len(rows)} rows with blanks; a dot marks a guess")
    label = "standard deviations from the column's mean"
    add_colorbar(ax.figure, image, ax, fraction=0.03, pad=0.02, label=label)


def draw_errors(ax: Axes, tried: Mapping[str, float], chosen: str, unit: str = "standard deviations") -> None:
    """Draw a bar for each model, the chosen one dark."""
    order = sorted(tried, key=lambda name: -tried[name])
    ax.barh(order, [tried[name] for name in order], color=[COLORS[0] if n == chosen else "#c3d3e2" for n in order])
    for name in order:
        ax.annotate(
            f"{tried[name]:.2f}",
            (tried[name], name),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
        )
    ax.set(title="Error on cells that were hidden", xlabel=unit)
    ax.tick_params(axis="y", labelsize=8.5)
    ax.grid(axis="y", visible=False)
    ax.margins(x=0.12)
