"""k-means on a few weighted rows that stand for all, and what it costs on all of them."""

from __future__ import annotations

from typing import Any

from twofold.analyses.common.tables import shape_of
from twofold.core.checks import InputError
from twofold.io.tables.table import Table

ROWS = 5_000  # of a coreset, or
A_CLUSTER = 200  # rows for each cluster, if that is more


def fit_on_coreset(model: Any, X: Any, seed: int, table: Table) -> dict[str, Any]:
    """Fit the model of k-means to a coreset of X; the costs are mean squared distances to the nearest center."""
    from twofold.clusters import coreset

    n, m = shape_of(X)[0], max(ROWS, A_CLUSTER * model.n_clusters)
    if m >= n:
        table.notes.append(f"⟨coreset⟩: {table.source} has {n:,} rows, a coreset {m:,}, so all of them are used")
        model.fit(X)
        return {}
    points, weights = coreset(X, m, random_state=seed)
    model.fit(points, sample_weight=weights)
    seen = float(model.inertia_ / weights.sum())
    return {"coreset_rows": points.shape[0], "coreset_cost": seen, "cost": -float(model.score(X)) / n}


def check_coreset(wanted: bool, method: str) -> None:
    if wanted and method != "kmeans":
        raise InputError(
            "⟨coreset⟩ stands for all rows in k-means, and this is a mixture of Gaussians. Use ⟨method=kmeans⟩, on a "
            "table without blanks, or leave ⟨coreset⟩ out."
        )
