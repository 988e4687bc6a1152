"""Maps of documents: a deep autoencoder, 2000-500-250-125-2, against LSA in two dimensions, on Reuters (R8).

Both learn from the training documents, as log(1 + count) of the 2,000 most frequent words with every document scaled to
length 1, and place the test documents. The figures: how many of these have the class that most of their 1, 3, 7 or 15
nearest training documents have. Hinton & Salakhutdinov (2006) did it with 804,414 documents; R8 has 7,674.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.neighbors import KNeighborsClassifier

from bench.harness import Bar, Contestant, Event, Missing, Row
from bench.topics_nmf import fetch
from twofold import LSA, Autoencoder

NEIGHBORS = (1, 3, 7, 15)
WORDS = 2_000

Codes = tuple[np.ndarray, np.ndarray]  # of the training and of the test documents


def tables(documents: list[str], new: list[str]) -> Codes:
    """Log counts of the most frequent words, every document of length 1."""
    bag = CountVectorizer(stop_words="english", max_features=WORDS, dtype=np.float32)
    both = [np.log1p(X.toarray()) for X in (bag.fit_transform(documents), bag.transform(new))]
    first, second = (X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12) for X in both)
    return first, second


def deep(X: np.ndarray, new: np.ndarray, epochs: int) -> Codes:
    sizes = (500, 250, 125)
    model = Autoencoder(2, hidden_layer_sizes=sizes, activation="tanh", max_iter=epochs, random_state=0).fit(X)
    return model.transform(X), model.transform(new)


def linear(X: np.ndarray, new: np.ndarray, k: int) -> Codes:
    model = LSA(k, weighting=None, random_state=0).fit(X)
    return model.transform(X), model.transform(new)


def documents(quick: bool) -> Event | Missing:
    data = fetch("reuters", "deep_documents")
    if isinstance(data, Missing):
        return data
    rows = 1_000 if quick else None
    y, goal = data.train.target[:rows], data.test.target[:rows]
    X, new = tables(data.train.documents[:rows], data.test.documents[:rows])

    def quality(codes: Codes) -> dict[str, float]:
        found = {}
        for m in NEIGHBORS:
            found[f"{m} nearest %"] = 100 * KNeighborsClassifier(m).fit(codes[0], y).score(codes[1], goal)
        return found

    def entry(name: str, run: Callable[[], Codes], **more: Any) -> Contestant:
        return Contestant(name, run, warm=lambda: None, **more)

    def better(rows: list[Row]) -> bool:
        mine, theirs = rows[0].quality, rows[1].quality
        return all(mine[name] > theirs[name] for name in mine)

    return Event(
        "deep_documents",
        f"{len(X):,} documents of Reuters learned, {len(new):,} placed, {X.shape[1]:,} words, 8 classes",
        [
            entry("autoencoder, 2", lambda: deep(X, new, 10 if quick else 30), ours=True),
            entry("LSA, 2", lambda: linear(X, new, 2)),
            entry("LSA, 50", lambda: linear(X, new, 50), counts=False),
        ],
        quality=quality,
        as_good=lambda a, b: all(a[name] >= b[name] for name in a),
        bar=Bar("nearer neighbors than LSA's in two dimensions, for 1, 3, 7 and 15 of them", test=better),
        repeats=1,
    )


EVENTS = (documents,)
