"""What an epoch costs: against a bare torch loop of the same network, and against scikit-learn's network."""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier as Theirs
from sklearn.preprocessing import scale
from torch import Tensor, nn

from bench.harness import Bar, Contestant, Event, Missing, Row, Timed
from twofold import datasets
from twofold.core.checks import InputError
from twofold.deep import VAE, CNNClassifier, MLPClassifier
from twofold.deep._variational import compute_loss

EPOCHS, BATCH = 3, 128
OPTIONS = {"batch_size": BATCH, "max_iter": EPOCHS, "alpha": 0.0, "random_state": 0}
OVERHEAD = 1.05  # times the bare loop's seconds, which the bar allows


def mnist() -> Any:
    try:
        return datasets.fetch("mnist")
    except InputError as error:
        return Missing("deep", str(error))


def digits(n: int) -> tuple[np.ndarray, np.ndarray] | Missing:
    data = mnist()
    return data if isinstance(data, Missing) else (data.train.images[:n], data.train.target[:n].astype(np.int64))


def pixels_of(images: np.ndarray) -> np.ndarray:
    return images[:, None].astype(np.float32) / np.float32(255)


def bare(model: Any, build: Any, X: np.ndarray, y: np.ndarray | None, loss: Any) -> Timed:
    """The usual loop: batches by index, a fused optimizer, nothing else."""
    torch.manual_seed(0)
    module = build()
    for layer in module.modules():
        if isinstance(layer, nn.Linear):  # laid out as torch does, which is faster for its optimizer
            layer.weight = nn.Parameter(layer.weight.detach().contiguous())
    rows = [torch.from_numpy(X)] + ([] if y is None else [torch.from_numpy(y)])
    optimizer = torch.optim.AdamW(module.parameters(), lr=model.learning_rate_init, weight_decay=0.0, fused=True)
    module.train()
    began = time.perf_counter()
    for _ in range(EPOCHS):
        for index in torch.randperm(len(X)).split(BATCH):
            value = loss(module, *(part[index] for part in rows))
            optimizer.zero_grad(set_to_none=True)
            value.backward()
            optimizer.step()
    return Timed(time.perf_counter() - began, float(value.detach()))


def ours(model: Any, *data: Any) -> Timed:
    model.fit(*data)
    return Timed(model.history_["seconds"][-1], model.history_["objective"][-1])


def no_dearer(rows: list[Row]) -> bool:
    mine = next(row.median for row in rows if row.ours)
    return all(mine <= OVERHEAD * row.median for row in rows if row.counts and not row.ours)


def fit_shapes(model: Any, *data: np.ndarray) -> Any:
    """A model that knows its shapes, from a short fit."""
    return model.set_params(max_iter=1).fit(*data).set_params(max_iter=EPOCHS)


def against_bare(
    name: str, data_title: str, model: Any, data: tuple, raw: tuple, loss: Any, plain: Any = None
) -> Event:
    """Our fit to `data` beside the bare loop over `raw`, the same pictures as the module takes them.

    The bare loop trains the model's own module and, where the module has parts that torch has not, the network that
    `plain` builds of torch's own.
    """
    loops = {"bare torch loop": model._build} | ({"bare loop, torch's layers": plain} if plain else {})
    return Event(
        name,
        f"{data_title}, {EPOCHS} epochs of batches of {BATCH}",
        [
            Contestant("twofold", lambda: ours(model, *data), ours=True, warm=lambda: fit_shapes(model, *data)),
            *(Contestant(k, partial(bare, model, build, *raw, loss), warm=lambda: None) for k, build in loops.items()),
        ],
        quality=lambda value: {"last loss": float(value)},
        as_good=lambda a, b: True,
        bar=Bar(f"at most {OVERHEAD} x the bare loop's time", test=no_dearer),
        budget=120.0,
        notes=["The bare loop starts from the same kind of weights; losses are of the last epoch and the last batch."],
    )


def classify(module: Any, x: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(module(x), target)


def mlp(quick: bool) -> Event | Missing:
    data = digits(6_000 if quick else 60_000)
    if isinstance(data, Missing):
        return data
    images, y = data
    flat = images.reshape(len(images), -1).astype(np.float32)
    seen = flat.std(axis=0) > 0
    ready = scale(flat[:, seen].astype(float)).astype(np.float32)  # once for all, as ours are

    def layers(module: Any, x: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(module.layers(x), target)

    what = f"MLP {seen.sum()}-512-256-10, {len(images):,} digits"
    return against_bare("deep_mlp_epoch", what, MLPClassifier((512, 256), **OPTIONS), (flat, y), (ready, y), layers)


def torch_cnn() -> nn.Module:
    """The network of CNNClassifier as it is written in torch's own layers, in the same layout."""
    layers = [nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Flatten(), nn.Dropout(0.25), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Dropout(0.25)]
    return nn.Sequential(*layers, nn.Linear(128, 10)).to(memory_format=torch.channels_last)


def cnn(quick: bool) -> Event | Missing:
    data = digits(3_000 if quick else 12_000)
    if isinstance(data, Missing):
        return data
    images, y = data
    model, what = CNNClassifier(**OPTIONS), f"CNN, {len(images):,} digits"
    return against_bare("deep_cnn_epoch", what, model, (images, y), (pixels_of(images), y), classify, torch_cnn)


def vae(quick: bool) -> Event | Missing:
    data = digits(6_000 if quick else 60_000)
    if isinstance(data, Missing):
        return data

    def elbo(module: Any, x: Tensor) -> Tensor:
        return compute_loss(module, x, torch.randn(len(x), module.n_codes), 1.0)[0]

    what = f"VAE 784-500-500-32, {len(data[0]):,} digits"
    model = VAE(warm_up=0.0, **OPTIONS)
    return against_bare("deep_vae_epoch", what, model, (data[0],), (pixels_of(data[0]), None), elbo)


class Watched(Theirs):
    """Scikit-learn's classifier, which notes when an epoch ends."""

    def _update_no_improvement_count(self, *args: Any) -> None:
        self.ends_ = [*getattr(self, "ends_", []), time.perf_counter()]
        super()._update_no_improvement_count(*args)


def against_sklearn(quick: bool, dtype: type = np.float32) -> Event | Missing:
    """In single precision both compute the same; in double, as of bytes divided by 255, only scikit-learn does."""
    data = mnist()
    if isinstance(data, Missing):
        return data
    n = 6_000 if quick else 60_000
    X = (data.train.images[:n].reshape(n, -1) / 255).astype(dtype)
    y = data.train.target[:n]
    test, goal = (data.test.images.reshape(10_000, -1) / 255).astype(dtype), data.test.target

    def fit(model: Any, rows: int = n) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(X[:rows], y[:rows])

    def epoch(model: Any) -> Timed:
        """The mean of the epochs after the first, without what is done once; the whole fit is noted beside it."""
        began = time.perf_counter()
        fit(model)
        whole = time.perf_counter() - began
        ends = model.ends_ if isinstance(model, Watched) else model.history_["seconds"]
        return Timed(float(np.diff(ends).mean()), (model, whole))

    def quality(result: tuple[Any, float]) -> dict[str, float]:
        return {"test accuracy %": 100 * result[0].score(test, goal), "whole fit s": result[1]}

    def make_model() -> Any:
        return MLPClassifier((128,), learning_rate_init=1e-3, batch_size=200, max_iter=EPOCHS, random_state=0)

    def theirs() -> Any:
        return Watched((128,), batch_size=200, max_iter=EPOCHS, random_state=0)

    return Event(
        f"deep_sklearn_{np.dtype(dtype)}",
        f"An epoch of MLP 784-128-10, {n:,} digits, {np.dtype(dtype)}, batches of 200, Adam at 0.001",
        [
            Contestant("twofold", lambda: epoch(make_model()), ours=True, warm=lambda: fit(make_model(), 1000)),
            Contestant("scikit-learn", lambda: epoch(theirs()), warm=lambda: fit(theirs(), 1000)),
        ],
        quality=quality,
        as_good=lambda a, b: a["test accuracy %"] >= b["test accuracy %"] - 0.5,
        bar=Bar("at least 1.5 x as fast as scikit-learn an epoch", ratio=1.5),
        budget=60.0,
    )


EVENTS = (mlp, cnn, vae, against_sklearn, partial(against_sklearn, dtype=np.float64))
