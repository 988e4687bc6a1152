"""A filled table in one figure: what was guessed, and how good each model tried is at guessing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twofold.plots.style import COLORS, DIVERGING, INK, PALE, new_figure, style

MOST_ROWS, MOST_COLUMNS = 40, 24


def filling_figure(
    filled: np.ndarray,
    blank: np.ndarray,
    columns: Sequence[str],
    tried: Mapping[str, float],
    chosen: str,
    title: str = "",
) -> Figure:
    """A filled table, its blanks marked, and what each model tried was worth.

    Parameters
    ----------
    filled : ndarray of shape (n, d)
    blank : ndarray of shape (n, d) of bool
        Which cells were filled.
    columns : sequence of str
    tried : mapping from str to float
        Error of each model on hidden cells.
    chosen : str
    title : str
    """
    with style():
        figure = new_figure(11, 5.6)
        left, right = figure.subplots(1, 2, width_ratios=[1.5, 1])
        guesses_of(left, filled, blank, columns)
        errors_of(right, tried, chosen)
        if title:
            figure.suptitle(title, x=0.012, ha="left", fontsize=14, fontweight="bold", color=INK)
    return figure


def guesses_of(ax: Axes, filled: np.ndarray, blank: np.ndarray, columns: Sequence[str]) -> None:
    """Some rows with blanks, in standard deviations of their columns; a dot marks a guess."""
    rows = np.flatnonzero(blank.any(axis=1))[:MOST_ROWS]
    rows = rows if len(rows) else np.arange(min(len(filled), MOST_ROWS))
    cols = np.sort(np.argsort(-blank.sum(axis=0), kind="stable")[:MOST_COLUMNS])
    known = np.ma.masked_invalid(np.where(blank, np.nan, filled))
    scale = known.std(axis=0).filled(0)
    z = ((filled - known.mean(axis=0).filled(np.nan)) / np.where(scale > 0, scale, 1))[np.ix_(rows, cols)]
    image = ax.imshow(
        z, cmap=DIVERGING.with_extremes(bad=PALE), vmin=-2.5, vmax=2.5, aspect="auto", interpolation="none"
    )
    i, j = np.nonzero(blank[np.ix_(rows, cols)])
    ax.scatter(j, i, s=max(6, 500 / len(rows)), marker="o", color=INK, linewidths=0)
    names = [columns[c] if len(columns[c]) <= 16 else columns[c][:15] + "…" for c in cols]
    ax.set_xticks(range(len(cols)), names, rotation=40, ha="right", fontsize=8.5)
    ax.set_yticks([])
    ax.grid(visible=False)
    ax.set_title(f"{len(rows)} rows with blanks; a dot marks a guess")
    label = "standard deviations from the column's mean"
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.03, pad=0.02, label=label)
    bar.outline.set_visible(False)


def errors_of(ax: Axes, tried: Mapping[str, float], chosen: str, unit: str = "standard deviations") -> None:
    """A bar for each model tried, the chosen one dark."""
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
