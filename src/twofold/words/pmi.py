"""PMI embedding: a factorization of positive pointwise mutual information.

    minimize  ‖M − U Zᵗ‖²     m_ij = max(0, log p(i,j) / (p(i) p(j)) − log k),   0 for pairs with count zero

    n (V,V) counts of pairs   p(i,j) = n_ij/n   p(i) = n_i./n   p(j) ∝ n_.j^s (contexts smoothed)   M (V,V) sparse

One sweep:  each block   adds its part of a product with MᵗM
            then once    the leading singular vectors: words U diag(σ)^power, contexts Z diag(σ)^(1 − power)
"""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.core.engine.local import Engine, fingerprint
from twofold.core.estimator import Model, fitting
from twofold.core.params import Interval
from twofold.core.seeds import seed_of
from twofold.core.types import Seed, Table
from twofold.linalg import truncated_svd
from twofold.text.vocabulary import Vocabulary
from twofold.words import _mapped_cells as mapped
from twofold.words.cooccurrence.cooccurrence import count_pairs
from twofold.words.word_vectors.word_vectors import WordVectors

TOL = 1e-6  # relative accuracy of the squared singular values


class State(NamedTuple):
    """The result of the one sweep; empty before it."""

    U: np.ndarray | None = None  # (V,k)
    s: np.ndarray | None = None  # (k,)
    Zt: np.ndarray | None = None  # (k,V)


class Chance(NamedTuple):
    """log p(i) + log n of every word and log p(j) of every context: their sum is log n of independent words."""

    row: np.ndarray  # (V,)
    col: np.ndarray  # (V,)
    shift: float  # log k
    positive: bool


def information(X: sparse.csr_array, first: int, by: Chance) -> sparse.csr_array:
    """A block of M from a block of counts that starts at row `first`."""
    cells = np.empty(X.nnz, X.dtype)
    for rows in mapped.runs_of_cells(X.indptr):  # a cell needs several float64 numbers
        some, ends = slice(X.indptr[rows.start], X.indptr[rows.stop]), X.indptr[rows.start : rows.stop + 1]
        row = np.repeat(by.row[first + rows.start : first + rows.stop], np.diff(ends))
        values = np.log(X.data[some].astype(np.float64)) - row - by.col[X.indices[some]] - by.shift
        cells[some] = np.maximum(values, 0.0) if by.positive else values
    return mapped.replace_cells(X, cells)


def chance(blocks: Blocks, shift: float, smoothing: float, positive: bool) -> Chance:
    """Compute the logarithms of independent words from the sums of rows and columns."""
    engine = Engine()
    rows = np.concatenate(engine.gather(engine.map(mapped.sum_rows, blocks)))
    cols = mapped.sum_blocks(blocks, mapped.sum_columns)
    with np.errstate(divide="ignore"):  # a word without pairs has no cell
        smooth = np.where(cols > 0, cols, 0.0) ** smoothing
        return Chance(np.log(rows), np.log(smooth / smooth.sum()), float(np.log(shift)), positive)


class PMIEmbedding(Model):
    """Word vectors by a singular value decomposition of positive pointwise mutual information.

    Skip-gram with k negative samples approaches a factorization of PMI − log k. This model computes that table and
    factorizes it, without epochs or learning rates. It is sparse: pairs with count zero, or with less than k times the
    count of independent words, are zeros that are not stored.

    Parameters
    ----------
    n_components : int, default=100
        Numbers a vector.
    window : int, default=5
        Maximum distance of a context word, in words; a word at distance d counts 1/d.
    shift : float, default=1
        The k whose logarithm is subtracted: the number of negative samples in skip-gram.
    smoothing : float, default=0.75
        The power of the contexts' counts in their probabilities, as in skip-gram: less than 1 lowers the weight of rare
        contexts.
    power : float, default=0.5
        Of the singular values in the words' vectors: 1 keeps them, 0 gives all directions equal weight.
    add_contexts : bool, default=False
        Add to every word's vector its vector as a context, raised to the same power.
    positive : bool, default=True
        Set values below 0 to 0. If False, only pairs with count zero are 0.
    min_count, max_size, lowercase
        Of the vocabulary, see `Vocabulary`. Like `window`, they are not used if X is a fitted `Cooccurrence`.
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
    M is in memory if it fits into a third of the budget, else it is computed from the counts at each use. The products
    of the decomposition, about 10·k numbers of 8 bytes a word, are on disk beyond a sixth of the budget; about 4·k
    numbers of 8 bytes a word are always in memory.

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

    vectors_: Annotated[WordVectors, "vectors_: v k"]
    contexts_: Annotated[WordVectors, "vectors_: v k"]
    vocabulary_: Annotated[Vocabulary, "words_: v, text"]
    singular_values_: Annotated[np.ndarray, "k"]
    _takes_text: ClassVar[bool] = True
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
                raise InputError(f"⟨n_components={k}⟩ is more than the {V} words of the vocabulary. Lower it.")

            def sweep(state: State, t: int) -> loop.Sweep:
                by = chance(blocks, self.shift, self.smoothing, self.positive)
                M = mapped.map_cells(blocks, partial(information, by=by))
                total = mapped.sum_blocks(M, mapped.sum_squares)
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
    """σ^power; a singular value of 0 stays 0 for any power."""
    out, some = np.zeros_like(s), s > 1e-6 * s[0]
    out[some] = s[some] ** power
    return out
