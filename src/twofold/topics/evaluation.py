"""The quality of topics: perplexity on held-out documents, and coherence of their words.

Every function takes a fitted model or a plain array of topics (k,d), so that all topics have the same measure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError, refuse
from twofold.core.data.blocks import Rows, as_blocks
from twofold.core.engine.local import add, engine_for
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table
from twofold.topics._nonnegative import refuse_negative
from twofold.topics.lda.documents import as_counts, fold_mixtures, is_usable, pad, score_counts

ALPHA = 0.1  # of every topic, where the model has no prior
EPSILON = 1e-12  # added to shares of documents: the logarithm of zero is infinite


def as_topics(topics: Any) -> np.ndarray:
    """The topics of a model, or of an array (k,d), as distributions: rows sum to one."""
    Z = np.atleast_2d(np.asarray(getattr(topics, "components_", topics), dtype=np.float64))
    if Z.ndim != 2 or not np.isfinite(Z).all() or Z.min() < 0 or not (Z.sum(axis=1) > 0).all():
        raise InputError(
            f"the topics, of shape {Z.shape}, are no distributions of words: finite weights >= 0 are needed, and one "
            "above 0 in every row. LSA has none; use LatentDirichletAllocation, PLSA or NMF."
        )
    return Z / Z.sum(axis=1, keepdims=True)


def perplexity(topics: Any, X: Table, *, alpha: Any = None, random_state: Seed = None) -> float:
    """Perplexity on documents held out: lower is better.

    By document completion: the tokens of each document are split in halves at random. The first half folds in, by EM
    for ``θ_c ∝ α_c + Σ_j x_j γ_jc, γ_jc ∝ θ_c p(j | c)`` until convergence; the second is scored:
    ``exp(−Σ log Σ_c θ_c p(j | c) / tokens)``. Words that no topic knows are left out of both.

    Parameters
    ----------
    topics : fitted model, or array of shape (k, d)
        p(word | topic); rows are normalized here.
    X : array, sparse array, path or dask array of shape (n, d)
        Whole counts of held-out documents.
    alpha : float, array of shape (k,) or None, default=None
        The prior of the fold-in; None takes the model's own ``doc_topic_prior_``, or 0.1 where it has none. Use one
        value for all to compare topics of different programs.
    random_state : int, RandomState, Generator or None, default=None
        The split of the tokens. None means 0, so that all models are scored on the same tokens.

    Returns
    -------
    float

    References
    ----------
    Wallach, Murray, Salakhutdinov & Mimno (2009), *ICML*, 1105-1112 (document completion).

    Examples
    --------
    >>> X = np.random.default_rng(0).integers(0, 4, size=(20, 50))
    >>> round(perplexity(np.ones((3, 50)), X), 6)                          # no knowledge: any of the 50 words
    50.0
    """
    logp, tokens = complete_documents(topics, X, alpha=alpha, random_state=random_state)
    if not tokens:
        raise InputError("no document has a second half with a known word; give documents of two words at least.")
    return float(np.exp(-logp / tokens))


def complete_documents(
    topics: Any, X: Table, *, alpha: Any = None, random_state: Seed = None, whole: bool = True
) -> tuple[float, float]:
    """The log-likelihood of the hidden halves of documents, and their tokens; without `whole`, parts of counts do."""
    Z = as_topics(topics)
    blocks = _check(X, Z, "perplexity", whole=whole)
    alpha = getattr(topics, "doc_topic_prior_", ALPHA) if alpha is None else alpha
    prior = np.broadcast_to(np.asarray(alpha, dtype=np.float64), len(Z)) if np.size(alpha) in (1, len(Z)) else None
    if prior is None or not (prior > 0).all():
        raise InputError(f"alpha is {alpha}; one number > 0, or one for each of the {len(Z)} topics, is needed.")
    engine, seed = engine_for(blocks), 0 if random_state is None else seed_of(random_state)
    state = (pad(Z.T, np.dtype(np.float64)), pad(prior, np.dtype(np.float64)), seed)
    scored = engine.map(_score_second_halves, blocks, Rows(range(len(blocks))), *map(engine.broadcast, state))
    logp, tokens = engine.reduce(add, scored)
    return float(logp), float(tokens)


def split_halves(X: Any, rng: np.random.Generator) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Each document's tokens split in two at random; of an odd number the first half has one more."""
    data, indices, indptr = as_counts(X, np.dtype(np.int64))
    n, cell = X.shape[0], np.repeat(np.arange(len(data)), data)
    document = np.repeat(np.repeat(np.arange(n), np.diff(indptr)), data)
    length = np.bincount(document, minlength=n)
    order = np.lexsort((rng.random(len(cell)), document))
    rank = np.arange(len(cell)) - np.repeat(np.cumsum(length) - length, length)
    first = np.bincount(cell[order[rank < np.repeat((length + 1) // 2, length)]], minlength=len(data))
    make = lambda values: sparse.csr_array((values.astype(np.float64), indices, indptr), shape=X.shape)  # noqa: E731
    return make(first), make(data - first)


def round_counts(X: Any, rng: np.random.Generator) -> Any:
    """Whole counts; a part of one is a whole one with its probability."""
    cells = X.data if sparse.issparse(X) else X
    if (cells == np.floor(cells)).all():
        return X
    X = sparse.csr_array(X, copy=True)
    X.data = np.floor(X.data + rng.random(len(X.data)))
    return X


def _score_second_halves(X: Any, at: int, topics: np.ndarray, alpha: np.ndarray, seed: int) -> np.ndarray:
    """(2,): the log-likelihood of the second halves of a block given the first, and their tokens."""
    if X.shape[0] == 0:
        return np.zeros(2)
    rng = generator(seed, at)
    seen, hidden = split_halves(round_counts(X, rng), rng)
    return score_counts(hidden, topics, fold_mixtures(seen, topics, alpha)).sum(axis=1)


def score_hidden_words(topics: Any, X: Table) -> float:
    """The mean log-probability of a token among the words that are hidden, given the counts of the others.

    Each half of the vocabulary is hidden once, from all documents. The split of :func:`perplexity` leaves words in
    both halves: words come in bursts, so models with many topics memorize documents and score well on words they saw.
    """
    Z, alpha = as_topics(topics), np.asarray(getattr(topics, "doc_topic_prior_", ALPHA), dtype=np.float64)
    blocks = _check(X, Z, "heldout_score", whole=False)
    engine, half = engine_for(blocks), generator(0).permutation(np.arange(Z.shape[1]) % 2)
    total = np.zeros(2)
    for hidden in (half == 0, half == 1):
        share = np.maximum(np.stack([Z[:, ~hidden].sum(axis=1), Z[:, hidden].sum(axis=1)]), EPSILON)  # (2,k) of topics
        prior = alpha * share[0] / share[0].mean()  # α, for the visible words
        state = [pad(a, np.dtype(np.float64)) for a in ((Z[:, ~hidden].T / share[0]), Z[:, hidden].T / share[1], prior)]
        state += [pad(share[1] / share[0], np.dtype(np.float64)), hidden]
        total += engine.reduce(add, engine.map(_score_hidden, blocks, *map(engine.broadcast, state)))
    if not total[1]:
        raise InputError("no document has a known word that could be hidden. Give documents of two words at least.")
    return float(total[0] / total[1])


def _score_hidden(
    X: Any, seen: np.ndarray, asked: np.ndarray, alpha: np.ndarray, ratio: np.ndarray, hidden: np.ndarray
) -> np.ndarray:
    """(2,): the log-likelihood of the hidden tokens of a block given the others, and their number."""
    if X.shape[0] == 0:
        return np.zeros(2)
    X = sparse.csr_array(X)
    shares = fold_mixtures(X[:, ~hidden], seen, alpha) * ratio
    return score_counts(X[:, hidden], asked, shares / shares.sum(axis=1, keepdims=True)).sum(axis=1)


def topic_coherence(topics: Any, X: Table, *, measure: str = "npmi", top: int = 10) -> np.ndarray:
    """Measure how often the likeliest words of a topic occur in the same documents: higher is better.

    The mean over all pairs of the `top` words of each topic. With p the share of documents that have a word, or both:
    "npmi" is ``log((p_ij + ε) / (p_i p_j)) / −log(p_ij + ε)``, from −1 to 1, ε = 1e-12; "umass" is
    ``log((D_ij + 1) / D_j)`` with D the number of documents, and j the likelier word of the two. Pairs with a word
    that is in no document are left out; a topic without any other pair is NaN.

    Parameters
    ----------
    topics : fitted model, or array of shape (k, d)
    X : array, sparse array, path or dask array of shape (n, d)
        The documents; only presence of a word counts, not how often it occurs.
    measure : {"npmi", "umass"}, default="npmi"
    top : int, default=10
        Words a topic.

    Returns
    -------
    ndarray of shape (k,)

    References
    ----------
    Bouma (2009), *GSCL*, 31-40 (npmi). Mimno, Wallach, Talley, Leenders & McCallum (2011), *EMNLP*, 262-272 (umass).

    Examples
    --------
    >>> X = np.array([[1, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 3], [0, 0, 1, 1]])
    >>> topic_coherence([[5, 5, 0, 0], [5, 0, 0, 5]], X, top=2).round(2)    # always together; never
    array([ 1. , -0.95])
    """
    if measure not in ("npmi", "umass"):
        raise InputError(f'measure is {measure!r}; choose "npmi" or "umass".')
    if top < 2:
        raise InputError(f"top={top} words make no pair; take 2 at least.")
    Z = as_topics(topics)
    blocks = _check(X, Z, "topic_coherence", whole=False)
    best = np.argsort(-Z, axis=1, kind="stable")[:, :top]  # (k,top), the likeliest first
    words, at = np.unique(best, return_inverse=True)
    engine = engine_for(blocks)
    D = engine.reduce(add, engine.map(_count_pairs, blocks, engine.broadcast(words)))  # (words, words)
    return np.array([_coherence(D[np.ix_(row, row)], blocks.shape[0], measure) for row in at.reshape(best.shape)])


def _count_pairs(X: Any, words: np.ndarray) -> np.ndarray:
    """The number of documents of a block that contain each pair of words; on the diagonal, each word."""
    has = sparse.csr_array(X)[:, words]
    has = sparse.csr_array((np.ones(has.nnz) * (has.data > 0), has.indices, has.indptr), shape=has.shape)
    return (has.T @ has).toarray()


def _coherence(D: np.ndarray, n: int, measure: str) -> float:
    """The mean over the pairs of one topic's words, in the order of their weight."""
    j, i = np.triu_indices(len(D), 1)  # j is the likelier
    known = (D[i, i] > 0) & (D[j, j] > 0)
    i, j = i[known], j[known]
    if not len(i):
        return float("nan")
    if measure == "umass":
        return float(np.log((D[i, j] + 1) / D[j, j]).mean())
    both = D[i, j] / n + EPSILON
    everywhere = D[i, j] == n  # the maximum, where the formula is 0/0
    value = np.log(both * n * n / (D[i, i] * D[j, j])) / np.where(everywhere, 1.0, -np.log(both))
    return float(np.where(everywhere, 1.0, value).mean())


def _check(X: Any, Z: np.ndarray, name: str, whole: bool) -> Any:
    """X as blocks; raise if its width is not that of the topics, or a cell is no count."""
    blocks = as_blocks(X)
    if blocks.shape[1] != Z.shape[1]:
        raise InputError(f"X has {blocks.shape[1]} columns, the topics have {Z.shape[1]} words: use one vocabulary.")
    engine = engine_for(blocks)
    good, integral = zip(*engine.gather(engine.map(_check_cells, blocks)), strict=True)
    if not all(good):
        refuse(name, blocks)
        refuse_negative(name, blocks)
    if whole and not all(integral):
        raise InputError(f"{name} splits documents token by token and needs whole counts; X has others. Round them.")
    return blocks


def _check_cells(X: Any) -> tuple[bool, bool]:
    """Return whether a block's cells are finite and >= 0, and whether they are whole."""
    cells = X.data if sparse.issparse(X) else X
    good = is_usable(X)
    return good, good and bool((cells == np.floor(cells)).all())
