"""The figure of the front page."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from twofold import PPCA, datasets
from twofold.plots.models.linear import rows_figure


def index_digits() -> Figure:
    """Digits, the same with holes, and filled."""
    X = datasets.digits().data
    hidden = np.random.default_rng(0).random(X.shape) < 0.25
    seen = np.where(hidden, np.nan, X)
    filled = PPCA(12, random_state=0).fit(seen).impute(seen)
    rows = {"truth": X, "seen": seen, "filled": filled}
    return rows_figure({name: table[10:22].reshape(-1, 8, 8) for name, table in rows.items()}, (0.0, 16.0))
