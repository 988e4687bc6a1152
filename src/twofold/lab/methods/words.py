"""Word vectors: a map of the words that does not spin, with search, neighbors and analogies.

A method of this file is a class with the name of its estimator and its settings; `Words` draws it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.methods.method import Data, Frame, Method, Result, Setting, numbers, seed, setting
from twofold.lab.methods.planes import turn_to
from twofold.lab.script import Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

MAPPED = 1500  # words on the map, the most frequent that are no stop words
NEAR = 12  # words that an answer names
LABELED = 60  # words named in the figure


class Map:
    """The words, and where their vectors put them."""

    def __init__(self, texts: Sequence[str], min_count: int):
        from twofold.text.stop_words import stop_words_of
        from twofold.text.vocabulary import Vocabulary

        left_out = set(stop_words_of("english"))
        every = Vocabulary(min_count=min_count).fit(texts).words_
        self.words = [str(word) for word in every if len(word) > 1 and word not in left_out][:MAPPED]
        if len(self.words) < 3:
            raise InputError(
                f"{len(self.words)} words occur {min_count} times or more; a map needs three. Ask for less."
            )
        self.last = np.zeros((len(self.words), 2))
        self.first: Frame = {"map": numbers(self.last)}, {"words": self.words}

    def frame(self, model: Any) -> Frame:
        self.last = turn_to(self.last, model.vectors_.map_2d(self.words))
        return {"map": numbers(self.last)}, {}


class Words(Method):
    """Texts, and a vector for each of their words."""

    family, view = "words", "words"
    kinds = ("text",)
    default_data = "docstrings"
    call = "model.fit(texts)"

    def look(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> Map:
        return Map(script["texts"], chosen["min_count"])

    def table(self, script: Script, data: Data, model: Any, names: Sequence[str] | None) -> pl.DataFrame:
        import polars as pl

        vectors = model.vectors_
        columns = {f"x{c + 1}": vectors.vectors_[:, c] for c in range(vectors.vectors_.shape[1])}
        return pl.DataFrame({"word": [str(word) for word in vectors.words], **columns})

    def figure(self, sight: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.models.words import word_map_figure

        at = sight.frame(model)[0]["map"]
        return word_map_figure(at[:LABELED], sight.words[:LABELED], title=f"{data.name}: {self.title}")

    def ask_search(self, result: Result, text: str) -> dict[str, Any]:
        """Words that begin with a text, then those that hold it."""
        text = str(text).casefold()
        held = [str(word) for word in result.model.vectors_.words if text in word]
        return {"words": sorted(held, key=lambda word: not word.startswith(text))[:NEAR]}

    def ask_neighbors(self, result: Result, word: str) -> dict[str, Any]:
        """The words whose vectors point the same way."""
        return {"neighbors": _named(result.model.vectors_.nearest(_known(result, word), NEAR))}

    def ask_analogy(self, result: Result, a: str, b: str, c: str) -> dict[str, Any]:
        """a is to b as c is to what?"""
        return {"answers": _named(result.model.vectors_.analogy(*(_known(result, word) for word in (a, b, c)), 5))}


def _known(result: Result, word: Any) -> str:
    if not isinstance(word, str) or word not in result.model.vectors_:
        raise InputError(f"{word!r} is not among the words that have a vector. Search for one that is.")
    return word


def _named(found: Any) -> list[dict[str, Any]]:
    return [{"word": str(word), "score": float(score)} for word, score in found]


def _vocabulary(estimator: str) -> tuple[Setting, ...]:
    return (
        setting(
            estimator,
            "min_count",
            label="times a word must occur",
            default=5,
            min=1,
            max=1000,
            advanced=True,
        ),
        seed(estimator),
    )


class SkipGramMethod(Words):
    id, title, estimator, objective = "skip_gram", "Skip-gram", "SkipGram", "mean loss of a pair"
    compare = ("glove", "pmi")
    settings = (
        setting("SkipGram", "n_components", label="numbers a vector", default=50, min=2, max=300),
        setting("SkipGram", "window", default=5, min=1, max=50),
        setting("SkipGram", "max_iter", label="epochs", default=20, min=1, max=200),
        setting("SkipGram", "negatives", default=5, min=1, max=50, advanced=True),
        setting("SkipGram", "learning_rate", default=0.05, min=1e-4, max=1, log=True, advanced=True),
        *_vocabulary("SkipGram"),
    )


class GloVeMethod(Words):
    id, title, estimator, objective = "glove", "GloVe", "GloVe", "mean weighted squared error"
    compare = ("skip_gram", "pmi")
    settings = (
        setting("GloVe", "n_components", label="numbers a vector", default=50, min=2, max=300),
        setting("GloVe", "window", default=10, min=1, max=50),
        setting("GloVe", "max_iter", label="epochs", default=30, min=1, max=500),
        setting("GloVe", "x_max", label="count of full weight", default=10.0, min=1, max=1000, advanced=True),
        setting("GloVe", "learning_rate", default=0.05, min=1e-4, max=1, log=True, advanced=True),
        *_vocabulary("GloVe"),
    )


class PMIMethod(Words):
    id, title, estimator, objective = "pmi", "Pointwise mutual information", "PMIEmbedding", "squared error"
    compare = ("skip_gram", "glove")
    settings = (
        setting("PMIEmbedding", "n_components", label="numbers a vector", default=50, min=2, max=300),
        setting("PMIEmbedding", "window", default=5, min=1, max=50),
        setting("PMIEmbedding", "shift", default=1.0, min=1, max=50, advanced=True),
        setting("PMIEmbedding", "power", default=0.5, min=0, max=1, step=0.05, advanced=True),
        *_vocabulary("PMIEmbedding"),
    )


METHODS = (SkipGramMethod(), GloVeMethod(), PMIMethod())
