"""The linear station: handwritten digits as points in a space of 64 pixels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twofold import datasets
from twofold.linear import PCA, PPCA, FisherLDA
from twofold.plots.models import linear as plots
from twofold.tour import Part, Station

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
    """Find spectrum, directions, reconstructions, holes, and planes with labels."""
    digits = datasets.digits()
    full = PCA().fit(digits.data)
    filling = fill(digits.data, seed)
    return {
        "digits": len(digits.data),
        "how_many": how_many(digits.data, full, seed),
        "directions": directions(full),
        "reconstructions": reconstructions(digits.data, full),
        "holes": holes(digits.data, filling),
        "error_bars": error_bars(digits.data, filling),
        "planes": planes(digits.data, digits.target, full),
    }


def how_many(X: np.ndarray, full: PCA, seed: int) -> Part:
    chosen = {name: PCA(rule, random_state=seed).fit(X).n_components_ for name, rule in RULES.items()}
    return Part(plots.spectrum_figure(full.explained_variance_, chosen))


def directions(full: PCA) -> Part:
    k = 17
    pictures = full.components_[:k].reshape(-1, 8, 8)
    return Part(plots.directions_figure(full.mean_.reshape(8, 8), pictures, full.explained_variance_ratio_[:k]), k=k)


def reconstructions(X: np.ndarray, full: PCA) -> Part:
    pick = X[ROW]
    U, rows = full.transform(pick), {"original": pick.reshape(-1, 8, 8)}
    for k in SIZES:
        held = full.explained_variance_ratio_[:k].sum()
        rows[f"k = {k}, {held:.0%}"] = (U[:, :k] @ full.components_[:k] + full.mean_).reshape(-1, 8, 8)
    k = 20
    pca = PCA(k).fit(X)
    error = ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum() / (len(X) - 1)
    left_out = full.explained_variance_[k:].sum()
    measured = f"squared error with {k} of 64, measured"
    numbers = {measured: f"{error:.6f}", "sum of the variances left out": f"{left_out:.6f}"}
    return Part(plots.rows_figure(rows, (0.0, 16.0)), numbers)


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
    numbers = {
        "rms error of column means": f"{rms['m']:.2f}",
        "rms error of PPCA": f"{rms['p']:.2f}",
        "smaller by": f"{1 - rms['p'] / rms['m']:.0%}",
    }
    return Part(plots.rows_figure(pictures, (0.0, 16.0), "PPCA's doubt"), numbers, hidden=f.hidden.sum(), k=LATENT)


def error_bars(X: np.ndarray, f: Filling) -> Part:
    error, std = (f.filled - X)[f.hidden], f.std[f.hidden]
    within = [f"{(np.abs(error) <= times * std).mean():.0%}" for times in (1, 2)]
    numbers = {"within ±1 sd, 68% promised": within[0], "within ±2 sd, 95% promised": within[1]}
    return Part(plots.calibration_figure(error, std, {"column means": (f.means - X)[f.hidden]}), numbers)


def planes(X: np.ndarray, y: np.ndarray, full: PCA) -> Part:
    train, test = np.arange(len(X)) % 2 == 0, np.arange(len(X)) % 2 == 1
    fisher = FisherLDA(2).fit(X[train], y[train])
    both = {
        "PCA: where digits differ most": full.transform(X)[:, :2],
        "Fisher: where classes differ most": fisher.transform(X),
    }
    right = [measure_right(at[train], y[train], at[test], y[test]) for at in both.values()]
    numbers = {
        "right in PCA's plane": f"{right[0]:.0%}",
        "right in Fisher's plane": f"{right[1]:.0%}",
        "by chance": "10%",
    }
    return Part(plots.planes_figure(both, y), numbers)


def measure_right(at: np.ndarray, y: np.ndarray, new: np.ndarray, truth: np.ndarray) -> float:
    """Return the share of new points nearest to the mean of their own class."""
    means = np.array([at[y == kind].mean(axis=0) for kind in np.unique(y)])
    nearest = ((new[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    return float((np.unique(y)[nearest] == truth).mean())
