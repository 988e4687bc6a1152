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
SHORT = 26  # letters of a name that are written


class Label(NamedTuple):
    """A label that fits."""

    which: int
    side: str
    aside: float  # how far it is moved along x, to stay in the figure


def place_labels(
    places: np.ndarray,
    sizes: np.ndarray,
    room: tuple[float, float],
    *,
    away: np.ndarray | float = 0.0,
    sides: Sequence[str] = tuple(SIDES),
    hides: Callable[[np.ndarray, int], bool] = lambda box, i: False,
    most: int | None = None,
) -> list[Label]:
    """Those labels that can be written without meeting another; points that come first are labeled first.

    Parameters
    ----------
    places : ndarray of shape (n, 2)
        The points, in units of `room` from its lower left corner.
    sizes : ndarray of shape (n, 2)
        Width and height of each label.
    room : (float, float)
        Width and height of the figure.
    away : float or ndarray of shape (n,)
        How far a label begins from its point.
    sides : sequence of {"right", "left", "above", "below"}
        Where a label may stand, the best side first.
    hides : callable
        (box, i) → whether label i in the box (left, right, bottom, top) would hide something else.
    most : int, optional
        Labels at most.
    """
    taken, found, apart = np.zeros((0, 4)), list[Label](), np.broadcast_to(away, len(places))
    for i, ((x, y), (width, height)) in enumerate(zip(places, sizes, strict=True)):
        for side in sides:
            across, up = SIDES[side][2]
            middle = x if across else min(max(x, width / 2), room[0] - width / 2)
            left = middle + across * (apart[i] + width / 2) - width / 2
            bottom = y + up * (apart[i] + height / 2) - height / 2
            box = np.array([left, left + width, bottom, bottom + height])
            inside = left >= 0 and box[1] <= room[0] and bottom >= 0 and box[3] <= room[1]
            meets = (left < taken[:, 1]) & (taken[:, 0] < box[1]) & (bottom < taken[:, 3]) & (taken[:, 2] < box[3])
            if inside and not meets.any() and not hides(box, i):
                taken = np.vstack([taken, box])
                found.append(Label(i, side, float(middle - x)))
                break
        if len(found) == most:
            break
    return found


def write_label(
    ax: Axes, text: str, at: np.ndarray, side: str = "right", away: float = 0.0, aside: float = 0.0, **look: Any
) -> None:
    """A text beside the point `at` with a white edge; `away` and `aside` are in points of the figure."""
    ha, va, (across, up) = SIDES[side]
    look = {"path_effects": [withStroke(linewidth=2.4, foreground="white")], **look}
    shift = (away * across + aside, away * up)
    ax.annotate(text, (at[0], at[1]), xytext=shift, textcoords="offset points", ha=ha, va=va, **look)


def label_points(
    ax: Axes, at: np.ndarray, names: Sequence[str], order: np.ndarray, most: int, letter: float = 0.0085
) -> None:
    """Name points in the given order, leaving out those whose name would hide another.

    `letter` is the width of a letter as a share of the figure's.
    """
    low, high = np.transpose([ax.get_xlim(), ax.get_ylim()])
    short = [names[j] if len(names[j]) <= SHORT else names[j][: SHORT - 1].rstrip() + "…" for j in order]
    sizes = np.array([[letter * len(name) + 0.02, 0.035] for name in short])
    places = (np.asarray(at)[order] - low) / (high - low)
    for label in place_labels(places, sizes, (1.0, 1.0), sides=("right", "left"), most=most):
        write_label(ax, short[label.which], at[order[label.which]], label.side, 5, fontsize=8.5)
