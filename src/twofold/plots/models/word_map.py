"""Words in the plane: dots with their words beside them, none of which hides another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.textpath import TextPath

from twofold.plots.style import COLORS, INK, new_figure, style

LINE = 0.0155  # inches of height a line, for each point of the font's size
LONGEST = 22  # letters of a word that are written


def word_map_figure(
    at: np.ndarray,
    words: Sequence[str],
    groups: Sequence[int] | None = None,
    weights: Sequence[float] | None = None,
    title: str = "",
) -> Figure:
    """Words in the plane, near each other when they keep the same company.

    Parameters
    ----------
    at : ndarray of shape (n, 2)
    words : sequence of n str
        Those that come first are written first; one that would hide another stays a dot.
    groups : sequence of n int, optional
        Colours.
    weights : sequence of n float, optional
        How frequent each is, which sets the size of its letters.
    title : str
    """
    with style():
        figure = new_figure(11, 7.2)
        draw_word_map(figure.subplots(), at, words, groups, weights, (10.6, 6.6 if title else 6.9))
        if title:
            figure.suptitle(title, x=0.012, ha="left", fontsize=14, fontweight="bold", color=INK)
    return figure


def draw_word_map(
    ax: Axes,
    at: np.ndarray,
    words: Sequence[str],
    groups: Sequence[int] | None = None,
    weights: Sequence[float] | None = None,
    inches: tuple[float, float] = (10.6, 6.9),
) -> None:
    """Dots with their words beside them; `inches` is the room there is."""
    n = len(at)
    of = np.zeros(n, dtype=int) if groups is None else np.asarray(groups)
    colors = [COLORS[g % len(COLORS)] for g in of]
    size = _scale_fonts(n, weights)
    low, high = at.min(axis=0), at.max(axis=0)
    pad = np.maximum(0.06 * (high - low), 1e-3)
    place = (at - low + pad) / (high - low + 2 * pad) * inches
    ax.scatter(at[:, 0], at[:, 1], s=9, c=colors, alpha=0.55, linewidths=0)
    ax.set(xlim=(low[0] - pad[0], high[0] + pad[0]), ylim=(low[1] - pad[1], high[1] + pad[1]), xticks=[], yticks=[])
    halo = [withStroke(linewidth=2.2, foreground="white")]
    taken = np.zeros((0, 4))  # left, right, bottom, top
    for i, word in enumerate(words):
        text = word if len(word) <= LONGEST else word[: LONGEST - 1] + "…"
        for ha, va, shift, box in _sides(place[i], _measure_width(text, size[i]), LINE * size[i]):
            if _free(box, i, place, taken, inches):
                taken = np.vstack([taken, box])
                ax.annotate(
                    text, (at[i, 0], at[i, 1]), xytext=shift, textcoords="offset points", ha=ha, va=va,
                    fontsize=size[i], color=darken(colors[i]), path_effects=halo,
                )  # fmt: skip
                break
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)


def _measure_width(text: str, size: float) -> float:
    """Inches that a text takes, and a little room behind it."""
    return TextPath((0, 0), text, size=size).get_extents().width / 72 + 0.03


def _scale_fonts(n: int, weights: Sequence[float] | None) -> np.ndarray:
    """Points: between 7.5 and 12 by the logarithm of the weights."""
    if weights is None:
        return np.full(n, 9.0)
    level = np.log(np.maximum(np.asarray(weights, dtype=np.float64), 1e-300))
    return 7.5 + 4.5 * (level - level.min()) / max(float(np.ptp(level)), 1e-9)


def darken(color: str) -> tuple[float, ...]:
    """Letters need more ink than dots."""
    return tuple(0.72 * part for part in to_rgb(color))


def _sides(at: np.ndarray, wide: float, tall: float) -> list[tuple[str, str, tuple[float, float], np.ndarray]]:
    """Where a word may stand: alignment, shift in points, and its box in inches."""
    x, y = at
    gap = 0.045
    half, up = wide / 2, tall / 2
    return [
        ("left", "center", (72 * gap, 0), np.array([x + gap, x + gap + wide, y - up, y + up])),
        ("right", "center", (-72 * gap, 0), np.array([x - gap - wide, x - gap, y - up, y + up])),
        ("center", "bottom", (0, 72 * gap), np.array([x - half, x + half, y + gap, y + gap + tall])),
        ("center", "top", (0, -72 * gap), np.array([x - half, x + half, y - gap - tall, y - gap])),
    ]


def _free(box: np.ndarray, i: int, place: np.ndarray, taken: np.ndarray, inches: tuple[float, float]) -> bool:
    """Whether a box lies in the picture and meets no other words; of the dots it may cover one."""
    a, b, low, high = box
    if a < 0 or b > inches[0] or low < 0 or high > inches[1]:
        return False
    meets = (a < taken[:, 1]) & (taken[:, 0] < b) & (low < taken[:, 3]) & (taken[:, 2] < high)
    covers = (place[:, 0] > a) & (place[:, 0] < b) & (place[:, 1] > low) & (place[:, 1] < high)
    covers[i] = False
    return not meets.any() and int(covers.sum()) <= 1
