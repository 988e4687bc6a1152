"""The figures of generators.md: every public function returns one, drawn when the documentation is built."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from scipy.stats import norm

from twofold import GAN, VAE, VAEGAN, MLPClassifier, PixelCNN, datasets
from twofold.deep import frechet_distance, gradient_variance
from twofold.plots.models.images import gray_mosaic
from twofold.plots.models.linear import rows_figure
from twofold.plots.style import COLORS, GREY, INK, SEQUENTIAL, new_figure, style

HELD = 397  # digits that are not learned from


@functools.cache
def _digits() -> tuple[np.ndarray, np.ndarray]:
    """Digits to learn from and digits held out, in an order of chance; pixels from 0 to 1."""
    X = datasets.digits().images / 16
    X = X[np.random.default_rng(0).permutation(len(X))]
    return X[HELD:], X[:HELD]


@functools.cache
def _binary() -> tuple[np.ndarray, np.ndarray]:
    """The same, every pixel drawn once for all (static)."""
    rng = np.random.default_rng(1)
    return tuple(rng.random(X.shape) < X for X in _digits())  # type: ignore[return-value]


def _vae(k: int, X: np.ndarray, **options: Any) -> VAE:
    settings = {
        "hidden_layer_sizes": (128,),
        "learning_rate_init": 3e-3,
        "batch_size": 32,
        "max_iter": 40,
        "random_state": 0,
        **options,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that numbers are not in use is the subject here
        return VAE(k, **settings).fit(X)


# --- the game -----------------------------------------------------------------------------------------------


def _play(rate: float, steps: int, in_turn: bool = False, curvature: float = 0.0) -> np.ndarray:
    """Positions (steps + 1, 2) of two players of min_a max_b  ab + γ/2 (a² − b²), from (1, 0)."""
    path = np.zeros((steps + 1, 2))
    path[0] = 1, 0
    for t, (a, b) in enumerate(path[:-1]):
        new = a - rate * (b + curvature * a)
        path[t + 1] = new, b + rate * ((new if in_turn else a) - curvature * b)
    return path


def generators_circles() -> Figure:
    """Gradient descent and ascent on a saddle: at once, in turn, averaged, and with curvature."""
    at_once, in_turn = _play(0.1, 250), _play(0.1, 250, in_turn=True)
    mean = np.cumsum(at_once, axis=0) / np.arange(1, len(at_once) + 1)[:, None]
    paths = {
        "both at once": at_once,
        "in turn": in_turn,
        "mean of the first": mean,
        "with curvature": _play(0.1, 250, curvature=0.3),
    }
    with style():
        figure = new_figure(11, 3)
        for ax, (title, path) in zip(figure.subplots(1, 4, sharex=True, sharey=True), paths.items(), strict=True):
            ax.plot(*path.T, color=COLORS[0], lw=1.2)
            ax.plot(*path[0], "o", color=GREY, ms=5)
            ax.plot(*path[-1], "o", color=COLORS[1], ms=6)
            ax.plot(0, 0, "+", color=INK, ms=10)
            ax.set(title=title, xlabel="a", aspect="equal")
        figure.axes[0].set_ylabel("b")
    return figure


# --- the bound ----------------------------------------------------------------------------------------------


def generators_bound() -> Figure:
    """The likelihood of pictures held out by importance sampling, over the number of draws."""
    X, held = _binary()
    model = _vae(8, X)
    draws = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    found = [model.log_likelihood(held, n_draws=s).mean() for s in draws]
    level = model.elbo(held, n_draws=64).mean()
    with style():
        figure = new_figure(7.4, 3.5)
        ax = figure.subplots()
        ax.plot(draws, found, color=COLORS[0], lw=2, marker="o", ms=4.5, label="importance sampling")
        ax.axhline(level, color=COLORS[1], lw=1.6, ls=(0, (4, 2)), label="evidence lower bound")
        ax.set(
            title="Digits held out, binarized once", xlabel="draws of the code", ylabel="nats a picture", xscale="log"
        )
        ax.set_xticks(draws, [str(s) for s in draws])
        ax.minorticks_off()
        ax.legend(loc="center right")
    return figure


def generators_noise() -> Figure:
    """How much noisier REINFORCE is than gradients through the code, over the length of the code."""
    X, _ = _binary()
    sizes = (1, 2, 4, 8, 16)
    found: dict[str, list[float]] = {"reparameterized": [], "reinforce": []}
    for k in sizes:
        noise = gradient_variance(_vae(k, X, max_iter=5), X[:64], n_draws=100, random_state=0)
        for name, values in found.items():
            values.append(noise[name].total)
    names = {"reparameterized": "through the code", "reinforce": "REINFORCE, with a baseline"}
    with style():
        figure = new_figure(7.4, 3.5)
        ax = figure.subplots()
        for color, (name, values) in zip(COLORS, found.items(), strict=False):
            ax.loglog(sizes, values, color=color, lw=2, marker="o", ms=4.5, label=names[name])
        ax.yaxis.set_major_formatter("{x:g}")
        ax.set(title="Noise of one gradient, 64 digits", xlabel="numbers in a code", ylabel="E ‖g − E g‖²")
        ax.set_xticks(sizes, [str(k) for k in sizes])
        ax.minorticks_off()
        ax.legend()
    return figure


def generators_silent() -> Figure:
    """What each number of a code says, for three weights of the divergence."""
    X, _ = _binary()
    with style():
        figure = new_figure(11, 3.1)
        axes = figure.subplots(1, 3, sharey=True)
        for ax, beta in zip(axes, (0.5, 1.0, 2.0), strict=True):
            model = _vae(24, X, beta=beta)
            kl = np.sort(model.latent_kl_)[::-1]
            used = int(model.active_.sum())
            ax.bar(np.arange(1, 25), kl, color=[COLORS[0] if v >= 0.01 else GREY for v in kl], width=0.75)
            ax.set(title=f"β = {beta:g}: {used} in use, {kl.sum():.1f} nats", xlabel="number of the code, sorted")
            ax.grid(axis="x", visible=False)
        axes[0].set_ylabel("nats it says of a picture")
    return figure


# --- the game -----------------------------------------------------------------------------------------------


def _mixture(x: np.ndarray, at: tuple[float, float], spread: tuple[float, float], share: float) -> np.ndarray:
    return share * norm.pdf(x, at[0], spread[0]) + (1 - share) * norm.pdf(x, at[1], spread[1])


def _drawn(n: int, at: tuple[float, float], spread: tuple[float, float], share: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    which = (rng.random(n) >= share).astype(int)
    return np.array(at)[which] + np.array(spread)[which] * rng.standard_normal(n)


def generators_critic() -> Figure:
    """A critic that is learned, and the best there is, p / (p + p_θ)."""
    real, made = ((-1.5, 1.8), (0.6, 0.8), 0.45), ((-0.2, 2.2), (1.1, 0.6), 0.7)
    n, x = 6000, np.linspace(-4.5, 4.5, 800)
    rows = np.concatenate([_drawn(n, *real, 0), _drawn(n, *made, 1)])[:, None]
    critic = MLPClassifier((32, 32), max_iter=15, batch_size=128, random_state=0).fit(rows, np.repeat([1, 0], n))
    p, q = _mixture(x, *real), _mixture(x, *made)
    middle = 0.5 * (p + q)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = 0.5 * (np.nan_to_num(p * np.log(p / middle)) + np.nan_to_num(q * np.log(q / middle)))
    exact = float(np.trapezoid(parts, x))
    fresh = [critic.predict_proba(_drawn(20_000, *kind, s)[:, None]) for kind, s in ((real, 2), (made, 3))]
    proved = 0.5 * (np.log(fresh[0][:, 1]).mean() + np.log(fresh[1][:, 0]).mean() + np.log(4))
    with style():
        figure = new_figure(11, 3.3)
        left, right = figure.subplots(1, 2)
        for color, (name, values) in zip(COLORS, {"p, the data": p, "p_θ, the generator": q}.items(), strict=False):
            left.fill_between(x, values, color=color, alpha=0.25, lw=0)
            left.plot(x, values, color=color, lw=2, label=name)
        left.set(title=f"Jensen–Shannon divergence {exact:.3f} nats", xlabel="x", ylabel="density")
        left.set_ylim(0, 0.4)
        left.legend(loc="upper center", ncols=2)
        right.plot(x, p / (p + q), color=GREY, lw=5, alpha=0.5, label="p / (p + p_θ)")
        right.plot(x, critic.predict_proba(x[:, None])[:, 1], color=INK, lw=1.8, label="critic, learned")
        right.set(title=f"The critic proves {proved:.3f} of it", xlabel="x", ylabel="chance that x is real")
        right.legend(loc="lower right")
    return figure


def generators_collapse() -> Figure:
    """How much the pictures of a generator differ, epoch by epoch, with a critic that is kept smooth or is not."""
    X, _ = _digits()
    kinds: dict[str, dict[str, Any]] = {
        "R1": {},
        "no penalty": {"penalty": "none"},
    }
    with style():
        figure = new_figure(11, 3.5)
        left, *others = figure.subplots(1, 3, width_ratios=[1.5, 1, 1])
        drawn = {}
        for color, (name, options) in zip(COLORS, kinds.items(), strict=False):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the collapse is the subject here
                model = GAN(
                    16, hidden_layer_sizes=(128, 128), learning_rate_init=1e-2, max_iter=15, random_state=0, **options
                ).fit(X)
            left.plot(range(1, 16), model.history_["diversity"], color=color, lw=2, label=name)
            drawn[name] = model.sample(36, random_state=0)
        left.set(title="Variance of the pictures", xlabel="epoch", ylabel="share of the data's", ylim=(0, 1.05))
        left.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        left.legend()
        for ax, name in zip(others, drawn, strict=True):
            ax.imshow(255 - gray_mosaic(drawn[name], 6, (0, 1)), cmap="gray", vmin=0, vmax=255, interpolation="none")
            ax.set_title(name)
            ax.axis("off")
    return figure


# --- pixel by pixel -----------------------------------------------------------------------------------------


def generators_masks() -> Figure:
    """The pixels that the distribution of one pixel depends on, for one, two and four layers."""
    X = _binary()[0]
    with style():
        figure = new_figure(11, 3.3)
        axes = figure.subplots(1, 3)
        for ax, layers in zip(axes, (1, 2, 4), strict=True):
            big = np.kron(X[:200], np.ones((1, 2, 2)))[:, :13, :13]
            model = PixelCNN(8, n_layers=layers, reach=2, max_iter=1, learning_rate_init=0.01, random_state=0).fit(big)
            x = torch.full((1, 1, 13, 13), 0.5, requires_grad=True)
            with torch.enable_grad():
                model.module_(x)[0, 0, 7, 6].backward()
            assert x.grad is not None
            felt = np.abs(x.grad[0, 0].numpy())
            ax.imshow(np.log10(felt + 1e-4 * felt.max()), cmap=SEQUENTIAL, interpolation="none")
            ax.plot([6], [7], marker="s", ms=9, color=COLORS[1])
            ax.set(title=f"{layers} layer{'s' if layers > 1 else ''} behind the first", xticks=[], yticks=[])
            ax.grid(visible=False)
            ax.spines[:].set_visible(False)
    return figure


def generators_binarised() -> Figure:
    """Binary pictures drawn once for all, and drawn anew for every epoch: likelihood of the same pictures held out."""
    gray, _ = _digits()
    once, held = _binary()
    rng = np.random.default_rng(2)
    epochs, times = 60, 20
    anew = np.concatenate([rng.random(gray.shape) < gray for _ in range(times)])
    models = {
        "static": (_vae(8, once, max_iter=epochs), once),
        "dynamic": (_vae(8, anew, max_iter=epochs // times), anew[: len(once)]),  # as many steps
    }
    with style():
        figure = new_figure(7.4, 2.3)
        ax = figure.subplots()
        for i, (model, seen) in enumerate(models.values()):
            found = [-float(model.log_likelihood(X[:HELD], n_draws=64).mean()) for X in (seen, held)]
            ax.plot(found, [i, i], color=GREY, lw=1.5, zorder=1)
            for color, nats, name in zip((COLORS[1], COLORS[0]), found, ("learned from", "held out"), strict=True):
                ax.plot([nats], [i], "o", ms=9, color=color, label=None if i else name)
                ax.annotate(f"{nats:.2f}", (nats, i), xytext=(0, 9), textcoords="offset points", ha="center")
        ax.set_yticks(range(2), ["binarized once", "anew each epoch"])
        ax.set_ylim(1.5, -0.6)
        ax.margins(x=0.15)
        ax.set(xlabel="−log p a picture, nats: lower is better")
        ax.grid(axis="y", visible=False)
        ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


# --- all of them --------------------------------------------------------------------------------------------


def generators_samples() -> Figure:
    """What each generator draws after some seconds of training, with the Fréchet distance of its pixels."""
    X, held = _digits()
    makers: dict[str, Any] = {
        "VAE": VAE(
            8,
            hidden_layer_sizes=(128, 128),
            output="gaussian",
            learning_rate_init=3e-3,
            batch_size=50,
            max_iter=30,
            random_state=0,
        ),
        "GAN": GAN(16, hidden_layer_sizes=(128, 128), max_iter=45, random_state=0),
        "VAEGAN": VAEGAN(8, hidden_layer_sizes=(128,), learning_rate_init=4e-3, max_iter=25, random_state=0),
        "PixelCNN": PixelCNN(16, n_layers=3, max_iter=5, learning_rate_init=6e-3, random_state=0),
    }
    rows = {"data": held[:18]}
    for name, model in makers.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X)
        drawn = model.sample(HELD, random_state=0)
        found = frechet_distance(held, drawn)
        rows[f"{name}  {found.distance:.2f}"] = drawn[:18]
    rows = {f"data  (floor {found.floor:.2f})" if name == "data" else name: values for name, values in rows.items()}
    return rows_figure(rows, (0, 1))
