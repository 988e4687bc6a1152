"""The class of every figure, which a notebook shows without pyplot."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure


class ShownFigure(Figure):
    """A figure of matplotlib that draws itself where it is the last line of a cell.

    >>> ShownFigure(figsize=(1, 1))._repr_png_()[:4]
    b'\x89PNG'
    """

    def _repr_png_(self) -> bytes:
        with BytesIO() as file:
            self.savefig(file, format="png", dpi=110)
            return file.getvalue()
