"""Which rows belong together, and what sets each group apart.

k-means, or a mixture of Gaussians if asked for or if cells are blank. Unless it is given, the number of clusters is the
one whose mixture has the least BIC. How far to trust the clusters is measured by the silhouette, and by whether two
halves of the rows give the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Unpack

import numpy as np
import polars as pl
import scipy.sparse as sp

import twofold
from twofold.analyses.cluster.coreset import check_coreset, fit_on_coreset
from twofold.analyses.cluster.palette import Palette, find_palette, is_photo
from twofold.analyses.common import tables
from twofold.analyses.common.analysis import Data, Reading, Seed, analysis
from twofold.analyses.common.answer import DRAWN, FRAMES, Answer, Grid, count, strongest
from twofold.analyses.common.sizes import find_size
from twofold.analyses.common.tables import warnings_as_notes
from twofold.core.checks import InputError
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing
from twofold.io.tables.table import Table, quote_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from twofold.model_selection.selection import Selection

SAMPLE = 10_000  # rows that are enough to choose k, to measure and to draw
WITH_BLANKS = 2_000  # the same where every row has its own pattern of blanks
PAIRS = 2_000  # rows for a figure that compares all pairs
FIRST = 10  # clusters tried at once; more while that is better
MAX_CLUSTERS, MIN_ROWS_PER_CLUSTER = 200, 10  # clusters tried at most, and rows that each should have
SECONDS = 120.0  # for looking beyond the first
AXES = 10  # dimensions in which k is chosen
MIN_STABILITY = 0.7  # agreement between halves below which clusters say little
REG = 1e-3  # of variances: columns of unknown kind, often whole numbers: no cluster thinner than 3 % of their spread
EM_STOPPING: dict[str, Any] = {"tol": 1e-4, "max_iter": 200}  # over plateaus, where EM moves little for some sweeps


@dataclass(kw_only=True, repr=False, eq=False)
class Clustering(Answer):
    """A fitted clustering; cluster 0 is the largest."""

    data: Table
    labels: np.ndarray  # (n,), as model.predict gives them
    confidence: np.ndarray  # (n,) distance to the own center, or probability of the own cluster
    profiles: np.ndarray  # (k,d) center less the mean of all rows, in standard deviations
    tried: pl.DataFrame | None  # the BIC of every size tried
    blanks: int
    scale: np.ndarray | None  # what columns were divided by
    sample: Any  # (m,d) some rows, scaled
    drawn: np.ndarray  # (m,) which
    seed: int

    endings: ClassVar[tuple[str, ...]] = (*FRAMES, *DRAWN, ".twofold")

    @property
    def k(self) -> int:
        return len(self.profiles)

    @property
    def soft(self) -> bool:
        return hasattr(self.model, "covariance_type")

    @property
    def sizes(self) -> np.ndarray:
        return np.bincount(self.labels, minlength=self.k)

    @property
    def heading(self) -> str:
        return tables.about_table(self.data, len(self.labels))

    @property
    def outcome(self) -> str:
        kind = f"a mixture of Gaussians ({self.model.covariance_type})" if self.soft else "k-means"
        return f"{count(self.k, 'cluster')} by {kind}"

    @cached_property
    def table(self) -> pl.DataFrame:
        second = "confidence" if self.soft else "distance"
        return tables.beside(self.data, {"cluster": self.labels, second: self.confidence})

    def differs(self, c: int) -> list[tuple[str, float]]:
        """The columns in which cluster c differs most from all rows, in standard deviations."""
        return strongest(self.profiles[c], self.data.columns, minimum=0.1)

    def grids(self) -> list[Grid]:
        n, sizes = len(self.labels), self.sizes
        rows = []
        for c, size in enumerate(sizes):
            words = [f"{name} {'+' if z > 0 else '−'}{abs(z):.1f} sd" for name, z in self.differs(c)]
            share = f"{size / n:.0%}"
            rows.append([str(c), f"{size:,}", share, float(size / sizes[0]), ", ".join(words) or "like all rows"])
        return [Grid(["cluster", "rows", "share", "", "differs from all rows in"], rows, right=(1, 2), rest="clusters")]

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
                "center": dict(zip(self.data.columns, self.model.components_[c], strict=True)),
                "differs": dict(self.differs(c)),
            }
            for c in range(self.k)
        ]
        tried = [] if self.tried is None else self.tried.select("n_components", "covariance_type", "bic").to_dicts()
        return {
            "rows": n,
            "columns": len(self.data.columns),
            "blank_cells": self.blanks,
            "method": "mixture" if self.soft else "kmeans",
            "model": type(self.model).__name__,
            "n_clusters": self.k,
            "standardized": self.scale is not None,
            "clusters": parts,
            "tried": tried,
        }

    def plot(self) -> Figure:
        from twofold.plots.reports.cluster import clustering_figure, plane

        centers = self.model.components_ if self.scale is None else self.model.components_ / self.scale
        at, where, shares = plane(self.sample, centers, self.seed)
        return clustering_figure(
            at,
            self.labels[self.drawn],
            where,
            self.profiles,
            self.data.columns,
            self.sizes,
            shares=shares,
            choice=None if self.tried is None else self.tried.rows(named=True),
            title=self.heading,
        )


@analysis(streams=True)
def cluster(
    data: Data,
    n_clusters: Annotated[int | None, Flag("-k", "--clusters", min=1, unit="N")] = None,
    *,
    method: Literal["kmeans", "mixture"] | None = None,
    scale: bool | None = None,
    coreset: bool = False,
    seed: Seed = 0,
    progress: Progress | None = None,
    **reading: Unpack[Reading],
) -> Palette | Clustering:
    """Find groups of rows that belong together, and what sets each apart.

    Parameters
    ----------
    data : path, list of paths, frame or array
        CSV, TSV, Parquet, JSONL, Excel, .npy, .npz, .mtx, file.db::table, a folder, a pattern, or - (stdin); or an
        image, for its colors.
    n_clusters
        Number of clusters. Default: the number whose mixture of Gaussians has the least BIC, of 1 to 10, and of more
        while that is better.
    method
        k-means, or a mixture of Gaussians. Default: kmeans; mixture if cells are blank.
    scale
        Divide columns by their standard deviations. Default: if named columns differ tenfold in spread.
    coreset
        Fit k-means to a few weighted rows that stand for all (for long tables); the answer has the cost on all rows.

    Returns
    -------
    Clustering
        ``table`` holds row names, columns set aside, and every row's cluster.
    Palette
        For an image: ``table`` holds its colors and the share of each, ``after`` the image redrawn with them.

    Examples
    --------
    >>> from twofold import datasets
    >>> cluster(datasets.iris().data, 3).table["cluster"].n_unique()
    3
    """
    from twofold.core.data.blocks import as_blocks
    from twofold.core.engine.local import engine_for
    from twofold.core.numerics.moments import column_moments
    from twofold.core.seeds import generator

    if is_photo(data):
        if method == "mixture" or scale is not None or coreset or any(reading.values()):
            raise InputError("an image is clustered by the colors of its pixels: leave out what is about tables.")
        return find_palette(data, n_clusters, seed)
    with doing("reading"):
        table = tables.as_table(data, **reading)
    notes = table.notes
    X = tables.in_memory(table)
    n, _ = tables.shape_of(X)
    tables.check(X, n, table, "cluster")
    if n_clusters is not None and n_clusters > n:
        raise InputError(f"{n_clusters} clusters: {table.source} has {n} rows, so at most {n}.")
    blocks = as_blocks(X)
    columns = column_moments(engine_for(blocks), blocks)
    used = choose_method(method, X, int(columns.missing), table)
    check_coreset(coreset, used)
    s = scaling(scale, X, used, table)
    Y = X if s is None else X / s
    drawn = np.sort(generator(seed, 1).permutation(n)[: WITH_BLANKS if columns.missing else SAMPLE])
    sample = tables.rows_of(Y, drawn)
    k, tried = n_clusters, None
    if k is None:
        with doing("trying numbers of clusters"):
            k, tried = choose_k(smooth(sample, seed, table), seed, notes)
    with warnings_as_notes(notes):
        model = new(used, k, sample, seed, notes)
        costs = fit_on_coreset(model, Y, seed, table) if coreset else {}
        model = model if coreset else model.fit(Y)
        model = model.reordered(np.argsort(-np.bincount(model.predict(Y), minlength=k), kind="stable"))
        labels = np.asarray(model.predict(Y))
    with doing("measuring"):
        figures = measure(model, sample, labels[drawn], seed, notes)
    confidence = model.predict_proba(Y).max(axis=1) if used == "mixture" else model.transform(Y).min(axis=1)
    model = model if s is None else model.rescaled(s)
    if table.named:
        model.feature_names_in_ = np.array(table.columns, dtype=object)
    return Clustering(
        source=table.source,
        model=model,
        figures=figures | costs,
        baseline={} if not figures else {"method": "labels by chance", **dict.fromkeys(figures, 0.0)},
        notes=notes,
        chosen={"n_clusters": k, "method": used, "scale": s is not None},
        data=table,
        labels=labels,
        confidence=confidence,
        profiles=(model.components_ - columns.mean) / columns.spread,
        tried=tried,
        blanks=int(columns.missing),
        scale=s,
        sample=sample,
        drawn=drawn,
        seed=seed,
    )


# --- choices ------------------------------------------------------------------------------------------------


def choose_method(method: str | None, X: Any, blanks: int, table: Table) -> str:
    if method == "mixture" and sp.issparse(X):
        raise InputError(f"{table.source} is sparse, which a mixture of Gaussians cannot use. Use ⟨method=kmeans⟩.")
    if not blanks:
        return method or "kmeans"
    share = f"{blanks / np.prod(tables.shape_of(X)):.2%} of the cells"
    if method == "kmeans":
        raise InputError(
            f"{table.source}: {share} are blank, which k-means cannot use. Use ⟨method=mixture⟩, which can."
        )
    if method is None:
        table.notes.append(f"{share} are blank: a mixture of Gaussians is fitted, which uses the others as they are")
    return "mixture"


def scaling(wish: bool | None, X: Any, method: str, table: Table) -> np.ndarray | None:
    """Return the divisors of the columns, None without scaling."""
    if wish and sp.issparse(X):
        raise InputError(f"⟨scale⟩: {table.source} is sparse, and its columns are used as they are. Leave it out.")
    if not isinstance(X, Path):
        return tables.spread(X) if tables.choose_scale(wish, X, table) else None
    if wish:
        other = "Use ⟨method=mixture⟩, which learns the spread of each column" if method == "kmeans" else "Leave it out"
        raise InputError(f"⟨scale⟩: {table.source} is larger than the memory budget and is used as it is. {other}.")
    table.notes.append("columns of a streamed file are not standardized")
    return None


def smooth(sample: Any, seed: int, table: Table) -> Any:
    """The sample to choose k from, columns of few values blurred."""
    steps = np.zeros(0) if sp.issparse(sample) else tables.grain(sample)
    if not steps.any():
        return sample
    few = quote_names([table.columns[j] for j in np.flatnonzero(steps)], most=3)
    table.notes.append(f"few values in {few}: not taken for clusters when k is chosen")
    from twofold.core.seeds import generator

    return tables.dither(sample, steps, generator(seed, 3))


def choose_k(sample: Any, seed: int, notes: list[str]) -> tuple[int, pl.DataFrame]:
    """The k of the mixture with the least BIC, with upright and with turned ellipsoids.

    With upright ones alone, columns that go together would pass for clusters. Wide tables are seen along their
    first principal axes, where k-means has most to gain.
    """
    n, d = sample.shape
    if sp.issparse(sample) and d <= AXES:
        sample = sample.toarray()
    if d > AXES and (sp.issparse(sample) or not np.isnan(sample).any()):
        sample = twofold.PCA(min(AXES, n), random_state=seed).fit_transform(sample)
    base = twofold.GaussianMixture(reg_covar=least_variance(sample), **EM_STOPPING)
    kinds = ["full", "diag"]

    def choose(sizes: list[int], seconds: float | None) -> Selection:
        found = twofold.select(
            base,
            sample,
            criterion="bic",
            random_state=seed,
            time=seconds,
            n_components=sizes,
            covariance_type=kinds,
        )
        kinds[:] = [found.best_params["covariance_type"]] if found.best_params["n_components"] > 1 else kinds
        return found

    with warnings_as_notes([]):
        first = range(1, min(FIRST, max(1, n // 2)) + 1)
        found, tried = find_size(choose, "n_components", first, min(MAX_CLUSTERS, n // MIN_ROWS_PER_CLUSTER), SECONDS)
    per_k = tried.drop_nulls("bic").group_by("n_components", maintain_order=True).agg(pl.col("bic").min())
    ranked = per_k.sort("bic")
    k = int(found.best_params["n_components"])
    others = ranked.filter(pl.col("n_components") != k)
    if len(others):
        second, gap = int(others["n_components"][0]), others["bic"][0] - float(per_k.filter(n_components=k)["bic"][0])
        more = f"higher by {gap:,.0f}" if gap > 0 else "as low"
        best = f"{k} cluster{'s' if k > 1 else ''} fit best by BIC; next {second} (BIC {more})"
        notes.append(f"{best}{doubts(k, per_k)}")
    return k, tried


def doubts(k: int, per_k: pl.DataFrame) -> str:
    if k == 1:
        return ". The rows do not fall into groups; ⟨n_clusters=2⟩ would split them all the same"
    most = max(per_k["n_components"].to_list())
    return ", the most tried: larger ones with ⟨n_clusters⟩" if k == most >= FIRST else ""


def new(method: str, k: int, sample: Any, seed: int, notes: list[str]) -> Any:
    """The model to fit; that of a mixture has the kind of covariance with the least BIC."""
    if method == "kmeans":
        return twofold.KMeans(k, random_state=seed)
    base = twofold.GaussianMixture(k, reg_covar=least_variance(sample), random_state=seed, **EM_STOPPING)
    with warnings_as_notes([]):
        found = twofold.select(base, sample, criterion="bic", covariance_type=["full", "diag"])
    kind = found.best_params["covariance_type"]
    notes.append(f"clusters are {'turned' if kind == 'full' else 'upright'} ellipsoids, by BIC ({kind} covariances)")
    return base.set_params(covariance_type=kind, tol=1e-5)


def least_variance(sample: Any) -> float:
    """Return what is added to the variances of clusters: a share of the geometric mean of the columns' variances."""
    variance = np.nanvar(sample, axis=0)
    return REG * float(np.exp(np.log(variance[variance > 0]).mean())) if variance.any() else REG


# --- how far to trust it ------------------------------------------------------------------------------------


def measure(model: Any, sample: Any, labels: np.ndarray, seed: int, notes: list[str]) -> dict[str, float]:
    """Silhouette, and how well fits to two halves of the rows agree on all of them."""
    from sklearn.metrics import silhouette_score
    from sklearn.metrics.pairwise import nan_euclidean_distances

    from twofold.core.seeds import generator

    k, n = len(model.components_), sample.shape[0]
    if k == 1:
        return {}
    out = {}
    pick = generator(seed, 2).permutation(n)[:PAIRS]
    if 2 <= len(np.unique(labels[pick])) < len(pick):
        rows = sample[pick]
        if not sp.issparse(rows) and np.isnan(rows).any():
            gaps = nan_euclidean_distances(rows)
            if not np.isnan(gaps).any():
                out["silhouette"] = float(silhouette_score(gaps, labels[pick], metric="precomputed"))
        else:
            out["silhouette"] = float(silhouette_score(rows, labels[pick]))
    size = "n_clusters" if isinstance(model, twofold.KMeans) else "n_components"
    if n < 4 * k:
        notes.append(f"too few rows ({n}) to see whether halves of them give the same {k} clusters")
        return out
    with warnings_as_notes([]):
        again = type(model)(**model.get_params())
        sizes: dict[str, Any] = {size: [k]}
        found = twofold.select(again, sample, criterion="stability", folds=3, random_state=seed, **sizes)
    stability = float(found.table["stability"][0])
    if stability < MIN_STABILITY:
        notes.append("other rows would give other clusters: they may divide one cloud rather than name groups")
    return out | {"stability": stability}
