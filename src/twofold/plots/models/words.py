"""Figures of word vectors: a map, steps between pairs of words, inner products, curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator

from twofold.plots.labels import HALO, place_labels, shorten_name, write_beside, write_label
from twofold.plots.style import COLORS, GREY, INK, add_title, new_figure, new_panels, show_percent, strip_axes, style

LINE_INCHES = 0.0155  # height of a line, for each point of the font's size
MAX_WORD_LETTERS = 22
LABEL_GAP_INCHES = 0.045  # from a dot to its word
MIN_ARROW_GAP = 0.08  # of a panel: words nearer than this would hide each other


# --- pairs and products -------------------------------------------------------------------------------------


def measure_common_step(U: np.ndarray) -> np.ndarray:
    """(n,) the cosine of each pair's step with the mean step of the other pairs; about 0 if nothing is common.

    U (n,2,k) holds the vectors of n pairs of words.
    """
    D = _normalize_rows(_normalize_rows(U[:, 1]) - _normalize_rows(U[:, 0]))
    return np.einsum("ij,ij->i", D, _normalize_rows(D.sum(axis=0) - D))


def steps_figure(panels: Mapping[str, tuple[Sequence[tuple[str, str]], np.ndarray]], shown: int = 7) -> Figure:
    """Draw steps between pairs of words with vectors (n,2,k), up to `shown` pairs a panel.

    Upright in the plane is the mean step of the pairs that are not shown, one half of them.
    """
    with style():
        figure, axes = new_panels(len(panels), 11, 4.4, sharey=True)
        for ax, (title, (pairs, U)) in zip(axes, panels.items(), strict=True):
            V = np.stack([_normalize_rows(U[:, 0]), _normalize_rows(U[:, 1])], axis=1)
            up = _normalize_rows((V[1::2, 1] - V[1::2, 0]).mean(axis=0)[None])[0]
            V, pairs = V[::2], pairs[::2]  # those that did not make the upright
            middle = V.mean(axis=1) - np.outer(V.mean(axis=1) @ up, up)
            across = np.linalg.svd(middle - middle.mean(axis=0), full_matrices=False)[2][0]
            places = np.stack([V @ across, V @ up], axis=2)  # (n,2,2)
            own = _choose_apart(places, shown)
            _draw_arrows(ax, [pairs[i] for i in own], places[own])
            ax.set(title=title, xticks=[], yticks=[])
    return figure


def _choose_apart(ends: np.ndarray, count: int) -> list[int]:
    """Choose up to `count` of the arrows (n,2,2) that have no ends close together."""
    at = ends / np.maximum(np.ptp(ends, axis=(0, 1)), 1e-12)
    apart = np.linalg.norm(at[:, None, :, None] - at[None, :, None, :], axis=4).min(axis=(2, 3))  # (n,n)
    own = [int(np.argmin(at[:, 0, 0]))]
    while len(own) < count:
        gap = apart[own].min(axis=0)
        if gap.max() < MIN_ARROW_GAP:
            break
        own.append(int(np.argmax(gap)))
    return own


def _draw_arrows(ax: Axes, pairs: Sequence[tuple[str, str]], places: np.ndarray) -> None:
    for p, (words, ends) in enumerate(zip(pairs, places, strict=True)):
        color = COLORS[p % len(COLORS)]
        arrow = {"arrowstyle": "-|>", "color": color, "lw": 1.6, "shrinkA": 3, "shrinkB": 3}
        ax.annotate("", ends[1], ends[0], arrowprops=arrow)
        for word, at, other in zip(words, ends, ends[::-1], strict=True):
            low = at[1] < other[1]
            look: Any = {"va": "top" if low else "bottom", "color": darken(color), "path_effects": HALO}
            write_beside(ax, word, at, (0, -4 if low else 4), ha="center", fontsize=9.5, **look)
    ax.scatter(places[..., 0].ravel(), places[..., 1].ravel(), s=10, color=GREY, linewidths=0)
    ax.margins(0.14)
    ax.grid(visible=False)


def _normalize_rows(X: np.ndarray) -> np.ndarray:
    X = np.asarray(X, dtype=np.float64)
    return X / np.maximum(np.linalg.norm(X, axis=-1, keepdims=True), 1e-12)


def products_figure(panels: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]], x: str, y: str) -> Figure:
    """Draw inner products (n,) against their targets (n,), one panel a fit; weights (n,) set the size of the points."""
    with style():
        figure, axes = new_panels(len(panels), 4.4 * max(len(panels), 2), 4.2)
        for c, (title, (target, product, weight)) in enumerate(panels.items()):
            size = 4 + 60 * np.sqrt(weight / max(float(np.max(weight)), 1e-300))
            ends = [min(target.min(), product.min()), max(target.max(), product.max())]
            ax = axes[c]
            ax.plot(ends, ends, color=INK, lw=1, ls=(0, (3, 2)), zorder=1)
            ax.scatter(target, product, s=size, color=COLORS[c], alpha=0.4, linewidths=0, rasterized=True, zorder=2)
            ax.set(title=title, xlabel=x, ylabel=y if c == 0 else "")
    return figure


# --- curves -------------------------------------------------------------------------------------------------


def curves_figure(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    x: str,
    y: str,
    title: str = "",
    level: tuple[str, float] | None = None,
    share: bool = False,
    log: bool = False,
) -> Figure:
    """Draw lines (xs, ys) in one panel, with a named `level` to compare with.

    `share`: the heights are shares of one. `log`: the horizontal axis is logarithmic, with a tick at each first x.
    """
    with style():
        figure = new_figure(7.2, 3.5)
        ax = figure.subplots()
        for color, (name, (xs, ys)) in zip(COLORS, curves.items(), strict=False):
            ax.plot(xs, ys, color=color, lw=2, marker="o", ms=4, label=name)
        if level is not None:
            ax.axhline(level[1], color=GREY, lw=1.4, ls=(0, (4, 2)))
            ax.annotate(level[0], (1, level[1]), xycoords=("axes fraction", "data"), xytext=(0, 3), ha="right",
                        textcoords="offset points", fontsize=9)  # fmt: skip
        ax.set(xlabel=x, ylabel=y, title=title)
        if log:
            ticks = list(next(iter(curves.values()))[0])
            ax.set_xscale("log")
            ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            ax.minorticks_off()
        else:
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if share:
            show_percent(ax.yaxis)
            ax.set_ylim(0, 1.03)
        if len(curves) > 1:
            ax.legend()
    return figure


# --- map ----------------------------------------------------------------------------------------------------


def word_map_figure(
    at: np.ndarray,
    words: Sequence[str],
    groups: Sequence[int] | None = None,
    weights: Sequence[float] | None = None,
    title: str = "",
) -> Figure:
    """Draw words at their places (n,2), near each other when they have similar contexts.

    The first are written first; a word that would hide another stays a dot. `groups` set the colors, `weights`, the
    frequencies, the size of the letters.
    """
    colors = [COLORS[g % len(COLORS)] for g in groups or [0] * len(at)]
    size, inches = _scale_fonts(len(at), weights), (10.6, 6.6 if title else 6.9)
    low, high = at.min(axis=0), at.max(axis=0)
    pad = np.maximum(0.06 * (high - low), 1e-3)
    place = (at - low + pad) / (high - low + 2 * pad) * inches
    texts = [shorten_name(word, MAX_WORD_LETTERS) for word in words]
    sizes = np.array([[_measure_width(text, s), LINE_INCHES * s] for text, s in zip(texts, size, strict=True)])

    def hides(box: np.ndarray, i: int) -> bool:
        """Return True if a box covers more than one dot of other words."""
        left, right, bottom, top = box
        covers = (place[:, 0] > left) & (place[:, 0] < right) & (place[:, 1] > bottom) & (place[:, 1] < top)
        covers[i] = False
        return int(covers.sum()) > 1

    with style():
        figure = new_figure(11, 7.2)
        ax = figure.subplots()
        ax.scatter(at[:, 0], at[:, 1], s=9, c=colors, alpha=0.55, linewidths=0)
        ax.set(xlim=(low[0] - pad[0], high[0] + pad[0]), ylim=(low[1] - pad[1], high[1] + pad[1]))
        for i, side, aside in place_labels(place, sizes, inches, away=LABEL_GAP_INCHES, hides=hides):
            look = {"fontsize": size[i], "color": darken(colors[i]), "path_effects": HALO}
            write_label(ax, texts[i], at[i], side, 72 * LABEL_GAP_INCHES, 72 * aside, **look)
        strip_axes(ax)
        add_title(figure, title, 14)
    return figure


def _measure_width(text: str, size: float) -> float:
    """Return the width of a text in inches, with a little room behind it."""
    return TextPath((0, 0), text, size=size).get_extents().width / 72 + 0.03


def _scale_fonts(n: int, weights: Sequence[float] | None) -> np.ndarray:
    """Return font sizes from 7.5 to 12 points by the logarithm of the weights."""
    if weights is None:
        return np.full(n, 9.0)
    level = np.log(np.maximum(np.asarray(weights, dtype=np.float64), 1e-300))
    return 7.5 + 4.5 * (level - level.min()) / max(float(np.ptp(level)), 1e-9)


def darken(color: str) -> tuple[float, ...]:
    """Return a darker color for letters, which need more ink than dots."""
    return tuple(0.72 * part for part in to_rgb(color))
