"""Latent Dirichlet allocation: documents as mixtures of topics.

    θ_i ~ Dirichlet(α)    φ_c ~ Dirichlet(β)    every token of document i: topic c ~ θ_i, then word j ~ φ_c
    X (n,d) counts   U (n,k) = p(topic | document), the θ   Z (k,d) = p(word | topic), the φ   maximize p(X | α, β)

One sweep:  each block  topics of its words, given Z and the document's other words
            then once   Z ← the words of each topic; α ← its maximum likelihood given the documents' topic counts
The methods, a file each: _scvb0, _gibbs, _variational.
"""

from __future__ import annotations

import time
from functools import partial
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

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
from twofold.topics._nonnegative import TopicModel, check_init
from twofold.topics.lda import _gibbs, _scvb0, _variational
from twofold.topics.lda.documents import Corpus, blend, document_scores, is_usable, mixtures, pad, step_alpha
from twofold.topics.merging import Mergeable

MAX_LOG = 709.0  # exp of more is infinite
START_ALPHA = 0.1  # of every topic, before it is learned
VARIATIONAL = ("batch", "online")  # methods with a Dirichlet for every document


class LatentDirichletAllocation(Mergeable, Reorderable, TopicModel):
    """Latent Dirichlet allocation: every document is a mixture of topics, every topic a distribution of words.

    ``p(word j | document i) = Σ_c p(c | i) p(j | c)`` with Dirichlet priors on both.

    Parameters
    ----------
    n_components : int, default=10
        Topics.
    doc_topic_prior : "learned", float, array of shape (k,) or None, default="learned"
        α, the prior of a document's topics; None means 1/k. Learned, every topic gets its own.
    topic_word_prior : float or None, default=0.01
        β, the prior of a topic's words; None means 1/k.
    learning_method : {"scvb0", "batch", "online", "gibbs"}, default="scvb0"
        Collapsed variational inference of order zero, with mini-batches once the corpus is large; variational Bayes,
        over the whole corpus or by mini-batches in the order of the rows; collapsed Gibbs sampling, for whole counts.
    learning_decay : float, default=0.7
        Of "online": the weight of the t-th mini-batch is (learning_offset + t)^−learning_decay; it converges between
        0.5 and 1.
    learning_offset : float, default=10.0
        Of "online": a larger value lowers the weight of the first mini-batches.
    batch_size : int, default=128
        Documents of a mini-batch, of "online".
    total_samples : float, default=1e6
        Documents in all batches together, for :meth:`partial_fit` with "batch" or "online".
    mean_change_tol, max_doc_update_iter : float and int, default=1e-3 and 100
        Of "batch" and "online": a document is done when its topic counts change by less than this in the mean, or after
        `max_doc_update_iter` steps.
    init : array of shape (k, d) or None, default=None
        Topics to begin with (non-negative, a row each, of any scale); None begins at random.
    tol : float, default=1e-4
        Stop when the relative change of the objective in the last sweeps, plus a tenth of the change that their trend
        predicts, is below this. "gibbs" ignores it, and reports convergence if the objective falls by less than a
        hundredth over the last quarter of the sweeps.
    max_iter : int, default=200
        Maximum number of sweeps; "gibbs" makes all of them, and averages the second half.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        p(word | topic).
    doc_topic_prior_ : ndarray of shape (k,)
        α, the prior of a document's topics.
    topic_word_prior_ : float
        β, the prior of a topic's words.
    exp_dirichlet_component_ : ndarray of shape (k, d)
        exp E log p(word | topic), under the Dirichlets whose pseudo-counts are the topics' words and β.
    n_batch_iter_ : int
        Mini-batches, or sweeps, that the topics have seen, plus one.
    bound_ : float
        Perplexity of the training documents, by :meth:`perplexity_bound`; with "scvb0" and "gibbs" by the objective.
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

    doc_topic_prior_: Annotated[np.ndarray, "k, > 0"]
    topic_word_prior_: float
    _component_axes: ClassVar[dict[str, int]] = {"components_": 0, "doc_topic_prior_": 0, "topic_weight_": 0}
    components_: Annotated[np.ndarray, "k d, >= 0"]
    topic_weight_: Annotated[np.ndarray, "k, >= 0"]
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "doc_topic_prior": [None, StrOptions({"learned"}), Interval(Real, 0, None, closed="neither"), "array-like"],
        "topic_word_prior": [None, Interval(Real, 0, None, closed="neither")],
        "learning_method": [StrOptions({"scvb0", "batch", "online", "gibbs"})],
        "learning_decay": [Interval(Real, 0, 1, closed="both")],
        "learning_offset": [Interval(Real, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "total_samples": [Interval(Real, 0, None, closed="neither")],
        "mean_change_tol": [Interval(Real, 0, None, closed="left")],
        "max_doc_update_iter": [Interval(Integral, 1, None, closed="left")],
        "init": [None, "array-like"],
        **ITERATIVE,
    }
    _instead: ClassVar[dict[str, str]] = {
        "evaluate_every": "every sweep has its objective in history_. Use tol, or EarlyStopping on held-out documents.",
        "perp_tol": "the loop stops when the objective stands still. Use tol.",
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        doc_topic_prior: Any = "learned",
        topic_word_prior: float | None = 0.01,
        learning_method: str = "scvb0",
        learning_decay: float = 0.7,
        learning_offset: float = 10.0,
        batch_size: int = 128,
        total_samples: float = 1e6,
        mean_change_tol: float = 1e-3,
        max_doc_update_iter: int = 100,
        init: Any = None,
        tol: float = 1e-4,
        max_iter: int = 200,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.learning_method = learning_method
        self.learning_decay = learning_decay
        self.learning_offset = learning_offset
        self.batch_size = batch_size
        self.total_samples = total_samples
        self.mean_change_tol = mean_change_tol
        self.max_doc_update_iter = max_doc_update_iter
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
            "batch": partial(_variational.solver, plan=self._plan()),
            "online": partial(_variational.solver, plan=self._plan(self.batch_size)),
            "gibbs": lambda c: _gibbs.solver(c, self.max_iter),
        }
        state, sweep = solvers[self.learning_method](corpus)
        start = [state]  # popped, so that the first state is freed when the loop leaves it
        del state
        gibbs = self.learning_method == "gibbs"
        loop.run(
            self,
            sweep,
            start.pop(),
            tol=0.0 if gibbs else self.tol,
            fitted=lambda s: self._attributes(s, corpus),
            X=X,
            fingerprint=partial(fingerprint, blocks, w),
            seed=corpus.seed,
            advice="Raise max_iter" if gibbs else "Raise max_iter, or loosen tol",
        )
        batches = -(-blocks.shape[0] // self.batch_size) if self.learning_method == "online" else 1
        self.n_batch_iter_ = 1 + self.n_iter_ * batches
        if self.learning_method in VARIATIONAL:
            self.bound_ = self._perplexity(blocks, w, 1.0)
        else:
            self.bound_ = float(np.exp(self.history_["objective"][-1]))
        return self

    def _plan(self, size: int | None = None) -> _variational.Plan:
        how = (self.max_doc_update_iter, self.mean_change_tol, size, self.learning_offset, self.learning_decay)
        return _variational.Plan(*how)

    def _corpus(self, blocks: Blocks, w: np.ndarray | None) -> Corpus:
        """The data and the parameters, checked."""
        n, d = blocks.shape
        words = count_words(blocks, w)
        if words is None:
            self._refuse(blocks)
        if words is None or not words.sum() > 0:
            raise InputError(f"X of shape {blocks.shape} holds no words: every count is 0. Give at least one document.")
        k = self.n_components
        init = None if self.init is None else check_init(self.init, k, d)
        init = init if init is None else init / init.sum(axis=1, keepdims=True)
        learn = isinstance(self.doc_topic_prior, str)
        alpha = np.full(k, START_ALPHA) if learn else check_prior(self.doc_topic_prior, k)
        weight = float(n if w is None else w.sum())
        return Corpus(
            engine_for(blocks), blocks, w, words, weight, k, alpha, learn, float(self.topic_word_prior or 1 / k),
            seed_of(self.random_state), init,
        )  # fmt: skip

    def _attributes(self, state: Any, c: Corpus) -> dict:
        sampled = isinstance(state, _gibbs.State) and state.samples
        counts = state.total / state.samples if sampled else state.counts
        topics = _scvb0.word_shares(counts, c.beta)
        return {
            "components_": np.ascontiguousarray(topics.T).astype(c.blocks.dtype),
            "doc_topic_prior_": state.alpha.copy(),
            "topic_word_prior_": c.beta,
            "topic_weight_": counts.sum(axis=0),
        }

    def partial_fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> LatentDirichletAllocation:
        """Learn from one more batch of documents, by one mini-batch step of the method: not for "gibbs".

        "batch" and "online" make a step of "online" in a corpus of `total_samples` documents. With "scvb0" the weight
        of the batch is (1 + t)^−0.7, where t counts the batches, or the sweeps of :meth:`fit`, before.
        """
        self._validate_params()
        if self.learning_method == "gibbs":
            raise InputError(
                'learning_method="gibbs" stores a topic for every token and cannot continue. Use "scvb0" or "online".'
            )
        began = time.perf_counter()
        blocks = self._blocks(X, reset=not hasattr(self, "components_"))
        w = self._weights(blocks, sample_weight)
        corpus = self._corpus(blocks, w)
        counts, alpha, history = self._so_far(corpus)
        t, total = len(history["objective"]), counts.sum()
        done = getattr(self, "n_batch_iter_", 1)
        if self.learning_method in VARIATIONAL:
            plan = self._plan()
            sums: Any = _variational.learn_batch(corpus, counts, alpha, plan)
            counts = blend(counts, sums.counts, self.total_samples, sums.documents, plan.rate(done))
        else:
            sums = _scvb0.learn_batch(corpus, counts, alpha)
            counts = blend(counts, sums.counts, total, sums.counts.sum(), (1.0 + t) ** -_scvb0.DECAY)
        alpha = step_alpha(alpha, sums.prior) if corpus.learn and t else alpha
        for name, value in self._attributes(_variational.State(counts, alpha), corpus).items():
            setattr(self, name, value)
        spent = (history["seconds"][-1] if t else 0.0) + time.perf_counter() - began
        row = {"objective": -sums.logp / max(sums.tokens, 1e-300), "seconds": spent, "alpha": float(alpha.sum())}
        self.history_ = {name: [*history[name], value] for name, value in row.items()}
        self.n_iter_, self.n_batch_iter_, self.converged_ = t + 1, done + 1, False
        self.bound_ = float(np.exp(row["objective"]))
        return self

    def _so_far(self, c: Corpus) -> tuple[np.ndarray, np.ndarray, dict[str, list[float]]]:
        """Topic counts (d,k), scaled to the tokens of all batches and this one; the prior; the history."""
        tokens, plain = float(c.words.sum()), self.learning_method in VARIATIONAL
        if not hasattr(self, "components_"):
            counts = _variational.start_counts(c) if plain else c.start_counts(generator(c.seed))
            return counts, c.alpha, {"objective": [], "seconds": [], "alpha": []}
        counts = np.maximum(self._pseudo_counts() - self.topic_word_prior_, 0.0)
        return counts * (1 if plain else 1 + tokens / counts.sum()), self.doc_topic_prior_, self.history_

    def _pseudo_counts(self) -> np.ndarray:
        """λ (d,k): the word counts of each topic, plus β."""
        check_is_fitted(self)
        weight = self.topic_weight_ + self.n_features_in_ * self.topic_word_prior_
        return self.components_.T.astype(np.float64) * weight

    @property
    def exp_dirichlet_component_(self) -> np.ndarray:
        return np.exp(_variational.expect_logs(self._pseudo_counts(), axis=0)).T

    # ---- using -------------------------------------------------------------------------------------------------

    def _topics(self) -> tuple[np.ndarray, np.ndarray]:
        """Topics and prior, padded for the kernels."""
        check_is_fitted(self)
        dtype = self.components_.dtype
        return pad(np.ascontiguousarray(self.components_.T), dtype), pad(self.doc_topic_prior_, dtype)

    def transform(self, X: Table, *, normalize: bool = True) -> np.ndarray:
        """p(topic | document) (n,k), the topics held fixed; a document without known words gets the prior's mean.

        Without `normalize`, α and the topics' expected tokens.
        """
        (topics, alpha), k = self._topics(), len(self.components_)
        if self.learning_method in VARIATIONAL:
            topics = pad(_variational.chances(self._pseudo_counts()), topics.dtype)
            counts = self._rowwise(_variational.fold_dirichlets, X, topics, alpha, k, *self._plan()[:2])
        else:
            counts = self._rowwise(mixtures, X, topics, alpha, k)
        return counts / counts.sum(axis=1, keepdims=True) if normalize else counts

    def fit_transform(
        self, X: Table, y: Any = None, sample_weight: Weights = None, *, normalize: bool = True
    ) -> np.ndarray:
        """Find the topics, and give those of the documents as :meth:`transform` does."""
        return self.fit(X, sample_weight=sample_weight).transform(X, normalize=normalize)

    def inverse_transform(self, U: Any) -> np.ndarray:
        """p(word | document) (n,d) of documents with these topics."""
        return self._check_codes(U) @ self.components_

    def elbo(self, X: Table) -> np.ndarray:
        """A lower bound of the log-likelihood of each document (n,), in nats: that of the best Dirichlet mixture."""
        topics, alpha = self._exact_topics()
        return self._rowwise(_variational.bound_evidence, X, topics, alpha).astype(self.components_.dtype)

    def log_likelihood(self, X: Table, n_draws: int = 128, random_state: Seed = 0, *, return_std: bool = False) -> Any:
        """log p(x | topics, α) of each document (n,), in nats, over all its possible mixtures, by importance sampling.

            p(x | Z, α) = ∫ Π_j (Σ_c θ_c Z_cj)^x_j Dirichlet(θ | α) dθ

        This is the likelihood of the words in their order. The estimate of p is unbiased: on average its logarithm is
        below the truth, by less with more draws, and it is above by more than t for at most a share exp(−t) of the
        seeds. With `return_std`, the standard error (n,) comes second. Unknown words are left out. Draws depend on the
        seed alone, so a document has the same value in any table.

        References
        ----------
        Wallach, Murray, Salakhutdinov & Mimno (2009), *ICML*, 1105-1112.
        """
        if not isinstance(n_draws, Integral) or n_draws < 1:
            raise InputError(f"n_draws={n_draws!r}: give a whole number of at least 1.")
        topics, alpha = self._exact_topics()
        found = self._rowwise(_variational.sample_evidence, X, topics, alpha, int(n_draws), seed_of(random_state))
        found = found.astype(self.components_.dtype)
        return (found[:, 0], found[:, 1]) if return_std else found[:, 0]

    def _exact_topics(self) -> tuple[np.ndarray, np.ndarray]:
        """Topics, rows summing to one, and prior in double precision."""
        topics = self._topics()[0].astype(np.float64)
        return topics / np.maximum(topics.sum(axis=0), 1e-300), self.doc_topic_prior_

    def score_samples(self, X: Table) -> np.ndarray:
        """The `log_likelihood` of each document (n,), from the same 128 draws every time."""
        return self.log_likelihood(X)

    def fit_log_likelihood(self, X: Table) -> float:
        """The mean log-likelihood of a token, given the mixture of its own document, the token included.

        It rises with the number of topics; :meth:`score` does not let a token predict itself.
        """
        logp, tokens = np.asarray(self._rowwise(document_scores, X, *self._topics())).sum(axis=0)
        return float(logp / tokens) if tokens else 0.0

    def perplexity_bound(self, X: Table, sub_sampling: bool = False) -> float:
        """exp of minus the variational lower bound a token: what scikit-learn calls perplexity.

        The bound includes the cost of the topics, and sees all words of a document; :meth:`perplexity` hides half of
        them. With `sub_sampling`, X is a share of `total_samples` documents.
        """
        blocks = self._blocks(X)
        return self._perplexity(blocks, None, self.total_samples / blocks.shape[0] if sub_sampling else 1.0)

    def _perplexity(self, blocks: Blocks, w: np.ndarray | None, times: float) -> float:
        lam = self._pseudo_counts()
        each = np.asarray(
            self._rowwise(_variational.document_bounds, blocks, lam, self.doc_topic_prior_, *self._plan()[:2])
        )
        documents, tokens = times * (each.sum(axis=0) if w is None else w @ each)
        prior = np.full(len(lam), self.topic_word_prior_)
        topics = _variational.divergences(lam.T, _variational.expect_logs(lam, axis=0).T, prior)
        return float(np.exp(min(-(documents - topics.sum()) / max(tokens, 1e-300), MAX_LOG)))

    def sample_documents(
        self, n: int = 1, length: Any = 100, *, random_state: Seed = None, return_topics: bool = False
    ) -> Any:
        """Draw n new documents of `length` tokens, one number or one each, from the model: whole counts (n,d), CSR.

        With `return_topics`, p(topic | document) (n,k) comes second.
        """
        check_is_fitted(self)
        if n < 1 or np.min(length) < 0:
            raise InputError(f"n={n} documents of length {length}: ask for one at least, of no negative length.")
        rng = generator(seed_of(random_state))
        shares = rng.dirichlet(self.doc_topic_prior_, size=n)
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
    """The count of each word (d,), with weights; None if a cell is no count."""
    engine = engine_for(blocks)
    words, bad = engine.reduce(add, engine.map(_word_counts, blocks, blocks.rows(w)))
    return None if bad else words


def check_prior(value: Any, k: int) -> np.ndarray:
    """doc_topic_prior as one number a topic."""
    if value is None:
        return np.full(k, 1 / k)
    alpha = np.asarray(value, dtype=np.float64)
    if alpha.ndim == 0:
        return np.full(k, float(alpha))
    if alpha.shape != (k,) or not (np.isfinite(alpha).all() and alpha.min() > 0):
        raise InputError(f'doc_topic_prior is {value}; give "learned", None, one number > 0, or {k} of them.')
    return alpha
