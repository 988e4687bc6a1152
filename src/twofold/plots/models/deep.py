"""Networks: the course of a training, and grids of pictures."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from PIL import Image

from twofold.plots.style import COLORS, INK, new_figure, style

APART = 1  # pixels between pictures


def mosaic(pictures: np.ndarray, columns: int | None = None, limits: tuple[float, float] | None = None) -> np.ndarray:
    """Pictures (n,h,w) or (n,h,w,c) as one of bytes, row by row with thin lines between.

    Parameters
    ----------
    pictures : ndarray
    columns : int, optional
        How many in a row; by default about a square.
    limits : (float, float), optional
        Black and white; by default the least and the largest number.
    """
    n, h, w = pictures.shape[:3]
    low, high = limits or (float(pictures.min()), float(pictures.max()))
    scaled = np.clip((pictures - low) / (high - low if high > low else 1), 0, 1) * 255
    columns = columns or math.ceil(math.sqrt(n))
    rows = -(-n // columns)
    tall, wide = h + APART, w + APART
    sheet = np.full((rows * tall + APART, columns * wide + APART, *pictures.shape[3:]), 64, np.uint8)
    for i, one in enumerate(np.rint(scaled).astype(np.uint8)):
        top, left = APART + i // columns * tall, APART + i % columns * wide
        sheet[top : top + h, left : left + w] = one
    return sheet[..., 0] if sheet.ndim == 3 and sheet.shape[2] == 1 else sheet


def grid_png(pictures: np.ndarray, limits: tuple[float, float] | None = None) -> bytes:
    """A grid as a PNG file, small pictures enlarged by whole numbers so that their pixels can be seen."""
    sheet = mosaic(pictures, limits=limits)
    times = max(1, 800 // max(sheet.shape[:2]))
    sheet = sheet.repeat(times, axis=0).repeat(times, axis=1)
    file = io.BytesIO()
    Image.fromarray(sheet).save(file, "PNG")
    return file.getvalue()


def training_figure(
    history: Mapping[str, Sequence[float]],
    rows: Sequence[tuple[str, np.ndarray]] = (),
    title: str = "",
    objective: str = "objective",
) -> Figure:
    """Every column of a history over the epochs, and below it rows of pictures.

    Parameters
    ----------
    history : mapping of str to list of float
    rows : sequence of (str, ndarray of shape (n, h, w) or (n, h, w, c))
        What each row of pictures is, and the pictures.
    title : str
    objective : str
        What the objective is called.
    """
    curves = {name: values for name, values in history.items() if name != "seconds"}
    with style():
        sheets = [(name, mosaic(np.asarray(pictures), 16)) for name, pictures in rows]
        heights = [2.6, *(max(11 * s.shape[0] / s.shape[1], 0.7) + 0.35 for _, s in sheets)]
        figure = new_figure(11, sum(heights) + 0.6)
        grid = figure.add_gridspec(len(heights), len(curves), height_ratios=heights)
        for i, (name, values) in enumerate(curves.items()):
            ax = figure.add_subplot(grid[0, i])
            ax.plot(np.arange(1, len(values) + 1), values, color=COLORS[i % len(COLORS)], lw=1.8)
            if len(values) == 1:  # no line
                ax.plot(1, values[0], "o", color=COLORS[i % len(COLORS)])
                ax.set_xlim(0.5, 1.5)
            ax.set_title(objective if name == "objective" else name)
            ax.set_xlabel("epoch")
            ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        for i, (name, sheet) in enumerate(sheets, start=1):
            ax = figure.add_subplot(grid[i, :])
            ax.imshow(sheet, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            ax.set_axis_off()
            ax.set_title(name)
        if title:
            figure.suptitle(title, x=0.012, ha="left", fontsize=13, fontweight="bold", color=INK)
        figure.draw_without_rendering()  # once more than usual: ticks that come with the final size need room too
    return figure
