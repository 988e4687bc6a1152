"""What a station of the tour is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure


class Part(NamedTuple):
    """One thing shown: what it is, the code that makes it, a figure, a few numbers."""

    title: str
    text: str  # our own words; <b>, <i>, <code> may be used
    code: str = ""
    figure: Figure | None = None
    caption: str = ""  # also what the figure says to those who cannot see it
    numbers: Mapping[str, str] = {}  # label → value


class Station(NamedTuple):
    """One family's place in the tour."""

    title: str
    lead: str  # our own words; <b>, <i>, <code> may be used
    parts: Sequence[Part]
