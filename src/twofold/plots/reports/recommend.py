"""A recommender in one figure: what lies close to what, what is recommended, and how good that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import sparse
from scipy.sparse.linalg import svds

from twofold.plots.labels import label_points, shorten_name, write_beside
from twofold.plots.style import (
    COLORS,
    GREY,
    INK,
    SEQUENTIAL,
    add_colorbar,
    add_title,
    draw_origin,
    new_figure,
    show_percent,
    style,
)

MAX_ITEMS = 3_000  # drawn, the most rated first
MAX_LABELS = 22


def recommending_figure(
    model: Any,
    names: Sequence[str],
    tried: Mapping[str, Mapping[str, Mapping[str, float]]],
    n: int,
    often: Sequence[tuple[str, int]],
    title: str = "",
) -> Figure:
    """Draw a fitted recommender.

    `tried` has for "lists" the NDCG@n and for "ratings" the RMSE on ratings held out: ``{model: {"score", "error"}}``,
    the model in use first. `often` are (name, lists) of the items recommended most often.
    """
    counts = np.bincount(model.ratings_.indices, minlength=len(names))
    sums = np.bincount(model.ratings_.indices, weights=model.ratings_.data, minlength=len(names))
    with style():
        figure = new_figure(11, 6.2)
        heights = [max(len(rows), 2) + 1.2 for rows in tried.values()] or [3]
        grid = figure.add_gridspec(len(heights) + 1, 2, width_ratios=[1.9, 1], height_ratios=[*heights, 8])
        left = figure.add_subplot(grid[:, 0])
        at = plane(model)
        if at is None:
            draw_ratings(left, model)
        else:
            draw_items(left, at, names, counts, None if model.implicit_ else sums / np.maximum(counts, 1))
        for i, (task, rows) in enumerate(tried.items()):
            measure = f"Lists: NDCG@{n} held out" if task == "lists" else "Ratings: RMSE held out, low is good"
            draw_quality(figure.add_subplot(grid[i, 1]), rows, measure)
        if not tried:
            empty = figure.add_subplot(grid[0, 1])
            empty.axis("off")
            empty.set_title("Nothing was held out")
        below = figure.add_subplot(grid[-1, 1])
        draw_most_recommended(below, often) if often else draw_ratings(below, model)
        add_title(figure, title, 14)
    return figure


def plane(model: Any) -> np.ndarray | None:
    """(items,2) the items along the two directions in which their factors differ most; None if there are too few.

    A model without factors of its own takes those of the known cells.
    """
    factors = getattr(model.model_, "components_", None)
    if min(model.ratings_.shape) < 8:
        return None
    Z = factors.T if factors is not None and len(factors) > 1 else share_factors(model.ratings_)
    weight = np.sqrt(np.bincount(model.ratings_.indices, minlength=len(Z)))  # rarely rated ones are mostly noise
    Z = Z - (weight @ Z) / max(weight.sum(), 1.0)
    _, _, axes = np.linalg.svd(Z * weight[:, None], full_matrices=False)
    return Z @ axes[:2].T


def share_factors(X: sparse.csr_array, k: int = 4) -> np.ndarray:
    """(items,k) singular vectors of the known cells, users and items divided by the root of their counts."""
    rows, cols = (
        np.sqrt(np.maximum(counts, 1)) for counts in (np.diff(X.indptr), np.bincount(X.indices, minlength=X.shape[1]))
    )
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    S = sparse.csr_array((1 / (rows[row] * cols[X.indices]), X.indices, X.indptr), shape=X.shape)
    _, size, right = svds(S, k=k + 1, v0=cols if X.shape[1] <= X.shape[0] else rows)  # from a fixed start
    order = np.argsort(-size)[1:]  # the first is the count of each item
    return right[order].T


def draw_items(ax: Axes, at: np.ndarray, names: Sequence[str], counts: np.ndarray, mean: np.ndarray | None) -> None:
    """Draw the items in the plane: large if often rated, dark if liked."""
    order = np.argsort(-counts, kind="stable")[:MAX_ITEMS]
    sizes = 6 + 120 * counts[order] / counts.max()
    color: Any = {"c": mean[order], "cmap": SEQUENTIAL} if mean is not None else {"color": COLORS[0]}
    drawn = ax.scatter(at[order, 0], at[order, 1], s=sizes, alpha=0.8, linewidths=0, rasterized=True, **color)
    if mean is not None:
        add_colorbar(ax.figure, drawn, ax, fraction=0.03, pad=0.01, label="mean rating")
    low, high = np.quantile(at[order], [0.002, 0.998], axis=0)
    pad = np.maximum(0.06 * (high - low), 1e-9)
    ax.set(xlim=(low[0] - pad[0], high[0] + pad[0]), ylim=(low[1] - pad[1], high[1] + pad[1]))
    inside = [j for j in order if (low - pad <= at[j]).all() and (at[j] <= high + pad).all()]
    label_points(ax, at, names, np.array(inside), MAX_LABELS, letter=0.0115)
    draw_origin(ax)
    ax.set(xticks=[], yticks=[], title="Items by two factors: what the same people like is close")


def draw_quality(ax: Axes, rows: Mapping[str, Mapping[str, float]], title: str) -> None:
    """Draw a bar for each model, the one in use in color, with its name and score."""
    top = max(row["score"] for row in rows.values()) or 1.0
    for i, (name, row) in enumerate(rows.items()):
        ax.barh(-i, row["score"], height=0.72, color=COLORS[0] if i == 0 else GREY, alpha=0.55 if i == 0 else 0.35)
        if row["error"]:
            ax.errorbar(row["score"], -i, xerr=1.96 * row["error"], color=INK, lw=0.8)
        write_beside(ax, name, (0, -i), va="center", fontsize=8.5)
        ax.annotate(f"{row['score']:.3f}", (1.16 * top, -i), ha="right", va="center", fontsize=8.5)
    ax.set(title=title, xlim=(0, 1.17 * top), yticks=[], xticks=[])
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.grid(visible=False)


def draw_most_recommended(ax: Axes, often: Sequence[tuple[str, int]]) -> None:
    """Draw the number of lists that hold each of the most recommended items."""
    shown = list(often)[:8][::-1]
    ax.barh(range(len(shown)), [count for _, count in shown], color=COLORS[2], alpha=0.45)
    for i, (name, _) in enumerate(shown):
        write_beside(ax, shorten_name(name, 34), (0, i), va="center", fontsize=8.5)
    ax.set(title="Recommended most", xlabel="users whose list it is in", yticks=[])
    ax.grid(axis="y", visible=False)


def draw_ratings(ax: Axes, model: Any) -> None:
    """Draw the share of each rating, or count."""
    values, counts = np.unique(np.asarray(model.ratings_.data), return_counts=True)
    if len(values) > 30:
        counts, edges = np.histogram(model.ratings_.data, bins=30)
        values = (edges[1:] + edges[:-1]) / 2
    width = 0.8 * float(np.diff(values).min()) if len(values) > 1 else 0.8
    ax.bar(values, counts / counts.sum(), width=width, color=COLORS[0])
    show_percent(ax.yaxis)
    ax.set(title="Ratings given", xlabel="rating")
    ax.grid(axis="x", visible=False)
