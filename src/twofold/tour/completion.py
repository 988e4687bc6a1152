"""The completion station: people, films, and the ratings that are not given yet."""

from __future__ import annotations

from html import escape
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
from twofold.tour.station import Part, Station, fit_briefly

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
    """Filling, held-out error, a map of films, recommendations, and the smallest landscape."""
    world = split_ratings(seed)
    model = SVDPlusPlus(random_state=seed).fit(world.train)
    n, m = world.train.shape
    known = world.train.nnz + world.held.nnz
    return Station(
        "Tables with holes, and recommenders",
        f"{n} people have rated some of {m} films: {known:,} ratings, and {1 - known / (n * m):.0%} of the table is "
        "empty. If films were described by a few numbers, each person would be a regression; if people were, each "
        "film. Neither is known, so take turns.",
        [
            filling(world, model),
            errors(world, model, seed),
            genres(world, model),
            advice(world, seed),
            two_questions(world, seed),
            landscape(),
        ],
    )


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
    return Part(
        "What would they have said?",
        f"Part of the table: the {TABLE_SHAPE[0]} people and the {TABLE_SHAPE[1]} films with most ratings. On the left "
        "what the model was shown, in the middle what it expects in every cell, on the right the truth, which is known "
        "here because the world is a seeded generator. Noise was added to the truth before it was shown.",
        "model = SVDPlusPlus().fit(X)          # X is sparse; what is not stored is unknown\nmodel.predict(rows, cols)",
        plots.tables_figure({"shown": seen[at], "expected": guess, "truth": w.expected[at]}, (1, 5), "stars"),
        "Ratings shown to the model, its expectation in every cell, and the noiseless truth, for some of the people.",
        {
            "cells shown in this part": f"{np.isfinite(seen[at]).mean():.0%}",
            "correlation of expectation and truth": f"{together:.2f}",
        },
    )


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
    return Part(
        "How good is that, honestly?",
        f"Every fifth rating, {w.held.nnz:,} in all, was put aside before anything was computed. Twenty factors can "
        "reproduce the ratings they are fitted to almost perfectly, and that means nothing: without a penalty the ones "
        "put aside come out worse than by a plain mean.",
        "stop = EarlyStopping(train, held_out)\nALS().set_callbacks(stop).fit(train)",
        plots.curves_figure(curves, "root mean square error"),
        "Error on fitted and on held-out ratings over the sweeps of alternating least squares, with two penalties.",
        {
            "error of the mean": f"{mean:.3f}",
            "generosity and quality (Biases)": f"{rms(Biases().fit(w.train), w.held):.3f}",
            "SVDPlusPlus": f"{rms(model, w.held):.3f}",
            "the noise itself": f"{floor:.3f}",
        },
    )


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
    return Part(
        "Genres, found without being told",
        "The model knows nothing of a film but the stars of each person. Still, films of a genre come to lie in the "
        "same direction, because the same people like them. A film's nearest neighbor usually shares a genre with it.",
        "films = SVDPlusPlus().fit(X).components_.T     # a few numbers each",
        plots.items_figure(
            (Z @ axes[:2].T)[often], [titles[j] for j in often], [w.genre[j] for j in often], weight[often]
        ),
        "The films rated most often, along the two directions in which their factors differ most, colored by genre.",
        {"nearest film shares a genre": f"{shared:.0%}", "two films at random": f"{chance:.0%}"},
    )


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
    because = ", ".join(f"<i>{escape(a)}</i> ({b:g} stars)" for a, b, _ in reasons.iter_rows())
    return Part(
        "Somebody new, and the reasons",
        f"A newcomer who loved <i>{escape(liked)}</i> and hated <i>{escape(other)}</i> would give most stars to "
        f"{write_titles(lists)}. Turn the two ratings around, and the films are {write_titles(turned)}. Nothing is "
        f"fitted again: a newcomer is one small regression. Person {user} would love "
        f"<i>{escape(best['item'][0])}</i>, and the model can say why; the ratings that weighed most were those of "
        f"{because}.",
        "rec = Recommender(SVDPlusPlus()).fit(ratings)\n"
        "rec.recommend_new({liked: 5, hated: 1})\n"
        "rec.explain(user, film)",
        numbers={"expected of that person": f"{best['rating'][0]:.1f} stars"},
    )


def two_questions(w: World, seed: int) -> Part:
    """Compare lists and ratings, each with the model that was chosen for it and the trivial one."""
    choice = Recommender(random_state=seed).fit(w.frame).choice_
    lists = choice["ranking"]
    verdict = (
        f"{lists['model']} makes better lists here."
        if lists["model"] != "Popularity"
        else "In this small world nothing beats it for sure, so it is used, and said."
    )
    return Part(
        "What next is another question than how many stars",
        "People pick what they have heard of, and what would get most stars is mostly what few have found. So lists "
        "have a model of their own, chosen by its lists of ratings held out; stars have another, which has to beat "
        "biases. For lists the one "
        f"to beat is popularity. {verdict}",
        "rec = Recommender().fit(ratings)\nrec.choice_                  # what was tried, and what it reached",
        numbers={
            f"lists, NDCG@10: {lists['model']}": f"{lists['score']:.3f}",
            "lists, NDCG@10: what is most popular": f"{lists['baseline_score']:.3f}",
            f"stars, RMSE: {choice['model']}": f"{choice['score']:.3f}",
            "stars, RMSE: biases alone": f"{choice['baseline_score']:.3f}",
        },
    )


def write_titles(titles: list[str]) -> str:
    return ", ".join(f"<i>{escape(title)}</i>" for title in titles)


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
    return Part(
        "Why it is hard, and why it works",
        "The smallest case: find u and z so that their product is x. The height is not convex: two valleys, and a "
        "saddle between them (red cross). But there is no false minimum, each half-step is a parabola with one lowest "
        "point, and a penalty leaves just two answers that mean the same. Their product is x − λ: the penalty shrinks, "
        "which is the nuclear norm at work.",
        "u = x * z / (z**2 + reg)\nz = x * u / (u**2 + reg)",
        plots.landscape_figure(x, panels),
        "Heights of the scalar problem from above, without and with a penalty, and the staircase of the half-steps.",
        {"x": f"{x:g}", "u z at rest": f"{u * z:.3f}", "x − λ": f"{x - reg:g}"},
    )
