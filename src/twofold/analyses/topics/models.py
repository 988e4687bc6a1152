"""The models of topics, all seen as topics p(word | topic) and mixtures p(topic | document).

A model that `analyses.topics` gives knows how words are counted (`bag_of_words_`), and NMF what they weigh (`idf_`), so
that its file is all that is needed to find the topics of new texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

import twofold
from twofold.analyses.topics.streamed import CountsOnDisk
from twofold.core.checks import InputError

MODELS = {"lda": "LatentDirichletAllocation", "plsa": "PLSA", "nmf": "NMF"}
MIN_IDF = float(np.log(2.0))
METHODS = {"lda": "LDA", "plsa": "pLSA", "nmf": "NMF", "lsa": "LSA"}


def fit(kind: str, X: Any, k: int, seed: int) -> Any:
    """A model of counts X (n,d)."""
    model = getattr(twofold, MODELS[kind])(n_components=k, random_state=seed)
    if kind == "nmf":
        from twofold.core.data.blocks import as_blocks
        from twofold.text.tfidf import find_weighing

        counts = as_blocks(X.path if isinstance(X, CountsOnDisk) else X.astype(np.float64))
        # Words in more than half of the documents weigh as if they were in half of them.
        model.idf_ = np.maximum(find_weighing(counts, None, "tfidf").idf - 1.0, MIN_IDF)
    return model.fit(weigh_counts(model, X)).set_callbacks()


def weigh_counts(model: Any, X: Any) -> Any:
    """Counts as the model takes them: NMF tf-idf of length one, of counts log(1 + x), that no long document rules."""
    if not hasattr(model, "idf_"):
        return X.path if isinstance(X, CountsOnDisk) else X
    from twofold.text.tfidf import Weighing, weigh

    how = Weighing("tfidf", model.idf_)
    if isinstance(X, CountsOnDisk):
        return X.write_changed("weighed.csr", lambda block: weigh(block.log1p(), how))
    return weigh(X.astype(np.float64).log1p(), how)


def topics_of(model: Any) -> np.ndarray:
    """(k,d) the topics; rows sum to one."""
    topics = np.asarray(model.components_, dtype=np.float64)
    if not hasattr(model, "idf_"):
        return topics
    topics = topics / model.idf_
    return topics / np.maximum(topics.sum(axis=1, keepdims=True), 1e-300)


def weigh_topics(model: Any, X: Any) -> np.ndarray:
    """(k,) the share of each topic in the words of X (n,d)."""
    lengths = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
    return lengths @ mixtures_of(model, X) / lengths.sum()


def telling_words(topics: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """(k,d) p(j|c) log p(j|c) / p(j): what each word adds to the divergence of a topic from all text."""
    overall = shares @ topics
    lift = np.divide(topics, overall, out=np.ones_like(topics), where=topics > 0)
    return topics * np.log(lift)


def mixtures_of(model: Any, X: Any) -> np.ndarray:
    """(n,k) the mixture of every document; of one without words, that of all."""
    codes = np.asarray(model.transform(weigh_counts(model, X)), dtype=np.float64)
    if not hasattr(model, "idf_"):
        return codes
    codes *= (model.components_ / model.idf_).sum(axis=1)  # in words
    total = codes.sum(axis=1, keepdims=True)
    average = codes.sum(axis=0) / total.sum() if total.any() else np.full(codes.shape[1], 1 / codes.shape[1])
    return np.where(total > 0, codes / np.maximum(total, 1e-300), average)


def mixtures_of_texts(model: Any, texts: Sequence[str]) -> np.ndarray:
    """(n,k) how much of each text is about each topic, by a model that `analyses.topics` fitted."""
    bag = getattr(model, "bag_of_words_", None)
    if bag is None:
        raise InputError(
            f"this {type(model).__name__} does not know which words its columns count. Make one that does with "
            "the verb topics, or give it counts."
        )
    return mixtures_of(model, sp.csr_array(bag.transform(list(texts))))
