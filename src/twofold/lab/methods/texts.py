"""Texts: topics of documents, with their words and a map, and vectors of words, with search and analogies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.methods import tables
from twofold.lab.methods.method import Data, Frame, Method, Result, Values, as_bytes, pack, start_frame
from twofold.lab.methods.setting import Control, Setting, control, loop_controls, sweep_limit
from twofold.lab.script import Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

MAX_MAP_WORDS = 1500  # the most frequent that are no stop words
ANSWER_WORDS = 12
FIGURE_LABELS = 60
WORDS = 12  # of a topic
MAX_MAP_DOCUMENTS = 600  # each is coded after every sweep
MAX_SNIPPET_LETTERS = 400
MIN_DF = Setting(
    "min_df",
    "documents with a word",
    "Words of fewer documents than this are left out, and so are stop words and words of more than half of all.",
    3,
    min=1,
    max=100,
    advanced=True,
)


class Corpus:
    """Counted texts, and the topics of a model of them."""

    def __init__(self, script: Script, data: Data, chosen: Values):
        self.counts, self.words, self.texts = script["counts"], script["counter"].vocabulary_, script["texts"]
        rows = script["rows"] if "rows" in script else range(len(self.texts))
        self.names = None if data.names is None else [data.names[row] for row in rows]
        self.rows = np.unique(np.linspace(0, len(self.texts) - 1, min(len(self.texts), MAX_MAP_DOCUMENTS)).astype(int))
        self.last = np.zeros((0, 2))
        empty = {"sizes": np.zeros(0), "map": np.zeros((0, 2)), "documents": np.zeros((len(self.rows), 2))}
        empty["labels"] = as_bytes(np.full(len(self.rows), 255))
        self.first = start_frame({"rows": self.rows}, empty, topics=[], words=len(self.words))

    def mixtures(self, model: Any, rows: Any = slice(None)) -> np.ndarray:
        """(n,k) share of each topic in each document."""
        from twofold.analyses.topics.models import mixtures_of

        if type(model).__name__ != "LSA":
            return mixtures_of(model, self.counts[rows])
        codes = np.abs(np.asarray(model.transform(self.counts[rows]), dtype=np.float64))
        return codes / np.maximum(codes.sum(axis=1, keepdims=True), 1e-300)

    def frame(self, model: Any) -> Frame:
        from twofold.topics.topic_table import topic_map

        Z = np.asarray(model.components_, dtype=np.float64)
        shares = self.mixtures(model, self.rows)
        sizes = shares.mean(axis=0)
        at = topic_map(np.abs(Z), share=sizes)
        self.last = at = tables.turn_to(self.last, at) if self.last.shape == at.shape else at
        labels = as_bytes(shares.argmax(axis=1))
        return pack(sizes=sizes, map=at, documents=shares @ at, labels=labels), {"topics": self.top_words(Z)}

    def top_words(self, Z: np.ndarray) -> list[list[dict[str, Any]]]:
        """Return the words of most weight in every topic."""
        Z = Z / np.maximum(np.abs(Z).sum(axis=1, keepdims=True), 1e-300)
        best = np.argsort(-Z, axis=1, kind="stable")[:, :WORDS]
        return [
            [{"word": str(self.words[j]), "weight": float(z[j])} for j in row] for row, z in zip(best, Z, strict=True)
        ]


class Topics(Method):
    """Texts, counted, and a model of the counts."""

    family, view, view_class = "topics", "topics", Corpus
    kinds = ("text",)
    default_data = "docstrings"
    call = "model.fit(counts)"

    def prepare(self, script: Script, data: Data, chosen: Values) -> None:
        few = len(script["texts"]) < 20
        bounds = {} if few else {"min_df": chosen["min_df"], "max_df": 0.5}
        script.build("BagOfWords", bounds, to="counter")
        script.do("counts = counter.fit_transform(texts)")

    def keep_steps(self, script: Script, data: Data) -> None:
        script.do("model.bag_of_words_ = counter")  # then the file of the model is all that new texts need

    def figure(self, view: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.reports.topics import topic_report_figure

        arrays, meta = view.frame(model)
        tops = [[entry["word"] for entry in topic] for topic in meta["topics"]]
        sizes = arrays["sizes"].astype(np.float64)
        return topic_report_figure(arrays["map"], sizes / sizes.sum(), tops, title=f"{data.name}: {self.title}")

    def ask_documents(self, result: Result, topic: int) -> dict[str, Any]:
        """Return the documents with most of a topic, each with the sentence that has most of its words."""
        from twofold.text.snippets import snippet

        view, Z = result.view, np.asarray(result.model.components_)
        if not 0 <= topic < len(Z):
            raise InputError(f"topic {topic}: there are topics from 0 to {len(Z) - 1}.")
        shares = view.mixtures(result.model)[:, topic]
        weights = {entry["word"]: entry["weight"] for entry in view.top_words(Z[topic : topic + 1])[0]}
        found = []
        for row in np.argsort(-shares, kind="stable")[:10].tolist():
            text = snippet(view.texts[row], weights, MAX_SNIPPET_LETTERS)
            name = f"document {row + 1}" if view.names is None else view.names[row]
            found.append({"name": name, "row": row, "text": text, "share": float(shares[row])})
        return {"documents": found}


class LDAMethod(Topics):
    id, title, estimator = "lda", "Latent Dirichlet allocation", "LatentDirichletAllocation"
    objective = "mean negative log-likelihood of a word"
    compare = ("nmf", "plsa")
    settings = (
        control("n_components", "topics", default=8, min=2, max=40),
        control("learning_method", "method"),
        control("topic_word_prior", min=1e-4, max=10, log=True, advanced=True),
        MIN_DF,
        sweep_limit(default=100),
    )


class NMFMethod(Topics):
    id, title, estimator, objective = "nmf", "NMF of texts", "NMF", "divergence"
    compare = ("lda", "lsa")
    fixed: ClassVar[Values] = {"init": "random"}
    settings = (
        control("n_components", "topics", default=8, min=2, max=40),
        control("beta_loss", "loss", default="kullback-leibler", choices=("kullback-leibler", "frobenius")),
        MIN_DF,
        *loop_controls(tol=1e-4, max_iter=200),
    )

    call = "model.fit(weigh_counts(model, counts))"

    def build(self, script: Script, chosen: Values) -> Any:
        """Weigh the words as `twofold topics` does."""
        model = super().build(script, chosen)
        script.use("twofold.core.data.blocks", "as_blocks")
        script.use("twofold.text.tfidf", "find_weighing")
        script.use("twofold.analyses.topics.models", "weigh_counts")
        script.do('model.idf_ = find_weighing(as_blocks(counts.astype(float)), None, "tfidf").idf')
        return model


class PLSAMethod(Topics):
    id, title, estimator = "plsa", "Probabilistic latent semantic analysis", "PLSA"
    objective = "mean negative log-likelihood of a word"
    compare = ("lda", "nmf")
    settings = (
        control("n_components", "topics", default=8, min=2, max=40),
        control("tempering", min=0.1, max=1, step=0.05),
        MIN_DF,
        *loop_controls(tol=1e-4, max_iter=200),
    )


class LSAMethod(Topics):
    id, title, estimator, objective = "lsa", "Latent semantic analysis", "LSA", "what is left over"
    compare = ("nmf", "lda")
    settings = (
        control("n_components", "directions", default=8, min=2, max=100),
        control("weighting"),
        MIN_DF,
    )


# --- vectors of words ---------------------------------------------------------------------------------------


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
