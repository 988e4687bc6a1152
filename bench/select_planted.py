"""Planted sizes of networks, too slow for the tests: three levels of noise, five seeds, by `select` as it is."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bench.harness import Bar, Contestant, Event, Missing, Row
from twofold import select

NOISE, PLANTED, TRIED = (0.2, 0.5, 0.8), 3, [1, 2, 3, 4, 6]
TRAINING = {"hidden_layer_sizes": (16,), "learning_rate_init": 1e-2, "max_iter": 60}


def plant(noise: float, seed: int) -> np.ndarray:
    """Rows on a plane of three dimensions in eight, with white noise."""
    rng = np.random.default_rng([seed, int(10 * noise)])
    axes = np.linalg.qr(rng.normal(size=(8, PLANTED)))[0].T
    return 3 * rng.normal(size=(240, PLANTED)) @ axes + noise * rng.normal(size=(240, 8))


def count_found(model: Any, seeds: int) -> list[int]:
    """What is chosen, run by run."""
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


def networks(quick: bool) -> Event | Missing:
    try:
        from twofold import DLGM, VAE, Autoencoder
    except ImportError as why:
        return Missing("select_planted networks", str(why))
    models = {
        "Autoencoder": Autoencoder(**TRAINING),
        "VAE": VAE(output="gaussian", **TRAINING),
        "DLGM": DLGM(output="gaussian", **TRAINING),
    }
    seeds = 1 if quick else 5

    def quality(chosen: list[int]) -> dict[str, float]:
        near = [TRIED[max(TRIED.index(PLANTED) + step, 0)] for step in (-1, 0, 1)]
        return {"found": chosen.count(PLANTED) / len(chosen), "found or next": np.mean([k in near for k in chosen])}

    return Event(
        "select_planted networks",
        f"{PLANTED} dimensions planted in 8, of {', '.join(map(str, TRIED))}, {3 * seeds} tables",
        [
            Contestant(name, lambda model=model: count_found(model, seeds), ours=True, warm=lambda: None)
            for name, model in models.items()
        ],
        quality=quality,
        as_good=lambda a, b: True,
        bar=Bar("the planted size or the next in nine of ten", test=nine_of_ten),
        budget=1.0,
        repeats=1,
    )


EVENTS = (networks,)
