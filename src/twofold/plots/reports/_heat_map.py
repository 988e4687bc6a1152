"""A table of numbers as colored cells: rows down, the columns with the largest numbers across."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twofold.plots.labels import shorten_name
from twofold.plots.style import DIVERGING, GREY, INK, add_colorbar, strip_table

MAX_COLUMNS = 24
MAX_COLUMNS_WITH_NUMBERS = 20  # with more, numbers do not fit their cells


def draw_heat_map(
    figure: Figure,
    ax: Axes,
    values: np.ndarray,
    columns: Sequence[str],
    names: Sequence[str],
    limit: float,
    digits: int,
) -> str:
    """Draw the values (k,d) with the names of the rows, colors ending at `limit`; return a note of columns left out."""
    k, d = values.shape
    strength = np.abs(values).max(axis=0)
    chosen = np.sort(np.argsort(-strength, kind="stable")[:MAX_COLUMNS])
    cells = values[:, chosen]
    image = ax.imshow(cells, cmap=DIVERGING, vmin=-limit, vmax=limit, aspect="auto")
    if len(chosen) <= MAX_COLUMNS_WITH_NUMBERS and limit > 0.2:  # numbers that fit their cells and are not all small
        for (c, j), value in np.ndenumerate(cells):
            color = "white" if abs(value) > 0.72 * limit else INK
            ax.text(j, c, write_signed(value, digits), ha="center", va="center", fontsize=8.5, color=color)
    shown = [shorten_name(columns[j], 22) for j in chosen]
    slanted = max(map(len, shown)) * len(shown) > 95
    ax.set_xticks(range(len(chosen)), shown, rotation=35 if slanted else 0, ha="right" if slanted else "center")
    ax.set_yticks(range(k), names)
    strip_table(ax)
    ax.set_xticks(np.arange(len(chosen) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(k + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", lw=2)
    ax.tick_params(which="minor", length=0)
    bar = add_colorbar(figure, image, ax, fraction=0.025, pad=0.015, aspect=18)
    bar.ax.tick_params(labelsize=8.5, labelcolor=GREY)
    return f", {len(chosen)} of {d} columns" if len(chosen) < d else ""


def write_signed(value: float, digits: int) -> str:
    return "0" if abs(value) < 0.5 * 10**-digits else f"{value:+.{digits}f}".replace("-", "−")
