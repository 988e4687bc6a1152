"""The figures of factors.md: every public function returns one, drawn when the documentation is built."""

from __future__ import annotations

import warnings
from typing import Any
from unittest import mock

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twofold import ALS, NMF, PCA, PLSA, Factorization, KMeans, datasets
from twofold.factors import (
    L1,
    Absolute,
    Constraint,
    Huber,
    KSparse,
    Logistic,
    Loss,
    NonNegative,
    OneHot,
    Orthonormal,
    Poisson,
    Ridge,
    Simplex,
    Squared,
    UnitNorm,
    factorization,
)
from twofold.factors._right_step import make_extrapolation
from twofold.plots.style import COLORS, GREY, INK, new_figure, style

RNG = np.random.default_rng


# ---- losses and their parabolas --------------------------------------------------------------------------------


def _parabola(ax: Axes, loss: Loss, x: float, at: float, m: np.ndarray) -> None:
    """The loss of one cell, the parabola that touches it at the model's value, and where that one is lowest."""
    cell, here = np.array([[x]]), np.array([[at]])
    value, slope, curvature = (float(f(cell, here)[0, 0]) for f in (loss.value, loss.slope, loss.curvature))
    curve = loss.value(np.full((len(m), 1), x), m[:, None])[:, 0]
    above = value + slope * (m - at) + 0.5 * curvature * (m - at) ** 2
    _touching(ax, m, curve, above, at, at - slope / curvature)


def _touching(ax: Axes, m: np.ndarray, curve: np.ndarray, above: np.ndarray, at: float, lowest: float) -> None:
    ax.plot(m, curve, color=INK, lw=2)
    ax.plot(m, above, color=COLORS[0], lw=1.6, ls=(0, (4, 2)))
    for where, color, line in ((at, INK, curve), (lowest, COLORS[1], above)):
        ax.plot(where, np.interp(where, m, line), "o", color=color, ms=6, zorder=4)
    top = float(curve.max())
    ax.set(ylim=(float(curve.min()) - 0.12 * top, 1.05 * top), xlim=(m[0], m[-1]))
    ax.set_yticks([])


def factors_parabolas() -> Figure:
    """Six losses of a cell, each below a simpler curve that touches it."""
    shown: dict[str, tuple[Loss, float, float, float, float]] = {
        "Squared, x = 1": (Squared(), 1.0, -1.6, -3.0, 4.0),
        "Huber, x = 1": (Huber(), 1.0, -1.6, -3.0, 4.0),
        "Absolute, x = 1": (_AbsoluteOfOneCell(), 1.0, -1.6, -3.0, 4.0),
        "Logistic, x = 1": (Logistic(), 1.0, -2.0, -4.0, 6.0),
        "Poisson, log link, x = 3": (Poisson(link="log"), 3.0, 0.2, -1.5, 2.4),
    }
    with style():
        figure = new_figure(11, 4.9)
        axes = figure.subplots(2, 3).ravel()
        for ax, (name, (loss, x, at, low, high)) in zip(axes, shown.items(), strict=False):
            _parabola(ax, loss, x, at, np.linspace(low, high, 1401))
            ax.set(title=name, xlabel="value of the model, m" if ax in axes[3:5] else "")
        _logarithms(axes[5])
        axes[0].set_ylabel("loss of the cell")
        axes[3].set_ylabel("loss of the cell")
    return figure


class _AbsoluteOfOneCell(Absolute):
    """Absolute error; its curvature is bounded by the errors of a whole row, which a single cell does not have."""

    def curvature(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return 1 / np.abs(X - M)


def _logarithms(ax: Axes) -> None:
    """m − x log m with m = f + 1: what Jensen's inequality puts above it is a sum of logarithms of f."""
    x, at, f = 4.0, 0.5, np.linspace(0.03, 6.5, 1401)
    share = at / (at + 1)
    loss = Poisson()
    curve = loss.value(np.full((len(f), 1), x), f[:, None] + 1)[:, 0]
    above = f - x * share * np.log(f)
    above += np.interp(at, f, curve - above)
    _touching(ax, f, curve, above, at, x * share)
    ax.set(title="Poisson, x = 4, m = f + 1", xlabel="one number of a factor, f")


# ---- proximal steps --------------------------------------------------------------------------------------------


def factors_prox() -> Figure:
    """What the proximal step makes of a number, and of points of the plane."""
    sets: dict[str, Constraint] = {
        "Simplex": Simplex(), "OneHot": OneHot(), "UnitNorm": UnitNorm(), "KSparse(1)": KSparse(1),
    }  # fmt: skip
    with style():
        figure = new_figure(9, 6)
        axes = figure.subplots(2, 3).ravel()
        for ax, sides in zip(axes, ((Ridge(1.0), L1(1.0)), (NonNegative(),)), strict=False):
            f = np.linspace(-1.6, 1.6, 321)[:, None]
            ax.plot(f, f, color=GREY, lw=1, ls=(0, (2, 2)))
            for color, side in zip(COLORS, sides, strict=False):
                ax.plot(f, side.prox(f, 0.6), color=color, lw=2, label=type(side).__name__)
            ax.set(aspect="equal", xlim=(-1.6, 1.6), ylim=(-1.6, 1.6), xlabel="before", xticks=[0, 1], yticks=[0, 1])
            ax.set_title(", ".join(type(side).__name__ for side in sides))
        axes[0].legend(loc="upper left")
        axes[0].set_ylabel("after")
        for ax, (name, side) in zip(axes[2:], sets.items(), strict=True):
            _arrows(ax, side)
            ax.set_title(name)
    return figure


def _arrows(ax: Axes, side: Constraint) -> None:
    before = RNG(3).uniform(-1.45, 1.45, (26, 2))
    after = side.prox(before, 1.0)
    circle = np.linspace(0, 2 * np.pi, 200)
    lines: dict[type, list[Any]] = {
        Simplex: [([0, 1], [1, 0])], OneHot: [], UnitNorm: [(np.cos(circle), np.sin(circle))],
        KSparse: [([-1.6, 1.6], [0, 0]), ([0, 0], [-1.6, 1.6])],
    }  # fmt: skip
    for line in lines[type(side)]:
        ax.plot(*line, color=COLORS[1], lw=2.2, zorder=1)
    for a, b in zip(before, after, strict=True):
        ax.annotate(
            "", b, a, arrowprops={"arrowstyle": "-|>", "color": GREY, "lw": 0.8, "shrinkA": 0, "shrinkB": 1}, zorder=2
        )
    ax.plot(*before.T, "o", color=COLORS[0], ms=3.5, zorder=3)
    ax.plot(*np.unique(after.round(9), axis=0).T, "o", color=COLORS[1], ms=4.5, zorder=4)
    ax.set(aspect="equal", xlim=(-1.6, 1.6), ylim=(-1.6, 1.6), xticks=[0, 1], yticks=[0, 1])


# ---- what a loss decides ---------------------------------------------------------------------------------------


def factors_lines() -> Figure:
    """The same points, one in ten of them wrong, and the line of three losses."""
    rng = RNG(1)
    t = rng.normal(size=160)
    X = np.column_stack([t, 0.5 * t]) * 2 + rng.normal(scale=0.25, size=(160, 2))
    wrong = np.arange(160) % 10 == 0
    X[wrong, 1] += rng.uniform(4, 9, wrong.sum())
    with style():
        figure = new_figure(7.4, 3.6)
        ax = figure.subplots()
        for color, loss in zip(COLORS, (Squared(), Huber(0.5), Absolute()), strict=False):
            model = Factorization(1, loss=loss, intercept=True, n_init=12, random_state=0).fit(X)
            middle = model.intercept_ + model.components_[0] * np.median(model.transform(X))
            slope = model.components_[0, 1] / model.components_[0, 0]
            at = np.array([-7.0, 7.0])
            name = type(loss).__name__
            ax.plot(at, middle[1] + slope * (at - middle[0]), color=color, lw=2.2, label=name)
        ax.plot(*X[~wrong].T, "o", color=INK, ms=3.5, alpha=0.6, mew=0)
        ax.plot(*X[wrong].T, "x", color=INK, ms=5, label="wrong")
        ax.set(xlim=(-6, 6), ylim=(-4.5, 10.5), title="The line closest to most points, or to all")
        ax.legend(loc="upper left")
    return figure


def factors_held_out() -> Figure:
    """Hidden cells of a table of yes and no, predicted by two losses, over the strength of the ridge."""
    X = (datasets.digits().data[:400] >= 8).astype(float)
    hidden = RNG(0).random(X.shape) < 0.15
    seen = np.where(hidden, np.nan, X)
    alphas = (0.5, 1, 2, 4, 8, 16)
    with style():
        figure = new_figure(7.4, 3.4)
        ax = figure.subplots()
        for color, loss in zip(COLORS, (Squared(), Logistic()), strict=False):
            found = []
            for a in alphas:
                line = {"loss": loss, "left": Ridge(a), "right": Ridge(a), "intercept": True}
                p = Factorization(16, tol=1e-4, max_iter=200, random_state=0, **line).fit(seen).complete(seen)[hidden]
                p = np.clip(p, 0.01, 0.99)
                found.append(-np.mean(np.where(X[hidden] > 0, np.log(p), np.log(1 - p))))
            ax.plot(alphas, found, color=color, lw=2, marker="o", ms=4, label=f"{type(loss).__name__}()")
        ax.set(xscale="log", xlabel="ridge of both factors", ylabel="surprise at a hidden cell, nats")
        ax.set_xticks(alphas, [f"{a:g}" for a in alphas])
        ax.minorticks_off()
        ax.set_title("Digits in black and white, 16 components")
        ax.legend()
    return figure


# ---- sweeps and starts -----------------------------------------------------------------------------------------


def factors_ahead() -> Figure:
    """Objectives over the sweeps, with and without running ahead."""
    X = datasets.digits().data[:300]
    problems: dict[str, tuple[np.ndarray, dict]] = {
        "NMF": (X, {"left": NonNegative(), "right": NonNegative()}),
        "sparse PCA": (X, {"left": UnitNorm(), "right": L1(20.0), "intercept": True}),
        "pLSA": (X, {"loss": Poisson(), "left": NonNegative(), "right": Simplex()}),
    }
    with style():
        figure = new_figure(11, 3.2)
        for ax, (name, (table, line)) in zip(figure.subplots(1, 3), problems.items(), strict=True):
            curves = {}
            for kind, ahead in (("plain sweeps", lambda p: None), ("running ahead", make_extrapolation)):
                model = Factorization(10, tol=0, max_iter=300, random_state=1, **line)
                with mock.patch.object(factorization, "make_extrapolation", ahead):
                    _end(model, table)
                curves[kind] = np.array(model.history_["objective"])
            least = min(curve.min() for curve in curves.values())
            for color, (kind, curve) in zip((GREY, COLORS[0]), curves.items(), strict=True):
                ax.plot(np.arange(1, len(curve) + 1), curve / least - 1, color=color, lw=2, label=kind)
            ax.set(xscale="log", yscale="log", ylim=(1e-5, 2), xlabel="sweep", title=name)
            ax.set_xticks([1, 10, 100], ["1", "10", "100"])
            ax.set_yticks([1e-4, 1e-2, 1], ["0.01%", "1%", "100%"])
            ax.minorticks_off()
        figure.axes[0].set_ylabel("objective above the least")
        figure.axes[2].legend(loc="lower left")
    return figure


def factors_starts() -> Figure:
    """Where twelve starts of a line end, beside the model made for it."""
    X = datasets.digits().data[:200]
    C, k, seeds = X - X.mean(axis=0), 6, range(12)
    lines: dict[str, tuple[np.ndarray, dict, Any]] = {
        "PCA": (C, {"right": Orthonormal()}, 0.5 * (len(C) - 1) * PCA(k).fit(C).reconstruction_error()),
        "ALS": _als(C, k),
        "pLSA": (X, {"loss": Poisson(), "left": NonNegative(), "right": Simplex()}, _plsa(X, k, seeds)),
        "NMF": (X, {"left": NonNegative(), "right": NonNegative()}, _end(NMF(k, tol=1e-8, max_iter=2000), X)),
        "dictionary": (X, {"left": KSparse(2), "right": UnitNorm()}, None),
        "k-means": (X, {"left": OneHot()}, 0.5 * KMeans(k, n_init=12, random_state=0).fit(X).inertia_),
    }
    with style():
        figure = new_figure(8.6, 3.4)
        ax = figure.subplots()
        for row, (table, line, dedicated) in enumerate(lines.values()):
            ends = [_end(Factorization(k, tol=1e-6, max_iter=1000, random_state=s, **line), table) for s in seeds]
            least = min(ends) if dedicated is None else min(min(ends), dedicated)
            apart = np.linspace(-0.24, 0.24, len(ends))
            ax.plot(np.array(ends) / least - 1, row + apart, "o", color=COLORS[0], ms=5, alpha=0.7, mew=0)
            if dedicated is not None:
                ax.plot(dedicated / least - 1, row, "|", color=COLORS[1], ms=26, mew=2.4, zorder=1)
        ax.set_yticks(range(len(lines)), list(lines))
        ax.set(xlabel="objective above the least found", ylim=(len(lines) - 0.5, -0.5), xlim=(-0.004, None))
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
        ax.grid(axis="y", visible=False)
        ax.plot([], [], "o", color=COLORS[0], ms=5, label="Factorization, a start each")
        ax.plot([], [], "|", color=COLORS[1], ms=12, mew=2.4, label="the model made for it")
        ax.legend(loc="upper right")
        ax.set_title("Twelve starts of six models")
    return figure


def _end(model: Any, X: np.ndarray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it may not have ended
        return model.fit(X).history_["objective"][-1]


def _als(X: np.ndarray, k: int) -> tuple[np.ndarray, dict, float]:
    """ALS of a table without holes: the ridges it counts out, and its objective in the units of this page."""
    model = ALS(k, reg=0.02, biases=False, solver="cholesky", tol=1e-12, max_iter=2000, random_state=0)
    end, (n, d) = _end(model, X), X.shape
    return X, {"left": Ridge(model.reg_ * d), "right": Ridge(model.reg_ * n)}, 0.5 * end


def _plsa(X: np.ndarray, k: int, seeds: range) -> float:
    """The divergence of the best pLSA, with every row given its own total."""
    fits = [PLSA(k, tol=1e-6, max_iter=1000, random_state=s) for s in seeds]
    best = min(fits, key=lambda model: _end(model, X))
    M = X.sum(axis=1, keepdims=True) * (best.transform(X) @ best.components_)
    return float(Poisson().value(X, M).sum())
