"""Word vectors: a map of the words that keeps its orientation, with search, neighbors and analogies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.methods import tables
from twofold.lab.methods.method import Data, Frame, Method, Result, Values, pack, start_frame
from twofold.lab.methods.setting import Control, control
from twofold.lab.script import Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

MAX_MAP_WORDS = 1500  # the most frequent that are no stop words
ANSWER_WORDS = 12
FIGURE_LABELS = 60


class Map:
    """The words at the places of their vectors in a plane."""

    def __init__(self, script: Script, data: Data, chosen: Values):
        from twofold.text.stop_words import stop_words_of
        from twofold.text.vocabulary import Vocabulary

        stop_words, min_count = set(stop_words_of("english")), chosen["min_count"]
        every = Vocabulary(min_count=min_count).fit(script["texts"]).words_
        self.words = [str(word) for word in every if len(word) > 1 and word not in stop_words][:MAX_MAP_WORDS]
        n = len(self.words)
        if n < 3:
            raise InputError(f"{n} words occur {min_count} times or more; a map needs three. Ask for less.")
        self.last = np.zeros((len(self.words), 2))
        self.first = start_frame({}, {"map": self.last}, words=self.words)

    def frame(self, model: Any) -> Frame:
        self.last = tables.turn_to(self.last, model.vectors_.map_2d(self.words))
        return pack(map=self.last), {}


class Words(Method):
    """Texts, and a vector for each of their words."""

    family, view, view_class = "words", "words", Map
    kinds = ("text",)
    default_data = "docstrings"
    call = "model.fit(texts)"

    def table(self, script: Script, data: Data, model: Any) -> pl.DataFrame:
        import polars as pl

        vectors = model.vectors_
        columns = {f"x{c + 1}": vectors.vectors_[:, c] for c in range(vectors.vectors_.shape[1])}
        return pl.DataFrame({"word": [str(word) for word in vectors.words], **columns})

    def figure(self, view: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.models.words import word_map_figure

        at = view.frame(model)[0]["map"]
        return word_map_figure(at[:FIGURE_LABELS], view.words[:FIGURE_LABELS], title=f"{data.name}: {self.title}")

    def ask_search(self, result: Result, text: str) -> dict[str, Any]:
        """Find words that begin with a text, then those that hold it."""
        text = str(text).casefold()
        held = [str(word) for word in result.model.vectors_.words if text in word]
        return {"words": sorted(held, key=lambda word: not word.startswith(text))[:ANSWER_WORDS]}

    def ask_neighbors(self, result: Result, word: str) -> dict[str, Any]:
        """Find the words whose vectors point the same way."""
        return {"neighbors": _list_words(result.model.vectors_.nearest(_check_word(result, word), ANSWER_WORDS))}

    def ask_analogy(self, result: Result, a: str, b: str, c: str) -> dict[str, Any]:
        """Answer: a is to b as c is to which word?"""
        return {
            "answers": _list_words(result.model.vectors_.analogy(*(_check_word(result, word) for word in (a, b, c)), 5))
        }


def _check_word(result: Result, word: Any) -> str:
    if not isinstance(word, str) or word not in result.model.vectors_:
        raise InputError(f"{word!r} is not among the words that have a vector. Search for one that is.")
    return word


def _list_words(scores: Any) -> list[dict[str, Any]]:
    return [{"word": str(word), "score": float(score)} for word, score in scores]


def _vector_controls(*more: Control) -> tuple[Control, ...]:
    return (
        control("n_components", "numbers a vector", default=50, min=2, max=300),
        control("window", max=50),
        *more,
        control("min_count", "times a word must occur", max=1000, advanced=True),
    )


class SkipGramMethod(Words):
    id, title, estimator, objective = "skip_gram", "Skip-gram", "SkipGram", "mean loss of a pair"
    compare = ("glove", "pmi")
    settings = _vector_controls(
        control("max_iter", "epochs", default=20, max=200),
        control("negatives", max=50, advanced=True),
        control("learning_rate", min=1e-4, max=1, log=True, advanced=True),
    )


class GloVeMethod(Words):
    id, title, estimator, objective = "glove", "GloVe", "GloVe", "mean weighted squared error"
    compare = ("skip_gram", "pmi")
    settings = _vector_controls(
        control("max_iter", "epochs", default=30, max=500),
        control("x_max", "count of full weight", min=1, max=1000, advanced=True),
        control("learning_rate", min=1e-4, max=1, log=True, advanced=True),
    )


class PMIMethod(Words):
    id, title, estimator, objective = "pmi", "Pointwise mutual information", "PMIEmbedding", "squared error"
    compare = ("skip_gram", "glove")
    settings = _vector_controls(
        control("shift", min=1, max=50, advanced=True),
        control("power", max=1, step=0.05, advanced=True),
    )
