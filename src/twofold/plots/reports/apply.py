"""New rows in one figure: in the plane of two columns, or the count of each label."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from twofold.plots.style import COLORS, new_figure, style

LABELS = ("label", "cluster")
MAX_LABELS = 20


def application_figure(result: pl.DataFrame, title: str) -> Figure:
    """Draw the result of applying a model, one line a row.

    A column "label" or "cluster" is counted; of two or more columns of numbers the first are drawn against each other;
    a single one is a histogram.
    """
    numbers = [c for c in result.columns if result[c].dtype.is_float()]
    label = next((c for c in LABELS if c in result.columns), None)
    with style():
        figure = new_figure(9, 5)
        ax = figure.add_subplot()
        if label is not None:
            counts = result[label].cast(pl.String).value_counts(sort=True).head(MAX_LABELS)
            ax.barh(counts[label].to_list()[::-1], counts["count"].to_list()[::-1], color=COLORS[0])
            ax.set(xlabel="rows", ylabel=label)
        elif len(numbers) > 1:
            x, y = (result[c].to_numpy() for c in numbers[:2])
            ax.scatter(x, y, s=float(np.clip(9000 / max(len(x), 1), 3, 40)), alpha=0.6, color=COLORS[0], linewidths=0)
            ax.set(xlabel=numbers[0], ylabel=numbers[1])
        elif numbers:
            ax.hist(result[numbers[0]].to_numpy(), bins=40, color=COLORS[0])
            ax.set(xlabel=numbers[0], ylabel="rows")
        ax.set_title(title)
    return figure
