"""Arrays of gensim, faiss, implicit and Surprise: theirs as our fitted models, ours as theirs."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from twofold.completion.als import ALS
from twofold.completion.implicit_als import ImplicitALS
from twofold.core.checks import InputError
from twofold.topics.lda.lda import LatentDirichletAllocation

MIN_ALPHA = 1e-6  # where implicit's is 1, so that all cells count the same


def need(package: str, name: str) -> None:
    """Refuse if a package is not there."""
    if find_spec(package) is None:
        raise InputError(f"this needs {package}: pip install {name}")


# --- out ----------------------------------------------------------------------------------------------------


def to_gensim(vectors: Any) -> Any:
    """Word vectors as gensim's ``KeyedVectors``, with counts where there are some."""
    need("gensim", "gensim")
    from gensim.models import KeyedVectors

    made = KeyedVectors(vectors.vectors_.shape[1])
    made.add_vectors(list(vectors.words), np.asarray(vectors.vectors_, np.float32))
    counts = getattr(vectors, "counts_", None)
    if counts is not None:
        for word, count in zip(vectors.words, counts, strict=True):
            made.set_vecattr(word, "count", int(count))
    return made


def to_faiss(V: np.ndarray, cosine: bool) -> Any:
    """Rows V (n,k) as an exact faiss index of inner products; of cosines, of rows of length 1."""
    need("faiss", "faiss-cpu")
    import faiss

    V = np.array(V, np.float32, order="C")
    if cosine:
        V /= np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-30)
    index = faiss.IndexFlatIP(V.shape[1])
    index.add(V)
    return index


def index_items(rec: Any) -> Any:
    """The item factors of a recommender as a faiss index: a user's factors find the items of their list.

    Where items have an offset, it is one more number of each item, and a user's is 1 there.
    """
    check_is_fitted(rec)
    model = rec.ranking_
    if not hasattr(model, "row_factors_"):
        raise InputError(f"the lists of this recommender come from {type(model).__name__}, which has no item factors.")
    scorer = model.make_scorer(rec.ratings_)
    return to_faiss(scorer.Z.T, cosine=False)


# --- in -----------------------------------------------------------------------------------------------------


def from_implicit(model: Any) -> ImplicitALS:
    """An implicit ``AlternatingLeastSquares`` as a fitted :class:`ImplicitALS`, with the same factors.

    implicit's confidence in a stored cell is α r, ours 1 + α r; with α − 1 in place of α, new rows of ones get the same
    factors here and there.
    """
    U, Z = (
        np.array(getattr(part, "to_numpy", lambda part=part: part)())
        for part in (model.user_factors, model.item_factors)
    )
    made = ImplicitALS(
        U.shape[1], reg=float(model.regularization), reg_power=0.0, alpha=max(float(model.alpha) - 1, MIN_ALPHA)
    )
    return _fill_factors(made, U, Z.T, reg_=float(model.regularization))


def from_surprise(algorithm: Any) -> ALS:
    """A fitted Surprise ``SVD`` as an :class:`ALS`: r̂ = μ + b_u + b_i + ⟨p_u, q_i⟩.

    Rows and columns are Surprise's inner ids.
    """
    U, Z = np.asarray(algorithm.pu), np.asarray(algorithm.qi)
    made = ALS(U.shape[1], reg=float(algorithm.reg_pu))
    offsets = {"row_bias_": np.array(algorithm.bu), "column_bias_": np.array(algorithm.bi)}
    mean = float(algorithm.trainset.global_mean) if algorithm.biased else 0.0
    return _fill_factors(made, U, Z.T, reg_=float(algorithm.reg_pu), mean_=mean, spread_=1.0, **offsets)


def _fill_factors(made: Any, U: np.ndarray, Z: np.ndarray, **attributes: Any) -> Any:
    n, d = len(U), Z.shape[1]
    biases = {"row_bias_": np.zeros(n, U.dtype), "column_bias_": np.zeros(d, Z.dtype), "mean_": 0.0}
    history: dict[str, list[float]] = {"objective": [], "seconds": []}
    arrays = {"row_factors_": np.ascontiguousarray(U), "components_": np.ascontiguousarray(Z)}
    sizes = {"n_rows_": n, "n_features_in_": d, "n_iter_": 0, "converged_": True, "history_": history}
    vars(made).update(sizes | biases | arrays | attributes)
    return made


def from_gensim_lda(lda: Any) -> LatentDirichletAllocation:
    """A gensim ``LdaModel`` as a fitted :class:`LatentDirichletAllocation`: its topics, and its prior of topics.

    Columns are words in the order of the model's dictionary, ``[lda.id2word[j] for j in range(d)]``.
    """
    counts = np.asarray(lda.state.get_lambda(), np.float64)  # (k,d) pseudo-counts, the prior among them
    sums, eta = counts.sum(axis=1), float(np.mean(lda.eta))
    made: Any = LatentDirichletAllocation(len(counts), doc_topic_prior=None, topic_word_prior=eta)
    fitted: dict[str, Any] = {
        "components_": counts / sums[:, None],
        "doc_topic_prior_": np.asarray(lda.alpha, np.float64),
        "topic_word_prior_": eta,
        "topic_weight_": np.maximum(sums - counts.shape[1] * eta, 0.0),
        "n_features_in_": counts.shape[1],
        "n_iter_": 0,
        "converged_": True,
        "history_": {"objective": [], "seconds": []},
    }
    vars(made).update(fitted)
    return made
