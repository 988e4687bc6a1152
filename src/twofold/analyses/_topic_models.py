"""The models of `twofold topics`, all seen as topics p(word | topic) and mixtures p(topic | document)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from twofold import NMF, PLSA, LatentDirichletAllocation
from twofold.cli._console import progress


def fit(kind: str, X: sp.csr_array, k: int, seed: int, quiet: bool = True) -> tuple[Any, np.ndarray]:
    """A model and its topics (k,d), whose rows sum to one."""
    model = new(kind, k, seed).set_callbacks(*progress(quiet))
    model.fit(X if kind != "nmf" else weighted(X, idf(X)))
    model.set_callbacks()
    topics = np.asarray(model.components_, dtype=np.float64)
    if kind != "nmf":
        return model, topics
    topics = topics / idf(X)
    return model, topics / np.maximum(topics.sum(axis=1, keepdims=True), 1e-300)


def mixtures_of(kind: str, model: Any, X: sp.csr_array) -> np.ndarray:
    """The mixture of every document (n,k); of one without words, that of all."""
    if kind != "nmf":
        return np.asarray(model.transform(X), dtype=np.float64)
    codes = np.asarray(model.transform(weighted(X, idf(X))), dtype=np.float64)
    codes *= (model.components_ / idf(X)).sum(axis=1)  # in words
    total = codes.sum(axis=1, keepdims=True)
    average = codes.sum(axis=0) / max(codes.sum(), 1e-300)
    return np.where(total > 0, codes / np.maximum(total, 1e-300), average)


def new(kind: str, k: int, seed: int) -> Any:
    models = {"lda": LatentDirichletAllocation, "plsa": PLSA, "nmf": NMF}
    return models[kind](n_components=k, random_state=seed)


def idf(X: sp.csr_array) -> np.ndarray:
    """(d,) how much a word tells: 1 + log n/n_j."""
    return 1.0 + np.log(X.shape[0] / np.maximum(np.bincount(X.indices, minlength=X.shape[1]), 1))


def weighted(X: sp.csr_array, weight: np.ndarray) -> sp.csr_array:
    """Rows of tf-idf, each of length one: squared error would else be about long documents and common words."""
    Y = sp.csr_array(X.multiply(weight)).astype(np.float64)
    length = np.sqrt(np.asarray(Y.multiply(Y).sum(axis=1)).ravel())
    return sp.csr_array(sp.diags_array(1 / np.where(length > 0, length, 1.0)) @ Y)


def reorder(model: Any, order: np.ndarray, words: np.ndarray) -> None:
    """Number the model's topics as they are shown, and let it know its words."""
    k, d = model.components_.shape
    for name, value in vars(model).items():
        if name.endswith("_") and isinstance(value, np.ndarray) and value.shape in ((k, d), (k,)):
            setattr(model, name, value[order])
    model.vocabulary_ = words  # not feature_names_in_: counts are given as sparse arrays, which have no names
