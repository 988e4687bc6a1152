"""The tour: every family at work on bundled data.

A family adds a station: a module whose ``station(seed)`` returns parts by name, and a template that writes about them.

STATIONS  title → module and template of that name
EXTRAS    title → (package, extra) of stations that need more than the core; they are left out where it is missing
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the command line lists the stations before it is loaded
    from matplotlib.figure import Figure

STATIONS = {
    "Lines, planes and Gaussians": "linear",
    "Groups, hard and soft": "clusters",
    "Tables with holes, and recommenders": "completion",
    "Documents as mixtures of topics": "topics",
    "Words by the company they keep": "words",
    "Signals in few numbers": "signals",
    "Networks and generators": "deep",
}
EXTRAS = {"Networks and generators": ("torch", "deep")}


class Part:
    """One result: a figure, a few numbers by their labels, and facts that its words mention."""

    def __init__(self, figure: Figure | None = None, numbers: Mapping[str, str] | None = None, **facts: Any):
        self.figure, self.numbers = figure, numbers or {}
        vars(self).update(facts)


Station = Mapping[str, Any]  # parts, and facts of the lead, by their names in the template


def fit_briefly(model: Any, *data: Any) -> Any:
    """Fit a model without its warnings of too few sweeps: a picture does not need them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data)
