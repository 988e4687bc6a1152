"""A clustering in one figure: where the rows lie, how many clusters there are, what sets each apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from twofold.linear import PCA, PPCA
from twofold.plots.reports._heat_map import draw_heat_map
from twofold.plots.style import COLORS, INK, PALE, new_figure, style

MOST_SHOWN = 16  # clusters in the table of profiles
NAMES = {"full": "turned ellipsoids", "diag": "upright ellipsoids"}


def plane(sample: Any, centres: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and centres on the first two principal axes (or the only column), and the shares these hold."""
    d = sample.shape[1]
    if d == 1:
        return np.asarray(sample), centres, np.ones(1)
    blank = isinstance(sample, np.ndarray) and bool(np.isnan(sample).any())
    if blank and d > 2:
        model: Any = PPCA(2, tol=1e-4, random_state=seed).fit(sample)
        total = model.explained_variance_.sum() + (d - 2) * float(model.noise_variance_)
        return model.transform(sample), model.transform(centres), model.explained_variance_ / total
    if blank:
        sample = np.where(np.isnan(sample), np.nanmean(sample, axis=0), sample)
    model = PCA(2, random_state=seed).fit(sample)
    return model.transform(sample), model.transform(centres), model.explained_variance_ratio_


def color_of(c: int) -> str:
    return COLORS[c % len(COLORS)]


def clustering_figure(
    at: np.ndarray,
    labels: np.ndarray,
    centres: np.ndarray,
    profiles: np.ndarray,
    columns: Sequence[str],
    sizes: np.ndarray,
    *,
    shares: np.ndarray,
    choice: Sequence[Mapping[str, Any]] | None = None,
    title: str = "",
) -> Figure:
    """Draw the clustering.

    Parameters
    ----------
    at : ndarray of shape (m, 2) or (m, 1)
        Rows on the principal axes.
    labels : ndarray of shape (m,)
    centres : ndarray of shape (k, 2) or (k, 1)
    profiles : ndarray of shape (k, d)
        How far each cluster's mean lies from that of all rows, in standard deviations.
    columns : sequence of str
    sizes : ndarray of shape (k,)
        Rows in each cluster.
    shares : ndarray of shape (2,) or (1,)
        Of the variance along the axes.
    choice : sequence of mappings, optional
        ``n_components``, ``covariance_type`` and ``bic`` of everything tried; without it sizes are drawn.
    title : str
    """
    with style():
        table = 1.2 + 0.36 * min(len(profiles), MOST_SHOWN)  # inches
        figure = new_figure(11, 4.6 + table)
        halves = figure.add_gridspec(2, 1, height_ratios=[4.6, table])
        top = halves[0].subgridspec(1, 2, width_ratios=[1.35, 1])
        scatter(figure.add_subplot(top[0]), at, labels, centres, shares)
        right = figure.add_subplot(top[1])
        bars(right, sizes) if choice is None else criterion(right, choice, len(profiles))
        heat(figure, figure.add_subplot(halves[1]), profiles, columns, sizes)
        if title:
            figure.suptitle(title, x=0.012, ha="left", fontsize=14, fontweight="bold", color=INK)
    return figure


def scatter(ax: Axes, at: np.ndarray, labels: np.ndarray, centres: np.ndarray, shares: np.ndarray) -> None:
    """Rows in the colour of their cluster, its number at its centre."""
    kinds = range(len(centres))
    if at.shape[1] == 1:
        ax.hist([at[labels == c, 0] for c in kinds], bins=40, stacked=True, color=[color_of(c) for c in kinds])
        for c in kinds:
            ax.axvline(centres[c, 0], color=color_of(c), lw=1.6, ls=(0, (3, 2)))
        ax.set(title="Rows", ylabel="rows")
        return
    size = float(np.clip(9000 / len(at), 4, 38))
    alpha = float(np.clip(300 / len(at) ** 0.75, 0.22, 0.8))
    ax.axhline(0, color=PALE, lw=1.2, zorder=0)
    ax.axvline(0, color=PALE, lw=1.2, zorder=0)
    for c in kinds:
        own = at[labels == c]
        ax.scatter(own[:, 0], own[:, 1], s=size, alpha=alpha, color=color_of(c), linewidths=0, rasterized=True)
    for c in kinds:
        badge(ax, centres[c], str(c), color_of(c))
    ax.set(
        title="Rows on the first two principal axes", xlabel=f"PC1 ({shares[0]:.0%})", ylabel=f"PC2 ({shares[1]:.0%})"
    )


def badge(ax: Axes, at: np.ndarray, text: str, color: str) -> None:
    """A number in a disc."""
    box = {"boxstyle": "circle,pad=0.28", "fc": color, "ec": "white", "lw": 1.6}
    look: Any = {"ha": "center", "va": "center", "color": "white", "fontweight": "bold", "fontsize": 10, "zorder": 6}
    ax.text(float(at[0]), float(at[1]), text, bbox=box, **look)


def criterion(ax: Axes, choice: Sequence[Mapping[str, Any]], chosen: int) -> None:
    """BIC above the best, over the number of clusters, one curve for each kind of covariance."""
    known = [row for row in choice if row["bic"] is not None]
    best = min(row["bic"] for row in known)
    for color, kind in zip(
        (COLORS[0], COLORS[1]), dict.fromkeys(row["covariance_type"] for row in known), strict=False
    ):
        k, bic = zip(
            *[(r["n_components"], r["bic"] - best) for r in known if r["covariance_type"] == kind], strict=True
        )
        ax.plot(k, bic, color=color, lw=2, marker="o", ms=4.5, label=NAMES.get(kind, kind))
    ax.plot([chosen], [0], "o", ms=11, mfc="none", mec=INK, mew=1.6, zorder=5)
    ax.set(title=f"BIC above the best, at k = {chosen}", xlabel="clusters")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}"))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(loc="best")


def bars(ax: Axes, sizes: np.ndarray) -> None:
    """The share of each cluster, when their number was given."""
    k = len(sizes)
    ax.barh(range(k), sizes / sizes.sum(), color=[color_of(c) for c in range(k)], height=0.72)
    ax.set(title="Share of the rows", ylim=(k - 0.4, -0.6))
    ax.set_yticks(range(k) if k <= MOST_SHOWN else [], [str(c) for c in range(k)] if k <= MOST_SHOWN else [])
    ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    ax.grid(axis="y", visible=False)


def heat(figure: Figure, ax: Axes, profiles: np.ndarray, columns: Sequence[str], sizes: np.ndarray) -> None:
    """Profiles as a coloured table: clusters down, the columns that differ most across."""
    k, shown = len(profiles), min(len(profiles), MOST_SHOWN)
    names = [f"{c} · {sizes[c] / sizes.sum():.0%}" for c in range(shown)]
    limit = max(float(np.abs(profiles[:shown]).max()), 0.5)
    some_d = draw_heat_map(figure, ax, profiles[:shown], columns, names, limit, digits=1)
    for c, label in enumerate(ax.get_yticklabels()):
        label.set(color=color_of(c), fontweight="bold")
    some_k = f", {shown} of {k} clusters" if shown < k else ""
    ax.set_title(f"Means of the clusters, in standard deviations from that of all rows{some_d}{some_k}")
