"""The parts of a station of the tour, and a fit that does not warn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure


class Part(NamedTuple):
    """One result: a text, the code that makes it, a figure, a few numbers."""

    title: str
    text: str  # our own words; <b>, <i>, <code> may be used
    code: str = ""
    figure: Figure | None = None
    caption: str = ""  # also read to people who cannot see the figure
    numbers: Mapping[str, str] = {}  # label → value


class Station(NamedTuple):
    """One family's place in the tour."""

    title: str
    lead: str  # our own words; <b>, <i>, <code> may be used
    parts: Sequence[Part]


def fit_briefly(model: Any, *data: Any) -> Any:
    """Fit a model without its warnings of too few sweeps: a picture does not need them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data)
