"""The topics station: what the documentation of nine packages is about, and what digits are made of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold import datasets
from twofold.core.seeds import generator
from twofold.linear.pca import PCA
from twofold.plots.models import topics as plots
from twofold.plots.models.topics import topic_map_figure
from twofold.text.bag_of_words import BagOfWords
from twofold.topics.evaluation import perplexity, topic_coherence
from twofold.topics.lda.lda import LatentDirichletAllocation
from twofold.topics.nmf.nmf import NMF
from twofold.topics.topic_table import topic_map
from twofold.tour import Part, Station, fit_briefly

DOCUMENTS = 900
TOPICS = 12
TOPIC_NUMBERS = (2, 4, 8, 12, 24, 48)
HELD_OUT = 0.2  # of the documents
PARTS = 16


class World(NamedTuple):
    """Docstrings as a table of counts, some of them held out, and topics fitted to the others."""

    text: Any
    words: np.ndarray
    X: sparse.csr_array  # (n,d)
    test: np.ndarray  # rows held out
    train: np.ndarray
    model: LatentDirichletAllocation
    topics: np.ndarray  # (k,d), the one most talked about first
    shares: np.ndarray  # (k,)
    mixtures: np.ndarray  # (n,k)


def station(seed: int = 0) -> Station:
    """Find topics and their words, packages by topic, a map, how many topics, and parts of digits."""
    world = count_words(seed)
    return {
        "world": world,
        "words_of": words_of(world),
        "packages": packages(world),
        "neighbors": neighbors(world),
        "numbers": numbers(world, seed),
        "parts": parts(seed),
    }


def count_words(seed: int) -> World:
    text = datasets.docstrings(DOCUMENTS)
    bag = BagOfWords(min_df=5, max_df=0.4)
    X = bag.fit_transform(text.documents)
    order = generator(seed, 1).permutation(X.shape[0])
    cut = round(HELD_OUT * len(order))
    test, train = np.sort(order[:cut]), np.sort(order[cut:])
    model = fit_topics(X[train], TOPICS, seed)
    mixtures = model.transform(X)
    lengths = np.asarray(X.sum(axis=1)).ravel()
    shares = lengths @ mixtures / lengths.sum()
    by_share = np.argsort(-shares, kind="stable")
    words = np.asarray(bag.get_feature_names_out(), dtype=object)
    topics = np.asarray(model.components_)[by_share]
    return World(text, words, X, test, train, model, topics, shares[by_share], mixtures[:, by_share])


def fit_topics(X: sparse.csr_array, k: int, seed: int) -> LatentDirichletAllocation:
    return fit_briefly(LatentDirichletAllocation(k, max_iter=60, random_state=seed), X)


def labels(w: World, count: int = 3) -> list[str]:
    """Return the words that separate each topic best from all text."""
    overall = w.shares @ w.topics
    telling = w.topics * np.log(np.maximum(w.topics, 1e-300) / np.maximum(overall, 1e-300))
    return [" ".join(w.words[np.argsort(-row, kind="stable")[:count]]) for row in telling]


def unigram(X: sparse.csr_array) -> np.ndarray:
    """(1,d) frequencies of words, none zero."""
    count = np.asarray(X.sum(axis=0), dtype=np.float64).reshape(1, -1) + 0.01
    return count / count.sum()


def words_of(w: World) -> Part:
    own = float(perplexity(w.model, w.X[w.test], random_state=0))
    plain = float(perplexity(unigram(w.X[w.train]), w.X[w.test], random_state=0))
    numbers = {
        "perplexity": f"{own:,.0f}",
        "by word frequencies alone": f"{plain:,.0f}",
        "different words": f"{w.X.shape[1]:,}",
    }
    return Part(plots.words_figure(w.topics, list(w.words), w.shares), numbers, held=len(w.test), k=TOPICS)


def packages(w: World) -> Part:
    names, of = w.text.target_names, w.text.target
    table = np.array([w.mixtures[of == t].mean(axis=0) for t in range(len(names))])
    owner = np.array([w.mixtures[w.train][of[w.train] == t].mean(axis=0) for t in range(len(names))]).argmax(axis=0)
    right = float(np.mean(owner[w.mixtures[w.test].argmax(axis=1)] == of[w.test]))
    chance = float(np.bincount(of[w.test]).max() / len(w.test))
    numbers = {"right package, documents put aside": f"{right:.0%}", "the largest package": f"{chance:.0%}"}
    return Part(plots.groups_figure(table, names, labels(w)), numbers)


def neighbors(w: World) -> Part:
    c = int(w.shares.argmin())
    best = int(np.argmax(w.mixtures[:, c] * np.minimum(1, np.asarray(w.X.sum(axis=1)).ravel() / 60)))
    figure = topic_map_figure(np.asarray(topic_map(w.topics)), w.shares, labels(w))
    return Part(figure, smallest=labels(w)[c], document=w.text.names[best], share=w.mixtures[best, c])


def numbers(w: World, seed: int) -> Part:
    train, test = w.X[w.train], w.X[w.test]
    scores, coherences = [], []
    for k in TOPIC_NUMBERS:
        model = w.model if k == TOPICS else fit_topics(train, k, seed)
        scores.append(float(perplexity(model, test, random_state=0)))
        coherences.append(float(np.mean(topic_coherence(model, train))))
    found = {
        f"perplexity with {k}": f"{p:,.0f}"
        for k, p in zip(TOPIC_NUMBERS, scores, strict=True)
        if k in (2, TOPICS, TOPIC_NUMBERS[-1])
    }
    return Part(plots.choice_figure(TOPIC_NUMBERS, scores, {"LDA": coherences}, TOPICS), found)


def parts(seed: int) -> Part:
    X = datasets.digits().data
    nmf = fit_briefly(NMF(PARTS, random_state=seed), X)
    pca = PCA(PARTS).fit(X)
    shown = {"NMF: parts that add": nmf.components_, "PCA: directions that cancel": pca.components_}
    left = np.mean((X - nmf.transform(X) @ nmf.components_) ** 2) / np.mean((X - X.mean(axis=0)) ** 2)
    lost = 1 - pca.explained_variance_ratio_.sum()
    empty = np.mean(nmf.components_ < 0.01 * nmf.components_.max(axis=1, keepdims=True))
    numbers = {
        "variance lost by NMF": f"{left:.0%}",
        "by PCA": f"{lost:.0%}",
        "empty pixels in NMF's parts": f"{empty:.0%}",
    }
    return Part(
        plots.parts_figure({name: Z.reshape(-1, 8, 8) for name, Z in shown.items()}, per_row=8), numbers, k=PARTS
    )
