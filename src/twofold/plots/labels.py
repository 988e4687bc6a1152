"""Labels beside points, none of which hides another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

SIDES = {  # horizontal and vertical alignment, and the direction from the point
    "right": ("left", "center", (1, 0)),
    "left": ("right", "center", (-1, 0)),
    "above": ("center", "bottom", (0, 1)),
    "below": ("center", "top", (0, -1)),
}
MAX_LETTERS = 26  # of a name
HALO = [withStroke(linewidth=2.4, foreground="white")]  # around letters, so that they are read on any ground


def shorten_name(name: str, letters: int = MAX_LETTERS) -> str:
    """Cut a long name.

    >>> shorten_name("unpredictable", 8)
    'unpredi…'
    """
    return name if len(name) <= letters else name[: letters - 1].rstrip() + "…"


def write_badge(ax: Axes, at: np.ndarray, text: str, color: str) -> None:
    """Write a number in a disc."""
    box = {"boxstyle": "circle,pad=0.28", "fc": color, "ec": "white", "lw": 1.6}
    look: Any = {"ha": "center", "va": "center", "color": "white", "fontweight": "bold", "fontsize": 10, "zorder": 6}
    ax.text(float(at[0]), float(at[1]), text, bbox=box, **look)


class Label(NamedTuple):
    """A label that fits."""

    which: int
    side: str
    aside: float  # shift along x, to stay in the figure


def place_labels(
    places: np.ndarray,
    sizes: np.ndarray,
    room: tuple[float, float],
    *,
    away: np.ndarray | float = 0.0,
    sides: Sequence[str] = tuple(SIDES),
    hides: Callable[[np.ndarray, int], bool] = lambda box, i: False,
    limit: int | None = None,
) -> list[Label]:
    """Place labels where none meets another; points that come first are labeled first.

    Parameters
    ----------
    places : ndarray of shape (n, 2)
        The points, in units of `room` from its lower left corner.
    sizes : ndarray of shape (n, 2)
        Width and height of each label.
    room : (float, float)
        Width and height of the figure.
    away : float or ndarray of shape (n,)
        Distance of a label from its point.
    sides : sequence of {"right", "left", "above", "below"}
        Where a label may stand, the best side first.
    hides : callable
        (box, i) → True if label i in the box (left, right, bottom, top) would hide something else.
    limit : int, optional
        The largest number of labels.
    """
    boxes, labels, distance = np.zeros((0, 4)), list[Label](), np.broadcast_to(away, len(places))
    for i, ((x, y), (width, height)) in enumerate(zip(places, sizes, strict=True)):
        for side in sides:
            across, up = SIDES[side][2]
            middle = x if across else min(max(x, width / 2), room[0] - width / 2)
            left = middle + across * (distance[i] + width / 2) - width / 2
            bottom = y + up * (distance[i] + height / 2) - height / 2
            box = np.array([left, left + width, bottom, bottom + height])
            inside = left >= 0 and box[1] <= room[0] and bottom >= 0 and box[3] <= room[1]
            meets = (left < boxes[:, 1]) & (boxes[:, 0] < box[1]) & (bottom < boxes[:, 3]) & (boxes[:, 2] < box[3])
            if inside and not meets.any() and not hides(box, i):
                boxes = np.vstack([boxes, box])
                labels.append(Label(i, side, float(middle - x)))
                break
        if len(labels) == limit:
            break
    return labels


def write_label(
    ax: Axes, text: str, at: np.ndarray, side: str = "right", away: float = 0.0, aside: float = 0.0, **look: Any
) -> None:
    """Write a text beside the point `at` with a white edge; `away` and `aside` are in points of the figure."""
    ha, va, (across, up) = SIDES[side]
    shift = (away * across + aside, away * up)
    write_beside(ax, text, (at[0], at[1]), shift, ha=ha, va=va, **{"path_effects": HALO, **look})


def write_beside(ax: Axes, text: str, at: Any, shift: tuple[float, float] = (5, 0), **look: Any) -> None:
    """Write a text at a point, moved by `shift` points of the figure."""
    ax.annotate(text, at, xytext=shift, textcoords="offset points", **look)


def label_points(
    ax: Axes, at: np.ndarray, names: Sequence[str], order: np.ndarray, limit: int, letter: float = 0.0085
) -> None:
    """Name points in the given order, leaving out those whose name would hide another.

    `letter` is the width of a letter as a share of the figure's.
    """
    low, high = np.transpose([ax.get_xlim(), ax.get_ylim()])
    short = [shorten_name(names[j]) for j in order]
    sizes = np.array([[letter * len(name) + 0.02, 0.035] for name in short])
    places = (np.asarray(at)[order] - low) / (high - low)
    for label in place_labels(places, sizes, (1.0, 1.0), sides=("right", "left"), limit=limit):
        write_label(ax, short[label.which], at[order[label.which]], label.side, 5, fontsize=8.5)
