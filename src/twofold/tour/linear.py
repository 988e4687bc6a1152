"""The linear station: handwritten digits as points in a space of 64 pixels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twofold import datasets
from twofold.linear import PCA, PPCA, FisherLDA
from twofold.plots.models import linear as plots
from twofold.tour.station import Part, Station

RULES: dict[str, str | float] = {
    "parallel analysis": "parallel",
    "knee": "knee",
    "90% of the variance": 0.9,
    "Gavish–Donoho": "gavish-donoho",
}
SIZES = (1, 2, 5, 10, 20, 40)
ROW = slice(10, 22)  # digits in a row of pictures
HIDDEN, LATENT = 0.25, 12


def station(seed: int = 0) -> Station:
    """Show spectrum, directions, reconstructions, holes, and planes with labels."""
    digits = datasets.digits()
    full = PCA().fit(digits.data)
    filling = fill(digits.data, seed)
    return Station(
        "Lines, planes and Gaussians",
        f"{len(digits.data):,} handwritten digits of 8 × 8 pixels: each is a point in 64 dimensions. How many of "
        "these dimensions are really used, what do they look like, and what can be done with them?",
        [
            how_many(digits.data, full, seed),
            directions(full),
            reconstructions(digits.data, full),
            holes(digits.data, filling),
            error_bars(digits.data, filling),
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
        "blue and takes ink away where it is red. The first directions are broad strokes; later ones carry finer "
        "detail and less and less of the variance.",
        "PCA().fit(X).components_.reshape(-1, 8, 8)",
        plots.directions_figure(
            full.mean_.reshape(8, 8), full.components_[:k].reshape(-1, 8, 8), full.explained_variance_ratio_[:k]
        ),
        f"The mean digit and the first {k} directions, with the share of the variance that each holds.",
    )


def reconstructions(X: np.ndarray, full: PCA) -> Part:
    pick = X[ROW]
    U, rows = full.transform(pick), {"original": pick.reshape(-1, 8, 8)}
    for k in SIZES:
        held = full.explained_variance_ratio_[:k].sum()
        rows[f"k = {k}, {held:.0%}"] = (U[:, :k] @ full.components_[:k] + full.mean_).reshape(-1, 8, 8)
    k = 20
    pca = PCA(k).fit(X)
    error = ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum() / (len(X) - 1)
    return Part(
        "Drawn from k numbers",
        "Twenty numbers instead of 64 make the digits readable again. The error is no surprise: it is exactly the "
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


class Filling(NamedTuple):
    """A table with cells hidden, and two ways to fill them."""

    hidden: np.ndarray  # (n,d) bool
    seen: np.ndarray  # NaN where hidden
    means: np.ndarray
    filled: np.ndarray
    std: np.ndarray


def fill(X: np.ndarray, seed: int) -> Filling:
    hidden = np.random.default_rng(seed).random(X.shape) < HIDDEN
    seen = np.where(hidden, np.nan, X)
    means = np.where(hidden, np.nanmean(seen, axis=0), X)
    filled, std = PPCA(LATENT, random_state=seed).fit(seen).impute(seen, return_std=True)
    return Filling(hidden, seen, means, filled, std)


def holes(X: np.ndarray, f: Filling) -> Part:
    rows = {"truth": X, "seen": f.seen, "column means": f.means, "PPCA": f.filled, "PPCA's doubt": f.std}
    pictures = {name: table[ROW].reshape(-1, 8, 8) for name, table in rows.items()}
    rms = {name: np.sqrt(((table - X)[f.hidden] ** 2).mean()) for name, table in (("m", f.means), ("p", f.filled))}
    return Part(
        "Holes, filled",
        f"A quarter of all pixels is hidden, {f.hidden.sum():,} of them. Probabilistic PCA learns from the pixels "
        "that are left and fills each hole with what the rest of its digit makes likely. Column means know only where "
        "ink is common.",
        f"filled, std = PPCA({LATENT}).fit(X).impute(X, return_std=True)    # X holds NaN",
        plots.rows_figure(pictures, (0.0, 16.0), "PPCA's doubt"),
        "Digits with a quarter of their pixels missing (orange), filled in two ways; in blue, where PPCA is unsure.",
        {
            "rms error of column means": f"{rms['m']:.2f}",
            "rms error of PPCA": f"{rms['p']:.2f}",
            "smaller by": f"{1 - rms['p'] / rms['m']:.0%}",
        },
    )


def error_bars(X: np.ndarray, f: Filling) -> Part:
    error, std = (f.filled - X)[f.hidden], f.std[f.hidden]
    within = [f"{(np.abs(error) <= times * std).mean():.0%}" for times in (1, 2)]
    return Part(
        "Are the error bars true?",
        "PPCA also says how sure it is of each cell it filled. The truth is known here and was never shown to it, "
        "so the promise can be checked. It is kept roughly and not exactly, because pixels are not Gaussian: many are "
        "always blank, so that small errors are more common than promised, and so are very large ones.",
        "inside = abs(filled - truth) <= 2 * std",
        plots.calibration_figure(error, std, {"column means": (f.means - X)[f.hidden]}),
        "Share of hidden pixels whose truth lies within the predicted interval, against the share promised; and "
        "the share of cells filled within a given error.",
        {"within ±1 sd, 68% promised": within[0], "within ±2 sd, 95% promised": within[1]},
    )


def planes(X: np.ndarray, y: np.ndarray, full: PCA) -> Part:
    train, test = np.arange(len(X)) % 2 == 0, np.arange(len(X)) % 2 == 1
    fisher = FisherLDA(2).fit(X[train], y[train])
    both = {
        "PCA: where digits differ most": full.transform(X)[:, :2],
        "Fisher: where classes differ most": fisher.transform(X),
    }
    right = [measure_right(at[train], y[train], at[test], y[test]) for at in both.values()]
    return Part(
        "What labels add",
        "PCA never sees which digit is which. Fisher's discriminant does, and looks for the plane in which the ten "
        "classes lie far apart compared with their own spread. It learns from every second digit; the numbers "
        "below are counted on the others, each given to the nearest class mean in the plane.",
        "PCA(2).fit_transform(X)\nFisherLDA(2).fit(X, y).transform(X)",
        plots.planes_figure(both, y),
        "All digits in the plane of the first two principal axes, and in Fisher's plane.",
        {"right in PCA's plane": f"{right[0]:.0%}", "right in Fisher's plane": f"{right[1]:.0%}", "by chance": "10%"},
    )


def measure_right(at: np.ndarray, y: np.ndarray, new: np.ndarray, truth: np.ndarray) -> float:
    """Return the share of new points nearest to the mean of their own class."""
    means = np.array([at[y == kind].mean(axis=0) for kind in np.unique(y)])
    nearest = ((new[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    return float((np.unique(y)[nearest] == truth).mean())
