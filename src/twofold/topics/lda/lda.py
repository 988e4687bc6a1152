"""Latent Dirichlet allocation: documents as mixtures of topics.

    θ_i ~ Dirichlet(α)    φ_c ~ Dirichlet(β)    every token of document i: topic c ~ θ_i, then word j ~ φ_c
    X (n,d) counts   U (n,k) = p(topic | document), the θ   Z (k,d) = p(word | topic), the φ   maximise p(X | α, β)

One sweep:  each block  topics of its words, given Z and the document's other words
            then once   Z ← the words each topic was given; α ← what suits the documents' topic counts
The solvers, a file each: _scvb0, _gibbs, _online. References: Blei, Ng & Jordan 2003; Griffiths & Steyvers 2004.
"""

from __future__ import annotations

import time
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.core.engine.local import add, engine_for, fingerprint
from twofold.core.estimator import Reorderable, fitting
from twofold.core.params import ITERATIVE, Interval, StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.topics._nonnegative import NonnegativeModel
from twofold.topics.lda import _dirichlet, _gibbs, _online, _scvb0
from twofold.topics.lda._documents import Corpus, document_scores, is_usable, mixtures, pad

START = 0.1  # α of every topic before it is learned
MINIBATCHES: dict[str, Any] = {"scvb0": _scvb0, "online": _online}  # the solvers that can go on


class LatentDirichletAllocation(Reorderable, NonnegativeModel):
    """Latent Dirichlet allocation: every document is a mixture of topics, every topic a distribution of words.

    ``p(word j | document i) = Σ_c p(c | i) p(j | c)`` with Dirichlet priors on both.

    Parameters
    ----------
    n_components : int or None, default=None
        Topics; None means 10, or the rows or columns if fewer.
    solver : {"scvb0", "gibbs", "online"}, default="scvb0"
        Collapsed variational inference of order zero, with mini-batches once the corpus is large; collapsed Gibbs
        sampling, for whole counts; online variational Bayes.
    doc_topic_prior : "learned", float or array of shape (k,), default="learned"
        α, the prior of a document's topics. Learned, every topic gets its own.
    topic_word_prior : float, default=0.01
        β, the prior of a topic's words.
    init : array of shape (k, d) or None, default=None
        Topics to begin with (non-negative, a row each, of any scale); None begins at random.
    tol : float, default=1e-4
        Stop when the objective moves by less than this, relatively. Sampling does not settle: "gibbs" does not look,
        and calls it converged if the objective fell by less than a hundredth over the last quarter of the sweeps.
    max_iter : int, default=200
        Sweeps at most; for "gibbs", exactly. The second half of its samples is averaged.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        p(word | topic).
    alpha_ : ndarray of shape (k,)
        The prior of a document's topics.
    topic_weight_ : ndarray of shape (k,)
        Tokens of each topic, by expectation.
    history_, n_iter_, converged_
        The objective is minus the mean log-likelihood of a token under the current estimates of topics and mixtures
        (plug-in), or, with "gibbs", given the topics of all other tokens; ``alpha`` the sum of the prior.

    References
    ----------
    Blei, Ng & Jordan (2003), *JMLR* 3, 993-1022. Foulds, Boyles, DuBois, Smyth & Welling (2013), *KDD*, 446-454
    (scvb0). Griffiths & Steyvers (2004), *PNAS* 101, 5228-5235 (gibbs). Hoffman, Blei & Bach (2010), *NIPS* (online).

    Examples
    --------
    >>> from twofold import LatentDirichletAllocation
    >>> rng = np.random.default_rng(0)
    >>> topics = np.repeat(np.eye(2), 3, axis=1) / 3                       # two topics of three words each
    >>> mixtures = rng.dirichlet([0.3, 0.3], size=200)
    >>> X = np.array([rng.multinomial(50, p) for p in mixtures @ topics])
    >>> model = LatentDirichletAllocation(2, random_state=0).fit(X)
    >>> sorted((model.components_ > 0.1).astype(int).tolist())
    [[0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0]]
    """

    alpha_: np.ndarray
    _component_axes: ClassVar[dict[str, int]] = {"components_": 0, "alpha_": 0, "topic_weight_": 0}
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [None, Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"scvb0", "gibbs", "online"})],
        "doc_topic_prior": [StrOptions({"learned"}), Interval(Real, 0, None, closed="neither"), "array-like"],
        "topic_word_prior": [Interval(Real, 0, None, closed="neither")],
        "init": [None, "array-like"],
        **ITERATIVE,
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        solver: str = "scvb0",
        doc_topic_prior: Any = "learned",
        topic_word_prior: float = 0.01,
        init: Any = None,
        tol: float = 1e-4,
        max_iter: int = 200,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.solver = solver
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    # ---- fitting -----------------------------------------------------------------------------------------------

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> LatentDirichletAllocation:
        """Find the topics.

        Parameters
        ----------
        X : array, sparse array, frame, path or dask array of shape (n, d)
            Counts: how often each word occurs in each document.
        y : ignored
        sample_weight : array of shape (n,), optional
            A document of weight 2 counts as two equal ones. Whole numbers for "gibbs".
        """
        blocks = self._blocks(X, reset=True, min_rows=2)
        w = self._weights(blocks, sample_weight)
        corpus = self._corpus(blocks, w)
        solvers: dict[str, Any] = {
            "scvb0": _scvb0.solver,
            "online": _online.solver,
            "gibbs": lambda c: _gibbs.solver(c, self.max_iter),
        }
        state, sweep = solvers[self.solver](corpus)
        loop.run(
            self,
            sweep,
            state,
            tol=0.0 if self.solver == "gibbs" else self.tol,
            fitted=lambda s: self._attributes(s, blocks.dtype),
            X=X,
            fingerprint=partial(fingerprint, blocks, w),
            seed=corpus.seed,
            advice="Raise max_iter" if self.solver == "gibbs" else "Raise max_iter, or loosen tol",
        )
        return self

    def _corpus(self, blocks: Blocks, w: np.ndarray | None) -> Corpus:
        """The data and the parameters, checked."""
        n, d = blocks.shape
        words = count_words(blocks, w)
        if words is None:
            self._refuse(blocks)
        if words is None or not words.sum() > 0:
            raise InputError(f"X of shape {blocks.shape} holds no words: every count is 0. Give at least one document.")
        k = min(10, n, d) if self.n_components is None else self.n_components
        init = None if self.init is None else check_init(self.init, k, d)
        learn = isinstance(self.doc_topic_prior, str)
        alpha = np.full(k, START) if learn else check_prior(self.doc_topic_prior, k)
        weight = float(n if w is None else w.sum())
        return Corpus(
            engine_for(blocks), blocks, w, words, weight, k, alpha, learn, self.topic_word_prior,
            seed_of(self.random_state), init,
        )  # fmt: skip

    def _attributes(self, state: Any, dtype: np.dtype) -> dict:
        counts = _gibbs.topic_counts(state) if isinstance(state, _gibbs.State) else state.counts
        topics = _scvb0.word_shares(counts, self.topic_word_prior)
        return {
            "components_": np.ascontiguousarray(topics.T).astype(dtype),
            "alpha_": state.alpha.copy(),
            "topic_weight_": counts.sum(axis=0),
        }

    def partial_fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> LatentDirichletAllocation:
        """Learn from one more batch of documents, by one mini-batch step of the solver: not for "gibbs".

        The topics move by (1 + t)^−0.7, where t counts the batches, or the sweeps of :meth:`fit`, before.
        """
        self._validate_params()
        if self.solver not in MINIBATCHES:
            raise InputError('solver="gibbs" keeps a topic for every token and cannot go on. Use "scvb0" or "online".')
        began = time.perf_counter()
        blocks = self._blocks(X, reset=not hasattr(self, "components_"))
        w = self._weights(blocks, sample_weight)
        corpus = self._corpus(blocks, w)
        counts, alpha, history = self._so_far(corpus)
        t, total = len(history["objective"]), counts.sum()
        sums = MINIBATCHES[self.solver].minibatch(corpus, counts, alpha)
        counts = _scvb0.blend(counts, sums, total, _online.rate(t, 2))
        alpha = _dirichlet.step(alpha, sums.prior) if corpus.learn and t else alpha
        for name, value in self._attributes(_online.State(counts, alpha), blocks.dtype).items():
            setattr(self, name, value)
        spent = (history["seconds"][-1] if t else 0.0) + time.perf_counter() - began
        row = {"objective": -sums.logp / max(sums.tokens, 1e-300), "seconds": spent, "alpha": float(alpha.sum())}
        self.history_ = {name: [*history[name], value] for name, value in row.items()}
        self.n_iter_, self.converged_ = t + 1, False
        return self

    def _so_far(self, c: Corpus) -> tuple[np.ndarray, np.ndarray, dict[str, list[float]]]:
        """Topic counts (d,k), scaled to the tokens of all batches including this one; the prior; the history."""
        tokens = float(c.words.sum())
        if not hasattr(self, "components_"):
            return c.topic_counts(generator(c.seed)), c.alpha, {"objective": [], "seconds": [], "alpha": []}
        weight = self.topic_weight_ + self.n_features_in_ * c.beta
        counts = np.maximum(self.components_.T * weight - c.beta, 0.0).astype(np.float64)
        return counts * (1 + tokens / counts.sum()), self.alpha_, self.history_

    # ---- using -------------------------------------------------------------------------------------------------

    def _topics(self) -> tuple[np.ndarray, np.ndarray]:
        """Topics and prior as the kernels want them."""
        check_is_fitted(self)
        dtype = self.components_.dtype
        return pad(np.ascontiguousarray(self.components_.T), dtype), pad(self.alpha_, dtype)

    def transform(self, X: Table) -> np.ndarray:
        """p(topic | document) (n,k), the topics held fixed; a document without known words gets the prior's mean."""
        topics, alpha = self._topics()
        return self._rowwise(mixtures, X, topics, alpha, len(self.components_))

    def inverse_transform(self, U: Any) -> np.ndarray:
        """p(word | document) (n,d) of documents with these topics."""
        return self._check_codes(U) @ self.components_

    def score_samples(self, X: Table) -> np.ndarray:
        """The log-likelihood of each document's words, given its own mixture; unknown words are left out."""
        return self._rowwise(document_scores, X, *self._topics())[:, 0]

    def score(self, X: Table, y: Any = None) -> float:
        """The mean log-likelihood of a token, given the mixture of its own document."""
        logp, tokens = np.asarray(self._rowwise(document_scores, X, *self._topics())).sum(axis=0)
        return float(logp / tokens) if tokens else 0.0

    def sample_documents(
        self, n: int = 1, length: Any = 100, *, random_state: Seed = None, return_topics: bool = False
    ) -> Any:
        """New documents, as the model says they come about.

        Parameters
        ----------
        n : int, default=1
        length : int or array of shape (n,), default=100
            Tokens a document.
        random_state : int, RandomState, Generator or None, default=None
        return_topics : bool, default=False
            Also give p(topic | document), (n,k).

        Returns
        -------
        csr_array of shape (n, d), whole counts; or the pair (counts, topics).
        """
        check_is_fitted(self)
        if n < 1 or np.min(length) < 0:
            raise InputError(f"n={n} documents of length {length}: ask for one at least, of no negative length.")
        rng = generator(seed_of(random_state))
        shares = rng.dirichlet(self.alpha_, size=n)
        topics = self.components_.astype(np.float64)
        topics /= topics.sum(axis=1, keepdims=True)
        each = [rng.multinomial(m, p @ topics) for m, p in zip(np.broadcast_to(length, n), shares, strict=True)]
        X = sparse.vstack([sparse.csr_array(row[None]) for row in each], format="csr")
        return (X, shares) if return_topics else X


def _word_counts(X: Any, w: np.ndarray | None) -> tuple[np.ndarray, int]:
    if not is_usable(X):
        return np.zeros(X.shape[1]), 1
    w = np.ones(X.shape[0]) if w is None else w
    return np.asarray(X.T @ w, dtype=np.float64).ravel(), 0


def count_words(blocks: Blocks, w: np.ndarray | None) -> np.ndarray | None:
    """How often each word occurs (d,), with weights; None if a cell is no count."""
    engine = engine_for(blocks)
    words, bad = engine.reduce(add, engine.map(_word_counts, blocks, blocks.rows(w)))
    return None if bad else words


def check_init(init: Any, k: int, d: int) -> np.ndarray:
    """The user's topics, rows summing to one."""
    topics = np.asarray(init, dtype=np.float64)
    if topics.shape != (k, d):
        raise InputError(f"init has shape {topics.shape}; {(k, d)} is needed, a row of word weights for each topic.")
    if not (np.isfinite(topics).all() and topics.min() >= 0 and topics.sum(axis=1).min() > 0):
        raise InputError("init must hold finite weights >= 0, with at least one word in every row.")
    return topics / topics.sum(axis=1, keepdims=True)


def check_prior(value: Any, k: int) -> np.ndarray:
    """doc_topic_prior as one number a topic."""
    alpha = np.asarray(value, dtype=np.float64)
    if alpha.ndim == 0:
        return np.full(k, float(alpha))
    if alpha.shape != (k,) or not (np.isfinite(alpha).all() and alpha.min() > 0):
        raise InputError(f'doc_topic_prior is {value}; give "learned", one number > 0, or {k} of them.')
    return alpha
