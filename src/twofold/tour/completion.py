"""The completion station: people, films, and the ratings that are not given yet."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold import datasets
from twofold.completion.als import ALS
from twofold.completion.biases import Biases
from twofold.completion.recommender.recommender import Recommender
from twofold.completion.svd_plus_plus import SVDPlusPlus
from twofold.core.callbacks import EarlyStopping
from twofold.core.seeds import generator
from twofold.plots.models import completion as plots
from twofold.tour import Part, Station, fit_briefly

HELD_OUT = 0.2  # of the ratings
TABLE_SHAPE = (60, 80)  # people and films in the picture of the table
SWEEPS = 15


class World(NamedTuple):
    """The bundled ratings as a table, some held out, and the truth behind them."""

    films: Any
    train: sparse.csr_array  # (n,m)
    held: sparse.csr_array
    expected: np.ndarray  # (n,m) without noise
    frame: Any
    genre: list[str]  # of each film, the main one


def station(seed: int = 0) -> Station:
    """Find expectations, held-out errors, a map of films, recommendations, and the smallest landscape."""
    world = split_ratings(seed)
    model = SVDPlusPlus(random_state=seed).fit(world.train)
    (n, m), known = world.train.shape, world.train.nnz + world.held.nnz
    return {
        "n": n,
        "m": m,
        "known": known,
        "empty": 1 - known / (n * m),
        "filling": filling(world, model),
        "errors": errors(world, model, seed),
        "genres": genres(world, model),
        "advice": advice(world, seed),
        "two_questions": two_questions(world, seed),
        "landscape": landscape(),
    }


def split_ratings(seed: int) -> World:
    data = datasets.ratings(seed=seed)
    place = {title: j for j, title in enumerate(data.films["item"])}
    i, x = data.ratings["user"].to_numpy(), data.ratings["rating"].to_numpy()
    j = np.array([place[title] for title in data.ratings["item"]])
    out = generator(seed).random(len(x)) < HELD_OUT
    shape = data.truth.expected.shape
    train, held = (sparse.csr_array((x[own], (i[own], j[own])), shape=shape) for own in (~out, out))
    names = sorted({name for kinds in data.films["genres"].to_list() for name in kinds})
    genre = [names[g] for g in data.truth.genres.argmax(axis=1)]
    return World(data.films, train, held, data.truth.expected, data.ratings, genre)


def cells(X: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices.astype(np.int64)


def rms(model: Any, held: sparse.csr_array) -> float:
    guess = np.clip(model.predict(*cells(held)), 0.5, 5.0)
    return float(np.sqrt(np.mean((guess - held.data) ** 2)))


def filling(w: World, model: SVDPlusPlus) -> Part:
    rows = np.argsort(-np.diff(w.train.indptr), kind="stable")[: TABLE_SHAPE[0]]
    cols = np.argsort(-np.bincount(w.train.indices, minlength=w.train.shape[1]), kind="stable")[: TABLE_SHAPE[1]]
    taste = w.expected[np.ix_(rows, cols)]
    taste = taste - taste.mean(axis=1, keepdims=True) - taste.mean(axis=0) + taste.mean()
    left, _, right = np.linalg.svd(taste)  # ordered by the main taste, so that there is something to see
    rows, cols = rows[np.argsort(left[:, 0])], cols[np.argsort(right[0])]
    seen = np.full(w.train.shape, np.nan)
    seen[cells(w.train)] = w.train.data
    at = np.ix_(rows, cols)
    guess = model.predict(*(a.ravel() for a in np.meshgrid(rows, cols, indexing="ij"))).reshape(TABLE_SHAPE)
    together = float(np.corrcoef(guess.ravel(), w.expected[at].ravel())[0, 1])
    numbers = {
        "cells shown in this part": f"{np.isfinite(seen[at]).mean():.0%}",
        "correlation of expectation and truth": f"{together:.2f}",
    }
    tables = {"shown": seen[at], "expected": guess, "truth": w.expected[at]}
    return Part(plots.tables_figure(tables, (1, 5), "stars"), numbers, shape=TABLE_SHAPE)


def errors(w: World, model: SVDPlusPlus, seed: int) -> Part:
    curves = {}
    for reg, words in ((0.002, "hardly any penalty"), (0.1, "the default penalty")):
        fitted, held = (EarlyStopping(w.train, part, patience=SWEEPS) for part in (w.train, w.held))
        fit_briefly(ALS(reg=reg, tol=0, max_iter=SWEEPS, random_state=seed).set_callbacks(fitted, held), w.train)
        lines = {"fitted ratings": fitted.scores_, "held-out ratings": held.scores_}
        curves[f"ALS, {words}"] = {name: [-score for score in scores] for name, scores in lines.items()}
    rows, cols = cells(w.held)
    floor = float(np.sqrt(np.mean((w.expected[rows, cols] - w.held.data) ** 2)))
    mean = float(np.sqrt(np.mean((w.train.data.mean() - w.held.data) ** 2)))
    numbers = {
        "error of the mean": f"{mean:.3f}",
        "generosity and quality (Biases)": f"{rms(Biases().fit(w.train), w.held):.3f}",
        "SVDPlusPlus": f"{rms(model, w.held):.3f}",
        "the noise itself": f"{floor:.3f}",
    }
    return Part(plots.curves_figure(curves, "root mean square error"), numbers, held=w.held.nnz)


def genres(w: World, model: SVDPlusPlus) -> Part:
    Z = model.components_.T  # (m,k)
    weight = np.bincount(w.train.indices, minlength=len(Z)).astype(float)
    Z = Z - (weight @ Z) / weight.sum()
    _, _, axes = np.linalg.svd(Z * np.sqrt(weight)[:, None], full_matrices=False)
    often = np.flatnonzero(weight >= np.quantile(weight, 0.5))
    unit = Z[often] / np.maximum(np.linalg.norm(Z[often], axis=1, keepdims=True), 1e-12)
    like = unit @ unit.T
    np.fill_diagonal(like, -1)
    sets = [set(w.films["genres"][int(j)]) for j in often]
    near = like.argmax(axis=1)
    shared = np.mean([bool(sets[i] & sets[j]) for i, j in enumerate(near)])
    chance = np.mean([bool(a & b) for i, a in enumerate(sets) for b in sets[:i]])
    titles = [title.removeprefix("The ") for title in w.films["item"]]
    numbers = {"nearest film shares a genre": f"{shared:.0%}", "two films at random": f"{chance:.0%}"}
    names, kinds = [titles[j] for j in often], [w.genre[j] for j in often]
    return Part(plots.items_figure((Z @ axes[:2].T)[often], names, kinds, weight[often]), numbers)


def advice(w: World, seed: int) -> Part:
    stars = Recommender(SVDPlusPlus(random_state=seed), random_state=seed).fit(w.frame)
    own = (
        w.frame.filter(w.frame["rating"] >= 4.5)
        .group_by("item", maintain_order=True)
        .len()
        .sort("len", descending=True)
    )
    liked, other = own["item"][0], own["item"][7]
    lists = stars.recommend_new({liked: 5.0, other: 1.0}, 3)["item"].to_list()
    turned = stars.recommend_new({liked: 1.0, other: 5.0}, 3)["item"].to_list()
    user = int(w.frame["user"].mode().sort()[0])
    best = stars.recommend(user, 1)
    reasons = stars.explain(user, best["item"][0], 3)
    return Part(
        None,
        {"expected of that person": f"{best['rating'][0]:.1f} stars"},
        liked=liked,
        hated=other,
        lists=lists,
        turned=turned,
        user=user,
        best=best["item"][0],
        reasons=list(reasons.iter_rows()),
    )


def two_questions(w: World, seed: int) -> Part:
    """Compare lists and ratings, each with the model that was chosen for it and the trivial one."""
    choice = Recommender(random_state=seed).fit(w.frame).choice_
    lists = choice["ranking"]
    numbers = {
        f"lists, NDCG@10: {lists['model']}": f"{lists['score']:.3f}",
        "lists, NDCG@10: what is most popular": f"{lists['baseline_score']:.3f}",
        f"stars, RMSE: {choice['model']}": f"{choice['score']:.3f}",
        "stars, RMSE: biases alone": f"{choice['baseline_score']:.3f}",
    }
    return Part(None, numbers, model=lists["model"])


def landscape() -> Part:
    x, reg = 1.4, 0.3
    u, z = 0.0, 2.3
    path = [(u, z)]
    for _ in range(8):
        u = x * z / (z * z + reg)
        path.append((u, z))
        z = x * u / (u * u + reg)
        path.append((u, z))
    panels: dict[str, tuple[float, dict[str, np.ndarray]]] = {
        "½(x − uz)²": (0.0, {}),
        "with a ridge penalty, λ = 0.3": (reg, {"half-steps": np.array(path)}),
    }
    numbers = {"x": f"{x:g}", "u z at rest": f"{u * z:.3f}", "x − λ": f"{x - reg:g}"}
    return Part(plots.landscape_figure(x, panels), numbers)
