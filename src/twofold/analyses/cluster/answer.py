"""A fitted clustering: its groups in the units of the table, how far to trust them, and a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from twofold.analyses.cluster.profile import Trait
from twofold.analyses.common.answer import DRAWN, FRAMES, Answer, Grid, count
from twofold.analyses.common.tables import beside
from twofold.io.tables.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_TOLD, MIN_DISTANCE = 4, 0.1  # columns told of a group, and their least distance in standard deviations
NAMES = {"kmeans": "k-means", "merged": "merged Gaussians", "density": "density", "ward": "Ward's tree"}


@dataclass(kw_only=True, repr=False, eq=False)
class Clustering(Answer):
    """A fitted clustering; cluster 0 is the largest, and -1 are outliers."""

    data: Table
    method: str
    labels: np.ndarray  # (n,), as model.predict gives them
    confidence: np.ndarray  # (n,) probability of the own cluster, or a distance: see `table`
    traits: list[Trait]  # of the columns that were fitted
    others: list[Trait]  # of those that were not
    columns: int  # fitted
    tried: pl.DataFrame | None  # the BIC of every mixture tried
    overlaps: np.ndarray | None  # of its components, in the order in which they merge
    blanks: int
    standardized: bool
    sample: Any  # (m,d) some rows as they were fitted
    drawn: np.ndarray  # (m,) which
    seed: int
    stabilities: dict[str, float] = field(default_factory=dict)  # of the methods compared

    endings: ClassVar[tuple[str, ...]] = (*FRAMES, *DRAWN, ".twofold")

    @property
    def k(self) -> int:
        return int(self.labels.max()) + 1

    @property
    def soft(self) -> bool:
        return hasattr(self.model, "covariance_type")

    @property
    def sizes(self) -> np.ndarray:
        return np.bincount(self.labels[self.labels >= 0], minlength=self.k)

    @property
    def outliers(self) -> int:
        return int(np.count_nonzero(self.labels < 0))

    @property
    def heading(self) -> str:
        kinds = " of numbers" if self.columns == len(self.data.columns) else ""
        return f"{self.source}: {count(len(self.labels), 'row')}, {count(self.columns, 'column')}{kinds}"

    @property
    def outcome(self) -> str:
        kind = NAMES.get(self.method, "")
        if self.method == "mixture":
            kind = f"a mixture of Gaussians ({self.model.covariance_type})"
        rest = f", {count(self.outliers, 'outlier')}" if self.outliers else ""
        return f"{count(self.k, 'cluster')} by {kind}{rest}"

    @cached_property
    def table(self) -> pl.DataFrame:
        second = "confidence" if self.soft else "distance"
        return beside(self.data, {"cluster": as_cells(self.labels), second: self.confidence})

    def differs(self, c: int, traits: list[Trait]) -> list[Trait]:
        """Find what sets cluster c most apart from all rows; one level of each category."""
        told: dict[str, Trait] = {}
        for trait in sorted(traits, key=lambda trait: -abs(trait.distances[c])):
            told.setdefault(trait.column, trait)
        strong = [trait for trait in told.values() if abs(trait.distances[c]) >= MIN_DISTANCE][:MAX_TOLD]
        return [trait for trait in strong if abs(trait.distances[c]) >= abs(strong[0].distances[c]) / 2]

    def grids(self) -> list[Grid]:
        n, sizes = len(self.labels), self.sizes
        rows = []
        for c, size in enumerate(sizes):
            words = [trait.tell(c) for trait in self.differs(c, self.traits)]
            share = f"{size / n:.0%}"
            rows.append([str(c), f"{size:,}", share, float(size / sizes[0]), ", ".join(words) or "like all rows"])
        if self.outliers:
            rows.append(["outliers", f"{self.outliers:,}", f"{self.outliers / n:.0%}", 0.0, "in no cluster"])
        grids = [
            Grid(["cluster", "rows", "share", "", "differs from all rows in"], rows, right=(1, 2), rest="clusters")
        ]
        if self.others and self.k > 1:
            told = [[str(c), ", ".join(t.tell(c) for t in self.differs(c, self.others))] for c in range(self.k)]
            head = ["cluster", "columns that were not fitted"]
            grids.append(Grid(head, [[c, words or "like all rows"] for c, words in told], rest="clusters"))
        return grids

    def lines(self) -> list[str]:
        parts = []
        if "silhouette" in self.figures:
            parts.append(f"silhouette {self.figures['silhouette']:.2f} (1 well apart, 0 touching)")
        if "stability" in self.figures:
            agree = f"{self.figures['stability']:.2f} (1 fully, 0 by chance)"
            parts.append(f"fits to two halves of the rows agree to {agree}")
        if not parts:
            parts = ["one cluster is not told apart from anything" if self.k == 1 else "too few rows to say"]
        lines = [f"quality: {'; '.join(parts)}"]
        if "cost" in self.figures:
            seen, rows = self.figures["coreset_cost"], self.figures["coreset_rows"]
            lines.append(
                f"mean squared distance to the own center: {self.figures['cost']:.4g} over all rows, {seen:.4g} over "
                f"the coreset of {rows:,} that was fitted"
            )
        return lines

    def facts(self) -> dict[str, Any]:
        n, sizes = len(self.labels), self.sizes
        parts = [
            {
                "cluster": c,
                "rows": sizes[c],
                "share": sizes[c] / n,
                "center": {trait.name: float(trait.means[c]) for trait in self.traits},
                "differs": {trait.name: float(trait.distances[c]) for trait in self.differs(c, self.traits)},
                "not_fitted": {trait.name: float(trait.means[c]) for trait in self.differs(c, self.others)},
            }
            for c in range(self.k)
        ]
        tried = [] if self.tried is None else self.tried.select("n_components", "covariance_type", "bic").to_dicts()
        return {
            "rows": n,
            "columns": self.columns,
            "blank_cells": self.blanks,
            "method": self.method,
            "model": type(self.model).__name__,
            "n_clusters": self.k,
            "outliers": self.outliers,
            "standardized": self.standardized,
            "all": {trait.name: trait.mean for trait in self.traits},
            "clusters": parts,
            "tried": tried,
        }

    def plot(self) -> Figure:
        from twofold.plots.reports.cluster import clustering_figure, plane

        own = self.labels[self.drawn]
        rows = self.sample.toarray() if hasattr(self.sample, "toarray") else self.sample
        centers = np.array([np.nanmean(rows[own == c], axis=0) if (own == c).any() else rows[0] for c in range(self.k)])
        at, where, shares = plane(self.sample, centers, self.seed)
        names = None if self.data.ids is None else [str(self.data.ids[int(i)]) for i in self.drawn]
        return clustering_figure(
            at,
            own,
            where,
            np.column_stack([trait.distances for trait in self.traits]),
            [trait.name for trait in self.traits],
            self.sizes,
            shares=shares,
            choice=None if self.tried is None else self.tried.rows(named=True),
            overlaps=self.overlaps,
            names=names,
            title=self.heading,
        )


def as_cells(labels: np.ndarray) -> pl.Series:
    """Clusters as cells of a table: blank for outliers."""
    cells = pl.Series("cluster", labels)
    return cells.set(cells < 0, None) if (labels < 0).any() else cells
