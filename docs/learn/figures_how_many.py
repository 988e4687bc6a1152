"""The figures of how-many.md: every public function returns one, drawn when the documentation is built."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from twofold import PCA, GaussianMixture, KMeans, LatentDirichletAllocation, LinearAutoencoder, select
from twofold.linear._n_components import hard_threshold
from twofold.plots.style import COLORS, GREY, INK, new_figure, style

RNG = np.random.default_rng


def _plane(seed: int, n: int, d: int, k: int, noise: np.ndarray | float) -> np.ndarray:
    """Rows on a plane of k dimensions, with noise."""
    rng = RNG(seed)
    axes = np.linalg.qr(rng.standard_normal((d, k)))[0].T
    return (rng.standard_normal((n, k)) * np.linspace(6, 3, k)) @ axes + noise * rng.standard_normal((n, d))


def _whole(ax) -> None:
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def how_many_hidden() -> Figure:
    """An error that refits the code on the cells it counts, and one that hides them."""
    X, sizes = _plane(0, 240, 12, 3, 1.0), range(1, 11)
    models = [LinearAutoencoder(k, random_state=0, max_iter=20_000, tol=1e-6).fit(X[:160]) for k in sizes]
    with style():
        figure = new_figure(9, 2.9)
        left, right = figure.subplots(1, 2)
        left.plot(sizes, [-m.score(X[160:]) / X.shape[1] for m in models], "o-", color=COLORS[1])
        left.set(title="New rows, the code found from all cells", xlabel="components", ylabel="squared error a cell")
        right.plot(sizes, [-m.heldout_score(X[160:]) for m in models], "o-", color=COLORS[0])
        right.set(title="New rows, the code found from other cells", xlabel="components")
        for ax in (left, right):
            ax.axvline(3, color=GREY, lw=1, ls="--")
            ax.set_ylim(0, 8)
            _whole(ax)
    return figure


def how_many_evidence() -> Figure:
    """Minka's evidence where its assumption holds, and where it does not."""
    sizes, unequal = list(range(1, 11)), np.linspace(0.3, 1.7, 12)
    with style():
        figure = new_figure(9, 2.9)
        for ax, noise, title in zip(
            figure.subplots(1, 2),
            (1.0, unequal),
            ("White noise", "Noise that differs from column to column"),
            strict=True,
        ):
            table = select(PCA, _plane(1, 400, 12, 3, noise), n_components=sizes, criterion="evidence").table
            value = table["evidence"].to_numpy()
            ax.plot(sizes, value - value.max(), "o-", color=COLORS[0])
            ax.axvline(3, color=GREY, lw=1, ls="--")
            ax.set(title=title, xlabel="components", ylim=(-120, 8))
            _whole(ax)
        figure.axes[0].set_ylabel("log-evidence, less the best")
    return figure


def how_many_threshold() -> Figure:
    """Singular values of a wide table, and the threshold of Gavish and Donoho."""
    X = _plane(2, 60, 300, 5, 0.25)
    s = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    kept = PCA("gavish-donoho").fit(X).n_components_
    with style():
        figure = new_figure(9, 2.7)
        ax = figure.subplots()
        ax.bar(np.arange(1, len(s) + 1), s, color=[COLORS[0] if i < kept else GREY for i in range(len(s))], width=0.8)
        ax.axhline(np.sqrt(hard_threshold(s**2, *X.shape)), color=INK, lw=1, ls="--")
        ax.set(title=f"{kept} singular values above the threshold; 5 were planted", xlabel="component", ylabel="size")
    return figure


def how_many_likelihood() -> Figure:
    """BIC of mixtures on groups of their own shape, and on one that is bent."""
    rng = RNG(3)
    centers = np.array([[0, 0], [6, 0], [3, 5]])
    round_ = centers[rng.integers(3, size=300)] + rng.standard_normal((300, 2))
    angle = rng.uniform(0, np.pi, 300)
    bent = 6 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.5 * rng.standard_normal((300, 2))
    with style():
        figure = new_figure(9, 2.9)
        for at, X in enumerate((round_, bent)):
            shown, ax = figure.add_subplot(1, 4, 2 * at + 1), figure.add_subplot(1, 4, 2 * at + 2)
            shown.scatter(*X.T, s=7, color=COLORS[at], linewidths=0)
            shown.set(xticks=[], yticks=[], aspect="equal", title=("three groups", "one, bent")[at])
            found = select(GaussianMixture(random_state=0), X, n_components=range(1, 9))
            bic = found.table["bic"].to_numpy()
            ax.plot(range(1, 9), bic - bic.min(), "o-", color=COLORS[at])
            ax.set(xlabel="components", title=f"BIC takes {found.best_params['n_components']}")
            _whole(ax)
    return figure


def how_many_clusters() -> Figure:
    """k-means: ICL on round and on long groups."""
    rng = RNG(4)
    centers = np.array([[0, 0], [10, 0], [5, 6]])
    label = rng.integers(3, size=300)
    with style():
        figure = new_figure(9, 2.9)
        for at, spread in enumerate(((1.0, 1.0), (2.2, 0.4))):
            X = centers[label] + rng.standard_normal((300, 2)) * spread
            shown, ax = figure.add_subplot(1, 4, 2 * at + 1), figure.add_subplot(1, 4, 2 * at + 2)
            shown.scatter(*X.T, s=7, color=COLORS[at], linewidths=0)
            shown.set(xticks=[], yticks=[], aspect="equal", title=("round groups", "long groups")[at])
            found = select(KMeans(random_state=0), X, n_clusters=range(1, 10))
            icl = found.table["icl"].to_numpy()
            ax.plot(range(1, 10), icl - icl.min(), "o-", color=COLORS[at])
            ax.set(xlabel="clusters", title=f"ICL takes {found.best_params['n_clusters']}")
            _whole(ax)
    return figure


def how_many_stability() -> Figure:
    """Agreement of fits to halves: a coarser division can be as stable, and one cloud has none."""
    rng = RNG(5)
    pairs = np.array([[0, 0], [3, 0], [14, 0], [17, 0]])
    four = pairs[rng.integers(4, size=240)] + 0.5 * rng.standard_normal((240, 2))
    with style():
        figure = new_figure(9, 2.9)
        axes = figure.subplots(1, 2)
        titles, sizes = ("Two pairs of groups", "One round cloud"), range(2, 9)
        for ax, X, title in zip(axes, (four, rng.standard_normal((240, 2))), titles, strict=True):
            found = select(KMeans(random_state=0), X, criterion="stability", n_clusters=sizes, random_state=0)
            y, error = found.table["stability"], found.table["stability_error"]
            ax.errorbar(sizes, y, yerr=error, fmt="o-", capsize=3, color=COLORS[0])
            ax.set(title=title, xlabel="clusters", ylim=(0, 1.08))
            _whole(ax)
        axes[0].set_ylabel("agreement of two halves")
    return figure


def how_many_error() -> Figure:
    """One standard error: the smallest number of topics that is as good as the best."""
    rng = RNG(6)
    topics = rng.dirichlet(np.full(80, 0.1), size=5)
    X = np.array([rng.multinomial(60, p @ topics) for p in rng.dirichlet(np.full(5, 0.3), size=200)])
    sizes = [2, 3, 4, 5, 6, 8, 10, 14]
    found = select(LatentDirichletAllocation(random_state=0), X, n_components=sizes, random_state=0)
    table, chosen = found.table, found.best_params["n_components"]
    y, error = table["heldout"].to_numpy(), np.nan_to_num(table["behind_error"].to_numpy().astype(float))
    with style():
        figure = new_figure(9, 2.9)
        ax = figure.subplots()
        ax.errorbar(sizes, y, yerr=error, fmt="o-", capsize=3, color=COLORS[0])
        ax.axhline(y.max(), color=GREY, lw=1, ls="--")
        ax.plot([chosen], [y[found.row]], "*", ms=17, color=COLORS[1])
        ax.set(
            title=f"Five topics planted, {chosen} chosen", xlabel="topics", ylabel="log-probability of a hidden word"
        )
    return figure
