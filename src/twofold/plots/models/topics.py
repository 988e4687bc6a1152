"""Figures of the topic models: words of topics, maps, prevalence over time, the number of topics, parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from textwrap import shorten
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from twofold.plots.labels import HALO, place_labels, write_beside, write_label
from twofold.plots.models.images import DIGIT_COLORS, PAPER, color_mosaic
from twofold.plots.style import (
    COLORS,
    DIVERGING,
    INK,
    SEQUENTIAL,
    draw_origin,
    new_figure,
    new_grid,
    new_panels,
    show_percent,
    strip_axes,
    strip_table,
    style,
)

MAX_PANELS = 12  # topics drawn over time


def words_figure(
    topics: np.ndarray, words: Sequence[str], shares: np.ndarray | None = None, top: int = 8, per_row: int = 4
) -> Figure:
    """Draw the words of most weight in each topic (k,d), one panel a topic, with its share of the text in the title."""
    with style():
        figure, panels = new_grid(len(topics), min(per_row, len(topics)), 11, 0.19 * top + 0.55)
        for c, ax in enumerate(panels):
            order = np.argsort(-topics[c], kind="stable")[:top][::-1]
            ax.barh(range(len(order)), topics[c][order], height=0.72, color=COLORS[c % len(COLORS)], alpha=0.85)
            ax.set_yticks(range(len(order)), [shorten(words[j], 18, placeholder="…") for j in order], fontsize=9)
            ax.set_xticks([])
            strip_table(ax)
            ax.set_title(f"topic {c + 1}" if shares is None else f"topic {c + 1} · {shares[c]:.0%}", fontsize=10, pad=4)
    return figure


def documents_figure(at: np.ndarray, groups: Sequence[str], marked: Mapping[str, np.ndarray] | None = None) -> Figure:
    """Draw documents (n,2) in a plane, colored by group, with the `marked` words at their places (x, y)."""
    kinds = sorted(set(groups))
    with style():
        figure = new_figure(11, 5.8)
        ax = figure.subplots()
        for color, kind in zip(cycle(DIGIT_COLORS), kinds, strict=False):
            own = np.array([group == kind for group in groups])
            ax.scatter(at[own, 0], at[own, 1], s=11, color=color, alpha=0.6, linewidths=0, label=kind, rasterized=True)
        written: list[np.ndarray] = []
        width, height = np.ptp(at, axis=0)
        for word, place in (marked or {}).items():
            if any((np.abs(place - other) < (0.09 * width, 0.035 * height)).all() for other in written):
                continue  # it would hide another
            written.append(place)
            ax.annotate(word, (place[0], place[1]), ha="center", va="center", fontsize=10, color=INK, path_effects=HALO)
        draw_origin(ax)
        ax.set(xticks=[], yticks=[])
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), markerscale=2.2)
    return figure


def groups_figure(shares: np.ndarray, groups: Sequence[str], labels: Sequence[str]) -> Figure:
    """Draw the shares (g,k) of topics in the documents of each group; `labels` are some words of each topic."""
    with style():
        figure = new_figure(11, 0.36 * len(labels) + 1.3)
        ax = figure.subplots()
        ax.imshow(shares.T, cmap=SEQUENTIAL, vmin=0, vmax=float(shares.max()), aspect="auto", interpolation="none")
        ax.set_xticks(range(len(groups)), groups)
        ax.set_yticks(range(len(labels)), [f"{label}  {c + 1}" for c, label in enumerate(labels)], fontsize=9.5)
        ax.xaxis.tick_top()
        strip_table(ax)
        for g, row in enumerate(shares):
            for c, share in enumerate(row):
                if share >= 0.05:
                    light = share > 0.55 * shares.max()
                    ink = "white" if light else INK
                    ax.text(g, c, f"{share:.0%}", ha="center", va="center", fontsize=8.5, color=ink)
    return figure


# --- time, and how many -------------------------------------------------------------------------------------


def _find_changing(shares: np.ndarray) -> np.ndarray:
    """Return the topics whose share changes most, in their order."""
    return np.sort(np.argsort(-np.nanstd(shares, axis=0), kind="stable")[:MAX_PANELS])


def draw_prevalence(axes: Any, periods: np.ndarray, shares: np.ndarray, labels: Sequence[str]) -> None:
    """Draw one panel a topic, all with the same axes."""
    shown = _find_changing(shares)
    days: Any = periods.astype("datetime64[D]")
    for ax, c in zip(axes, shown, strict=False):
        color = COLORS[c % len(COLORS)]
        ax.fill_between(days, shares[:, c], color=color, alpha=0.3, lw=0)
        ax.plot(days, shares[:, c], color=color, lw=1.5, marker="o" if len(days) < 8 else "", ms=3)
        ax.set_title(f"{c + 1} {shorten(labels[c], 26, placeholder='…')}", fontsize=8.5, fontweight="normal", pad=3)
        locator = AutoDateLocator(minticks=2, maxticks=4)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator, show_offset=False))
        show_percent(ax.yaxis)
        ax.yaxis.set_major_locator(MaxNLocator(3))
        ax.tick_params(labelsize=8)
        ax.set_ylim(0, 1.08 * max(float(np.nanmax(shares[:, shown])), 1e-3))
    for ax in axes[len(shown) :]:
        ax.axis("off")


def choice_figure(
    ks: Sequence[int], perplexities: Sequence[float], coherences: Mapping[str, Sequence[float]], best: int
) -> Figure:
    """Draw held-out perplexity and coherence over the number of topics; `best` is the number chosen."""
    with style():
        figure = new_figure(7.2, 3.3)
        draw_choice(figure.subplots(), ks, perplexities, coherences, best)
    return figure


def draw_choice(
    ax: Axes, ks: Sequence[int], perplexities: Sequence[float], coherences: Mapping[str, Sequence[float]], best: int
) -> None:
    """Draw two scales in one panel: blue should be low, orange high; `coherences` has a line a method."""
    other = ax.twinx()
    lines = [(ax, perplexities, COLORS[0], "-", "held-out perplexity")]
    lines += [(other, values, COLORS[1], "-:"[j > 0], "") for j, values in enumerate(coherences.values())]
    for one, values, color, dash, name in lines:
        one.plot(ks, values, color=color, lw=2, ls=dash, marker="o", ms=4.5)
        one.yaxis.set_major_locator(MaxNLocator(4))
        one.margins(y=0.15)
        if name:
            one.set_ylabel(name, color=color)
    other.set_ylabel("coherence (NPMI)", color=COLORS[1])
    for name, values in coherences.items():
        if len(coherences) > 1:
            write_beside(other, name, (ks[0], values[0]), (6, 4), color=COLORS[1], fontsize=8.5, path_effects=HALO)
    other.grid(visible=False)
    other.tick_params(right=False)
    ax.axvline(best, color=INK, lw=1, ls=(0, (3, 2)), zorder=1)
    ax.set_xscale("log")
    ax.set_xticks(list(ks), [str(k) for k in ks])
    ax.minorticks_off()
    ax.set(xlabel="topics", title=f"{best} topics")
    ax.grid(axis="x", visible=False)


# --- parts --------------------------------------------------------------------------------------------------


def parts_figure(parts: Mapping[str, np.ndarray], per_row: int = 4) -> Figure:
    """Draw components (k,h,w) as images, one grid a model: ink if all are >= 0, else blue for plus, red for minus."""
    first = next(iter(parts.values()))
    tall = -(-len(first) // per_row) / per_row
    with style():
        width = 10.6 / max(len(parts), 2)
        figure, panels = new_panels(len(parts), width * len(parts), width * tall + 0.4)
        for ax, (title, images) in zip(panels, parts.items(), strict=True):
            signed = images.min() < 0
            scaled = images / np.maximum(np.abs(images).max(axis=(1, 2), keepdims=True), 1e-300)
            colors, low = (DIVERGING, -1.0) if signed else (PAPER, 0.0)
            ax.imshow(color_mosaic(scaled, colors, low, 1.0, per_row=per_row), interpolation="none")
            ax.set_title(title)
            ax.axis("off")
    return figure


# --- map ----------------------------------------------------------------------------------------------------


def topic_map_figure(at: np.ndarray, shares: np.ndarray, labels: Sequence[str]) -> Figure:
    """Draw topics (k,2) in the plane, close when they use the same words, as large as their shares, with labels."""
    with style():
        figure = new_figure(9.5, 5.6)
        draw_topic_map(figure.subplots(), at, shares, labels)
    return figure


def draw_topic_map(
    ax: Axes, at: np.ndarray, shares: np.ndarray, labels: Sequence[str], inches: tuple[float, float] = (9.0, 5.2)
) -> None:
    """Draw circles with numbers inside, and words beside them where these hide nothing, in a room of `inches`."""
    radius = (0.36 * np.sqrt(shares / max(float(shares.max()), 1e-12)) + 0.05) * min(1.0, np.sqrt(12 / len(at)))
    colors = [COLORS[c % len(COLORS)] for c in range(len(at))]
    low, high = at.min(axis=0), at.max(axis=0)
    pad = np.maximum(0.16 * (high - low), 1e-3)
    place = _push_apart((at - low + pad) / (high - low + 2 * pad) * inches, radius)
    at = low - pad + place / inches * (high - low + 2 * pad)
    ax.scatter(at[:, 0], at[:, 1], s=(144 * radius) ** 2, c=colors, alpha=0.55, linewidths=0)
    ax.set(xlim=(low[0] - pad[0], high[0] + pad[0]), ylim=(low[1] - pad[1], high[1] + pad[1]))
    for c in range(len(at)):
        ax.annotate(str(c + 1), at[c], ha="center", va="center", fontsize=9.5, weight="bold", path_effects=HALO)
    order, away = np.argsort(-shares, kind="stable"), radius + 0.03
    texts = [shorten(labels[c], 30, placeholder="…") for c in order]
    sizes = np.array([[0.064 * len(text) + 0.05, 0.16] for text in texts])

    def hides(box: np.ndarray, i: int) -> bool:
        """Return True if a box meets the circle of another topic."""
        gap = place - np.stack([np.clip(place[:, 0], *box[:2]), np.clip(place[:, 1], *box[2:])], axis=1)
        near = np.hypot(*gap.T) < radius
        near[order[i]] = False
        return bool(near.any())

    sides = ("below", "above", "right", "left")
    for i, side, aside in place_labels(place[order], sizes, inches, away=away[order], sides=sides, hides=hides):
        c = order[i]
        write_label(ax, texts[i], at[c], side, 72 * away[c], 72 * aside, fontsize=8.5)
    strip_axes(ax)


def _push_apart(place: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """Move places a little where one circle would hide the number in another."""
    place = place.copy()
    for _ in range(60):
        gap = place[:, None] - place[None]  # (k,k,2)
        far = np.maximum(np.hypot(gap[..., 0], gap[..., 1]), 1e-9)
        want = 0.6 * (radius[:, None] + radius[None])
        push = np.maximum(want - far, 0.0) / far
        np.fill_diagonal(push, 0.0)
        if not push.any():
            break
        place += 0.25 * (push[..., None] * gap).sum(axis=1)
    return place
