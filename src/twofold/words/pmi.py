"""PMI embedding: how much more often words meet than chance would have it, factorized.

    minimise  ‖M − U Zᵗ‖²     m_ij = max(0, log p(i,j) / (p(i) p(j)) − log k),   0 for pairs never met

    n (V,V) counts of pairs   p(i,j) = n_ij/n   p(i) = n_i./n   p(j) ∝ n_.j^s (contexts smoothed)   M (V,V) sparse

One sweep:  each block   adds its part of a product with MᵗM
            then once    the leading singular vectors: words U diag(σ)^power, contexts Z diag(σ)^(1 − power)
References: Levy & Goldberg 2014; Levy, Goldberg & Dagan 2015 (smoothing, shift, power, w + c).
"""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.core.engine.local import Engine, add, fingerprint
from twofold.core.estimator import Model, fitting
from twofold.core.params import Interval
from twofold.core.seeds import seed_of
from twofold.core.types import Seed, Table
from twofold.linalg import truncated_svd
from twofold.text.vocabulary import Vocabulary
from twofold.words._mapped_cells import map_cells, replace_cells, runs_of_cells, sum_squares
from twofold.words.cooccurrence.cooccurrence import count_pairs
from twofold.words.word_vectors.word_vectors import WordVectors

TOL = 1e-6  # relative accuracy of the squared singular values


class State(NamedTuple):
    """Nothing is known before the one sweep, everything after it."""

    U: np.ndarray | None = None  # (V,k)
    s: np.ndarray | None = None  # (k,)
    Zt: np.ndarray | None = None  # (k,V)


class Chance(NamedTuple):
    """log p(i) + log n of every word and log p(j) of every context: what a pair's log n would be by chance."""

    row: np.ndarray  # (V,)
    col: np.ndarray  # (V,)
    shift: float  # log k
    positive: bool


def information(X: sparse.csr_array, first: int, by: Chance) -> sparse.csr_array:
    """A block of M from a block of counts, whose first row is row `first`."""
    cells = np.empty(X.nnz, X.dtype)
    for rows in runs_of_cells(X.indptr):  # each cell takes several numbers of 8 bytes on its way
        some, ends = slice(X.indptr[rows.start], X.indptr[rows.stop]), X.indptr[rows.start : rows.stop + 1]
        row = np.repeat(by.row[first + rows.start : first + rows.stop], np.diff(ends))
        found = np.log(X.data[some].astype(np.float64)) - row - by.col[X.indices[some]] - by.shift
        cells[some] = np.maximum(found, 0.0) if by.positive else found
    return replace_cells(X, cells)


def chance(blocks: Blocks, shift: float, smoothing: float, positive: bool) -> Chance:
    """What independence would give, from the sums of the rows and of the columns."""
    engine = Engine()
    rows = np.concatenate(engine.gather(engine.map(_row_sums, blocks)))
    cols = engine.reduce(add, engine.map(_column_sums, blocks))
    with np.errstate(divide="ignore"):  # a word without pairs has no cell that could show it
        smooth = np.where(cols > 0, cols, 0.0) ** smoothing
        return Chance(np.log(rows), np.log(smooth / smooth.sum()), float(np.log(shift)), positive)


def _row_sums(X: sparse.csr_array) -> np.ndarray:
    return np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()


def _column_sums(X: sparse.csr_array) -> np.ndarray:
    return np.bincount(X.indices, X.data, minlength=X.shape[1])


class PMIEmbedding(Model):
    """Word vectors by a singular value decomposition of positive pointwise mutual information.

    Skip-gram with k negative samples approaches a factorization of PMI − log k; here that table is made and
    factorized, without epochs or learning rates. It stays sparse: pairs that were never met, or less often than k
    times chance, are zeros that are not stored.

    Parameters
    ----------
    n_components : int, default=100
        Numbers a vector.
    window : int, default=5
        How many words to each side are company; a word at distance d counts 1/d.
    shift : float, default=1
        The k whose logarithm is subtracted: as many negative samples in skip-gram.
    smoothing : float, default=0.75
        The power of the contexts' counts by which their chances go, as in skip-gram: rare contexts are then less of a
        surprise. 1 leaves them as they are.
    power : float, default=0.5
        Of the singular values in the words' vectors: 1 keeps all of them, 0 makes all directions alike.
    add_contexts : bool, default=False
        Add to every word's vector its vector as a context, raised to the same power.
    positive : bool, default=True
        Put values below 0 at 0. If not, only pairs never met are at 0.
    min_count, max_size, lowercase
        Of the vocabulary, see `Vocabulary`. These and `window` say how a corpus is counted; pairs that come counted
        stay as they are.
    random_state : int, RandomState, Generator or None, default=None
        The start of the randomized decomposition.

    Attributes
    ----------
    vectors_ : WordVectors
        U diag(σ)^power; with `add_contexts`, (U + Z) diag(σ)^power.
    contexts_ : WordVectors
        Z diag(σ)^(1 − power), so that words' and contexts' products are the best approximation of M of rank k,
        whatever the power.
    singular_values_ : ndarray of shape (k,)
    vocabulary_ : Vocabulary
    history_, n_iter_, converged_
        One sweep; the objective is ‖M − U diag(σ) Zᵗ‖².

    Notes
    -----
    M is kept if it fits into a third of the memory budget, else it is made from the counts whenever it is needed. The
    products by which it is decomposed, some 10·k numbers of 8 bytes a word, wait on disk beyond a sixth of the budget;
    what is always held are some 4·k numbers of 8 bytes a word.

    References
    ----------
    Levy & Goldberg (2014), *NIPS*, 2177-2185. Levy, Goldberg & Dagan (2015), *TACL* 3, 211-225.

    Examples
    --------
    >>> from twofold import PMIEmbedding
    >>> lines = ["the cat purrs", "the kitten purrs", "the cat sleeps", "the kitten sleeps"]
    >>> lines += ["the boat sails", "the ship sails", "the boat sinks", "the ship sinks"]
    >>> model = PMIEmbedding(4, min_count=1, random_state=0).fit(lines)
    >>> model.vectors_.nearest("cat", n=1)[0][0], model.vectors_.nearest("ship", n=1)[0][0]
    ('kitten', 'boat')
    """

    vectors_: WordVectors
    contexts_: WordVectors
    vocabulary_: Vocabulary
    singular_values_: np.ndarray
    _takes_text: ClassVar[bool] = True
    _fitted: ClassVar[dict[str, str]] = {
        "singular_values_": "k",
        "vocabulary_.words_": "v, text",
        "vectors_.vectors_": "v k",
        "contexts_.vectors_": "v k",
    }
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "window": [Interval(Integral, 1, None, closed="left")],
        "shift": [Interval(Real, 0, None, closed="neither")],
        "smoothing": [Interval(Real, 0, 1, closed="both")],
        "power": [Interval(Real, 0, None, closed="left")],
        "add_contexts": ["boolean"],
        "positive": ["boolean"],
        **Vocabulary._parameter_constraints,
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        n_components: int = 100,
        *,
        window: int = 5,
        shift: float = 1.0,
        smoothing: float = 0.75,
        power: float = 0.5,
        add_contexts: bool = False,
        positive: bool = True,
        min_count: int = 5,
        max_size: int | None = None,
        lowercase: bool = True,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.window = window
        self.shift = shift
        self.smoothing = smoothing
        self.power = power
        self.add_contexts = add_contexts
        self.positive = positive
        self.min_count = min_count
        self.max_size = max_size
        self.lowercase = lowercase
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None) -> PMIEmbedding:
        """Learn the vectors of a corpus; see :meth:`GloVe.fit` for the arguments."""
        k, seed = int(self.n_components), seed_of(self.random_state)
        with count_pairs(X, self) as pairs:
            V, blocks = len(pairs.vocabulary), pairs.blocks
            if k > V:
                raise InputError(f"n_components={k} is more than the {V} words of the vocabulary. Lower it.")

            def sweep(state: State, t: int) -> loop.Sweep:
                by = chance(blocks, self.shift, self.smoothing, self.positive)
                M = map_cells(blocks, partial(information, by=by))
                total = sum_squares(M)
                U, s, Zt = truncated_svd(M, k, svd_solver="randomized", tol=TOL, random_state=seed)
                left = total - float(np.square(s, dtype=np.float64).sum())
                return loop.Sweep(State(U, s, Zt), max(left, 0.0), done=True)

            loop.run(
                self,
                sweep,
                State(),
                max_iter=1,
                tol=0.0,
                fitted=lambda state: self._attributes(state, pairs.vocabulary),
                X=X,
                fingerprint=partial(fingerprint, blocks),
                seed=seed,
            )
        return self

    def _attributes(self, state: State, vocabulary: Vocabulary) -> dict:
        U, s, Z = np.asarray(state.U), np.asarray(state.s), np.asarray(state.Zt).T
        words, contexts = (U + Z if self.add_contexts else U) * raise_to(s, self.power), Z * raise_to(s, 1 - self.power)
        return {
            "vectors_": WordVectors.of(vocabulary.words_, words, vocabulary.counts_),
            "contexts_": WordVectors.of(vocabulary.words_, contexts, vocabulary.counts_),
            "singular_values_": s,
            "vocabulary_": vocabulary,
        }


def raise_to(s: np.ndarray, power: float) -> np.ndarray:
    """σ^power; directions along which there is nothing stay at 0 whatever the power."""
    out, some = np.zeros_like(s), s > 1e-6 * s[0]
    out[some] = s[some] ** power
    return out
