"""Which rows belong together, and what sets each group apart.

Without options groups are components of a mixture of Gaussians that are merged where they overlap, or dense regions if
these are surer (`groups.py`); with a number they are those of k-means. A table with categories or dates becomes a
matrix in which all columns have equal weight (`common/encoding.py`). How far to trust the groups is measured by the
silhouette, and by whether two halves of the rows give the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Unpack

import numpy as np
import scipy.sparse as sp

from twofold.analyses.cluster import profile
from twofold.analyses.cluster.answer import Clustering
from twofold.analyses.cluster.coreset import check_coreset
from twofold.analyses.cluster.groups import Choice, choose_groups, measure_stability
from twofold.analyses.cluster.methods import (
    MAX_MERGED_COLUMNS,
    Fitted,
    Plane,
    Work,
    draw_rows,
    find_plane,
    fit_method,
)
from twofold.analyses.cluster.palette import Palette, find_palette, is_photo
from twofold.analyses.common import tables
from twofold.analyses.common.analysis import Data, Reading, Seed, analysis
from twofold.analyses.common.encoding import Encoding, encode_table, is_mixed
from twofold.analyses.common.tables import warnings_as_notes
from twofold.core.checks import InputError
from twofold.core.data.blocks import as_blocks
from twofold.core.declaration import Flag
from twofold.core.engine.local import engine_for
from twofold.core.progress import Progress, doing
from twofold.core.seeds import generator
from twofold.io.tables.table import Table, quote_names

SAMPLE = 3_000  # rows that are enough to choose groups, to measure and to draw
SAMPLE_WITH_BLANKS = 2_000  # the same where every row has its own pattern of blanks
MAX_PAIRED_ROWS = 2_000  # rows for a figure that compares all pairs
MIN_STABILITY = 0.7  # agreement between halves below which clusters say little


@analysis(streams=True)
def cluster(
    data: Data,
    n_clusters: Annotated[int | None, Flag("-k", "--clusters", min=1, unit="N")] = None,
    *,
    method: Literal["kmeans", "mixture", "merged", "density", "ward"] | None = None,
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
        Number of clusters. Default: as many as there are groups; 1 is a possible answer.
    method
        k-means; a mixture of Gaussians, as many as BIC wants; the same with Gaussians that overlap merged into groups;
        dense regions (HDBSCAN), where rows may be outliers; Ward's tree. Default: merged or density, whichever halves
        of the rows give again more surely; kmeans if the number is given, mixture if cells are blank, too.
    scale
        Divide columns by their standard deviations. Default: if named columns differ tenfold in spread, or some hold
        categories or dates.
    coreset
        Fit k-means to a few weighted rows that stand for all (for long tables); the answer has the cost on all rows.

    Returns
    -------
    Clustering
        ``table`` holds every column of the table, and every row's cluster, blank for outliers.
    Palette
        For an image: ``table`` holds its colors and the share of each, ``after`` the image redrawn with them.

    Examples
    --------
    >>> from twofold import datasets
    >>> cluster(datasets.iris().data, 3).table["cluster"].n_unique()
    3
    """
    if is_photo(data):
        if method not in (None, "kmeans") or scale is not None or coreset or any(reading.values()):
            raise InputError("an image is clustered by the colors of its pixels: leave out what is about tables.")
        return find_palette(data, n_clusters, seed)
    with doing("reading"):
        table = tables.as_table(data, **reading)
        matrix = prepare(table, scale)
    notes, n = table.notes, tables.shape_of(matrix.X)[0]
    if n_clusters is not None and n_clusters > n:
        raise InputError(f"{n_clusters} clusters: {table.source} has {n} rows, so at most {n}.")
    used = choose_method(method, n_clusters, matrix, coreset, table)
    check_coreset(coreset, used or "")
    drawn = draw_rows(n, SAMPLE_WITH_BLANKS if matrix.blanks else SAMPLE, seed)
    Y, sample = matrix.scale_rows(drawn)
    choice, plane = None, find_plane(sample, seed)
    if used in (None, "merged") or n_clusters is None:
        with doing("trying numbers of clusters"):
            choice, plane = look_for_groups(sample, matrix.names, seed, notes)
    used, k = settle(used, n_clusters, choice, matrix, notes)
    with doing("fitting"), warnings_as_notes(notes):
        fitted = fit_method(used, Work(Y, sample, plane, choice, k, seed, table), coreset)
        labels, confidence = label(fitted.model, Y)
    with doing("measuring"):
        known = choice.stability if choice is not None and (used, k) == (choice.method, choice.n_groups) else {}
        figures = measure(fitted, used, sample, labels[drawn], known, seed, notes)
        traits = describe(table, matrix, labels)
        others = profile.describe_others(table, matrix.fitted, labels, int(labels.max()) + 1)
    return Clustering(
        source=table.source,
        model=finish(fitted.model, matrix, table),
        figures=figures | fitted.figures,
        baseline={} if not figures else {"method": "labels by chance", **dict.fromkeys(figures, 0.0)},
        notes=notes,
        chosen={"n_clusters": k if used != "density" else None, "method": used, "scale": matrix.standardized},
        data=table,
        method=used,
        labels=labels,
        confidence=confidence,
        traits=traits,
        others=others,
        columns=len(matrix.fitted),
        tried=None if choice is None else choice.tried,
        overlaps=None if choice is None else choice.merging.overlaps,
        blanks=matrix.blanks,
        standardized=matrix.standardized,
        sample=sample,
        drawn=drawn,
        seed=seed,
        stabilities={} if choice is None else choice.stability,
    )


# --- the matrix ---------------------------------------------------------------------------------------------


class Matrix(NamedTuple):
    """A table as numbers."""

    X: Any  # (n,D) array, sparse array, or path
    names: list[str]  # (D,)
    fitted: list[str]  # the columns of the table behind them
    scale: np.ndarray | None  # (D,) what columns are divided by
    standardized: bool
    blanks: int
    encoding: Encoding | None

    def scale_rows(self, drawn: np.ndarray) -> tuple[Any, Any]:
        """All rows, and those drawn, in the units of the fit."""
        sample = tables.rows_of(self.X, drawn)
        sample = sample if sp.issparse(sample) else sample.astype(np.float64)
        if self.scale is None:
            return self.X, sample
        whole = as_blocks(self.X).divide_columns(self.scale) if isinstance(self.X, Path) else self.X / self.scale
        return whole, sample / self.scale


def prepare(table: Table, scale: bool | None) -> Matrix:
    """The columns that can be used as numbers; a table of which nothing can be said is refused."""
    if is_mixed(table):
        encoded = encode_table(table, scale is not False)
        encoding, n = encoded.encoding, len(encoded.matrix)
        if n < 2:
            raise InputError(f"{table.source} has one row; at least two are needed to see how rows differ.")
        if not encoding.features:
            raise InputError(f"{table.source}: every column is constant, so there is nothing to cluster.")
        if scale is not False:
            table.notes.append(
                "numbers are standardized and levels divided by √share, so all columns have equal weight"
            )
        fitted = [column.name for column in encoding.columns]
        blanks = int(np.isnan(encoded.cells).sum())
        return Matrix(encoded.matrix, encoding.names, fitted, None, scale is not False, blanks, encoding)
    X = tables.in_memory(table)
    tables.check(X, tables.shape_of(X)[0], table, "cluster")
    if scale and sp.issparse(X):
        raise InputError(f"⟨scale⟩: {table.source} is sparse, and its columns are used as they are. Leave it out.")
    from twofold.core.numerics.moments import column_moments

    blocks = as_blocks(X)
    blanks = int(column_moments(engine_for(blocks), blocks).missing)
    s = tables.spread(X) if tables.choose_scale(scale, X, table) else None
    return Matrix(X, table.columns, table.columns, s, s is not None, blanks, None)


def finish(model: Any, matrix: Matrix, table: Table) -> Any:
    """The model as it is saved: in the units of the table, with the names of its columns."""
    model = model if matrix.scale is None else model.rescaled(matrix.scale)
    if table.named:
        model.feature_names_in_ = np.array(matrix.names, dtype=object)
        if matrix.encoding is not None:
            model.encoding_ = matrix.encoding.as_lists()
    return model


# --- choices ------------------------------------------------------------------------------------------------


def choose_method(method: str | None, k: int | None, matrix: Matrix, coreset: bool, table: Table) -> str | None:
    """The method that is named, or follows from the options; None if it is found with the groups."""
    if method not in (None, "kmeans") and sp.issparse(matrix.X):
        raise InputError(f"{table.source} is sparse, which ⟨method={method}⟩ cannot use. Use ⟨method=kmeans⟩.")
    if method == "density" and k is not None:
        raise InputError("⟨method=density⟩ finds as many clusters as there are dense regions: leave ⟨n_clusters⟩ out.")
    if method == "merged" and len(matrix.names) > MAX_MERGED_COLUMNS:
        raise InputError(
            f"⟨method=merged⟩ is for at most {MAX_MERGED_COLUMNS} columns, and {table.source} has "
            f"{len(matrix.names)}. Use ⟨method=kmeans⟩."
        )
    if matrix.blanks:
        share = f"{matrix.blanks / np.prod(tables.shape_of(matrix.X)):.2%} of the cells"
        if method not in (None, "mixture", "merged"):
            raise InputError(
                f"{table.source}: {share} are blank, which ⟨method={method}⟩ cannot use. Use ⟨method=mixture⟩ or "
                "⟨method=merged⟩, which can."
            )
        if method is None:
            table.notes.append(
                f"{share} are blank: a mixture of Gaussians is fitted, which uses the others as they are"
            )
            return "mixture" if k is not None or coreset else None
    if method is None and (k is not None or coreset or sp.issparse(matrix.X)):
        return "kmeans"
    return method


def look_for_groups(sample: Any, names: list[str], seed: int, notes: list[str]) -> tuple[Choice, Plane]:
    """The groups of the sample, columns of few values blurred."""
    steps = np.zeros(0) if sp.issparse(sample) else tables.grain(sample)
    if steps.any():
        few = quote_names([names[j] for j in np.flatnonzero(steps)], most=3)
        notes.append(f"few values in {few}: not taken for clusters when these are looked for")
        sample = tables.dither(sample, steps, generator(seed, 3))
    plane = find_plane(sample, seed)
    return choose_groups(plane.rows, seed), plane


def settle(used: str | None, k: int | None, choice: Choice | None, matrix: Matrix, notes: list[str]) -> tuple[str, int]:
    """The method and the number of clusters, and why."""
    if choice is None:
        assert used is not None and k is not None
        return used, k
    size = len(choice.mixture.weights_)
    if used == "mixture":
        number = size if k is None else k
        if k is None:
            notes.append(f"{size} Gaussians fit best by BIC, which is no number of groups: there are {choice.n_groups}")
        return used, number
    wide = len(matrix.names) > MAX_MERGED_COLUMNS
    if used is None:
        used = "kmeans" if wide else choice.method
        if choice.method == "density" and not wide:
            sure = ", ".join(f"{name} {value:.2f}" for name, value in choice.stability.items())
            notes.append(f"dense regions hold nearly all rows, and come back from halves of the rows ({sure})")
    if k is None:
        notes.append(explain_number(choice, size))
    return used, choice.n_groups if k is None else k


def explain_number(choice: Choice, size: int) -> str:
    if choice.n_groups == 1:
        return "the rows do not fall into groups; ⟨n_clusters=2⟩ would split them all the same"
    if choice.method == "density":
        return f"{choice.n_groups} dense regions"
    between = choice.merging.overlaps[len(choice.merging.groups) - choice.n_groups :]
    told = f"of two groups at most {between[0]:.1%} of the rows could be the other's"
    if size == choice.n_groups:
        return f"{size} groups: {size} Gaussians fit best by BIC, and none overlap so much that they are one; {told}"
    return f"{choice.n_groups} groups: {size} Gaussians fit best by BIC, merged where they overlap; {told}"


# --- what is told -------------------------------------------------------------------------------------------


def label(model: Any, Y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Find the cluster of each row and its probability, or its distance to the center or to the nearest labeled row."""
    if hasattr(model, "predict_proba"):
        share = np.asarray(model.predict_proba(Y))
        labels = share.argmax(axis=1)
        return labels, share[np.arange(len(labels)), labels]
    return np.asarray(model.predict(Y)), np.asarray(model.transform(Y)).min(axis=1)


def describe(table: Table, matrix: Matrix, labels: np.ndarray) -> list[profile.Trait]:
    """Find what sets the groups apart in the columns that were fitted."""
    k = int(labels.max()) + 1
    if table.frame is not None:
        return profile.describe_fitted(table, matrix.fitted, labels, k)
    return profile.describe_blocks(as_blocks(matrix.X), matrix.names, labels, k)


def measure(
    fitted: Fitted, method: str, sample: Any, labels: np.ndarray, known: dict[str, float], seed: int, notes: list[str]
) -> dict[str, float]:
    """Silhouette, and how well fits to two halves of the rows agree on all of them."""
    k = int(labels.max(initial=0)) + 1
    if k == 1:
        return {}
    out = measure_silhouette(sample[np.flatnonzero(labels >= 0)], labels[labels >= 0], seed)
    n = len(labels)
    if n < 4 * k:
        notes.append(f"too few rows ({n}) to see whether halves of them give the same {k} clusters")
        return out
    with warnings_as_notes([]):
        stability = known[method] if method in known else measure_stability(fitted.again, fitted.rows, seed)
    if stability < MIN_STABILITY:
        notes.append("other rows would give other clusters: they may divide one cloud rather than name groups")
    return out | {"stability": stability}


def measure_silhouette(rows: Any, labels: np.ndarray, seed: int) -> dict[str, float]:
    from sklearn.metrics import silhouette_score
    from sklearn.metrics.pairwise import nan_euclidean_distances

    pick = generator(seed, 2).permutation(len(labels))[:MAX_PAIRED_ROWS]
    rows, labels = rows[pick], labels[pick]
    if not 2 <= len(np.unique(labels)) < len(labels):
        return {}
    if sp.issparse(rows) or not np.isnan(rows).any():
        return {"silhouette": float(silhouette_score(rows, labels))}
    gaps = nan_euclidean_distances(rows)
    if np.isnan(gaps).any():
        return {}
    return {"silhouette": float(silhouette_score(gaps, labels, metric="precomputed"))}
