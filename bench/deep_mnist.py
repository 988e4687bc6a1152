"""What networks reach on MNIST in a stated budget of processor time, beside published figures.

BENCH_DEEP_MINUTES sets the budget of each model (default 60; quick runs take 1). The pictures are binarized once, by
our own draw from their gray values (static binarization); the drawn file of the literature cannot be had offline, so
that nats differ from those by the luck of the draw, some tenths. Curves are written to bench/results.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.deep_speed import mnist
from bench.harness import Bar, Contestant, Event, Missing, Row, Timed
from twofold import PCA
from twofold.core.seeds import generator
from twofold.deep import DLGM, GAN, VAE, Autoencoder, CNNClassifier, PixelCNN, frechet_distance
from twofold.plots.models.images import grid_png

RESULTS = Path(__file__).parent / "results"
TRIED = 2_000  # pictures, and three times as many, by which an epoch is timed
DRAWS = 500  # of a likelihood by importance sampling, a picture


class Digits(NamedTuple):
    """Gray pictures from 0 to 255, their classes, and the same binarized once for all."""

    train: np.ndarray
    y: np.ndarray
    test: np.ndarray
    goal: np.ndarray
    binary: np.ndarray
    binary_test: np.ndarray


def digits(quick: bool) -> Digits | Missing:
    data = mnist()
    if isinstance(data, Missing):
        return data
    n, m = (6_000, 1_000) if quick else (60_000, 10_000)
    train, test = data.train.images[:n], data.test.images[:m]
    drawn = [(255 * generator(0, i).random(X.shape) < X).astype(np.uint8) for i, X in enumerate((train, test))]
    return Digits(train, data.train.target[:n], test, data.test.target[:m], *drawn)


def minutes(quick: bool) -> float:
    return float(os.environ.get("BENCH_DEEP_MINUTES", "1" if quick else "60"))


def train(name: str, make: Callable[..., Any], X: np.ndarray, y: np.ndarray | None, budget: float) -> Timed:
    """As many epochs as the budget of processor minutes allows, by what more pictures cost beyond a few."""
    data = (X,) if y is None else (X, y)

    def cost(rows: int) -> float:
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # an epoch of a few pictures is no training
            make(max_iter=1).fit(*(part[:rows] for part in data))
        return time.process_time() - began

    cost(TRIED)  # warm
    more = float(np.median([cost(3 * TRIED) - cost(TRIED) for _ in range(5)]))
    epoch = max(more, 0.01) / (2 * TRIED) * len(X)
    epochs = max(1, int(60 * budget / epoch))
    began, clock = time.process_time(), time.perf_counter()
    model = make(max_iter=epochs).fit(*data)
    used, seconds = (time.process_time() - began) / 60, time.perf_counter() - clock
    RESULTS.mkdir(exist_ok=True)
    stamp = datetime.now().strftime("%Y-%m-%d-%H%M%S")
    curves = {"model": repr(model), "cpu_minutes": used, "epochs": epochs, "history": model.history_}
    (RESULTS / f"deep_{name}_{stamp}.json").write_text(json.dumps(curves))
    if hasattr(model, "sample"):
        (RESULTS / f"deep_{name}_{stamp}.png").write_bytes(grid_png(model.sample(64, random_state=0), model.range_))
    return Timed(seconds, (model, used, epochs))


def event(
    name: str,
    title: str,
    make: Callable[..., Any],
    pick: Callable[[Digits], tuple[np.ndarray, np.ndarray | None]],
    judge: Callable[[Any, Digits], dict[str, float]],
    bar: tuple[str, Callable[[dict[str, float]], bool]],
) -> Callable[[bool], Event | Missing]:
    def prepare(quick: bool) -> Event | Missing:
        data = digits(quick)
        if isinstance(data, Missing):
            return data
        budget = minutes(quick)

        def quality(result: tuple[Any, float, int]) -> dict[str, float]:
            model, used, epochs = result
            return judge(model, data) | {"CPU minutes": used, "epochs": epochs}

        def met(rows: list[Row]) -> bool:
            return bar[1](rows[0].quality)

        return Event(
            f"deep_{name}",
            f"{title}, about {budget:g} CPU-minutes",
            [Contestant("twofold", lambda: train(name, make, *pick(data), budget), ours=True, warm=lambda: None)],
            quality=quality,
            as_good=lambda a, b: True,
            bar=Bar(bar[0], test=met),
            repeats=1,
        )

    return prepare


def judge_codes(model: Autoencoder, data: Digits) -> dict[str, float]:
    flat, test = (X.reshape(len(X), -1) / 255.0 for X in (data.train, data.test))
    linear = PCA(30).fit(flat)
    lost = ((test - linear.inverse_transform(linear.transform(test))) ** 2).sum(axis=1).mean()
    return {"squared error": -model.score(data.test / 255.0), "PCA": float(lost)}


def judge_bound(model: Any, data: Digits) -> dict[str, float]:
    likelihood = float(model.log_likelihood(data.binary_test, n_draws=DRAWS).mean())
    return {"-ELBO": -model.score(data.binary_test), f"nats ({DRAWS} draws)": -likelihood}


def exact(model: PixelCNN, data: Digits) -> dict[str, float]:
    nats = -model.score(data.binary_test)
    return {"nats": nats, "bits a pixel": nats / np.log(2) / 784}


def judge_by_classifier(model: GAN, data: Digits) -> dict[str, float]:
    """The distance in what the last hidden layer of a small classifier sees."""
    eye = CNNClassifier(max_iter=2, random_state=0).fit(data.train[:20_000], data.y[:20_000])

    def last_layer(module: Any, x: Any) -> Any:
        return module.dense[:-1](module.layers(module.prepared(x)).flatten(1))

    def features(X: np.ndarray) -> np.ndarray:
        return eye._through(last_layer, eye._read_images(np.asarray(X, dtype=np.float32))[1])

    found = frechet_distance(data.test, model.sample(len(data.test), random_state=0), features=features)
    return {"frechet_distance": found.distance, "floor": found.floor}


EVENTS = (
    event(
        "autoencoder",
        "30 numbers a digit, gray from 0 to 1; published: 2.65 (2.7 M weights, not pretrained)",
        lambda **o: Autoencoder(
            30,
            hidden_layer_sizes=(1000, 500, 250),
            output="logistic",
            noise=0.2,
            solver="adamw",
            alpha=19.2,
            batch_size=128,
            random_state=0,
            **o,
        ),
        lambda d: (d.train / np.float32(255), None),
        judge_codes,
        ("squared error a digit at most 2.65", lambda q: q["squared error"] <= 2.65),
    ),
    event(
        "vae",
        "static binarization; published: 89.8 to 89.9 nats",
        lambda **o: VAE(50, hidden_layer_sizes=(200, 200), activation="tanh", random_state=0, **o),
        lambda d: (d.binary, None),
        judge_bound,
        ("at most 89.8 nats", lambda q: next(v for k, v in q.items() if k.startswith("nats")) <= 89.8),
    ),
    event(
        "dlgm",
        "static binarization; published: about 86.6 nats",
        lambda **o: DLGM((32, 64), hidden_layer_sizes=200, activation="tanh", random_state=0, **o),
        lambda d: (d.binary, None),
        judge_bound,
        ("no bar: reported", lambda q: True),
    ),
    event(
        "pixelcnn",
        "static binarization; published: 81.3 to 81.5 nats",
        lambda **o: PixelCNN(n_layers=4, reach=14, learning_rate_init=5e-3, random_state=0, **o),
        lambda d: (d.binary, None),
        exact,
        ("at most 81.5 nats", lambda q: q["nats"] <= 81.5),
    ),
    event(
        "cnn",
        "ten classes",
        lambda **o: CNNClassifier(kernel_size=5, dropout=0.4, random_state=0, **o),
        lambda d: (d.train, d.y),
        lambda model, d: {"test accuracy %": 100 * model.score(d.test, d.goal)},
        ("at least 99.2 % right", lambda q: q["test accuracy %"] >= 99.2),
    ),
    event(
        "gan",
        "distance in what a small classifier sees, with the floor beside it",
        lambda **o: GAN(64, architecture="convolutional", random_state=0, **o),
        lambda d: (d.train, None),
        judge_by_classifier,
        ("no bar: reported", lambda q: True),
    ),
)
