"""Images in a grid, images beside each other, quality against size, and the course of a training with its images."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator
from PIL import Image
from scipy.ndimage import uniform_filter

from twofold.plots.style import COLORS, INK, add_title, new_figure, strip_axes, style

DETAIL_PIXELS = 56  # on the shorter side of the enlarged detail
MAX_FIGURE_PIXELS = 1400  # on the longer side
EDGE = [withStroke(linewidth=3, foreground=INK)]
HOLE = (181, 73, 91)  # color of missing pixels, rare in photographs
UNKNOWN = (0.88, 0.48, 0.22, 0.55)  # color of an unknown cell
PAPER = LinearSegmentedColormap.from_list("twofold_paper", ["#fbfaf7", "#8b9aa8", "#1f2933"])
MAX_CURVES_IN_ROW = 5
DIGIT_COLORS = (*COLORS, "#4b5563", "#d16d9e")

Panel = tuple[str, np.ndarray]


# --- many small images in one ---------------------------------------------------------------------------------


def arrange_images(images: np.ndarray, per_row: int, gap: int = 1, border: int = 0, fill: float = 0) -> np.ndarray:
    """Arrange images (n,h,w) or (n,h,w,c) in one, row by row, with gaps between and a border around."""
    n, h, w = images.shape[:3]
    tall, wide = h + gap, w + gap
    shape = -(-n // per_row) * tall - gap + 2 * border, per_row * wide - gap + 2 * border
    sheet = np.full((*shape, *images.shape[3:]), fill, images.dtype)
    for i, image in enumerate(images):
        top, left = border + i // per_row * tall, border + i % per_row * wide
        sheet[top : top + h, left : left + w] = image
    return sheet


def color_mosaic(
    images: np.ndarray, cmap: Colormap, vmin: float, vmax: float, gap: int = 1, per_row: int | None = None
) -> np.ndarray:
    """Images (m,h,w) side by side as one RGBA array; NaN cells take the color of a hole, gaps are clear."""
    tiles = np.asarray(cmap(Normalize(vmin, vmax, clip=True)(np.nan_to_num(images))))
    tiles[np.isnan(images)] = UNKNOWN
    return arrange_images(tiles, per_row or len(images), gap)


def gray_mosaic(
    images: np.ndarray, columns: int | None = None, limits: tuple[float, float] | None = None
) -> np.ndarray:
    """Arrange images (n,h,w) or (n,h,w,c) in one of bytes, row by row with thin lines between.

    By default there are about as many columns as rows, and `limits`, black and white, are the least and largest number.
    """
    low, high = limits or (float(images.min()), float(images.max()))
    scaled = np.clip((images - low) / (high - low if high > low else 1), 0, 1) * 255
    columns = columns or math.ceil(math.sqrt(len(images)))
    sheet = arrange_images(np.rint(scaled).astype(np.uint8), columns, border=1, fill=64)
    return sheet[..., 0] if sheet.ndim == 3 and sheet.shape[2] == 1 else sheet


def grid_png(images: np.ndarray, limits: tuple[float, float] | None = None) -> bytes:
    """Draw a grid as a PNG file, small images enlarged by whole numbers so that their pixels can be seen."""
    sheet = gray_mosaic(images, limits=limits)
    times = max(1, 800 // max(sheet.shape[:2]))
    sheet = sheet.repeat(times, axis=0).repeat(times, axis=1)
    file = io.BytesIO()
    Image.fromarray(sheet).save(file, "PNG")
    return file.getvalue()


# --- images beside each other ---------------------------------------------------------------------------------


def comparison_figure(panels: Sequence[Panel], title: str = "") -> Figure:
    """Draw images of one size, uint8 or uint16, and below each the detail where they differ most, enlarged."""
    with style():
        h, w = panels[0][1].shape[:2]
        detail = find_detail(panels[0][1], panels[-1][1]) if min(h, w) > 2 * DETAIL_PIXELS else None
        each = 11 / len(panels)  # inches
        tall = min(each * h / w, 8.0)
        rows = 2 if detail else 1
        figure = new_figure(11, rows * (tall + 0.15) + (0.8 if title else 0.35))
        grid = figure.add_gridspec(rows, len(panels))
        for i, (name, pixels) in enumerate(panels):
            ax = figure.add_subplot(grid[0, i])
            show_image(ax, pixels, name)
            if detail:
                row, column, height, width = detail
                at = column - 0.5, row - 0.5
                ax.add_patch(Rectangle(at, width, height, fill=False, ec="white", lw=1.4, path_effects=EDGE))
                part = pixels[row : row + height, column : column + width]
                show_image(figure.add_subplot(grid[1, i]), part, "", "nearest")
        add_title(figure, title)
    return figure


def show_image(ax: Axes, pixels: np.ndarray, name: str, interpolation: str = "antialiased") -> None:
    """Show an image: black is 0, white the largest number of its type."""
    h, w = pixels.shape[:2]
    values = shrink_image(pixels) / np.float32(np.iinfo(pixels.dtype).max)
    ax.imshow(values, "gray", vmin=0, vmax=1, interpolation=interpolation, extent=(-0.5, w - 0.5, h - 0.5, -0.5))
    ax.set_title(name)
    strip_axes(ax)


def shrink_image(pixels: np.ndarray) -> np.ndarray:
    """Shrink large images by means of square blocks: drawing every pixel takes much memory.

    >>> shrink_image(np.arange(4200 * 4).reshape(4, 4200)).shape
    (1, 1400)
    """
    s = -(-max(pixels.shape[:2]) // MAX_FIGURE_PIXELS)
    h, w = (max(side // s, 1) for side in pixels.shape[:2])
    if s == 1 or min(pixels.shape[:2]) < s:
        return pixels
    return pixels[: h * s, : w * s].reshape(h, s, w, s, -1).mean(axis=(1, 3)).reshape(h, w, *pixels.shape[2:])


def find_detail(before: np.ndarray, after: np.ndarray) -> tuple[int, int, int, int]:
    """Find the detail, of the image's shape, where two images differ much and the second has contrast.

    Returns its row, column, height and width.
    """
    light = [np.asarray(p if p.ndim == 2 else p.mean(axis=2), dtype=np.float32) for p in (before, after)]
    h, w = light[0].shape
    shrink = DETAIL_PIXELS / min(h, w)
    height, width = round(h * shrink), round(w * shrink)

    def spread(values: np.ndarray) -> np.ndarray:
        return uniform_filter(values, (height, width), mode="nearest")

    contrast = np.sqrt(np.maximum(spread(light[1] ** 2) - spread(light[1]) ** 2, 0))
    score = spread(spread(np.abs(light[0] - light[1]))) * contrast  # twice: highest in the middle of the difference
    inside = score[height // 2 : h - height // 2, width // 2 : w - width // 2]
    row, column = np.unravel_index(int(np.argmax(inside)), inside.shape)
    return min(int(row), h - height), min(int(column), w - width), height, width


def paint_holes(pixels: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the image in color, missing pixels painted over.

    >>> paint_holes(np.zeros((1, 2), np.uint8), np.array([[True, False]])).tolist()
    [[[181, 73, 91], [0, 0, 0]]]
    """
    out = np.array(pixels) if pixels.ndim == 3 else np.dstack([pixels] * 3)
    out[mask] = np.array(HOLE) * (np.iinfo(out.dtype).max // 255)
    return out


def rate_distortion_figure(
    curves: Mapping[str, Mapping[str, np.ndarray]],
    chosen: Mapping[str, tuple[float, float]],
    panels: Sequence[Panel] = (),
    title: str = "",
) -> Figure:
    """Draw quality against size, and images beside it.

    Each method has a curve of ``psnr`` over ``bits_per_pixel``; `chosen` are the points to mark, this file's first.
    """
    with style():
        figure = new_figure(11, 6.4 if panels else 4.8)
        grid = figure.add_gridspec(max(len(panels), 1), 2 if panels else 1, width_ratios=[1.5, 1] if panels else [1])
        ax = figure.add_subplot(grid[:, 0])
        for i, (method, curve) in enumerate(curves.items()):
            ax.plot(curve["bits_per_pixel"], curve["psnr"], color=COLORS[i], lw=2, marker="o", ms=3.5, label=method)
            if method in chosen:
                first = method == next(iter(chosen))
                x, y = chosen[method]
                label = "this file" if first else None
                size = (11, 2.4) if first else (7, 1.6)
                ax.plot([x], [y], "o", ms=size[0], mfc="white", mec=COLORS[i], mew=size[1], label=label)
        ax.set(title="Quality against size (up and left is better)", xlabel="bits a pixel", ylabel="PSNR, dB")
        ax.legend(loc="lower right")
        for i, (name, pixels) in enumerate(panels):
            show_image(figure.add_subplot(grid[i, 1]), pixels, name)
        add_title(figure, title)
    return figure


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
