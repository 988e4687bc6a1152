"""Planted sizes of models that are too slow for the tests: three levels of noise, five seeds, by `select` as it is."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bench.harness import Bar, Contestant, Event, Missing, Row
from twofold import SVDPlusPlus, select

NOISE, PLANTED, TRIED = (0.2, 0.5, 0.8), 3, [1, 2, 3, 4, 6]
TRAINING = {"hidden_layer_sizes": (16,), "learning_rate_init": 1e-2, "max_iter": 60}


def plant(noise: float, seed: int) -> np.ndarray:
    """Rows on a plane of three dimensions in eight, with white noise."""
    return plant_plane(noise, seed, 240, 8)


def plant_holes(noise: float, seed: int) -> np.ndarray:
    """The same in 24 columns, a fifth of the cells unknown."""
    X = plant_plane(0.7 * noise, seed, 40, 24)
    return np.where(np.random.default_rng([seed, 1]).random(X.shape) < 0.2, np.nan, X)


def plant_plane(noise: float, seed: int, n: int, d: int) -> np.ndarray:
    rng = np.random.default_rng([seed, int(10 * noise)])
    axes = np.linalg.qr(rng.normal(size=(d, PLANTED)))[0].T
    return 3 * rng.normal(size=(n, PLANTED)) @ axes + noise * rng.normal(size=(n, d))


def count_found(model: Any, seeds: int, plant: Callable[[float, int], np.ndarray] = plant) -> list[int]:
    """Return the number chosen in each run."""
    chosen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message=".*collapse.*")
        for noise in NOISE:
            for seed in range(seeds):
                found = select(model, plant(noise, seed), n_components=TRIED, random_state=seed)
                chosen.append(found.best_params["n_components"])
    return chosen


def nine_of_ten(rows: list[Row]) -> bool:
    return all(row.quality["found or next"] >= 0.9 for row in rows if row.seconds)


def slow_models(quick: bool) -> Event | Missing:
    try:
        from twofold import DLGM, VAE, Autoencoder
    except ImportError as why:
        return Missing("select_planted", str(why))
    models = {
        "Autoencoder": Autoencoder(**TRAINING),
        "VAE": VAE(output="gaussian", **TRAINING),
        "DLGM": DLGM(output="gaussian", **TRAINING),
    }
    seeds = 1 if quick else 5

    def quality(chosen: list[int]) -> dict[str, float]:
        near = [TRIED[max(TRIED.index(PLANTED) + step, 0)] for step in (-1, 0, 1)]
        return {"found": chosen.count(PLANTED) / len(chosen), "found or next": np.mean([k in near for k in chosen])}

    def entry(name: str, model: Any, *planting: Any) -> Contestant:
        return Contestant(name, lambda: count_found(model, seeds, *planting), ours=True, warm=lambda: None)

    return Event(
        "select_planted",
        f"{PLANTED} dimensions planted, of {', '.join(map(str, TRIED))}, {3 * seeds} tables",
        [*(entry(*each) for each in models.items()), entry("SVDPlusPlus", SVDPlusPlus(), plant_holes)],
        quality=quality,
        as_good=lambda a, b: True,
        bar=Bar("the planted size or the next in nine of ten", test=nine_of_ten),
        budget=1.0,
        repeats=1,
    )


EVENTS = (slow_models,)
