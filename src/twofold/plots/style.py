"""One look for every figure. Nothing touches pyplot: no figure outlives its use, no screen is needed."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import PercentFormatter

from twofold.core.figure import ShownFigure

INK, GREY, PALE = "#1f2933", "#7b8794", "#e4e7eb"
# Also distinct in print and for people with red-green color blindness.
COLORS = ("#2f6fab", "#e07b39", "#3a9679", "#b5495b", "#7d5ba6", "#c9a227", "#4ea3c9", "#8a6d5a")
DIVERGING = LinearSegmentedColormap.from_list("twofold", ["#b5495b", "#f0c9c5", "#fafafa", "#bfd5ea", "#2f6fab"])
SEQUENTIAL = LinearSegmentedColormap.from_list("twofold_seq", ["#eef3f8", "#9dbfdd", "#2f6fab", "#173b5e"])

_RC: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Inter", "Source Sans 3", "Helvetica Neue", "Arial", "DejaVu Sans"],
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.labelsize": 10,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=COLORS),
    "grid.color": PALE,
    "grid.linewidth": 0.8,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.facecolor": "white",
    "legend.edgecolor": "none",
    "legend.framealpha": 0.75,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "text.parse_math": False,  # a "$" in a column name is a dollar
}


@contextmanager
def style() -> Iterator[None]:
    """Give figures that are made inside the house style."""
    quiet = logging.getLogger("matplotlib.font_manager")
    before = quiet.level
    quiet.setLevel(logging.ERROR)  # fonts of the list need not be installed
    try:
        with mpl.rc_context(_RC):
            yield
    finally:
        quiet.setLevel(before)


def new_figure(width: float, height: float) -> Figure:
    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12, wspace=0.04, hspace=0.06)
    figure = ShownFigure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def new_panels(n: int, width: float, height: float, **options: Any) -> tuple[Figure, list[Any]]:
    """Make a figure with n panels beside each other; `options` are those of ``Figure.subplots``."""
    figure = new_figure(width, height)
    return figure, list(figure.subplots(1, n, squeeze=False, **options).ravel())


def new_grid(n: int, per_row: int, width: float, row_height: float) -> tuple[Figure, list[Any]]:
    """Make a figure with n panels in rows; places of the last row that stay empty have no frame."""
    rows = -(-n // per_row)
    figure = new_figure(width, row_height * rows)
    panels = figure.subplots(rows, per_row, squeeze=False).ravel()
    for ax in panels[n:]:
        ax.axis("off")
    return figure, list(panels[:n])


def strip_axes(ax: Axes) -> None:
    """Leave out ticks, grid and frame."""
    ax.set(xticks=[], yticks=[])
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)


def strip_table(ax: Axes) -> None:
    """Leave out grid and frame of a table of cells; its rows and columns keep their names."""
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)


def draw_origin(ax: Axes, color: str = GREY, width: float = 0.7) -> None:
    """Draw the lines where either coordinate is 0."""
    ax.axhline(0, color=color, lw=width, zorder=0)
    ax.axvline(0, color=color, lw=width, zorder=0)


def show_percent(*axes: Axis) -> None:
    """Write the shares along an axis as whole percents."""
    for axis in axes:
        axis.set_major_formatter(PercentFormatter(1, decimals=0))


def add_colorbar(figure: Any, image: Any, ax: Any, **options: Any) -> Colorbar:
    """Add a color bar without a frame."""
    bar = figure.colorbar(image, ax=ax, **options)
    bar.outline.set_visible(False)
    return bar


def add_title(figure: Figure, title: str, size: float = 13) -> None:
    """Write a title over the whole figure, at its left, if there is one."""
    if title:
        figure.suptitle(title, x=0.012, ha="left", fontsize=size, fontweight="bold", color=INK)


def as_png(figure: Figure, dpi: int = 160) -> bytes:
    """Return the figure as the bytes of a PNG file."""
    with style(), io.BytesIO() as file:
        figure.savefig(file, format="png", dpi=dpi)
        return file.getvalue()


def save(figure: Figure, path: str | Path, dpi: int = 160) -> None:
    """Write the figure as its name says, in the house style even when drawn late."""
    with style():
        figure.savefig(path, dpi=dpi)
