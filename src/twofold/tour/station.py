"""The results of a station of the tour, whose words are in its template, and a fit that does not warn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure


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
