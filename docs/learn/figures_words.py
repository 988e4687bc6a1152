"""The figures of words.md: every public function returns one, drawn when the documentation is built."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from twofold import Cooccurrence, EarlyStopping, GloVe, KMeans, PMIEmbedding, SkipGram, WordVectors, datasets
from twofold.analyses.embed.analysis import measure_contexts
from twofold.examples import OPPOSITES, write_language
from twofold.plots.models import words as plots
from twofold.plots.models.words import word_map_figure
from twofold.plots.style import COLORS, INK, SEQUENTIAL, new_figure, show_percent, strip_table, style
from twofold.text.stop_words import english
from twofold.words import align

RNG = np.random.default_rng
DOCUMENTS = 2000


@functools.cache
def _documents() -> tuple[list[str], list[str]]:
    """Docstrings, and one in ten of them held out."""
    text = datasets.docstrings(DOCUMENTS).documents
    return [t for i, t in enumerate(text) if i % 10], text[::10]


@functools.cache
def _models() -> dict:
    train, _ = _documents()
    return {
        "skip-gram": SkipGram(50, max_iter=20, random_state=0).fit(train),
        "GloVe": GloVe(50, x_max=10, random_state=0).fit(train),
        "PMI": PMIEmbedding(50, random_state=0).fit(train),
    }


def _telling(vectors: WordVectors, most: int) -> list[str]:
    """Frequent words that are not grammar."""
    small = english()
    return [w for w in vectors if len(w) > 2 and w.isalpha() and w not in small][:most]


def _unit(X: np.ndarray) -> np.ndarray:
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)


def words_objective() -> Figure:
    """The objective of skip-gram over the epochs, on the text it learns from and on text held out."""
    train, held = _documents()
    watch = EarlyStopping(held, patience=100)
    model = SkipGram(50, max_iter=20, random_state=0).set_callbacks(watch).fit(train)
    epochs = range(1, 21)
    curves = {"learned from": (epochs, model.history_["objective"]), "held out": (epochs, [-s for s in watch.scores_])}
    level = ("knowing nothing", float(np.log(6) + 5 * np.log(6 / 5)))
    return plots.curves_figure(curves, "epoch", "loss a pair", "Skip-gram on docstrings", level)


def words_pmi() -> Figure:
    """Inner products of skip-gram against PMI less the logarithm of the number of negatives."""
    text = write_language(RNG(0), 40, 200_000)
    table = Cooccurrence(window=1, weighting="flat", min_count=1).fit(text)
    words = list(table.vocabulary_.words_)
    N = table.counts_.toarray()
    q = table.vocabulary_.counts_**0.75
    seen = N > 20
    panels = {}
    for m in (1, 5):
        own = SkipGram(20, window=1, negatives=m, subsample=0, min_count=1, max_iter=20, random_state=0).fit(text)
        with np.errstate(divide="ignore"):
            target = np.log(N / N.sum(axis=1, keepdims=True) / (q / q.sum())) - np.log(m)
        product = own.vectors_[words].astype(float) @ own.contexts_[words].astype(float).T
        panels[f"m = {m} negative{'s' if m > 1 else ''}"] = (target[seen], product[seen], N[seen])
    return plots.products_figure(panels, "PMI − log m, counted", "⟨u, z⟩, learned")


def _draw_agreement(
    table: np.ndarray, names: Sequence[str], bars: Mapping[str, float], titles: tuple[str, str]
) -> Figure:
    """Draw the shares (m,m) of neighbors that methods have in common, and the share of right answers of each."""
    with style():
        figure = new_figure(10.5, 3.4)
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.25])
        left.imshow(table, cmap=SEQUENTIAL, vmin=0, vmax=1, interpolation="none")
        left.set_xticks(range(len(names)), names)
        left.set_yticks(range(len(names)), names)
        strip_table(left)
        for i, row in enumerate(table):
            for j, share in enumerate(row):
                left.text(j, i, f"{share:.0%}", ha="center", va="center", color="white" if share > 0.55 else INK)
        left.set_title(titles[0])
        right.barh(
            list(bars)[::-1], [share - 0.5 for share in bars.values()][::-1], left=0.5, color=COLORS[0], height=0.6
        )
        for i, (_, share) in enumerate(list(bars.items())[::-1]):
            right.annotate(
                f"{share:.1%}", (share, i), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9
            )
        right.set(xlim=(0.5, 1.0), title=titles[1], xlabel="chance is 50%")
        show_percent(right.xaxis)
        right.grid(axis="y", visible=False)
    return figure


def words_methods() -> Figure:
    """Neighbors that two methods have in common, and what each can tell on text held out."""
    _, held = _documents()
    models = _models()
    asked = _telling(models["PMI"].vectors_, 300)
    near = {name: [{w for w, _ in m.vectors_.nearest(word, 10)} for word in asked] for name, m in models.items()}
    table = np.array(
        [[np.mean([len(a & b) / 10 for a, b in zip(near[x], near[y], strict=True)]) for y in near] for x in near]
    )
    bars = {name: measure_contexts(m, held, 0)["right"] for name, m in models.items()}
    return _draw_agreement(table, list(models), bars, ("Ten nearest in common", "Held-out words told from others"))


def words_map() -> Figure:
    """Frequent words of the docstrings in a plane, colored by groups of directions."""
    vectors = _models()["PMI"].vectors_
    words = _telling(vectors, 220)
    groups = KMeans(8, random_state=0).fit(_unit(vectors[words].astype(float))).labels_
    weights = [float(vectors.counts_[vectors.place(word)]) for word in words]
    return word_map_figure(np.asarray(vectors.map_2d(words, method="tsne")), words, groups.tolist(), weights)


def words_analogies() -> Figure:
    """Steps to plurals, which have something in common, and to opposites, which do not."""
    vectors = _models()["PMI"].vectors_
    seen = {w: vectors.counts_[vectors.place(w)] for w in vectors}
    many = [(w, w + "s") for w in _telling(vectors, 2000) if seen.get(w + "s", 0) >= 12][:60]
    panels = {}
    for title, pairs in {"One and many": many, "Opposites": OPPOSITES}.items():
        known = [pair for pair in pairs if pair[0] in seen and pair[1] in seen]
        U = np.array([vectors[list(pair)] for pair in known])
        panels[f"{title}: a step agrees with the others by {plots.measure_common_step(U).mean():.2f}"] = (known, U)
    return plots.steps_figure(panels)


def words_align() -> Figure:
    """Words of one half of the docstrings that find themselves in the other, over the number of pairs given."""
    text = datasets.docstrings(DOCUMENTS).documents
    one, other = (PMIEmbedding(50, random_state=0).fit(text[i::2]).vectors_ for i in (0, 1))
    both = [w for w in _telling(one, 1000) if w in other]
    asked = both[200:600]
    curves = {}
    counts = (5, 10, 20, 50, 100, 200)
    ways = {
        "nearest": (0, "nearest"),
        "CSLS": (0, "csls"),
        "CSLS, refined": (5, "csls"),
    }
    for name, (refine, method) in ways.items():
        shares = []
        for n in counts:
            joined = align(one, other, [(w, w) for w in both[:n]], refine=refine)
            shares.append(joined.score([(w, w) for w in asked], method=method))
        curves[name] = (counts, shares)
    return plots.curves_figure(
        curves, "pairs given", "found themselves", "400 words in two halves of a text", share=True, log=True
    )
