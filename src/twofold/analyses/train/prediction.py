"""How well a network predicts rows it has not seen, beside a linear model, a forest and the trivial answer.

Small data is cut into five parts, each of which is predicted from the other four: a figure is the mean over the
parts, its spread their standard deviation. Of large data a tenth is set aside once, and the spread is the standard
error of the figure over its rows. All methods are fitted to the same rows and judged by the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from twofold.analyses.train.data import Data
from twofold.core.progress import part

FOLDS = 5
MAX_ROWS_FOR_FOLDS = 5_000
MAX_CELLS_FOR_PEERS = 20_000_000  # of the rows to fit; a linear model and a forest of more take minutes
RIDGES = np.logspace(-3, 3, 13)


class Score(NamedTuple):
    """A figure on rows that were not fitted, and how much it varies."""

    mean: float
    spread: float


@dataclass
class Comparison:
    """The scores of all methods, by name; that of the network is the first."""

    scores: dict[str, Score]
    seen: float  # the network's figure on the rows that it was fitted to
    folds: int  # 1: one part set aside
    rows: int  # judged


def cut_folds(data: Data, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to fit and rows to judge: five times, or once where there are many."""
    from twofold.core.seeds import generator

    assert data.y is not None
    n, y = len(data.X), data.y
    if n > MAX_ROWS_FOR_FOLDS:
        held, kept = np.split(generator(seed, 7).permutation(n), [n // 10])
        return [(kept, held)]
    counts = np.unique(y, return_counts=True)[1] if data.has_classes else np.zeros(1)
    cut = StratifiedKFold if counts.min() >= FOLDS else KFold
    return list(cut(FOLDS, shuffle=True, random_state=seed).split(data.X, y))


def make_peers(classes: bool, seed: int, cells: int) -> dict[str, Callable[[], Any]]:
    """The other methods, by their names; linear model and forest where the data is not too large for them."""
    if classes:
        peers: dict[str, Callable[[], Any]] = {
            "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
            "random forest": lambda: RandomForestClassifier(100, random_state=seed),
        }
        trivial: dict[str, Callable[[], Any]] = {"always the commonest class": DummyClassifier}
    else:
        peers = {
            "linear regression": lambda: make_pipeline(StandardScaler(), RidgeCV(RIDGES)),
            "random forest": lambda: RandomForestRegressor(100, random_state=seed),
        }
        trivial = {"the mean of the column": DummyRegressor}
    return (peers if cells <= MAX_CELLS_FOR_PEERS else {}) | trivial


def compare(make_model: Callable[[], Any], data: Data, seed: int) -> Comparison:
    """Fit the network and its peers to each part of the data, and judge them on the rest."""
    assert data.y is not None
    folds = cut_folds(data, seed)
    peers = make_peers(data.has_classes, seed, len(folds[0][0]) * data.X[0].size)
    methods = {"network": make_model, **peers}
    found: dict[str, list[Score]] = {name: [] for name in methods}
    seen = []
    for i, (kept, held) in enumerate(folds):
        encoding = data.find_encoding(kept)
        X, new = (data.encode(encoding, rows) for rows in (kept, held))
        with part(i, i + 1, len(folds), f"comparing, part {i + 1} of {len(folds)}"):
            for name, make in methods.items():
                flat = name != "network"
                model = make().fit(X.reshape(len(X), -1) if flat else X, data.y[kept])
                predicted = model.predict(new.reshape(len(new), -1) if flat else new)
                found[name].append(judge(data.y[held], predicted, data.has_classes))
                if not flat:
                    seen.append(judge(data.y[kept], model.predict(X), data.has_classes).mean)
    many = len(folds) > 1
    scores = {
        name: Score(float(np.mean([s.mean for s in each])), float(np.std([s.mean for s in each], ddof=1)))
        if many
        else each[0]
        for name, each in found.items()
    }
    return Comparison(scores, float(np.mean(seen)), len(folds), sum(len(held) for _, held in folds))


def judge(y: np.ndarray, predicted: np.ndarray, classes: bool) -> Score:
    """The share of rows that is right, or R², with its standard error over the rows."""
    n = len(y)
    if classes:
        right = float(np.mean(predicted == y))
        return Score(right, float(np.sqrt(right * (1 - right) / n)))
    off, spread = np.square(y - predicted), np.square(y - y.mean())
    if not spread.any():
        return Score(0.0, 0.0)
    r2 = 1 - off.sum() / spread.sum()
    ratio = (off - (1 - r2) * spread) / spread.mean()  # the ratio's linear part in each row
    return Score(float(r2), float(ratio.std() / np.sqrt(n)))
