"""What `twofold cluster` does between reading and writing: choose, fit, describe, and measure how far to trust it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from sklearn.metrics import silhouette_score
from sklearn.metrics.pairwise import nan_euclidean_distances

from twofold import PCA, GaussianMixture, KMeans, select
from twofold.analyses._tables import (
    check,
    choose_scale,
    dithered,
    grain,
    in_memory,
    shape_of,
    spread,
    warnings_as_notes,
)
from twofold.cli._console import progress, waiting
from twofold.core.checks import InputError
from twofold.core.data.blocks import as_blocks
from twofold.core.engine.local import engine_for
from twofold.core.numerics.moments import Columns, column_moments
from twofold.core.seeds import generator
from twofold.io.tables.table import Table, quoted

SAMPLE = 10_000  # rows that are enough to choose k, to measure and to draw
WITH_BLANKS = 2_000  # the same where every row has its own pattern of blanks
PAIRS = 2_000  # rows for a figure that compares all pairs
MOST = 10  # clusters tried
AXES = 10  # dimensions in which k is chosen
SHAKY = 0.7  # agreement between halves below which clusters say little
REG = 1e-3  # columns of unknown kind, often whole numbers: no cluster thinner than 3 % of a column's spread


@dataclass
class Clustering:
    """A fitted clustering and what is worth telling about it."""

    table: Table
    model: Any  # takes rows as they are in the table, scaled or not
    labels: np.ndarray  # (n,), as model.predict gives them; 0 is the largest cluster
    sure: np.ndarray  # (n,) distance to the own centre, or probability of the own cluster
    profiles: np.ndarray  # (k,d) centre less the mean of all rows, in standard deviations
    choice: pl.DataFrame | None  # what every k tried was worth
    quality: dict[str, float]
    blanks: int
    scale: np.ndarray | None  # what columns were divided by
    sample: Any  # (m,d) some rows, scaled
    drawn: np.ndarray  # (m,) which
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def k(self) -> int:
        return len(self.profiles)

    @property
    def soft(self) -> bool:
        return isinstance(self.model, GaussianMixture) and self.model.covariance_type != "fixed"

    @property
    def sizes(self) -> np.ndarray:
        return np.bincount(self.labels, minlength=self.k)

    def strongest(self, c: int, most: int = 4) -> list[tuple[str, float]]:
        """The columns in which cluster c differs most from all rows: at least half as much as in the first."""
        z = self.profiles[c]
        order = np.argsort(-np.abs(z), kind="stable")[:most]
        return [(self.table.columns[j], float(z[j])) for j in order if abs(z[j]) >= max(0.1, abs(z[order[0]]) / 2)]


def analyse(
    table: Table, k: int | None, method: str | None, scale: bool | None, seed: int, quiet: bool = True
) -> Clustering:
    """Cluster the rows of a table: k-means, or a mixture of Gaussians if asked for or if cells are blank."""
    start = time.perf_counter()
    table = replace(table, notes=list(table.notes))
    notes = table.notes
    X = in_memory(table)
    n, _ = shape_of(X)
    check(X, n, table, "cluster")
    if k is not None and k > n:
        raise InputError(f"-k {k}: {table.source} has {n} rows, so at most {n} clusters.")
    blocks = as_blocks(X)
    columns = column_moments(engine_for(blocks), blocks)
    method = choose_method(method, X, int(columns.missing), table)
    s = scaling(scale, X, method, table)
    Y = X if s is None else X / s
    drawn = np.sort(generator(seed, 1).permutation(n)[: WITH_BLANKS if columns.missing else SAMPLE])
    sample = rows_of(Y, drawn)
    choice = None
    if k is None:
        with waiting("trying 1 to 10 clusters", quiet):
            k, choice = choose_k(smooth(sample, seed, table), seed, notes)
    with warnings_as_notes(notes):
        model = new(method, k, sample, seed, notes)
        model.set_callbacks(*progress(quiet)).fit(Y)
        order_by_size(model, model.predict(Y))
        labels = np.asarray(model.predict(Y))
    with waiting("measuring", quiet):
        quality = measure(model, sample, labels[drawn], seed, notes)
    sure = model.predict_proba(Y).max(axis=1) if method == "mixture" else model.transform(Y).min(axis=1)
    model = model if s is None else unscaled(model, s, X)
    if table.named:
        model.feature_names_in_ = np.array(table.columns, dtype=object)
    found = Clustering(
        table,
        model,
        labels,
        sure,
        profiles(model, columns),
        choice,
        quality,
        int(columns.missing),
        s,
        sample,
        drawn,
        notes,
    )
    found.seconds = time.perf_counter() - start
    return found


# --- choices ------------------------------------------------------------------------------------------------


def choose_method(method: str | None, X: Any, blanks: int, table: Table) -> str:
    if method == "mixture" and sp.issparse(X):
        raise InputError(f"{table.source} is sparse, which a mixture of Gaussians cannot use. Use --method kmeans.")
    if not blanks:
        return method or "kmeans"
    share = f"{blanks / np.prod(shape_of(X)):.2%} of the cells"
    if method == "kmeans":
        raise InputError(
            f"{table.source}: {share} are blank, which k-means cannot use. Use --method mixture, which can."
        )
    if method is None:
        table.notes.append(f"{share} are blank: a mixture of Gaussians is fitted, which uses the others as they are")
    return "mixture"


def scaling(wish: bool | None, X: Any, method: str, table: Table) -> np.ndarray | None:
    """What to divide the columns by, if anything."""
    if wish and sp.issparse(X):
        raise InputError(f"--scale: {table.source} is sparse, and its columns are used as they are. Leave it out.")
    if not isinstance(X, Path):
        return spread(X) if choose_scale(wish, X, table) else None
    if wish:
        other = "Use --method mixture, which learns the spread of each column" if method == "kmeans" else "Leave it out"
        raise InputError(f"--scale: {table.source} is larger than the memory budget and is used as it is. {other}.")
    table.notes.append("columns of a streamed file are not standardised")
    return None


def rows_of(X: Any, rows: np.ndarray) -> Any:
    """Some rows, in memory."""
    if not isinstance(X, Path):
        return X[rows]
    blocks = as_blocks(X)
    spans = zip(blocks.bounds[:-1], blocks.bounds[1:], strict=True)
    return np.concatenate([blocks[i][rows[(rows >= a) & (rows < b)] - a] for i, (a, b) in enumerate(spans)])


def smooth(sample: Any, seed: int, table: Table) -> Any:
    """The sample to choose k from, columns of few values blurred."""
    steps = np.zeros(0) if sp.issparse(sample) else grain(sample)
    if not steps.any():
        return sample
    few = quoted([table.columns[j] for j in np.flatnonzero(steps)], most=3)
    table.notes.append(f"few values in {few}: not taken for clusters when k is chosen")
    return dithered(sample, steps, generator(seed, 3))


def choose_k(sample: Any, seed: int, notes: list[str]) -> tuple[int, pl.DataFrame]:
    """The k of the mixture with the least BIC, with upright and with turned ellipsoids.

    With upright ones alone, columns that go together would pass for clusters. Wide tables are seen along their
    first principal axes, where k-means has most to gain.
    """
    n, d = sample.shape
    if sp.issparse(sample) and d <= AXES:
        sample = sample.toarray()
    if d > AXES and (sp.issparse(sample) or not np.isnan(sample).any()):
        sample = PCA(min(AXES, n), random_state=seed).fit_transform(sample)
    base = GaussianMixture(reg=REG, tol=1e-4)  # a choice needs no more digits
    with warnings_as_notes([]):
        found = select(
            base,
            sample,
            criterion="bic",
            random_state=seed,
            n_components=range(1, min(MOST, max(1, n // 2)) + 1),
            covariance_type=["full", "diag"],
        )
    per_k = found.table.drop_nulls("bic").group_by("n_components", maintain_order=True).agg(pl.col("bic").min())
    ranked = per_k.sort("bic")
    k = int(ranked["n_components"][0])
    if len(ranked) > 1:
        second, gap = int(ranked["n_components"][1]), ranked["bic"][1] - ranked["bic"][0]
        best = f"{k} cluster{'s' if k > 1 else ''} fit best by BIC; next {second} (BIC higher by {gap:,.0f})"
        notes.append(f"{best}{doubts(k, per_k)}")
    return k, found.table


def doubts(k: int, per_k: pl.DataFrame) -> str:
    if k == 1:
        return ". The rows do not fall into groups; -k 2 would split them all the same"
    return ", the most tried: larger ones with -k" if k == MOST == len(per_k) else ""


def new(method: str, k: int, sample: Any, seed: int, notes: list[str]) -> Any:
    """The model to fit; that of a mixture has the kind of covariance with the least BIC."""
    if method == "kmeans":
        return KMeans(k, random_state=seed)
    base = GaussianMixture(k, reg=REG, random_state=seed)
    with warnings_as_notes([]):
        found = select(base.set_params(tol=1e-4), sample, criterion="bic", covariance_type=["full", "diag"])
    kind = found.best_params["covariance_type"]
    notes.append(f"clusters are {'turned' if kind == 'full' else 'upright'} ellipsoids, by BIC ({kind} covariances)")
    return base.set_params(covariance_type=kind, tol=1e-6)


# --- the fitted model ---------------------------------------------------------------------------------------


def order_by_size(model: Any, labels: np.ndarray) -> None:
    """Number the clusters from the largest to the smallest."""
    k = len(model.components_)
    order = np.argsort(-np.bincount(labels, minlength=k), kind="stable")
    for name in ("cluster_centers_", "counts_", "weights_", "means_", "covariances_"):
        if hasattr(model, name):
            setattr(model, name, getattr(model, name)[order])
    model.components_ = model.cluster_centers_ if isinstance(model, KMeans) else model.means_
    if hasattr(model, "labels_"):
        model.labels_ = np.argsort(order)[model.labels_]


def unscaled(model: Any, s: np.ndarray, X: Any) -> Any:
    """The same clusters for rows in their own units.

    A Gaussian mixture is carried over term by term. The nearest centre in standardised units is the likeliest
    component of a mixture whose components share the covariance diag(s²): the same labels, exactly.
    """
    if isinstance(model, GaussianMixture):
        square = np.outer(s, s) if model.covariance_type == "full" else s**2
        model.means_ = model.components_ = model.means_ * s
        model.covariances_ = model.covariances_ * square
        model.history_["objective"] = [value + float(np.log(s).sum()) for value in model.history_["objective"]]
        return model
    k, d = model.cluster_centers_.shape
    within = max(model.inertia_ / (len(model.labels_) * d), 1e-12)  # the variance about the centres
    out = GaussianMixture(k, covariance_type="fixed", covariance=within * s**2, random_state=model.random_state)
    out.weights_ = np.full(k, 1 / k)
    out.means_ = out.components_ = model.cluster_centers_ * s
    out.covariances_ = np.diag(within * s**2)
    out.counts_, out.converged_, out.n_iter_, out.n_features_in_ = model.counts_, model.converged_, 1, d
    out.history_ = {"objective": [], "seconds": [float(sum(model.history_["seconds"]))]}
    out.history_["objective"].append(-out.score(X))
    return out


def profiles(model: Any, columns: Columns) -> np.ndarray:
    return (model.components_ - columns.mean) / columns.spread


# --- how far to trust it ------------------------------------------------------------------------------------


def measure(model: Any, sample: Any, labels: np.ndarray, seed: int, notes: list[str]) -> dict[str, float]:
    """Silhouette, and how well fits to two halves of the rows agree on all of them."""
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
    size = "n_clusters" if isinstance(model, KMeans) else "n_components"
    if n < 4 * k:
        notes.append(f"too few rows ({n}) to see whether halves of them give the same {k} clusters")
        return out
    with warnings_as_notes([]):
        again = type(model)(**model.get_params())  # without the progress bar
        found = select(again, sample, criterion="stability", folds=3, random_state=seed, **{size: [k]})
    stability = float(found.table["stability"][0])
    if stability < SHAKY:
        notes.append("other rows would give other clusters: they may divide one cloud rather than name groups")
    return out | {"stability": stability}
