"""A collection of documents in one figure: its topics on a map, their shares, their number, and their time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twofold.plots.labels import write_beside
from twofold.plots.models.topics import MAX_PANELS, draw_choice, draw_prevalence, draw_topic_map
from twofold.plots.style import COLORS, add_title, new_figure, strip_table, style

ACROSS = 4  # panels of time in a row
BAR_LETTERS = 44  # of the words on the bar of a topic, before its share


def topic_report_figure(
    at: np.ndarray,
    shares: np.ndarray,
    tops: Sequence[Sequence[str]],
    choice: Mapping[str, Any] | None = None,
    time: tuple[np.ndarray, np.ndarray] | None = None,
    title: str = "",
) -> Figure:
    """Draw topics (k,2) on a map with their shares and words (`tops`, most probable first).

    `choice` has ``ks``, ``perplexities``, ``coherences``, ``best`` of the trials; `time` has days (t,), shares (t,k).
    """
    k = len(shares)
    short = [", ".join(words[:3]) for words in tops]
    bars = 0.235 * k + 0.9
    above = max(5.2, bars + (2.3 if choice else 0.0))
    rows = 0 if time is None else -(-min(k, MAX_PANELS) // ACROSS)
    below = 1.55 * rows + (0.5 if rows else 0.0)
    with style():
        whole = new_figure(11, above + below + 0.4)
        upper: Any = whole
        lower: Any = None
        if time is not None:
            halves: Any = whole.subfigures(2, 1, height_ratios=[above, below])
            upper, lower = halves
        grid = upper.add_gridspec(2, 2, width_ratios=[1.45, 1], height_ratios=[bars, max(above - bars, 0.01)])
        left = upper.add_subplot(grid[:, 0])
        draw_topic_map(left, at, shares, short, (5.6, above - 0.5))
        left.set_title("Topics: close if they use the same words")
        draw_shares(upper.add_subplot(grid[0, 1] if choice else grid[:, 1]), shares, tops)
        if choice:
            draw_choice(upper.add_subplot(grid[1, 1]), **choice)
        if time is not None:
            axes = lower.subplots(rows, ACROSS, sharex=True, sharey=True, squeeze=False).ravel()
            draw_prevalence(axes, *time, short)
            lower.suptitle("Share of the words over time", x=0.012, ha="left", fontsize=11.5, fontweight="bold")
        add_title(whole, title, 14)
    return whole


def draw_shares(ax: Axes, shares: np.ndarray, tops: Sequence[Sequence[str]]) -> None:
    """Draw the share of each topic in the text, its words written on its bar."""
    shown = len(shares)
    colors = [COLORS[c % len(COLORS)] for c in range(shown)]
    ax.barh(range(shown), shares[:shown], color=colors, alpha=0.4, height=0.8)
    for c in range(shown):
        words = shorten(", ".join(tops[c][:5]), BAR_LETTERS, placeholder="…")
        write_beside(ax, f"{c + 1}  {words}", (0, c), (4, 0), va="center", fontsize=8.5)
        share = f"{shares[c]:.0%}"
        ax.annotate(share, (1, c), xycoords=("axes fraction", "data"), ha="right", va="center", fontsize=8.5)
    ax.set(title="Share of all words", yticks=[], xticks=[], ylim=(shown - 0.4, -0.6))
    ax.set_xlim(0, 1.12 * float(shares.max()))
    strip_table(ax)
