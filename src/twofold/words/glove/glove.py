"""GloVe: vectors whose products are the logarithms of co-occurrence counts.

    minimize  Σ_ij f(n_ij) (⟨u_i, z_j⟩ + b_i + c_j − log n_ij)²      f(n) = min(1, (n/x_max)^α)

    n (V,V) counts of pairs   U (V,k) words   Z (k,V) contexts   b, c (V,) biases

One sweep:  the pairs fall into B × B tiles of words × contexts; B strata of B tiles that share no word and no context
            each tile   u_i, z_j, b_i, c_j ← AdaGrad steps, one pair at a time in a random order

Threads never write the same vector, so any number of them gives the same bits. Files: _steps (AdaGrad and plain steps),
_whole (full gradients, and other weights by SVD or alternating least squares).
Reference: Gemulla et al. 2011 (strata).
"""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.core.engine.local import Engine, add, fingerprint
from twofold.core.estimator import Model, fitting
from twofold.core.history import History
from twofold.core.params import ITERATIVE, Interval, StrOptions
from twofold.core.seeds import seed_of
from twofold.core.types import Seed, Table
from twofold.text.vocabulary import Vocabulary
from twofold.words._mapped_cells import sum_blocks, sum_cells
from twofold.words.cooccurrence.cooccurrence import PairCounts, count_pairs
from twofold.words.glove._steps import descend
from twofold.words.glove._whole import Factors, Problem, complete, descend_fully, factorize, weigh_pairs
from twofold.words.word_vectors.word_vectors import WordVectors

PAIRS_AT_ONCE = 2**16  # that are scored together


class GloVe(Model):
    """Word vectors from a weighted factorization of the logarithms of co-occurrence counts.

    ``⟨u_i, z_j⟩ + b_i + c_j ≈ log n_ij`` in the least squares sense, where frequent pairs weigh more, up to a limit:
    ``f(n) = min(1, (n/x_max)^alpha)``. Every word has a vector as a word, u, and one as a context, z; they differ by
    chance only, so their sum is the better vector.

    Parameters
    ----------
    n_components : int, default=100
        Numbers a vector.
    window : int, default=10
        Maximum distance of a context word, in words; a word at distance d counts 1/d.
    x_max : float, default=10
        The count above which all pairs weigh the same: 10 suits corpora of ten million words, 100 those of billions.
    alpha : float, default=0.75
        The power of the weight below `x_max`.
    weighting : {"power", "all", "observed"}, default="power"
        "power" is GloVe's own f, by AdaGrad. "all" weighs all cells equally, also those with count zero, and fits
        log(1 + n) by a singular value decomposition. "observed" weighs all pairs with n > 0 equally: matrix
        completion, by alternating least squares.
    solver : {"adagrad", "sgd", "gd"}, default="adagrad"
        For "power". "sgd" makes plain steps, one pair at a time, of the learning rate times the gradient; "gd" makes
        one step an epoch along the gradient of all pairs, of the learning rate over the largest sum of weights of a
        word. Both are for comparison: they need more epochs, and a rate that suits the text.
    biases : bool, default=True
        Fit a bias for every word and every context.
    reg : float, default=0.1
        Ridge of "observed", as in :class:`ALS`: in units of the standard deviation of log n, times the number of
        pairs of each word.
    learning_rate : float, default=0.05
        The size of AdaGrad's first steps, and of all of "sgd"; see `solver` for "gd".
    tol : float, default=0
        Stop when an epoch lowers the cost by a relative amount below this.
    max_iter : int, default=25
        Epochs over all pairs (sweeps of "observed").
    min_count, max_size, lowercase
        Of the vocabulary, see `Vocabulary`. Like `window`, they are not used if X is a fitted `Cooccurrence`.
    random_state : int, RandomState, Generator or None, default=None
        The start, and the order of the pairs.

    Attributes
    ----------
    vectors_ : WordVectors
        Of "power" the sum of both vectors of each word; else its vector as a word.
    row_factors_ : ndarray of shape (V, k)
        Vectors of the words as words.
    components_ : ndarray of shape (k, V)
        Vectors of the words as contexts.
    row_bias_, column_bias_ : ndarray of shape (V,)
    vocabulary_ : Vocabulary
    total_ : float
        The sum of all counts.
    history_, n_iter_, converged_
        The objective is the mean of ½ f(n) (gap)² over the pairs, each before its step, as the original program prints
        it after an epoch. (It is exact for "all", over all cells, and for "observed", with the ridge.)

    Notes
    -----
    A pair takes 8 bytes during the epochs, in memory up to half of the budget (``twofold.config(memory=...)``), else in
    a temporary file. The vectors take 16 bytes a number and word for each side. A corpus in files is counted to disk
    first; to keep the counts, fit a `Cooccurrence` and pass it. "observed" stores the pairs in memory by rows and by
    columns, 32 bytes each.

    References
    ----------
    Pennington, Socher & Manning (2014), *EMNLP*, 1532-1543. Duchi, Hazan & Singer (2011), *JMLR* 12, 2121-2159.

    Examples
    --------
    >>> from twofold import GloVe
    >>> lines = ["the cat purrs and the cat sleeps", "the kitten purrs and the kitten sleeps"]
    >>> lines += ["the boat sails and the boat sinks", "the ship sails and the ship sinks"]
    >>> v = GloVe(4, min_count=1, window=3, max_iter=60, random_state=0).fit(10 * lines).vectors_
    >>> v.similarity("cat", "kitten") > 0.9 > v.similarity("cat", "ship")
    True
    """

    vectors_: Annotated[WordVectors, "vectors_: v k"]
    vocabulary_: Annotated[Vocabulary, "words_: v, text"]
    row_factors_: Annotated[np.ndarray, "v k"]
    components_: Annotated[np.ndarray, "k v"]
    row_bias_: Annotated[np.ndarray, "v"]
    column_bias_: Annotated[np.ndarray, "v"]
    total_: float
    _takes_text: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "window": [Interval(Integral, 1, None, closed="left")],
        "x_max": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "weighting": [StrOptions({"power", "all", "observed"})],
        "solver": [StrOptions({"adagrad", "sgd", "gd"})],
        "biases": ["boolean"],
        "reg": [Interval(Real, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        **Vocabulary._parameter_constraints,
        **ITERATIVE,
    }

    def __init__(
        self,
        n_components: int = 100,
        *,
        window: int = 10,
        x_max: float = 10.0,
        alpha: float = 0.75,
        weighting: str = "power",
        solver: str = "adagrad",
        biases: bool = True,
        reg: float = 0.1,
        learning_rate: float = 0.05,
        tol: float = 0.0,
        max_iter: int = 25,
        min_count: int = 5,
        max_size: int | None = None,
        lowercase: bool = True,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.window = window
        self.x_max = x_max
        self.alpha = alpha
        self.weighting = weighting
        self.solver = solver
        self.biases = biases
        self.reg = reg
        self.learning_rate = learning_rate
        self.tol = tol
        self.max_iter = max_iter
        self.min_count = min_count
        self.max_size = max_size
        self.lowercase = lowercase
        self.random_state = random_state

    # ---- fitting -----------------------------------------------------------------------------------------------

    @fitting
    def fit(self, X: Table, y: Any = None) -> GloVe:
        """Learn the vectors of a corpus, which may be what :meth:`Vocabulary.fit` takes, or of a `Cooccurrence`."""
        seed, last = seed_of(self.random_state), self.max_iter - 1
        with count_pairs(X, self) as pairs:
            problem, total = self._problem(pairs, seed), float(sum_blocks(pairs.blocks, sum_cells))

            def sweep(state: Any, t: int) -> loop.Sweep:
                made = problem.sweep(state, t)
                return made if made.done or t < last else made._replace(done=True)  # the last epoch

            try:
                loop.run(
                    self,
                    sweep,
                    problem.start,
                    moved=History.step,
                    fitted=lambda state: self._attributes(problem.factors(state), pairs.vocabulary, total),
                    X=X,
                    fingerprint=partial(fingerprint, pairs.blocks),
                    seed=seed,
                )
            finally:
                problem.close()
        return self

    def _problem(self, pairs: PairCounts, seed: int) -> Problem:
        k, biases = int(self.n_components), bool(self.biases)
        if self.weighting != "power" and self.solver != "adagrad":
            raise InputError(f'solver={self.solver!r} is for weighting="power"; {self.weighting!r} has one of its own.')
        if self.weighting == "all":
            return factorize(pairs.blocks, k, biases, seed)
        if self.weighting == "observed":
            return complete(pairs.blocks, k, biases, self.reg, seed)
        how: dict[str, Any] = {"rate": self.learning_rate, "x_max": self.x_max, "alpha": self.alpha}
        how |= {"biases": biases, "seed": seed}
        if self.solver == "gd":
            return descend_fully(pairs.blocks, k, **how)
        return descend(pairs.blocks, k, **how, plain=self.solver == "sgd")

    def _attributes(self, factors: Factors, vocabulary: Vocabulary, total: float) -> dict:
        vectors = factors.U + factors.Z if self.weighting == "power" else factors.U
        return {
            "vectors_": WordVectors.of(vocabulary.words_, vectors, vocabulary.counts_),
            "row_factors_": factors.U,
            "components_": np.ascontiguousarray(factors.Z.T),
            "row_bias_": factors.b,
            "column_bias_": factors.c,
            "vocabulary_": vocabulary,
            "total_": total,
        }

    # ---- using -------------------------------------------------------------------------------------------------

    def score(self, X: Table, y: Any = None) -> float:
        """Minus the mean of ½ f(n) (gap)² over the pairs of another text: higher is better.

        Its counts are scaled to the size of the text of the fit; words that were not in that text are left out.
        `EarlyStopping` calls this after every epoch: pass a fitted `Cooccurrence`, which is not counted again.
        """
        check_is_fitted(self)
        sides = self.row_factors_, np.ascontiguousarray(self.components_.T)
        factors = Factors(*sides, self.row_bias_, self.column_bias_)
        with count_pairs(X, self, self.vocabulary_) as pairs:
            known = {word: at for at, word in enumerate(self.vocabulary_.words_.tolist())}
            ids = np.array([known.get(word, -1) for word in pairs.vocabulary.words_.tolist()], np.int64)
            measure = Measure(self.weighting, self.x_max, self.alpha, self.total_ / sum_blocks(pairs.blocks, sum_cells))
            return -mean_cost(pairs.blocks, ids, factors, measure)


# --- pairs of another text ----------------------------------------------------------------------------------


class Measure(NamedTuple):
    """The weights of pairs, and the scale of their counts to the size of the text of the fit."""

    weighting: str
    x_max: float
    alpha: float
    scale: float

    def weight(self, n: np.ndarray) -> np.ndarray:
        return weigh_pairs(n, self.x_max, self.alpha) if self.weighting == "power" else np.ones_like(n)

    def goal(self, n: np.ndarray) -> np.ndarray:
        return np.log1p(n) if self.weighting == "all" else np.log(n)


class Sums(NamedTuple):
    """Cost and number of some pairs."""

    cost: float
    pairs: int


def mean_cost(blocks: Blocks, ids: np.ndarray, factors: Factors, measure: Measure) -> float:
    """The mean over the pairs of `blocks`, with rows and columns for the words `ids` (below 0: unknown)."""
    engine = Engine()
    shared = [engine.broadcast(value) for value in (ids, factors, measure)]
    sums = engine.reduce(add, engine.map(_block_cost, blocks, blocks.rows(ids), *shared))
    if not sums.pairs:
        raise InputError("none of the pairs has two words that the model knows. Give a text in the same language.")
    return sums.cost / sums.pairs


def _block_cost(X: sparse.csr_array, rows: np.ndarray, ids: np.ndarray, factors: Factors, measure: Measure) -> Sums:
    row, col = np.repeat(rows, np.diff(X.indptr)), ids[X.indices]
    known = (row >= 0) & (col >= 0) & (X.data > 0)
    row, col, n, total = row[known], col[known], X.data[known].astype(np.float64) * measure.scale, 0.0
    for at in range(0, len(n), PAIRS_AT_ONCE):
        part = slice(at, at + PAIRS_AT_ONCE)
        i, j = row[part], col[part]
        gap = np.einsum("tk,tk->t", factors.U[i], factors.Z[j]).astype(np.float64)
        gap += factors.b[i].astype(np.float64) + factors.c[j] - measure.goal(n[part])
        total += 0.5 * float(measure.weight(n[part]) @ gap**2)
    return Sums(total, len(n))
