"""Networks: the course of a training, and grids of images."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from PIL import Image

from twofold.plots.models.images import gray_mosaic
from twofold.plots.style import COLORS, add_title, new_figure, style

MAX_CURVES_IN_ROW = 5


def grid_png(images: np.ndarray, limits: tuple[float, float] | None = None) -> bytes:
    """A grid as a PNG file, small images enlarged by whole numbers so that their pixels can be seen."""
    sheet = gray_mosaic(images, limits=limits)
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
    """Draw every column of a history over the epochs, and below it named rows of images (n,h,w) or (n,h,w,c)."""
    curves = {name: values for name, values in history.items() if name != "seconds"}
    with style():
        sheets = [(name, gray_mosaic(np.asarray(images), 16)) for name, images in rows]
        across = len(curves) if len(curves) <= MAX_CURVES_IN_ROW else -(-len(curves) // 2)
        lines = -(-len(curves) // across)
        heights = [*[2.6] * lines, *(max(11 * s.shape[0] / s.shape[1], 0.7) + 0.35 for _, s in sheets)]
        figure = new_figure(11, sum(heights) + 0.6)
        grid = figure.add_gridspec(len(heights), across, height_ratios=heights)
        for i, (name, values) in enumerate(curves.items()):
            ax = figure.add_subplot(grid[i // across, i % across])
            ax.plot(np.arange(1, len(values) + 1), values, color=COLORS[i % len(COLORS)], lw=1.8)
            if len(values) == 1:  # no line
                ax.plot(1, values[0], "o", color=COLORS[i % len(COLORS)])
                ax.set_xlim(0.5, 1.5)
            ax.set_title(objective if name == "objective" else name)
            ax.set_xlabel("epoch")
            ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        for i, (name, sheet) in enumerate(sheets, start=lines):
            ax = figure.add_subplot(grid[i, :])
            ax.imshow(sheet, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            ax.set_axis_off()
            ax.set_title(name)
        add_title(figure, title)
        figure.draw_without_rendering()  # once more than usual: ticks that come with the final size need room too
    return figure
