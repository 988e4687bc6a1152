"""Topics of texts: their words as they settle, a map of the topics, and the documents among them.

A method of this file is a class with the name of its estimator and its settings; `Topics` draws it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.methods.method import (
    Data,
    Emit,
    Frame,
    Method,
    Result,
    Setting,
    loop_settings,
    marks,
    numbers,
    seed,
    setting,
)
from twofold.lab.methods.planes import turn_to
from twofold.lab.script import Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

WORDS = 12  # of a topic
DRAWN = 600  # documents on the map; each is coded anew after every sweep
LONGEST = 400  # letters shown of a document
MIN_DF = Setting(
    name="min_df",
    label="documents with a word",
    about="Words of fewer documents than this are left out, and so are stop words and words of more than half of all.",
    type="int",
    default=3,
    min=1,
    max=100,
    advanced=True,
)


class Corpus:
    """Counted texts, and the topics of a model of them."""

    def __init__(self, script: Script, data: Data):
        self.X, self.words, self.texts = script["X"], script["counter"].vocabulary_, script["texts"]
        self.rows = np.unique(np.linspace(0, len(self.texts) - 1, min(len(self.texts), DRAWN)).astype(int))
        self.last = np.zeros((0, 2))
        empty = {"sizes": np.zeros(0), "map": np.zeros((0, 2)), "documents": np.zeros((len(self.rows), 2))}
        arrays = {name: numbers(value) for name, value in empty.items()}
        arrays |= {"labels": marks(np.full(len(self.rows), 255)), "rows": self.rows.astype(np.int32)}
        self.first: Frame = arrays, {"static": ["rows"], "topics": [], "words": len(self.words)}

    def mixtures(self, model: Any, rows: Any = slice(None)) -> np.ndarray:
        """(n,k) how much of each document is of each topic."""
        codes = np.abs(np.asarray(model.transform(self.X[rows]), dtype=np.float64))
        return codes / np.maximum(codes.sum(axis=1, keepdims=True), 1e-300)

    def frame(self, model: Any) -> Frame:
        from twofold.topics.topic_table import topic_map

        Z = np.asarray(model.components_, dtype=np.float64)
        shares = self.mixtures(model, self.rows)
        sizes = shares.mean(axis=0)
        at = topic_map(np.abs(Z), share=sizes)
        self.last = at = turn_to(self.last, at) if self.last.shape == at.shape else at
        arrays = {"sizes": numbers(sizes), "map": numbers(at), "documents": numbers(shares @ at)}
        return arrays | {"labels": marks(shares.argmax(axis=1))}, {"topics": self.top_words(Z)}

    def top_words(self, Z: np.ndarray) -> list[list[dict[str, Any]]]:
        """Of every topic the words of most weight."""
        Z = Z / np.maximum(np.abs(Z).sum(axis=1, keepdims=True), 1e-300)
        best = np.argsort(-Z, axis=1, kind="stable")[:, :WORDS]
        return [
            [{"word": str(self.words[j]), "weight": float(z[j])} for j in row] for row, z in zip(best, Z, strict=True)
        ]


class Topics(Method):
    """Texts, counted, and a model of the counts."""

    family, view = "topics", "topics"
    kinds = ("text",)
    default_data = "docstrings"
    counts: ClassVar[bool] = False  # whether the model reads plain counts

    def prepare(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> None:
        few = len(script["texts"]) < 20
        bounds = {} if few else {"min_df": chosen["min_df"], "max_df": 0.5}
        script.build("BagOfWords", bounds, to="counter")
        script.do("X = counter.fit_transform(texts)")

    def fit(self, script: Script, model: Any, sight: Any, emit: Emit, chosen: Mapping[str, Any]) -> None:
        super().fit(script, model, sight, emit, chosen)
        if self.counts:  # then the file of the model is all that new texts need
            script.do("model.bag_of_words_ = counter")

    def look(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> Corpus:
        return Corpus(script, data)

    def table(self, script: Script, data: Data, model: Any, names: Sequence[str] | None) -> pl.DataFrame:
        import polars as pl

        codes = np.abs(np.asarray(model.transform(script["X"])))
        shares = codes / np.maximum(codes.sum(axis=1, keepdims=True), 1e-300)
        rows = script["rows"] if "rows" in script else list(range(len(shares)))
        first = {"row": rows} if names is None else {"row": rows, "name": list(names)}
        return pl.DataFrame({**first, "topic": shares.argmax(axis=1), "share": shares.max(axis=1)})

    def figure(self, sight: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.reports.topics import topic_report_figure

        arrays, meta = sight.frame(model)
        tops = [[entry["word"] for entry in topic] for topic in meta["topics"]]
        sizes = arrays["sizes"].astype(np.float64)
        return topic_report_figure(arrays["map"], sizes / sizes.sum(), tops, title=f"{data.name}: {self.title}")

    def ask_documents(self, result: Result, topic: int) -> dict[str, Any]:
        """The documents with most of a topic, and in each the sentence that tells it."""
        from twofold.text.snippets import snippet

        sight, Z = result.sight, np.asarray(result.model.components_)
        if not 0 <= topic < len(Z):
            raise InputError(f"topic {topic}: there are topics from 0 to {len(Z) - 1}.")
        shares = sight.mixtures(result.model)[:, topic]
        weights = {entry["word"]: entry["weight"] for entry in sight.top_words(Z[topic : topic + 1])[0]}
        names = result.table["name"] if result.table is not None and "name" in result.table.columns else None
        found = []
        for row in np.argsort(-shares, kind="stable")[:10].tolist():
            text = snippet(sight.texts[row], weights, LONGEST)
            name = f"document {row + 1}" if names is None else str(names[row])
            found.append({"name": name, "row": row, "text": text, "share": float(shares[row])})
        return {"documents": found}


class LDAMethod(Topics):
    id, title, estimator = "lda", "Latent Dirichlet allocation", "LatentDirichletAllocation"
    objective = "mean negative log-likelihood of a word"
    compare = ("nmf", "plsa")
    counts = True
    settings = (
        setting("LatentDirichletAllocation", "n_components", label="topics", default=8, min=2, max=40),
        setting(
            "LatentDirichletAllocation",
            "learning_method",
            label="method",
            default="scvb0",
            choices=("scvb0", "batch", "online", "gibbs"),
        ),
        setting(
            "LatentDirichletAllocation", "topic_word_prior", default=0.01, min=1e-4, max=10, log=True, advanced=True
        ),
        MIN_DF,
        setting(
            "LatentDirichletAllocation", "max_iter", label="sweeps at most", default=100, min=1, max=1000, advanced=True
        ),
        seed("LatentDirichletAllocation"),
    )


class NMFMethod(Topics):
    id, title, estimator, objective = "nmf", "NMF of texts", "NMF", "divergence"
    compare = ("lda", "lsa")
    fixed: ClassVar[Mapping[str, Any]] = {"init": "random"}
    settings = (
        setting("NMF", "n_components", label="topics", type="int", default=8, min=2, max=40),
        setting(
            "NMF", "beta_loss", label="loss", default="kullback-leibler", choices=("kullback-leibler", "frobenius")
        ),
        MIN_DF,
        *loop_settings("NMF", 1e-4, 200),
    )

    def prepare(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> None:
        super().prepare(script, data, chosen)
        script.use("sklearn.feature_extraction.text", "TfidfTransformer")
        script.do("X = TfidfTransformer(sublinear_tf=True).fit_transform(X)")


class PLSAMethod(Topics):
    id, title, estimator = "plsa", "Probabilistic latent semantic analysis", "PLSA"
    objective = "mean negative log-likelihood of a word"
    compare = ("lda", "nmf")
    counts = True
    settings = (
        setting("PLSA", "n_components", label="topics", type="int", default=8, min=2, max=40),
        setting("PLSA", "tempering", default=1.0, min=0.1, max=1, step=0.05),
        MIN_DF,
        *loop_settings("PLSA", 1e-4, 200),
    )


class LSAMethod(Topics):
    id, title, estimator, objective = "lsa", "Latent semantic analysis", "LSA", "what is left over"
    compare = ("nmf", "lda")
    settings = (
        setting("LSA", "n_components", label="directions", type="int", default=8, min=2, max=100),
        setting("LSA", "weighting", default="tfidf", choices=("tfidf", "log", "none")),
        MIN_DF,
        seed("LSA"),
    )


METHODS = (LDAMethod(), NMFMethod(), PLSAMethod(), LSAMethod())
