"""The models of `twofold topics`, all seen as topics p(word | topic) and mixtures p(topic | document)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from twofold import NMF, PLSA, LatentDirichletAllocation
from twofold.cli._console import progress
from twofold.core.data.blocks import as_blocks
from twofold.text.tfidf import weigh, weighing


def fit(kind: str, X: sp.csr_array, k: int, seed: int, quiet: bool = True) -> tuple[Any, np.ndarray]:
    """A model and its topics (k,d), whose rows sum to one."""
    model = new(kind, k, seed).set_callbacks(*progress(quiet))
    A, idf = weighted(X) if kind == "nmf" else (X, 1.0)
    model.fit(A)
    model.set_callbacks()
    topics = np.asarray(model.components_, dtype=np.float64)
    if kind != "nmf":
        return model, topics
    topics = topics / idf
    return model, topics / np.maximum(topics.sum(axis=1, keepdims=True), 1e-300)


def mixtures_of(kind: str, model: Any, X: sp.csr_array) -> np.ndarray:
    """The mixture of every document (n,k); of one without words, that of all."""
    if kind != "nmf":
        return np.asarray(model.transform(X), dtype=np.float64)
    A, idf = weighted(X)
    codes = np.asarray(model.transform(A), dtype=np.float64)
    codes *= (model.components_ / idf).sum(axis=1)  # in words
    total = codes.sum(axis=1, keepdims=True)
    average = codes.sum(axis=0) / max(codes.sum(), 1e-300)
    return np.where(total > 0, codes / np.maximum(total, 1e-300), average)


def new(kind: str, k: int, seed: int) -> Any:
    models = {"lda": LatentDirichletAllocation, "plsa": PLSA, "nmf": NMF}
    return models[kind](n_components=k, random_state=seed)


def weighted(X: sp.csr_array) -> tuple[sp.csr_array, np.ndarray]:
    """Rows of tf-idf, each of length one, and idf (d,): squared error would else be about long documents."""
    counts = X.astype(np.float64)
    how = weighing(as_blocks(counts), None, "tfidf")
    return weigh(counts, how), how.idf


def reorder(model: Any, order: np.ndarray, words: np.ndarray) -> None:
    """Number the model's topics as they are shown, and let it know its words."""
    k, d = model.components_.shape
    for name, value in vars(model).items():
        if name.endswith("_") and isinstance(value, np.ndarray) and value.shape in ((k, d), (k,)):
            setattr(model, name, value[order])
    model.vocabulary_ = words  # not feature_names_in_: counts are given as sparse arrays, which have no names
