"""The figures of networks.md: every public function returns one, drawn when the documentation is built."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from twofold import PCA, Autoencoder, CNNClassifier, EarlyStopping, MLPClassifier, datasets
from twofold.deep import minimize
from twofold.plots.models.images import gray_mosaic
from twofold.plots.models.linear import planes_figure
from twofold.plots.style import COLORS, GREY, INK, new_figure, style

HELD = 400  # digits that are not learned from
SOLVERS: dict[str, dict[str, Any]] = {
    "sgd": {"solver": "sgd", "momentum": 0.0, "learning_rate_init": 0.1},
    "momentum": {"solver": "sgd", "nesterovs_momentum": False, "learning_rate_init": 0.02},
    "nesterov": {"solver": "sgd", "learning_rate_init": 0.02},
    "adagrad": {"solver": "adagrad", "learning_rate_init": 0.02},
    "adam": {"solver": "adam", "learning_rate_init": 3e-3},
}
EVERY_EPOCH: dict[str, Any] = {"learning_rate": "constant", "batch_size": 64, "n_iter_no_change": np.inf}
NAMES = {
    "sgd": "plain gradient",
    "momentum": "heavy ball",
    "nesterov": "Nesterov",
    "adagrad": "Adagrad",
    "adam": "Adam",
}


@functools.cache
def _digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Digits to learn from, digits held out, and their classes, in an order of chance."""
    found = datasets.digits()
    order = np.random.default_rng(0).permutation(len(found.target))
    X, y = found.images[order], found.target[order]
    return X[HELD:], X[:HELD], y[HELD:], y[:HELD]


# --- optimizers ---------------------------------------------------------------------------------------------


RATES = {"sgd": 0.07, "momentum": 0.025, "nesterov": 0.025, "adagrad": 0.7, "adam": 0.25}  # in the valley


def _paths(steps: int) -> dict[str, np.ndarray]:
    """The way of each optimizer down a valley that is 25 times steeper across than along."""
    paths = {}
    for name, rate in RATES.items():
        way = [np.array([-4.0, 1.2])]
        minimize(
            lambda x: 0.5 * (x[0] ** 2 + 25 * x[1] ** 2),
            way[0],
            name,
            learning_rate=rate,
            momentum=0.8,
            max_iter=steps,
            callback=way.append,
        )
        paths[name] = np.array(way)
    return paths


def networks_optimisers() -> Figure:
    """Five optimizers in a narrow valley, and on digits."""
    x, y = np.meshgrid(np.linspace(-4.6, 1.6, 200), np.linspace(-1.7, 1.7, 200))
    with style():
        figure = new_figure(11, 3.8)
        left, right = figure.subplots(1, 2, width_ratios=[1.15, 1])
        left.contour(
            x, y, 0.5 * (x**2 + 25 * y**2), levels=np.geomspace(0.2, 40, 9), colors=GREY, linewidths=0.6, alpha=0.6
        )
        for color, (name, way) in zip(COLORS, _paths(40).items(), strict=False):
            left.plot(*way.T, color=color, lw=1.7, marker="o", ms=2.5, label=NAMES[name])
        left.plot([0], [0], marker="+", ms=13, mew=2, color=INK)
        left.set(title="Forty steps in a narrow valley", xticks=[], yticks=[])
        left.grid(visible=False)
        left.spines[:].set_visible(False)
        X, _, target, _ = _digits()
        for color, (name, rule) in zip(COLORS, SOLVERS.items(), strict=False):
            model = MLPClassifier((64,), max_iter=15, random_state=0, **rule, **EVERY_EPOCH)
            model.fit(X.reshape(len(X), -1), target)
            right.semilogy(range(1, 16), model.history_["objective"], color=color, lw=2, label=NAMES[name])
        right.set(title="Digits, 64 hidden units", xlabel="epoch", ylabel="cross-entropy in training")
        right.yaxis.set_major_formatter("{x:g}")
        right.legend()
    return figure


def networks_rates() -> Figure:
    """Gradient steps of 1/L on a quadratic, below what smoothness and strong convexity promise."""
    steps, smooth, low = 150, 1.0, 0.05
    slopes = np.linspace(low, smooth, 20)
    start = np.ones(20) / slopes
    found: dict[str, list[float]] = {"value": [], "slope": []}

    def note(x: np.ndarray) -> None:
        found["value"].append(0.5 * slopes @ x**2)
        found["slope"].append(float(np.linalg.norm(slopes * x)))

    note(start)
    minimize(
        lambda x: 0.5 * slopes @ x**2, start, "sgd", gradient=lambda x: slopes * x,
        learning_rate=1 / smooth, max_iter=steps, tol=0, callback=note,
    )  # fmt: skip
    k = np.arange(steps + 1)
    first = found["value"][0]
    with style():
        figure = new_figure(11, 3.4)
        left, right = figure.subplots(1, 2)
        best = np.minimum.accumulate(found["slope"])
        left.loglog(
            k[1:], np.sqrt(2 * smooth * first / k[1:]), "--", color=GREY, lw=2, label="smooth: √(2L(ℓ₀ − ℓ*)/k)"
        )
        left.loglog(k[1:], best[1:], color=COLORS[0], lw=2, label="found")
        left.set(title="Length of the gradient, the shortest so far", xlabel="step k")
        right.semilogy(k, first * (1 - low / smooth) ** k, "--", color=GREY, lw=2, label="PL: (1 − μ/L)ᵏ (ℓ₀ − ℓ*)")
        right.semilogy(k, found["value"], color=COLORS[0], lw=2, label="found")
        right.set(title="Loss above its minimum", xlabel="step k")
        for axis in (left.xaxis, left.yaxis, right.yaxis):
            axis.set_major_formatter("{x:g}")
        left.legend()
        right.legend()
    return figure


# --- losses -------------------------------------------------------------------------------------------------


def networks_surrogates() -> Figure:
    """Convex losses above the 0-1 loss, over the margin."""
    m = np.linspace(-2, 2.5, 451)
    losses = {
        "logistic": np.log2(1 + np.exp(-m)),
        "hinge": np.maximum(0, 1 - m),
        "exponential": np.exp(-m),
        "squared": (1 - m) ** 2,
    }
    with style():
        figure = new_figure(5.5, 3.6)
        ax = figure.subplots()
        ax.plot(m, m <= 0, color=INK, lw=2.5, label="0-1")
        for (name, loss), color in zip(losses.items(), COLORS, strict=False):
            ax.plot(m, loss, color=color, lw=1.8, label=name)
        ax.set(xlabel="margin y h", ylabel="loss", ylim=(-0.05, 4))
        ax.legend()
    return figure


# --- too free -----------------------------------------------------------------------------------------------


def networks_decay() -> Figure:
    """A network with far too many weights for 300 digits, some of them mislabelled: free, and held back."""
    X, held, y, truth = _digits()
    rng = np.random.default_rng(0)
    X, y = X[:300].reshape(300, -1), np.where(rng.random(300) < 0.3, rng.integers(0, 10, 300), y[:300])
    held = held.reshape(len(held), -1)
    kinds: dict[str, dict[str, Any]] = {
        "free": {},
        "weight decay": {"solver": "adamw", "alpha": 192.0},
        "dropout": {"dropout": 0.5},
    }

    def told(model: Any) -> float:
        """The mean log-probability of the truth."""
        return float(np.log(model.predict_proba(held)[np.arange(HELD), truth]).mean())

    with style():
        figure = new_figure(11, 3.4)
        left, right = figure.subplots(1, 2)
        for color, (name, options) in zip(COLORS, kinds.items(), strict=False):
            watch = EarlyStopping(score=told, patience=1000)
            model = MLPClassifier(
                (256, 256), learning_rate_init=2e-3, max_iter=50, random_state=0, **EVERY_EPOCH,
                **{"alpha": 0.0, **options},
            )  # fmt: skip
            model.set_callbacks(watch).fit(X, y)
            lost = -np.array(watch.scores_)
            left.plot(range(1, 51), model.history_["objective"], color=color, lw=2, label=name)
            right.plot(range(1, 51), lost, color=color, lw=2, label=name)
            right.plot([lost.argmin() + 1], [lost.min()], "o", ms=7, color=color)
        left.set(title="300 digits, some mislabelled", xlabel="epoch", ylabel="cross-entropy in training")
        right.set(title="400 digits held out", xlabel="epoch", ylabel="cross-entropy")
        left.legend()
        left.set_ylim(0, 2)
        right.set_ylim(0.4, 1.2)
    return figure


# --- convolutions -------------------------------------------------------------------------------------------


@functools.cache
def _cnn() -> CNNClassifier:
    X, _, y, _ = _digits()
    return CNNClassifier(
        (8, 16), hidden_layer_sizes=32, learning_rate_init=5e-3, dropout=0.1, batch_size=32, max_iter=10, random_state=0
    ).fit(X, y)


def networks_maps() -> Figure:
    """The kernels of a first layer, and where each finds what it looks for."""
    model, digits = _cnn(), _digits()[0][[0, 3]]
    module: Any = model.module_
    with torch.no_grad():
        pixels = torch.from_numpy(np.asarray(digits, dtype=np.float32))[:, None]
        seen = torch.relu(module.layers[0](module.standardize(pixels))).numpy()
    kernels = module.layers[0].weight.detach().numpy()[:, 0]  # (8,3,3)
    with style():
        figure = new_figure(11, 4.1)
        axes = figure.subplots(3, 9)
        for ax in axes.ravel():
            ax.axis("off")
        for j, kernel in enumerate(kernels):
            limit = np.abs(kernels).max()
            axes[0, j + 1].imshow(kernel, cmap="PuOr", vmin=-limit, vmax=limit, interpolation="none")
        for i, digit in enumerate(digits, start=1):
            axes[i, 0].imshow(digit, cmap="gray_r", interpolation="none")
            for j in range(len(kernels)):
                axes[i, j + 1].imshow(seen[i - 1, j], cmap="Blues", vmin=0, vmax=seen.max(), interpolation="none")
        axes[0, 0].text(0.5, 0.5, "kernels,\n3 × 3", ha="center", va="center", transform=axes[0, 0].transAxes)
    return figure


def _moved(X: np.ndarray, across: int) -> np.ndarray:
    """Pictures moved sideways, with nothing coming in."""
    out = np.zeros_like(X)
    if across == 0:
        return X
    if across > 0:
        out[:, :, across:] = X[:, :, :-across]
    else:
        out[:, :, :across] = X[:, :, -across:]
    return out


def networks_moved() -> Figure:
    """Digits held out, moved sideways: what dense layers and what convolutions make of them."""
    X, held, y, truth = _digits()
    dense = MLPClassifier((128,), max_iter=20, random_state=0).fit(X.reshape(len(X), -1), y)
    steps = range(-2, 3)
    found = {
        "dense": [dense.score(_moved(held, s).reshape(len(held), -1), truth) for s in steps],
        "convolutions": [_cnn().score(_moved(held, s), truth) for s in steps],
    }
    with style():
        figure = new_figure(11, 2.9)
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.2])
        some = [np.flatnonzero(truth == kind)[0] for kind in (2, 5, 8)]
        shown = np.stack([_moved(held[i : i + 1], s)[0] for i in some for s in steps])
        left.imshow(255 - gray_mosaic(shown, 5), cmap="gray", interpolation="none")
        left.axis("off")
        for color, (name, shares) in zip(COLORS, found.items(), strict=False):
            right.plot(steps, shares, color=color, lw=2, marker="o", label=name)
        right.set(title="Digits held out, moved sideways", xlabel="pixels to the right", ylabel="right", ylim=(0, 1.03))
        right.set_xticks(list(steps))
        right.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        right.legend()
    return figure


# --- autoencoders -------------------------------------------------------------------------------------------


def networks_autoencoder() -> Figure:
    """What codes of a few numbers lose, held out: PCA, an autoencoder without bends, and one with."""
    X, held, _, _ = _digits()
    X, held = X.reshape(len(X), -1), held.reshape(len(held), -1)
    sizes = (1, 2, 4, 8, 16)
    lost: dict[str, list[float]] = {"PCA": [], "autoencoder, linear": [], "autoencoder, two hidden layers": []}
    for k in sizes:
        pca = PCA(k).fit(X)
        plain = Autoencoder(
            k, hidden_layer_sizes=(), activation="identity", learning_rate_init=0.01, max_iter=30, random_state=0
        ).fit(X)
        deep = Autoencoder(k, hidden_layer_sizes=(128, 64), learning_rate_init=3e-3, max_iter=40, random_state=0).fit(X)
        lost["PCA"].append(float(((held - pca.inverse_transform(pca.transform(held))) ** 2).sum(axis=1).mean()))
        lost["autoencoder, linear"].append(-plain.score(held))
        lost["autoencoder, two hidden layers"].append(-deep.score(held))
    with style():
        figure = new_figure(7.4, 3.6)
        ax = figure.subplots()
        looks = ({"lw": 5, "alpha": 0.35, "color": COLORS[0]}, {"color": COLORS[0]}, {"color": COLORS[1]})
        for look, (name, values) in zip(looks, lost.items(), strict=True):
            ax.plot(sizes, values, label=name, marker="o", ms=4.5, **{"lw": 2, **look})
        ax.set(title="Digits held out", xlabel="numbers in a code", ylabel="squared error a picture", xscale="log")
        ax.set_xticks(sizes, [str(k) for k in sizes])
        ax.minorticks_off()
        ax.set_ylim(0)
        ax.legend()
    return figure


def networks_codes() -> Figure:
    """The digits in two numbers, straight and bent."""
    digits = datasets.digits()
    deep = Autoencoder(2, hidden_layer_sizes=(128, 64), learning_rate_init=3e-3, max_iter=40, random_state=0).fit(
        digits.data
    )
    planes = {
        "PCA": PCA(2).fit_transform(digits.data),
        "Autoencoder, two hidden layers": deep.transform(digits.data),
    }
    return planes_figure(planes, digits.target)
