"""Probabilistic latent semantic analysis.

    maximize  Σ w x_ij log Σ_c u_ic z_cj   over  u_i = p(topic | document i), z_c = p(word | topic c)
    X (n,d) counts in row blocks   U (n,k) kept by the blocks   V = Zᵀ (d,k)

One sweep:  each block  U ← Newton's method by coordinates, or with tempering posteriors of the stored counts;
                        the counts of each topic, by the posteriors
            then once   Z ← those counts, each topic summing to 1, extrapolated along the last step while that helps
With solver="em" one sweep is one step of EM: both factors move by the same posteriors, and nothing is extrapolated.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import xlogy
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.engine.local import add, engine_for, fingerprint
from twofold.core.estimator import Reorderable, fitting
from twofold.core.history import History
from twofold.core.numerics.extrapolation import DRAWS, SMALL, Advance, State, begin, choose_start, geometric, sweeper
from twofold.core.numerics.nndsvd import LIFT, Start, nndsvd
from twofold.core.params import ITERATIVE, Interval, StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.kernels.kl import newton_counts
from twofold.kernels.plsa import em_counts, em_fold
from twofold.topics._nonnegative import TopicModel, check_init, sum_cells
from twofold.topics.merging import Mergeable
from twofold.topics.nmf.kullback_leibler import KullbackLeibler
from twofold.topics.nmf.problem import start_level, start_randomly

PASSES = {"newton": 2, "em": 1}  # over a document's mixture, a sweep
MAX_FOLD_PASSES = 500  # over a new document


class SymmetricForm(NamedTuple):
    """p(word, document) = Σ_c p(c) p(document | c) p(word | c)."""

    topic: np.ndarray  # (k,) p(c)
    document: np.ndarray  # (n,k) p(document | c), columns sum to 1
    word: np.ndarray  # (k,d) p(word | c), rows sum to 1


class Sums(NamedTuple):
    """Added over blocks, in float64."""

    T: np.ndarray  # (d,k) Σ w x u^β/ŷ
    loglik: float  # Σ w x log ŷ


def update_mixtures(
    X: Any, w: np.ndarray | None, kept: tuple, V: np.ndarray, beta: float, passes: int
) -> tuple[tuple, Sums]:
    """Improve the mixtures of one block; return them and the block's sums. V is raised to β."""
    X, U = as_csr(X, V.dtype), kept[0].copy()
    T, loglik = np.zeros(V.shape), np.empty(len(U))
    ones = np.ones(len(U)) if w is None else w
    em_counts(X.indptr, X.indices, X.data, ones, V, V.dtype.type(beta), passes, U, T, loglik)
    return (U,), Sums(T, float(ones @ loglik))


def score_saturated(X: Any, w: np.ndarray | None) -> float:
    """Σ w x log p of one block for p = the word shares of each document: the maximum over all models."""
    X = as_csr(X, np.dtype(np.float64))
    tokens = np.asarray(X.sum(axis=1)).ravel()
    logs = np.asarray(sparse.csr_array((xlogy(X.data, X.data), X.indices, X.indptr), shape=X.shape).sum(axis=1)).ravel()
    each = logs - xlogy(tokens, tokens)
    return float(each.sum() if w is None else w @ each)


def update_topics(V: np.ndarray, s: Sums, old: np.ndarray) -> np.ndarray:
    """Improve the topics. A topic without any word does not change."""
    counts = V.astype(np.float64) * s.T
    total = counts.sum(axis=0)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), old)


def normalize(V: np.ndarray) -> np.ndarray:
    return V / V.sum(axis=0)


def scale_codes(X: Any, kept: tuple, size: np.ndarray) -> tuple[tuple, int]:
    """Codes of one block for parts that are divided by `size`."""
    return (kept[0] * size,), 0


def scale_to_mixtures(X: Any, kept: tuple, size: np.ndarray) -> tuple[tuple, int]:
    """The same, divided by their sums: the mixtures of the documents."""
    U = kept[0] * size
    total = U.sum(axis=1, keepdims=True)
    return (np.where(total > 0, U / np.where(total > 0, total, 1), U.dtype.type(1 / U.shape[1])),), 0


def begin_with(start: Start, blocks: Blocks, solver: str) -> State:
    """Start from parts scaled to topics, which sum to 1, and codes scaled the other way, or to mixtures for EM."""
    engine, V = engine_for(blocks), start.V.astype(np.float64)
    scale = scale_to_mixtures if solver == "em" else scale_codes
    parts = engine.map(scale, blocks, start.kept, engine.broadcast(V.sum(axis=0).astype(start.V.dtype)))
    topics = np.ascontiguousarray(normalize(V).astype(start.V.dtype))
    return begin(topics, engine.reduce(add, parts, keep=True)[0])


class PLSA(Mergeable, Reorderable, TopicModel):
    """Probabilistic latent semantic analysis: every document is a mixture of k topics, every topic a mixture of words.

    ``p(word | document) = Σ_c p(word | c) p(c | document)``, fitted to counts by expectation maximization, with
    Newton's step for the documents if there is no tempering, or by its plain steps.

    Parameters
    ----------
    n_components : int or None, default=None
        Topics; None means 10, or fewer if the table is smaller.
    tempering : float, default=1.0
        β, the power of the posteriors. Below 1 they are flatter, which prevents overfitting to small corpora.
    solver : {"newton", "em"}, default="newton"
        Newton's method for the documents and extrapolated topics; or the textbook's EM, one step a sweep, which takes
        many more sweeps to the same points.
    init : {"nndsvd", "random"}, array of shape (k, d) or None, default=None
        The start: singular vectors as in :class:`NMF`, raised a little above zero; random topics; an array of topics.
        None means "nndsvd", and on a small table also two random starts for 40 sweeps each; the best is taken.
    tol, max_iter, random_state
        As in :class:`NMF`; `tol` is relative to the divergence of the data from the model, which differs from the
        objective by a constant.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        p(word | topic); rows sum to 1.
    topic_share_ : ndarray of shape (k,)
        p(topic): the share of the tokens of each topic.
    history_, n_iter_, converged_
        The objective is minus the mean log-likelihood a token (with tempering: Hofmann's free energy), taken before
        the sweep's last step; it never rises.

    References
    ----------
    Hofmann (1999), *SIGIR*, 50-57; (2001), *Machine Learning* 42, 177-196. Ang & Gillis (2019), *Neural Computation*
    31, 417-439 (extrapolation).

    Examples
    --------
    >>> from twofold import PLSA
    >>> words = np.kron(np.eye(2), np.ones(3) / 3)                         # two topics of three words each
    >>> mixture = np.random.default_rng(0).dirichlet([0.5, 0.5], size=200)
    >>> X = np.random.default_rng(1).poisson(50 * mixture @ words)
    >>> model = PLSA(2, random_state=0).fit(X)
    >>> np.sort(model.components_[:, :3].sum(axis=1)).round(1) + 0.0
    array([0., 1.])
    """

    topic_share_: Annotated[np.ndarray, "k, >= 0"]
    _component_axes: ClassVar[dict[str, int]] = {"components_": 0, "topic_share_": 0}
    components_: Annotated[np.ndarray, "k d, >= 0"]
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [None, Interval(Integral, 1, None, closed="left")],
        "tempering": [Interval(Real, 0, None, closed="neither")],
        "solver": [StrOptions({"newton", "em"})],
        "init": [None, StrOptions({"nndsvd", "random"}), "array-like"],
        **ITERATIVE,
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        tempering: float = 1.0,
        solver: str = "newton",
        init: Any = None,
        tol: float = 1e-5,
        max_iter: int = 500,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.tempering = tempering
        self.solver = solver
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> PLSA:
        """Find the topics of counts, or of any amounts >= 0; see :meth:`LatentDirichletAllocation.fit`."""
        blocks = self._blocks(X, reset=True)
        w = self._weights(blocks, sample_weight)
        totals, engine, seed = sum_cells(self, blocks, w, logs=True), engine_for(blocks), seed_of(self.random_state)
        rows, tokens = blocks.rows(w), max(totals.total, 1e-300)
        least = -engine.reduce(add, engine.map(score_saturated, blocks, rows))
        extrapolate = None if self.solver == "em" else geometric
        sweep = sweeper(self._advance(blocks, w, totals.logs, least), extrapolate, self.tol)

        def sweep_tokens(state: State, t: int) -> loop.Sweep:
            """Sweep, and report minus the log-likelihood a token instead of the divergence."""
            found = sweep(state, t)
            return found._replace(objective=(found.objective + least) / tokens)

        def relative_change(history: History) -> float:
            """The remaining change, relative to the divergence."""
            return history.remaining_change() / max(history.columns["objective"][-1] - least / tokens, 1e-300)

        starts = self._starts(blocks, w, totals.total, seed)
        loop.run(
            self,
            sweep_tokens,
            choose_start(sweep, starts, self.max_iter),
            fitted=self._attributes,
            moved=relative_change,
            X=X,
            fingerprint=partial(fingerprint, blocks, w),
            seed=seed,
        )
        found = engine.map(topic_tokens, blocks, rows, *(engine.broadcast(s) for s in self._folding()))
        self.topic_share_ = _share(engine.reduce(add, found)).astype(blocks.dtype)
        return self

    def _advance(self, blocks: Blocks, w: np.ndarray | None, logs: float, minimum: float) -> Advance:
        """Both half-steps. Without tempering they are those of NMF: a mixture times its tokens is a code."""
        beta = float(self.tempering)
        if beta == 1.0 and self.solver == "newton":
            return KullbackLeibler(blocks, w, logs).advance
        engine, rows = engine_for(blocks), blocks.rows(w)
        fixed = (engine.broadcast(beta), engine.broadcast(PASSES[self.solver]))

        def advance(kept: Rows, V: np.ndarray) -> tuple[Rows, np.ndarray, float]:
            V = normalize(V)
            raised = V ** V.dtype.type(beta)
            parts = engine.map(update_mixtures, blocks, rows, kept, engine.broadcast(raised), *fixed)
            kept, s = engine.reduce(add, parts, keep=True)
            return kept, update_topics(raised, s, V).astype(blocks.dtype), -s.loglik - minimum

        return advance

    def _starts(self, blocks: Blocks, w: np.ndarray | None, total: float, seed: int) -> list[State]:
        """The start; several to choose from if `init` is None."""
        n, d = blocks.shape
        k = min(10, n, d) if self.n_components is None else int(self.n_components)
        level = float(np.sqrt(total / ((n if w is None else w.sum()) * d * k))) or 1.0
        if self.init is not None and not isinstance(self.init, str):
            first = start_level(blocks, check_init(self.init, k, d).T.astype(blocks.dtype), level)
            return [begin_with(first, blocks, self.solver)]
        drawn = [start_randomly(blocks, k, seed_of(generator(seed, 3, t)), level) for t in range(DRAWS)]
        if self.init == "random" or not total:
            return [begin_with(drawn[0], blocks, self.solver)]
        first = nndsvd(engine_for(blocks), blocks, w, False, k, seed, level, LIFT * level)
        small = self.init is None and n * d * k <= SMALL
        return [begin_with(start, blocks, self.solver) for start in [first, *(drawn if small else [])]]

    def _attributes(self, state: State) -> dict:
        k = state.V.shape[1]
        # While the sweeps run, an empty document is any topic's; the shares are counted at the end.
        return {
            "components_": np.ascontiguousarray(normalize(state.V).T),
            "topic_share_": np.full(k, 1 / k, state.V.dtype),
        }

    # ---- using -------------------------------------------------------------------------------------------------

    def _folding(self) -> tuple[np.ndarray, np.ndarray, float]:
        check_is_fitted(self)
        return np.ascontiguousarray(self.components_.T), self.topic_share_, float(self.tempering)

    def transform(self, X: Table) -> Any:
        """p(topic | document) (n,k), the topics staying as they are; an empty document gets `topic_share_`."""
        return self._rowwise(fold, X, *self._folding())

    def fit_log_likelihood(self, X: Table, sample_weight: Weights = None) -> float:
        """The mean log-likelihood a token, given the mixture of its own document, of words that some topic contains.

        It rises with the number of topics; :meth:`score` does not let a token predict itself.
        """
        found = np.asarray(self._rowwise(log_likelihoods, X, *self._folding()))
        loglik, tokens = found.sum(axis=0) if sample_weight is None else np.asarray(sample_weight) @ found
        return float(loglik / max(tokens, 1e-300))

    def sample(self, n_tokens: int, mixture: Any = None, random_state: Seed = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw words and the topics that they were drawn from, as indices.

        Parameters
        ----------
        n_tokens : int
            Words to draw, a document each if there are several mixtures.
        mixture : array of shape (k,) or (m, k), optional
            p(topic | document), as `transform` gives it. Default: `topic_share_`, so that words come from p(word).
        random_state : int, RandomState, Generator or None

        Returns
        -------
        words, topics : ndarray of shape (n_tokens,) or (m, n_tokens)
        """
        check_is_fitted(self)
        rng = generator(seed_of(random_state))
        shares = np.asarray(self.topic_share_ if mixture is None else mixture, dtype=np.float64)
        k, d = self.components_.shape
        if (
            shares.ndim not in (1, 2)
            or shares.shape[-1] != k
            or (shares < 0).any()
            or not np.allclose(shares.sum(-1), 1)
        ):
            raise InputError(
                f"mixture has shape {shares.shape}; it needs {k} probabilities a document, which sum to 1."
            )
        topics = np.array([rng.choice(k, n_tokens, p=row / row.sum()) for row in np.atleast_2d(shares)])
        words = np.empty_like(topics)
        for c, row in enumerate(self.components_.astype(np.float64)):
            drawn = topics == c
            words[drawn] = rng.choice(d, int(drawn.sum()), p=row / row.sum()) if drawn.any() else 0
        return (words[0], topics[0]) if shares.ndim == 1 else (words, topics)

    def symmetric(self, X: Table) -> SymmetricForm:
        """The same model, of the documents in X, symmetric in both sides: p(c), p(document | c), p(word | c)."""
        V, share, beta = self._folding()
        blocks = self._blocks(X)
        engine = engine_for(blocks)
        parts = engine.map(tokens_by_topic, blocks, *(engine.broadcast(s) for s in (V, share, beta)))
        weighted = engine.stack(parts)  # (n,k) tokens of each document in each topic
        if not np.isfinite(weighted.sum()):
            self._refuse(blocks)
        total = weighted.sum(axis=0)
        document = weighted / np.where(total > 0, total, 1.0)
        return SymmetricForm(_share(total), document, self.components_)


def _share(total: np.ndarray) -> np.ndarray:
    """Token counts (k,) as shares; equal if all are 0."""
    return total / total.sum() if total.sum() > 0 else np.full(len(total), 1 / len(total))


# --- new documents ------------------------------------------------------------------------------------------


def as_csr(X: Any, dtype: np.dtype) -> sparse.csr_array:
    return sparse.csr_array(X).astype(dtype, copy=False)


def fold(X: Any, V: np.ndarray, share: np.ndarray, beta: float) -> np.ndarray:
    """p(topic | document) of new documents; one without a known word gets the topics' share."""
    return find_mixtures(X, V, share, beta)[0]


def log_likelihoods(X: Any, V: np.ndarray, share: np.ndarray, beta: float) -> np.ndarray:
    """(m,2): Σ_j x log p(word | document), and the tokens, of words that some topic contains."""
    U, X = find_mixtures(X, V, share, beta)
    if np.isnan(U).any():
        return np.full((len(U), 2), np.nan)
    loglik, T = np.empty(len(U)), np.zeros(V.shape)
    em_counts(X.indptr, X.indices, X.data, np.ones(len(U)), V, V.dtype.type(1), 1, U.copy(), T, loglik)
    return np.column_stack([loglik, np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()])


def find_mixtures(X: Any, V: np.ndarray, share: np.ndarray, beta: float) -> tuple[np.ndarray, sparse.csr_array]:
    """The mixtures u that maximize Σ_j x_j log ⟨u, v_j⟩, and the counts without words that no topic has.

    The untempered optimum is that of NMF under the Kullback-Leibler divergence with topics that sum to 1, and Newton's
    method converges sooner than EM.
    """
    X, dtype = as_csr(X, V.dtype), V.dtype
    if (X.data < 0).any() or not np.isfinite(X.data.sum()):
        return np.full((X.shape[0], len(share)), np.nan, dtype), X
    x = np.where(np.asarray(V.max(axis=1) > 0)[X.indices], X.data, 0)
    X = sparse.csr_array((x, X.indices, X.indptr), shape=X.shape)
    tokens = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    U = np.tile(share.astype(dtype), (X.shape[0], 1))
    end = dtype.type(1e-10 if dtype == np.float64 else 1e-5)
    if beta == 1.0:
        U = np.ascontiguousarray(np.repeat(tokens[:, None] / len(share), len(share), axis=1), dtype=dtype)
        ratio, cost = np.empty_like(x), np.empty(len(U))
        ones = np.ones(len(share), dtype)
        newton_counts(X.indptr, X.indices, x, V, ones, x.dtype.type(0), MAX_FOLD_PASSES, end, U, ratio, cost)
        size = U.sum(axis=1, keepdims=True)
        U = np.where(size > 0, U / np.where(size > 0, size, 1), share.astype(dtype))
    else:
        em_fold(X.indptr, X.indices, x, V ** dtype.type(beta), dtype.type(beta), MAX_FOLD_PASSES, end, U)
    return U, X


def tokens_by_topic(X: Any, V: np.ndarray, share: np.ndarray, beta: float) -> np.ndarray:
    U, X = find_mixtures(X, V, share, beta)
    return U.astype(np.float64) * np.asarray(X.sum(axis=1, dtype=np.float64)).reshape(-1, 1)


def topic_tokens(X: Any, w: np.ndarray | None, V: np.ndarray, share: np.ndarray, beta: float) -> np.ndarray:
    tokens = tokens_by_topic(X, V, share, beta)
    return tokens.sum(axis=0) if w is None else w @ tokens
