"""The figures of completion.md: every public function returns one, drawn when the documentation is built."""

from __future__ import annotations

import warnings

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import PercentFormatter
from scipy import sparse

from twofold import (
    ALS,
    SVP,
    Biases,
    EarlyStopping,
    GradientFactorization,
    MeanImpute,
    Neighborhood,
    SoftImpute,
    SVDPlusPlus,
    datasets,
)
from twofold.linalg import low_rank, robust_pca
from twofold.plots.models import completion as plots
from twofold.plots.style import COLORS, GREY, INK, PALE, new_figure, style

RNG = np.random.default_rng


def _rms(error: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(error))))


def _films(share: float = 0.2) -> tuple[sparse.csr_array, sparse.csr_array, np.ndarray]:
    """The bundled ratings as a table, some of them held out, and what they would be without noise."""
    world = datasets.ratings()
    index = {title: j for j, title in enumerate(world.films["item"])}
    i = world.ratings["user"].to_numpy()
    j = np.array([index[title] for title in world.ratings["item"]])
    x = world.ratings["rating"].to_numpy()
    test = RNG(0).random(len(x)) < share
    shape = world.truth.expected.shape
    train, held = (sparse.csr_array((x[own], (i[own], j[own])), shape=shape) for own in (~test, test))
    return train, held, world.truth.expected


def _cells(X: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices


def _error(model: object, held: sparse.csr_array) -> np.ndarray:
    return np.clip(model.predict(*_cells(held)), 0.5, 5) - held.data


def completion_landscape() -> Figure:
    """The scalar case, and how algorithms move in it."""
    x, step = 1.4, 0.12

    def descend(u: float, z: float, reg: float, steps: int) -> np.ndarray:
        path = [(u, z)]
        for _ in range(steps):
            u, z = u + step * (z * (x - u * z) - reg * u), z + step * (u * (x - u * z) - reg * z)
            path.append((u, z))
        return np.array(path)

    def alternate(u: float, z: float, reg: float, sweeps: int) -> np.ndarray:
        path = [(u, z)]
        for _ in range(sweeps):
            u = x * z / (z * z + reg)
            path.append((u, z))
            z = x * u / (u * u + reg)
            path.append((u, z))
        return np.array(path)

    panels = {
        "No penalty: two valleys and a saddle": (
            0.0,
            {"gradient descent": descend(-0.4, 0.55, 0.0, 60), "from a long u": descend(2.4, 0.05, 0.0, 40)},
        ),
        "Ridge λ = 0.3: two points are left": (
            0.3,
            {"gradient descent": descend(-0.4, 0.55, 0.3, 90), "half-steps": alternate(0.0, 2.3, 0.3, 8)},
        ),
        "λ = 1.5 > x: only zero": (1.5, {"half-steps": alternate(0.0, 2.3, 1.5, 12)}),
    }
    return plots.landscape_figure(x, panels)


def completion_robust() -> Figure:
    """Error of the low-rank part of a planted table, over the share of cells with gross errors."""
    rng = np.random.default_rng(0)
    shares = np.linspace(0, 0.4, 9)
    errors: dict[str, list[float]] = {"truncated SVD, rank 3": [], "robust PCA": []}
    L = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 60))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where recovery ends, so does quick convergence
        for share in shares:
            X = np.where(rng.random(L.shape) < share, 20 * rng.normal(size=L.shape), L)
            for name, guess in zip(
                errors, (low_rank(X, 3), robust_pca(X, tol=1e-6, max_iter=400).low_rank), strict=True
            ):
                errors[name].append(max(np.linalg.norm(guess - L) / np.linalg.norm(L), 1e-7))
    with style():
        figure = new_figure(6.5, 3.4)
        ax = figure.subplots()
        for (name, values), color in zip(errors.items(), (GREY, COLORS[0]), strict=True):
            ax.semilogy(shares, values, color=color, lw=2, label=name)
        ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        ax.set(xlabel="cells with gross errors", ylabel="relative error of L")
        ax.legend()
    return figure


def completion_flow() -> Figure:
    """Gradient flow of a product: each path keeps u² − z², and singular values are learned one after the other."""
    t = np.linspace(0, 8, 400)
    with style():
        figure = new_figure(10.5, 3.6)
        left, right = figure.subplots(1, 2)
        for u, z in [(0.1, 0.1), (0.6, 0.1), (0.1, 0.6), (1.8, 0.1), (0.1, 1.8), (1.6, 1.6), (2.0, 1.2), (1.2, 2.0)]:
            path = [(u, z)]
            for _ in range(4000):
                left_over = 1 - u * z
                u, z = u + 0.005 * left_over * z, z + 0.005 * left_over * u
                path.append((u, z))
            left.plot(*np.array(path).T, color=COLORS[0], lw=1.2)
            left.plot(*path[0], "o", color=GREY, ms=4)
        u = np.linspace(0.45, 2.2, 100)
        left.plot(u, 1 / u, "--", color=INK, lw=1.5, label="u z = 1")
        left.set(title="Paths of the flow", xlabel="u", ylabel="z", xlim=(0, 2.2), ylim=(0, 2.2))
        left.legend()
        for x, color in zip((3.0, 1.5, 0.75), COLORS, strict=False):
            c = 1e-3
            right.plot(t, x + x * (c - x) / (c * np.exp(2 * x * t) + x - c), color=color, lw=2)
            right.text(8, x + 0.06, f"σ = {x:g}", color=color, ha="right")
        right.set(title="Products over time, from 0.001", xlabel="time", ylabel="u z", ylim=(-0.1, 3.4))
    return figure


def completion_filling() -> Figure:
    """A table of rank three filling up."""
    rng = RNG(3)
    a, b = np.linspace(0, 1, 56)[:, None], np.linspace(0, 1, 64)
    truth = np.sin(7 * a) * np.cos(5 * b) + np.cos(11 * a + 1) * np.sin(9 * b) + 0.7 * (a - 0.4) * np.sin(16 * b)
    seen = np.where(rng.random(truth.shape) < 0.3, truth, np.nan)
    tables = {"known: 30% of the cells": seen}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stopped early on purpose
        for sweeps in (1, 3, 40):
            filled = ALS(3, reg=1e-5, biases=False, tol=0, max_iter=sweeps, random_state=2).fit(seen).complete(seen)
            tables[f"{sweeps} sweep{'s' if sweeps > 1 else ''}: error {_rms(filled - truth) / truth.std():.0%}"] = (
                filled
            )
    reach = float(np.quantile(np.abs(truth), 0.98))
    return plots.tables_figure(tables, (-reach, reach))


def completion_curves() -> Figure:
    """Fitted and held-out error over the sweeps, with little and with enough penalty."""
    train, held, _ = _films()
    curves = {}
    for reg in (0.002, 0.1):
        fitted, others = (EarlyStopping(train, part, patience=10**6) for part in (train, held))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # run to the end on purpose
            ALS(20, reg=reg, tol=0, max_iter=15, random_state=0).set_callbacks(fitted, others).fit(train)
        lines = {"fitted ratings": fitted.scores_, "held-out ratings": others.scores_}
        title = f"reg = {reg:g}{', a firmer one' if reg == 0.1 else ''}"
        curves[title] = {name: [-score for score in scores] for name, scores in lines.items()}
    return plots.curves_figure(curves, "root mean square error")


def completion_strata() -> Figure:
    """Blocks that share no row and no column can be worked on at the same time."""
    m = 4
    with style():
        figure = new_figure(9.5, 2.8)
        for s, ax in enumerate(figure.subplots(1, m)):
            for a in range(m):
                for b in range(m):
                    own = (b - a) % m == s
                    ax.add_patch(Rectangle((b, m - 1 - a), 0.94, 0.94, color=COLORS[a] if own else PALE, lw=0))
                    if own:
                        ax.text(
                            b + 0.47, m - 0.53 - a, str(a + 1), color="white", ha="center", va="center", weight="bold"
                        )
            ax.set(xlim=(-0.05, m), ylim=(-0.05, m), xticks=[], yticks=[], aspect="equal")
            ax.set_title(f"stratum {s + 1}", fontsize=10.5)
            ax.grid(visible=False)
            ax.spines[:].set_visible(False)
    return figure


def completion_shrink() -> Figure:
    """What truncation and shrinkage do to singular values."""
    rng = RNG(0)
    n, r = 60, 5
    P, Q = (np.linalg.qr(rng.normal(size=(n, r)))[0] for _ in range(2))
    clean = P * np.linspace(26, 9, r) @ Q.T
    values = np.linalg.svd(clean + 0.45 * rng.normal(size=(n, n)), compute_uv=False)
    tau, c = values[r + 1], np.arange(1, 21)
    with style():
        figure = new_figure(9.5, 3.1)
        for ax, kept, name in zip(
            figure.subplots(1, 2, sharey=True),
            (np.where(c <= r, values[:20], 0), np.maximum(values[:20] - tau, 0)),
            (f"truncated to rank {r}", f"shrunk by τ = {tau:.1f}"),
            strict=True,
        ):
            ax.bar(c, values[:20], width=0.75, color="#c3d3e2", label="before")
            ax.bar(c, kept, width=0.75, color=COLORS[0], label="after")
            ax.plot(c[:r], np.linspace(26, 9, r), "_", ms=14, mew=2, color=COLORS[1], label="without noise")
            ax.set(title=name, xlabel="singular value", xticks=[1, 5, 10, 15, 20])
            ax.grid(axis="x", visible=False)
        ax.legend()
    return figure


def completion_phase() -> Figure:
    """Random tables of each rank, recovered or not from random cells."""
    n, trials = 32, 2
    fractions, ranks = np.linspace(0.1, 0.9, 9), np.arange(1, 14, 2)
    share = np.zeros((len(ranks), len(fractions)))
    for a, r in enumerate(ranks):
        for b, p in enumerate(fractions):
            if p * n * n < r * (2 * n - r):
                continue  # fewer cells than numbers to find
            for t in range(trials):
                rng = RNG([a, b, t])
                truth = rng.normal(size=(n, r)) @ rng.normal(size=(r, n))
                seen = np.where(rng.random((n, n)) < p, truth, np.nan)
                share[a, b] += _recovered(seen, truth, int(r)) / trials
    return plots.phase_figure({f"Tables of {n} × {n}, SVP": share}, fractions, ranks, (n, n))


def _recovered(seen: np.ndarray, truth: np.ndarray, rank: int) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the sweeps that are not enough are the point
        model = SVP(rank, max_iter=150, random_state=0).fit(seen)
    return bool(_rms(model.predict(seen) - truth) < 1e-2 * truth.std())


def completion_traps() -> Figure:
    """One model, four numbers; and precision that is not recall."""
    train, held, _ = _films()
    model = ALS(random_state=0).fit(train)
    error, own = _error(model, held), _cells(held)[0]
    users = np.unique(own)
    per_user = float(np.mean([_rms(error[own == u]) for u in users]))
    enough = np.bincount(own, minlength=train.shape[0])[own] >= 10
    numbers = {
        "fitted ratings": _rms(_error(model, train)),
        "only people with many": _rms(error[enough]),
        "averaged per person": per_user,
        "held out, pooled": _rms(error),
    }
    values = model.predict(train)
    values[_cells(train)] = -np.inf
    order = np.argsort(-values, axis=1, kind="stable")[:, :40]
    liked = np.zeros(train.shape, dtype=bool)
    liked[_cells(held)] = held.data >= 4
    some = liked.any(axis=1)
    hits = np.cumsum(np.take_along_axis(liked, order, axis=1), axis=1)[some]
    k = np.arange(1, 41)
    with style():
        figure = new_figure(11, 3.0)
        left, right = figure.subplots(1, 2, width_ratios=[1.15, 1])
        left.barh(list(numbers), list(numbers.values()), color=["#c3d3e2"] * 3 + [COLORS[0]], height=0.65)
        for name, value in numbers.items():
            left.annotate(f"{value:.3f}", (value, name), xytext=(4, 0), textcoords="offset points", va="center")
        left.set(title="One model, four kinds of RMSE", xlim=(0, 1.15 * max(numbers.values())))
        left.grid(axis="y", visible=False)
        right.plot(k, (hits / k).mean(axis=0), color=COLORS[0], lw=2, label="precision")
        right.plot(k, (hits / liked[some].sum(axis=1)[:, None]).mean(axis=0), color=COLORS[1], lw=2, label="recall")
        right.set(title="Lists of growing length", xlabel="items in the list", ylim=(0, None))
        right.legend()
    return figure


def completion_models() -> Figure:
    """Every model on the same held-out ratings, and the least error that noise allows."""
    train, held, expected = _films()
    rows, cols = _cells(held)
    floor = _rms(expected[rows, cols] - held.data)
    models = {
        "the mean": MeanImpute("global"),
        "item means": MeanImpute("column"),
        "Biases": Biases(),
        "Neighborhood": Neighborhood(),
        "SoftImpute, centered": SoftImpute(center=True, random_state=0),
        "GradientFactorization": GradientFactorization(random_state=0),
        "ALS": ALS(random_state=0),
        "SVDPlusPlus": SVDPlusPlus(random_state=0),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        errors = {name: _rms(_error(model.fit(train), held)) for name, model in models.items()}
    order = sorted(errors, key=lambda name: -errors[name])
    with style():
        figure = new_figure(9.5, 3.3)
        ax = figure.subplots()
        ax.barh(order, [errors[name] for name in order], color=COLORS[0], height=0.68)
        for name in order:
            ax.annotate(
                f"{errors[name]:.3f}", (errors[name], name), xytext=(4, 0), textcoords="offset points", va="center"
            )
        ax.axvline(floor, color=GREY, lw=1.6, ls=(0, (4, 2)))
        ax.text(floor + 0.004, len(order) - 0.42, f"noise {floor:.3f}", color=INK, ha="left", va="bottom", fontsize=9)
        ax.set(title="Root mean square error on held-out ratings", xlim=(0.5 * floor, 1.08 * max(errors.values())))
        ax.set_ylim(-0.6, len(order) + 0.2)
        ax.grid(axis="y", visible=False)
    return figure
