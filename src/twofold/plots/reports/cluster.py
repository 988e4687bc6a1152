"""A clustering in one figure: the rows, the number of clusters, the mean of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from twofold.linear import PCA, PPCA
from twofold.plots.labels import label_points, write_badge
from twofold.plots.models.clusters import draw_criteria
from twofold.plots.reports._heat_map import draw_heat_map
from twofold.plots.style import COLORS, GREY, INK, PALE, add_title, draw_origin, new_figure, show_percent, style

MAX_CLUSTERS = 16  # clusters in the table of profiles
MAX_NAMES = 24  # rows that are named
NAMES = {"full": "turned ellipsoids", "diag": "upright ellipsoids"}


def plane(sample: Any, centers: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and centers on the first two principal axes (or the only column), and the shares these hold."""
    d = sample.shape[1]
    if d == 1:
        return np.asarray(sample), centers, np.ones(1)
    blank = isinstance(sample, np.ndarray) and bool(np.isnan(sample).any())
    if blank and d > 2:
        model: Any = PPCA(2, tol=1e-4, random_state=seed).fit(sample)
        total = model.explained_variance_.sum() + (d - 2) * float(model.noise_variance_)
        return model.transform(sample), model.transform(centers), model.explained_variance_ / total
    if blank:
        sample = np.where(np.isnan(sample), np.nanmean(sample, axis=0), sample)
    model = PCA(2, random_state=seed).fit(sample)
    return model.transform(sample), model.transform(centers), model.explained_variance_ratio_


def color_of(c: int) -> str:
    return COLORS[c % len(COLORS)]


def clustering_figure(
    at: np.ndarray,
    labels: np.ndarray,
    centers: np.ndarray,
    profiles: np.ndarray,
    columns: Sequence[str],
    sizes: np.ndarray,
    *,
    shares: np.ndarray,
    choice: Sequence[Mapping[str, Any]] | None = None,
    overlaps: np.ndarray | None = None,
    names: Sequence[str] | None = None,
    title: str = "",
) -> Figure:
    """Draw a clustering of rows at (m,2) or (m,1) on the principal axes, which have these shares of the variance.

    `profiles` (k,d) are distances of each cluster's mean from that of all rows, in standard deviations. `choice` has
    ``n_components``, ``covariance_type`` and ``bic`` of every trial, `overlaps` those of the components in the order in
    which they merge; without both the sizes are drawn. Rows labeled -1 are outliers; `names` are those of the rows.
    """
    with style():
        table = 1.2 + 0.36 * min(len(profiles), MAX_CLUSTERS)  # inches
        figure = new_figure(11, 4.6 + table)
        halves = figure.add_gridspec(2, 1, height_ratios=[4.6, table])
        top = halves[0].subgridspec(1, 2, width_ratios=[1.35, 1])
        rows = figure.add_subplot(top[0])
        scatter(rows, at, labels, centers, shares)
        if names is not None and at.shape[1] > 1:
            label_points(rows, at, names, order_to_name(at, labels, centers), MAX_NAMES)
        right = figure.add_subplot(top[1])
        if overlaps is not None and len(overlaps):
            draw_overlaps(right, overlaps, len(profiles))
        else:
            bars(right, sizes) if choice is None else criterion(right, choice, len(profiles))
        heat(figure, figure.add_subplot(halves[1]), profiles, columns, sizes)
        add_title(figure, title, 14)
    return figure


def scatter(ax: Axes, at: np.ndarray, labels: np.ndarray, centers: np.ndarray, shares: np.ndarray) -> None:
    """Draw rows in the color of their cluster, its number at its center."""
    kinds = range(len(centers))
    if at.shape[1] == 1:
        ax.hist([at[labels == c, 0] for c in kinds], bins=40, stacked=True, color=[color_of(c) for c in kinds])
        for c in kinds:
            ax.axvline(centers[c, 0], color=color_of(c), lw=1.6, ls=(0, (3, 2)))
        ax.set(title="Rows", ylabel="rows")
        return
    size = float(np.clip(9000 / len(at), 4, 38))
    alpha = float(np.clip(300 / len(at) ** 0.75, 0.22, 0.8))
    draw_origin(ax, PALE, 1.2)
    for c in kinds:
        own = at[labels == c]
        ax.scatter(own[:, 0], own[:, 1], s=size, alpha=alpha, color=color_of(c), linewidths=0, rasterized=True)
    for c in kinds:
        write_badge(ax, centers[c], str(c), color_of(c))
    out = at[labels < 0]
    if len(out):
        ax.scatter(out[:, 0], out[:, 1], s=size, color=GREY, marker="x", lw=0.9, label=f"outliers ({len(out)} shown)")
        ax.legend(loc="best")
    ax.set_title("Rows on the first two principal axes")
    ax.set(xlabel=f"PC1 ({shares[0]:.0%})", ylabel=f"PC2 ({shares[1]:.0%})")


def criterion(ax: Axes, choice: Sequence[Mapping[str, Any]], chosen: int) -> None:
    """Draw BIC above the best, over the number of clusters, one curve for each kind of covariance."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for row in choice:
        if row["bic"] is not None:
            kind = row["covariance_type"]
            curves.setdefault(NAMES.get(kind, kind), []).append((row["n_components"], row["bic"]))
    draw_criteria(ax, curves, chosen, "clusters")


def order_to_name(at: np.ndarray, labels: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Rows in the order in which they are named: outliers, then of each cluster in turn those farthest from it."""
    distance = np.linalg.norm(at - centers[np.maximum(labels, 0)], axis=1)
    rank = np.zeros(len(at))
    for c in range(-1, len(centers)):
        own = np.flatnonzero(labels == c)
        rank[own[np.argsort(-distance[own], kind="stable")]] = np.arange(len(own)) if c >= 0 else -1
    return np.argsort(rank, kind="stable")


def draw_overlaps(ax: Axes, overlaps: np.ndarray, chosen: int) -> None:
    """Draw the overlap of the two parts that merge next, over the number of parts, and where merging ended."""
    parts = np.arange(len(overlaps) + 1, 1, -1)
    ax.semilogy(parts, np.clip(overlaps, 1e-4, 1), color=COLORS[0], lw=2, marker="o", ms=4.5)
    ax.axvline(chosen + 0.5, color=INK, lw=1.2, ls=(0, (3, 2)))
    ax.invert_xaxis()
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.2%}" if v < 0.01 else f"{v:.0%}"))
    ax.set(title=f"Overlap of the next two to merge: {chosen} left", xlabel="parts")


def bars(ax: Axes, sizes: np.ndarray) -> None:
    """Draw the share of each cluster, when their number was given."""
    k = len(sizes)
    ax.barh(range(k), sizes / sizes.sum(), color=[color_of(c) for c in range(k)], height=0.72)
    ax.set(title="Share of the rows", ylim=(k - 0.4, -0.6))
    ax.set_yticks(range(k) if k <= MAX_CLUSTERS else [], [str(c) for c in range(k)] if k <= MAX_CLUSTERS else [])
    show_percent(ax.xaxis)
    ax.grid(axis="y", visible=False)


def heat(figure: Figure, ax: Axes, profiles: np.ndarray, columns: Sequence[str], sizes: np.ndarray) -> None:
    """Draw profiles as a colored table: clusters down, the columns that differ most across."""
    k, shown = len(profiles), min(len(profiles), MAX_CLUSTERS)
    names = [f"{c} · {sizes[c] / sizes.sum():.0%}" for c in range(shown)]
    limit = max(float(np.abs(profiles[:shown]).max()), 0.5)
    some_d = draw_heat_map(figure, ax, profiles[:shown], columns, names, limit, digits=1)
    for c, label in enumerate(ax.get_yticklabels()):
        label.set(color=color_of(c), fontweight="bold")
    some_k = f", {shown} of {k} clusters" if shown < k else ""
    ax.set_title(f"Means of the clusters, in standard deviations from that of all rows{some_d}{some_k}")
