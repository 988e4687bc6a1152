"""Topics of texts: their words as they settle, a map of the topics, and the documents among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.methods import tables
from twofold.lab.methods.method import Data, Emit, Frame, Method, Result, Values, as_bytes, pack, start_frame
from twofold.lab.methods.setting import Setting, control, loop_controls, sweep_limit
from twofold.lab.script import Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

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
        self.X, self.words, self.texts = script["X"], script["counter"].vocabulary_, script["texts"]
        self.rows = np.unique(np.linspace(0, len(self.texts) - 1, min(len(self.texts), MAX_MAP_DOCUMENTS)).astype(int))
        self.last = np.zeros((0, 2))
        empty = {"sizes": np.zeros(0), "map": np.zeros((0, 2)), "documents": np.zeros((len(self.rows), 2))}
        empty["labels"] = as_bytes(np.full(len(self.rows), 255))
        self.first = start_frame({"rows": self.rows}, empty, topics=[], words=len(self.words))

    def mixtures(self, model: Any, rows: Any = slice(None)) -> np.ndarray:
        """(n,k) share of each topic in each document."""
        codes = np.abs(np.asarray(model.transform(self.X[rows]), dtype=np.float64))
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
    counts: ClassVar[bool] = False  # True if the model reads plain counts

    def prepare(self, script: Script, data: Data, chosen: Values) -> None:
        few = len(script["texts"]) < 20
        bounds = {} if few else {"min_df": chosen["min_df"], "max_df": 0.5}
        script.build("BagOfWords", bounds, to="counter")
        script.do("X = counter.fit_transform(texts)")

    def fit(self, script: Script, model: Any, view: Any, emit: Emit, chosen: Values) -> None:
        super().fit(script, model, view, emit, chosen)
        if self.counts:  # then the file of the model is all that new texts need
            script.do("model.bag_of_words_ = counter")

    def table(self, script: Script, data: Data, model: Any) -> pl.DataFrame:
        codes = np.abs(np.asarray(model.transform(script["X"])))
        shares = codes / np.maximum(codes.sum(axis=1, keepdims=True), 1e-300)
        return tables.result_table(script, data, {"topic": shares.argmax(axis=1), "share": shares.max(axis=1)})

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
        names = result.table["name"] if result.table is not None and "name" in result.table.columns else None
        found = []
        for row in np.argsort(-shares, kind="stable")[:10].tolist():
            text = snippet(view.texts[row], weights, MAX_SNIPPET_LETTERS)
            name = f"document {row + 1}" if names is None else str(names[row])
            found.append({"name": name, "row": row, "text": text, "share": float(shares[row])})
        return {"documents": found}


class LDAMethod(Topics):
    id, title, estimator = "lda", "Latent Dirichlet allocation", "LatentDirichletAllocation"
    objective = "mean negative log-likelihood of a word"
    compare = ("nmf", "plsa")
    counts = True
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

    def prepare(self, script: Script, data: Data, chosen: Values) -> None:
        super().prepare(script, data, chosen)
        script.use("sklearn.feature_extraction.text", "TfidfTransformer")
        script.do("X = TfidfTransformer(sublinear_tf=True).fit_transform(X)")


class PLSAMethod(Topics):
    id, title, estimator = "plsa", "Probabilistic latent semantic analysis", "PLSA"
    objective = "mean negative log-likelihood of a word"
    compare = ("lda", "nmf")
    counts = True
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
