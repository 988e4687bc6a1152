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
from twofold.tour.station import Part, Station

CENTERS = 20
SIZES = (4, 8, 16, 32)
KINDS = {"full": "any ellipse", "tied": "one ellipse for all", "diag": "upright ellipses", "spherical": "circles"}


def station(seed: int = 0) -> Station:
    """Show Lloyd's sweeps, digits without labels, wines by a mixture, a palette."""
    wine = datasets.wine()
    plane = PCA(2, scale=True).fit_transform(wine.data)
    return Station(
        "Groups, hard and soft",
        "Which rows belong together? If the centers were known, every row would go to its nearest; if the groups "
        "were known, every center would be a mean. Neither is known, so take turns.",
        [moving(plane, seed), digits(seed), mixture(plane, wine.target, seed), colors(seed)],
    )


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
    return Part(
        "Two half-steps",
        "178 Italian wines on the first two principal axes of their 13 measurements. Three centers start badly, all on "
        "one side. A sweep gives every wine to the nearest center, then moves each center to the mean of its wines. "
        "Neither half-step can raise the cost, so the sweeps must come to rest.",
        "KMeans(3, init=start, tol=0).fit(X)",
        plots.moving_centers_figure(X, path, shown),
        "Cells of the three centers and the ways they have come: at the start, after the first sweeps, and at rest.",
        {
            "sweeps until nothing moved": str(len(path) - 1),
            "cost at the start": f"{cost:,.0f}",
            "cost at rest": f"{model.inertia_:,.0f}",
        },
    )


def digits(seed: int) -> Part:
    data = datasets.digits()
    model = KMeans(CENTERS, random_state=seed).fit(data.data)
    counts = np.array([np.bincount(data.target[model.labels_ == c], minlength=10) for c in range(CENTERS)])
    major, purity = counts.argmax(axis=1), counts.max(axis=1) / np.maximum(counts.sum(axis=1), 1)
    mixed = generator(seed).permutation(data.target)
    chance = sum(np.bincount(mixed[model.labels_ == c], minlength=10).max() for c in range(CENTERS)) / len(mixed)
    order = np.lexsort((-purity, major))
    captions = [f"{major[c]} · {purity[c]:.0%}" for c in order]
    return Part(
        "Digits, found without being told",
        f"k-means with {CENTERS} centers on {len(data.data):,} handwritten digits. No label is used; "
        "the labels serve only to name the clusters afterwards. Digits that are written in two ways get two centers.",
        f"KMeans({CENTERS}).fit(X).cluster_centers_",
        plots.centers_figure(model.cluster_centers_[order].reshape(-1, 8, 8), captions),
        "The centers as pictures, each with the digit most common in its cluster and the share of that digit.",
        {
            "digits in a cluster named rightly": f"{counts.max(axis=1).sum() / counts.sum():.0%}",
            "had the labels been shuffled": f"{chance:.0%}",
        },
    )


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
    return Part(
        "How many groups, and of which shape?",
        "A mixture of Gaussians also learns how large, how long and how turned each group is, and says how sure it is "
        "of every wine. More components always fit better; the Bayesian information criterion asks whether they fit "
        f"better by more than their parameters cost. Among {len(found.table)} candidates it picks {k} components with "
        f"{KINDS[kind]}. The wines come from three growers, which the mixture was not told.",
        "select(GaussianMixture, X, n_components=range(1, 9),\n"
        '       covariance_type=["full", "tied", "diag", "spherical"])',
        plots.mixture_figure(X, labels, found.winner, curves, k),
        "The mixture that BIC prefers, and BIC over the number of components for four shapes of covariance.",
        {
            "components": str(k),
            "agreement with the growers (adjusted Rand)": f"{adjusted_rand_score(truth, labels):.2f}",
            "wines it is less than 90% sure of": f"{unsure:.0%}",
        },
    )


def colors(seed: int) -> Part:
    image = datasets.photographs().china[::2, ::2]
    reduced, numbers = {}, {}
    for k in SIZES:
        table, index = palette(image, k, random_state=seed)
        error = np.mean((image.astype(float) - table[index]) ** 2)
        reduced[f"{k} colors"] = (table[index], table)
        numbers[f"{k} colors, {int(np.log2(k))} bits a pixel"] = f"{10 * np.log10(255**2 / error):.1f} dB"
    return Part(
        "The colors of a photograph",
        f"Pixels are rows of three numbers, and this photograph has {len(np.unique(image.reshape(-1, 3), axis=0)):,} "
        "different ones. k-means finds the few colors that stand for all with the least squared error: a codebook, "
        "or a palette. A pixel then costs two to five bits instead of 24.",
        "colors, indices = palette(image, 16)\ncolors[indices]",
        plots.palette_figure(image, reduced),
        "A photograph of a Chinese temple in 4, 8, 16 and 32 colors, each with its palette from dark to light.",
        numbers,
    )
