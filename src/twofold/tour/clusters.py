"""The cluster station: groups in digits and wines, and the colors of a photograph."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.metrics import adjusted_rand_score

from twofold import datasets
from twofold.clusters import GaussianMixture, KMeans, palette
from twofold.core.seeds import generator
from twofold.linear import PCA
from twofold.model_selection import select
from twofold.plots.models import clusters as plots
from twofold.tour import Part, Station

CENTERS = 20
SIZES = (4, 8, 16, 32)
KINDS = {"full": "any ellipse", "tied": "one ellipse for all", "diag": "upright ellipses", "spherical": "circles"}


def station(seed: int = 0) -> Station:
    """Find Lloyd's sweeps, digits without labels, wines by a mixture, a palette."""
    wine = datasets.wine()
    plane = PCA(2, scale=True).fit_transform(wine.data)
    found = {"moving": moving(plane, seed), "digits": digits(seed)}
    return found | {"mixture": mixture(plane, wine.target, seed), "colors": colors(seed)}


def lloyd_path(X: np.ndarray, Z: np.ndarray) -> list[np.ndarray]:
    """Return the centers at the start and after every sweep, until none moves."""
    path = [Z]
    while len(path) < 2 or not np.array_equal(path[-1], path[-2]):
        labels = ((X[:, None] - path[-1]) ** 2).sum(axis=2).argmin(axis=1)
        means = [X[labels == c].mean(axis=0) if (labels == c).any() else z for c, z in enumerate(path[-1])]
        path.append(np.array(means))
    return path[:-1]


def moving(X: np.ndarray, seed: int) -> Part:
    start = X[generator(seed).choice(np.flatnonzero(X[:, 0] > np.quantile(X[:, 0], 0.6)), 3, replace=False)]
    path = lloyd_path(X, start)
    model = KMeans(3, init=start, tol=0).fit(X)
    shown = sorted({0, 1, 2, len(path) - 1})
    cost = ((X[:, None] - path[0]) ** 2).sum(axis=2).min(axis=1).sum()
    numbers = {
        "sweeps until nothing moved": str(len(path) - 1),
        "cost at the start": f"{cost:,.0f}",
        "cost at rest": f"{model.inertia_:,.0f}",
    }
    return Part(plots.moving_centers_figure(X, path, shown), numbers)


def digits(seed: int) -> Part:
    data = datasets.digits()
    model = KMeans(CENTERS, random_state=seed).fit(data.data)
    counts = np.array([np.bincount(data.target[model.labels_ == c], minlength=10) for c in range(CENTERS)])
    major, purity = counts.argmax(axis=1), counts.max(axis=1) / np.maximum(counts.sum(axis=1), 1)
    mixed = generator(seed).permutation(data.target)
    chance = sum(np.bincount(mixed[model.labels_ == c], minlength=10).max() for c in range(CENTERS)) / len(mixed)
    order = np.lexsort((-purity, major))
    captions = [f"{major[c]} · {purity[c]:.0%}" for c in order]
    numbers = {
        "digits in a cluster named rightly": f"{counts.max(axis=1).sum() / counts.sum():.0%}",
        "had the labels been shuffled": f"{chance:.0%}",
    }
    figure = plots.centers_figure(model.cluster_centers_[order].reshape(-1, 8, 8), captions)
    return Part(figure, numbers, k=CENTERS, count=len(data.data))


def mixture(X: np.ndarray, truth: np.ndarray, seed: int) -> Part:
    base = GaussianMixture(reg_covar=1e-3, n_init=3, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some candidates are too large for these few wines, as BIC will show
        found = select(base, X, n_components=range(1, 9), covariance_type=list(KINDS))
    curves = {
        name: [(r["n_components"], r["bic"]) for r in found.table.rows(named=True) if r["covariance_type"] == kind]
        for kind, name in KINDS.items()
    }
    labels = found.winner.predict(X)
    unsure = (found.winner.predict_proba(X).max(axis=1) < 0.9).mean()
    k, kind = found.best_params["n_components"], found.best_params["covariance_type"]
    numbers = {
        "components": str(k),
        "agreement with the growers (adjusted Rand)": f"{adjusted_rand_score(truth, labels):.2f}",
        "wines it is less than 90% sure of": f"{unsure:.0%}",
    }
    figure = plots.mixture_figure(X, labels, found.winner, curves, k)
    return Part(figure, numbers, k=k, shape=KINDS[kind], candidates=len(found.table))


def colors(seed: int) -> Part:
    image = datasets.photographs().china[::2, ::2]
    reduced, numbers = {}, {}
    for k in SIZES:
        table, index = palette(image, k, random_state=seed)
        error = np.mean((image.astype(float) - table[index]) ** 2)
        reduced[f"{k} colors"] = (table[index], table)
        numbers[f"{k} colors, {int(np.log2(k))} bits a pixel"] = f"{10 * np.log10(255**2 / error):.1f} dB"
    different = len(np.unique(image.reshape(-1, 3), axis=0))
    return Part(plots.palette_figure(image, reduced), numbers, different=different)
