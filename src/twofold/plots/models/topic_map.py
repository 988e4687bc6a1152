"""Topics in the plane: circles with numbers, and words beside them that hide nothing."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from twofold.plots.style import COLORS, new_figure, style


def topic_map_figure(at: np.ndarray, shares: np.ndarray, labels: Sequence[str]) -> Figure:
    """Topics in the plane, close when they use the same words, as large as they are talked about.

    Parameters
    ----------
    at : ndarray of shape (k, 2)
    shares : ndarray of shape (k,)
    labels : sequence of k str
        Some words of each.
    """
    with style():
        figure = new_figure(9.5, 5.6)
        draw_topic_map(figure.subplots(), at, shares, labels)
    return figure


def draw_topic_map(
    ax: Axes, at: np.ndarray, shares: np.ndarray, labels: Sequence[str], inches: tuple[float, float] = (9.0, 5.2)
) -> None:
    """Circles with numbers inside, and words beside them where these hide nothing; `inches` is the room there is."""
    radius = (0.36 * np.sqrt(shares / max(float(shares.max()), 1e-12)) + 0.05) * min(1.0, np.sqrt(12 / len(at)))
    colors = [COLORS[c % len(COLORS)] for c in range(len(at))]
    low, high = at.min(axis=0), at.max(axis=0)
    pad = np.maximum(0.16 * (high - low), 1e-3)
    place = _push_apart((at - low + pad) / (high - low + 2 * pad) * inches, radius)
    at = low - pad + place / inches * (high - low + 2 * pad)
    ax.scatter(at[:, 0], at[:, 1], s=(144 * radius) ** 2, c=colors, alpha=0.55, linewidths=0)
    ax.set(xlim=(low[0] - pad[0], high[0] + pad[0]), ylim=(low[1] - pad[1], high[1] + pad[1]))
    halo = [withStroke(linewidth=2.4, foreground="white")]
    taken: list[tuple[float, float, float, float]] = []
    for c in np.argsort(-shares, kind="stable"):
        ax.annotate(str(c + 1), at[c], ha="center", va="center", fontsize=9.5, weight="bold", path_effects=halo)
        text = shorten(labels[c], 30, placeholder="…")
        for ha, va, shift, box in _sides(place[c], radius[c], 0.064 * len(text) + 0.05, inches[0]):
            if _free(box, c, place, radius, taken, inches):
                taken.append(box)
                ax.annotate(
                    text, at[c], xytext=shift, textcoords="offset points", ha=ha, va=va, fontsize=8.5, path_effects=halo
                )
                break
    ax.set(xticks=[], yticks=[])
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)


def _push_apart(place: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """Places moved a little where one circle would hide the number in another."""
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


def _sides(at: np.ndarray, r: float, wide: float, room: float) -> list[tuple[str, str, tuple[float, float], Any]]:
    """Where words may stand: alignment, shift in points, and the box (left, right, bottom, top) in inches."""
    x, y = at
    mid = min(max(x, wide / 2), room - wide / 2)  # at the edge, words are moved in
    tall, gap = 0.16, 0.03
    away = 72 * (r + gap)
    return [
        ("center", "top", (72 * (mid - x), -away), (mid - wide / 2, mid + wide / 2, y - r - gap - tall, y - r - gap)),
        ("center", "bottom", (72 * (mid - x), away), (mid - wide / 2, mid + wide / 2, y + r + gap, y + r + gap + tall)),
        ("left", "center", (away, 0), (x + r + gap, x + r + gap + wide, y - tall / 2, y + tall / 2)),
        ("right", "center", (-away, 0), (x - r - gap - wide, x - r - gap, y - tall / 2, y + tall / 2)),
    ]


def _free(box: Any, c: int, place: np.ndarray, radius: np.ndarray, taken: list, inches: tuple[float, float]) -> bool:
    """Whether a box lies in the picture and meets neither another circle nor other words."""
    a, b, low, high = box
    if a < 0 or b > inches[0] or low < 0 or high > inches[1]:
        return False
    near = np.hypot(place[:, 0] - np.clip(place[:, 0], a, b), place[:, 1] - np.clip(place[:, 1], low, high)) < radius
    near[c] = False
    return not near.any() and not any(a < s and r < b and low < u and t < high for r, s, t, u in taken)
