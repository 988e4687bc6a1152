"""The linear station: handwritten digits as points in a space of 64 pixels."""

from __future__ import annotations

import numpy as np

from twofold.data import datasets
from twofold.linear import PCA, PPCA, FisherLDA
from twofold.plots import linear as plots
from twofold.tour.station import Part, Station

RULES = {"parallel analysis": "parallel", "knee": "knee", "90 % of the variance": 0.9, "Gavish–Donoho": "gavish-donoho"}
SIZES = (1, 2, 5, 10, 20, 40)
SHOWN = 12  # digits in a row of pictures
HIDDEN, LATENT = 0.25, 12


def station(seed: int = 0) -> Station:
    """Spectrum, directions, reconstructions, holes, and what labels add."""
    digits = datasets.digits()
    full = PCA().fit(digits.data)
    return Station(
        "Lines, planes and Gaussians",
        f"{len(digits.data):,} handwritten digits of 8 × 8 pixels: each is a point in 64 dimensions. How many of "
        "these dimensions are really used, what do they look like, and what can be done with them?",
        [
            how_many(digits.data, full, seed),
            directions(full),
            reconstructions(digits.data, full),
            holes(digits.data, seed),
            planes(digits.data, digits.target, full),
        ],
    )


def how_many(X: np.ndarray, full: PCA, seed: int) -> Part:
    chosen = {name: PCA(rule, random_state=seed).fit(X).n_components_ for name, rule in RULES.items()}
    return Part(
        "How many directions?",
        "PCA turns the axes so that the first holds as much of the variance as one direction can, the second as "
        "much of the rest, and so on. Where to stop is a choice. The rules ask different questions: what beats "
        "chance (parallel analysis), where the curve bends (knee), what keeps a share of the variance, and what "
        "stands out of noise (Gavish–Donoho).",
        'PCA("knee").fit(X).n_components_          # or 0.9, "parallel", "gavish-donoho", "mle"',
        plots.spectrum_figure(full.explained_variance_, chosen),
        "Variance along each principal axis, and its running total, with the number of axes that each rule keeps.",
    )


def directions(full: PCA) -> Part:
    k = 17
    return Part(
        "Eigen-digits",
        "Each direction is a list of 64 weights, so it is itself a picture. Moving along it adds ink where it is "
        "blue and takes ink away where it is red: the first tells round strokes from upright ones, later ones "
        "carry finer detail.",
        "PCA().fit(X).components_.reshape(-1, 8, 8)",
        plots.directions_figure(
            full.mean_.reshape(8, 8), full.components_[:k].reshape(-1, 8, 8), full.explained_variance_ratio_[:k]
        ),
        f"The mean digit and the first {k} directions, with the share of the variance that each holds.",
    )


def reconstructions(X: np.ndarray, full: PCA) -> Part:
    pick = X[10 : 10 + SHOWN]
    U, rows = full.transform(pick), {"original": pick.reshape(-1, 8, 8)}
    for k in SIZES:
        held = full.explained_variance_ratio_[:k].sum()
        rows[f"k = {k}, {held:.0%}"] = (U[:, :k] @ full.components_[:k] + full.mean_).reshape(-1, 8, 8)
    k = 20
    pca = PCA(k).fit(X)
    error = ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum() / (len(X) - 1)
    return Part(
        "Drawn from k numbers",
        "Twenty numbers instead of 64 are enough to read every digit. The error is no surprise: it is exactly the "
        "sum of the variances left out, and no other linear method can do better with as many numbers (Eckart and "
        "Young, 1936).",
        "pca = PCA(20).fit(X)\npca.inverse_transform(pca.transform(X))",
        plots.rows_figure(rows, (0.0, 16.0)),
        "Digits rebuilt from their first k coordinates, with the share of the variance these hold.",
        {
            f"squared error with {k} of 64, measured": f"{error:.6f}",
            "sum of the variances left out": f"{full.explained_variance_[k:].sum():.6f}",
        },
    )


def holes(X: np.ndarray, seed: int) -> Part:
    hidden = np.random.default_rng(seed).random(X.shape) < HIDDEN
    seen = np.where(hidden, np.nan, X)
    model = PPCA(LATENT, random_state=seed).fit(seen)
    filled, std = model.impute(seen, return_std=True)
    means = np.where(hidden, np.nanmean(seen, axis=0), X)
    error, by_means = (filled - X)[hidden], (means - X)[hidden]
    ratio = np.abs(error) / std[hidden]
    first = slice(10, 10 + SHOWN)
    rows = {"truth": X, "seen": seen, "column means": means, "PPCA": filled, "PPCA's doubt": std}
    better = 1 - np.sqrt((error**2).mean() / (by_means**2).mean())
    return Part(
        "Holes, filled with error bars",
        f"A quarter of all pixels is hidden, {hidden.sum():,} of them. Probabilistic PCA learns from what is left, "
        "hole by hole, and says what the missing ones should be and how sure it is. The truth is known here, so both "
        "can be checked on cells the model never saw. Column means know only where ink is common.",
        f"filled, std = PPCA({LATENT}).fit(X).impute(X, return_std=True)    # X holds NaN",
        plots.rows_figure({name: part[first].reshape(-1, 8, 8) for name, part in rows.items()}, (0.0, 16.0), "PPCA's doubt"),
        "Digits with a quarter of their pixels missing (orange), filled in two ways; below, where PPCA is unsure.",
        {
            "rms error, column means": f"{np.sqrt((by_means**2).mean()):.2f}",
            "rms error, PPCA": f"{np.sqrt((error**2).mean()):.2f}",
            "smaller by": f"{better:.0%}",
            "truth within ±1 sd (a Gaussian promises 68 %)": f"{(ratio <= 1).mean():.0%}",
            "truth within ±2 sd (a Gaussian promises 95 %)": f"{(ratio <= 2).mean():.0%}",
        },
    )
