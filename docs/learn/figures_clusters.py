"""The figures of clusters.md: every public function returns one, drawn when the documentation is built."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from scipy.special import expit, logsumexp
from sklearn.metrics import adjusted_rand_score

from twofold import GaussianMixture, KMeans, datasets
from twofold.clusters import coreset
from twofold.plots.models import clusters as plots
from twofold.plots.style import COLORS, GREY, INK, new_figure, style
from twofold.tour.clusters import lloyd_path

RNG = np.random.default_rng


def _blobs(seed: int, centers: np.ndarray, n: int, spread: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = RNG(seed)
    label = rng.integers(len(centers), size=n)
    return centers[label] + spread * rng.standard_normal((n, centers.shape[1])), label


def _turned() -> tuple[np.ndarray, np.ndarray]:
    """Three groups of different size, length and direction."""
    rng = RNG(5)
    shapes = [((0, 0), (2.2, 0.4), 0.5, 350), ((5, 2.5), (0.7, 0.7), 0.0, 150), ((4, -2.5), (1.5, 0.3), -0.6, 200)]
    parts = []
    for mean, sd, angle, n in shapes:
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        parts.append(rng.standard_normal((n, 2)) * sd @ turn + mean)
    return np.concatenate(parts), np.repeat(np.arange(3), [n for *_, n in shapes])


def clusters_sweeps() -> Figure:
    """Lloyd's sweeps from a poor start."""
    X, _ = _blobs(1, np.array([[0, 0], [6, 1], [3, 5], [9, 5]]), 400, 1.1)
    path = lloyd_path(X, X[np.argsort(X[:, 0])[:4]])
    return plots.moving_centers_figure(X, path, (0, 1, 3, len(path) - 1))


def clusters_starts() -> Figure:
    """The cost that one start ends at, for three ways to begin."""
    X, _ = _blobs(2, RNG(0).uniform(-30, 30, size=(25, 2)), 2500)
    best = KMeans(25, init="k-means++", n_init=30, random_state=0).fit(X).inertia_
    with style():
        figure = new_figure(9, 2.7)
        ax = figure.subplots()
        for row, init in enumerate(("random", "k-means++", "k-means||")):
            costs = [KMeans(25, init=init, n_init=1, random_state=s).fit(X).inertia_ / best for s in range(40)]
            at = row + RNG(row).uniform(-0.2, 0.2, size=40)
            ax.scatter(costs, at, s=26, color=COLORS[row], alpha=0.65, linewidths=0)
            ax.plot([np.median(costs)] * 2, [row - 0.33, row + 0.33], color=INK, lw=2)
        ax.set_yticks(range(3), ["random rows", "k-means++", "k-means‖"])
        ax.set(title="Cost after convergence, as a multiple of the best known; 40 starts each", ylim=(2.6, -0.6))
        ax.grid(axis="y", visible=False)
    return figure


def clusters_coreset() -> Figure:
    """How much more k-means costs when it has seen only m rows."""
    rng = RNG(0)
    X, _ = _blobs(3, rng.normal(size=(10, 8)) * 4, 15_000)
    X = np.concatenate([X, rng.normal(size=(45, 8)) * 2 + 60])  # a small group, far away
    full = KMeans(11, random_state=0).fit(X).inertia_
    sizes = [50, 100, 200, 400, 800, 1600]
    with style():
        figure = new_figure(8.5, 3.3)
        ax = figure.subplots()
        for color, name in zip(COLORS, ("lightweight coreset", "uniform sample"), strict=False):
            more = np.array([[_extra(X, m, s, name) / full - 1 for s in range(8)] for m in sizes])
            ax.plot(sizes, np.median(more, axis=1), color=color, lw=2, marker="o", ms=5, label=name)
            ax.fill_between(sizes, *np.quantile(more, [0.25, 0.75], axis=1), color=color, alpha=0.15, lw=0)
        ax.set(
            xscale="log",
            yscale="log",
            xlabel="rows drawn, of 15,045",
            title="Cost on all rows above that of the full fit",
        )
        ax.set_xticks(sizes, [str(m) for m in sizes])
        ax.set_xticks([], minor=True)
        ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        ax.legend()
    return figure


def _extra(X: np.ndarray, m: int, seed: int, name: str) -> float:
    if name.startswith("uniform"):
        points, weights = X[RNG(seed).choice(len(X), m, replace=False)], None
    else:
        points, weights = coreset(X, m, random_state=seed)
    return -KMeans(11, n_init=2, random_state=0).fit(points, sample_weight=weights).score(X)


def clusters_bound() -> Figure:
    """The lower bounds of EM touch the likelihood where they were made, and their maxima climb it."""
    x = np.concatenate([RNG(0).normal(-2, 1, 60), RNG(1).normal(2.2, 1, 60)])
    grid = np.linspace(-2, 5, 400)

    def joint(m: np.ndarray) -> np.ndarray:  # one center known, the other at m: (..., n, 2)
        first = np.broadcast_to(-0.5 * (x + 2) ** 2, (*np.shape(m), len(x)))
        return np.stack([first, -0.5 * (x - np.asarray(m)[..., None]) ** 2], axis=-1) + np.log(0.5) - 0.919

    with style():
        figure = new_figure(8.5, 3.5)
        ax = figure.subplots()
        ax.plot(grid, logsumexp(joint(grid), axis=-1).mean(axis=-1), color=INK, lw=2.2, label="log-likelihood a row")
        m = -1.2
        for step in range(3):
            r = np.exp(joint(np.array(m)) - logsumexp(joint(np.array(m)), axis=-1, keepdims=True))
            entropy = -(r * np.log(np.maximum(r, 1e-300))).sum(axis=-1).mean()
            bound = (r * joint(grid)).sum(axis=-1).mean(axis=-1) + entropy
            ax.plot(grid, bound, color=COLORS[step], lw=1.4, label=f"bound made at step {step}")
            ax.plot([m], [logsumexp(joint(np.array(m)), axis=-1).mean()], "o", ms=7, color=COLORS[step], zorder=5)
            m = float((r[:, 1] * x).sum() / r[:, 1].sum())
        ax.set(ylim=(-4.6, -1.8), xlim=(-2, 5), xlabel="mean of the second component")
        ax.legend(loc="lower right", fontsize=9)
    return figure


def clusters_limit() -> Figure:
    """Responsibilities between two centers as the components shrink."""
    x = np.linspace(-2, 4, 400)
    with style():
        figure = new_figure(8.5, 2.8)
        ax = figure.subplots()
        for color, sigma in zip(COLORS, (1.5, 0.8, 0.4, 0.05), strict=False):
            r = expit((x**2 - (x - 2) ** 2) / (2 * sigma**2))
            ax.plot(x, r, color=color, lw=2, label=f"σ = {sigma}")
        ax.plot([0, 2], [0, 0], "o", ms=9, color=INK, clip_on=False, zorder=5)
        ax.set(title="Share of a row at x that belongs to the center at 2, the other being at 0", xlabel="x")
        ax.set(ylim=(-0.02, 1.05), xlim=(-2, 4))
        ax.legend()
    return figure


def clusters_covariances() -> Figure:
    """The same rows under four kinds of covariance."""
    X, truth = _turned()
    with style():
        figure = new_figure(11, 2.9)
        for ax, kind in zip(figure.subplots(1, 4), ("full", "tied", "diag", "spherical"), strict=True):
            model = GaussianMixture(3, covariance_type=kind, n_init=5, random_state=0).fit(X)
            ax.scatter(*X.T, s=5, color=GREY, alpha=0.6, linewidths=0, rasterized=True)
            plots.draw_ellipses(ax, model)
            agree = adjusted_rand_score(truth, model.predict(X))
            ax.set_title(
                f"{kind}: {model._n_parameters()} numbers\nBIC {model.bic(X):,.0f}, agreement {agree:.2f}", fontsize=9.5
            )
            ax.set(xticks=[], yticks=[])
            ax.grid(visible=False)
            ax.spines[:].set_visible(False)
    return figure


def clusters_criteria() -> Figure:
    """Likelihood always rises with k; AIC and BIC turn."""
    X, _ = _turned()
    ks = range(1, 9)
    models = [GaussianMixture(k, n_init=4, reg_covar=1e-3, random_state=0).fit(X) for k in ks]
    with style():
        figure = new_figure(8.5, 3.1)
        ax = figure.subplots()
        curves = {"−2 log-likelihood": [-2 * m.score(X) * len(X) for m in models]}
        curves |= {"AIC": [m.aic(X) for m in models], "BIC": [m.bic(X) for m in models]}
        for color, (name, values) in zip((GREY, COLORS[1], COLORS[0]), curves.items(), strict=True):
            ax.plot(ks, values, color=color, lw=2, marker="o", ms=5, label=name)
            if name != "−2 log-likelihood":
                best = int(np.argmin(values))
                ax.plot([best + 1], [values[best]], "o", ms=12, mfc="none", mec=INK, mew=1.5)
        ax.set(xlabel="components", title="Three groups; what each criterion says (lower is better)")
        ax.set_ylim(min(curves["−2 log-likelihood"]) - 30, curves["BIC"][1] + 60)
        ax.legend()
    return figure


def clusters_missing() -> Figure:
    """Groups found when cells are missing: by the mixture itself, and after filling with column means."""
    X, truth = _blobs(6, RNG(1).normal(size=(4, 6)) * 2.2, 600)
    shares = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
    agree = np.empty((2, len(shares), 4))
    for (i, share), seed in product(enumerate(shares), range(4)):
        seen = np.where(RNG(seed).random(X.shape) < share, np.nan, X)
        filled = np.where(np.isnan(seen), np.nanmean(seen, axis=0), seen)
        for row, table in enumerate((seen, filled)):
            model = GaussianMixture(4, covariance_type="diag", n_init=3, tol=1e-5, random_state=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # filled cells make thin components: the point of the figure
                agree[row, i, seed] = adjusted_rand_score(truth, model.fit(table).predict(table))
    with style():
        figure = new_figure(8.5, 3.0)
        ax = figure.subplots()
        for row, name in enumerate(("cells left missing", "column means filled in first")):
            ax.plot(shares, agree[row].mean(axis=1), color=COLORS[row], lw=2, marker="o", ms=5, label=name)
        ax.set(ylim=(0, 1.03), xlabel="cells missing", title="Agreement with the true groups (adjusted Rand index)")
        ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        ax.legend()
    return figure


def clusters_stepwise() -> Figure:
    """Stepwise EM over batches against EM over everything, by passes over the data."""
    X = datasets.digits().data[:, 8:56] + RNG(0).normal(size=(1797, 48))  # the outer rows of pixels are mostly blank
    X, test = X[:1500], X[1500:]
    with style():
        figure = new_figure(8.5, 3.0)
        ax = figure.subplots()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # stopped early on purpose
            whole = _mixture(200).fit(X).score(test)
            batches = _mixture(1).fit(X[:100])
            scores = [batches.score(test)]
            for t in range(1, 90):
                at = (t * 100) % 1500
                scores.append(batches.partial_fit(X[at : at + 100]).score(test))
        ax.axhline(whole, color=COLORS[0], lw=1.6, ls=(0, (4, 2)), label="EM on all rows, converged")
        ax.plot(np.arange(1, 91) / 15, scores, color=COLORS[1], lw=2, label="stepwise EM, batches of 100 rows")
        ax.set(xlabel="passes over the rows", title="Mean log-density of rows not fitted", xlim=(0, 6))
        ax.legend(loc="lower right")
    return figure


def _mixture(sweeps: int) -> GaussianMixture:
    return GaussianMixture(10, covariance_type="diag", max_iter=sweeps, reg_covar=0.1, random_state=0)
