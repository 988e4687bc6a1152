"""GloVe: vectors whose products are the logarithms of how often words meet.

    minimise  Σ_ij f(n_ij) (⟨u_i, z_j⟩ + b_i + c_j − log n_ij)²      f(n) = min(1, (n/x_max)^α)

    n (V,V) counts of pairs   U (V,k) words   Z (k,V) contexts   b, c (V,) biases

One sweep:  the pairs fall into B × B tiles of words × contexts; B strata of B tiles that share no word and no context
            each tile   u_i, z_j, b_i, c_j ← AdaGrad steps, a pair after the other in an order drawn for the sweep

Threads never write the same vector, so any number of them gives the same bits. Other weights are solved at once, or
by alternating least squares: see `glove_exact`.
References: Pennington, Socher & Manning 2014; Duchi, Hazan & Singer 2011 (AdaGrad); Gemulla et al. 2011 (strata).
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.blocks import Blocks, Rows
from twofold.core.engine import Engine, fingerprint
from twofold.core.estimator import Model, fitting
from twofold.core.seeds import generator, seed_of
from twofold.core.strata import strata
from twofold.kernels.glove import adagrad_cells, shuffled
from twofold.words.counted import Counted, counted
from twofold.words.glove_exact import Factors, completed, factorized
from twofold.words.progress import Telling
from twofold.words.tiles import Dealt, deal, groups_for
from twofold.words.vocabulary import Vocabulary
from twofold.words.word_vectors import WordVectors


class State(NamedTuple):
    """Lines of both sides in the order they are dealt: numbers (V,0,p), and the sums of their squared steps (V,1,p)."""

    U: np.ndarray
    Z: np.ndarray


class Plan(NamedTuple):
    """What stays the same over the epochs."""

    dealt: Dealt
    k: int
    rate: np.float32
    alpha: np.float32
    log_max: np.float32
    one: np.float32  # 0 without biases
    seed: int


class Step(NamedTuple):
    """A tile to be visited: its groups, and what its order is drawn from."""

    row: int
    col: int
    seed: np.uint64


def width(k: int) -> int:
    """Numbers a line: the factors, the bias, the 1 that meets the other side's, and zeros up to whole registers."""
    return -(-(k + 2) // 8) * 8


def begun(plan: Plan, words: int) -> State:
    """Factors at random in ±1/2k, biases zero, sums of squares one: the first steps are of the rate itself."""
    k, sides = plan.k, []
    for side, one_at in ((0, k + 1), (1, k)):
        lines = np.zeros((words, 2, width(k)), np.float32)
        lines[:, 0, :k] = (generator(plan.seed, 0, side).random((words, k), np.float32) - 0.5) / k
        lines[:, 0, one_at], lines[:, 1] = plan.one, 1.0
        sides.append(lines)
    return State(*sides)


def epoch(state: State, plan: Plan, t: int, telling: Telling) -> tuple[State, float]:
    """All pairs once, stratum after stratum, and what they cost when their turn came."""
    U, Z, rng = state.U.copy(), state.Z.copy(), generator(plan.seed, 1, t)
    engine, tiles, total, done = Engine(), plan.dealt.tiles, 0.0, t * len(plan.dealt.tiles)
    shared = [engine.broadcast(value) for value in (plan, U, Z)]
    B = len(plan.dealt.rows.bounds) - 1
    for chosen in strata(B, rng):
        seeds = rng.integers(2**64, size=B, dtype=np.uint64)
        steps = Rows(Step(int(r), int(c), seed) for (r, c), seed in zip(chosen, seeds, strict=True))
        total += sum(engine.gather(engine.map(step_tile, steps, *shared)))
        done += sum(int(tiles.cuts[s.row * B + s.col + 1] - tiles.cuts[s.row * B + s.col]) for s in steps)
        telling.tell(done)
    return State(U, Z), total / len(tiles)


def step_tile(step: Step, plan: Plan, U: np.ndarray, Z: np.ndarray) -> float:
    """The steps of one tile, in place: no other tile of the stratum touches its words and contexts."""
    rows, cols, tiles = plan.dealt
    cells = shuffled(tiles.read(step.row * (len(rows.bounds) - 1) + step.col), step.seed)
    mine = U[rows.bounds[step.row] : rows.bounds[step.row + 1]]
    other = Z[cols.bounds[step.col] : cols.bounds[step.col + 1]]
    return adagrad_cells(cells, plan.k, plan.rate, plan.alpha, plan.log_max, plan.one, mine, other)


def factors_of(state: State, plan: Plan) -> Factors:
    """Both sides in the order of the vocabulary."""
    U, Z, k = np.empty_like(state.U[:, 0]), np.empty_like(state.Z[:, 0]), plan.k
    U[plan.dealt.rows.order], Z[plan.dealt.cols.order] = state.U[:, 0], state.Z[:, 0]
    return Factors(U[:, :k].copy(), Z[:, :k].copy(), U[:, k].copy(), Z[:, k + 1].copy())


class GloVe(Model):
    """Word vectors from a weighted factorization of the logarithms of co-occurrence counts.

    ``⟨u_i, z_j⟩ + b_i + c_j ≈ log n_ij`` in the least squares sense, where pairs that were met often count more, up to
    a limit: ``f(n) = min(1, (n/x_max)^alpha)``. Every word has a vector as a word, u, and one as a context, z; they
    differ by chance only, so their sum is the better vector.

    Parameters
    ----------
    n_components : int, default=100
        Numbers a vector.
    window : int, default=10
        How many words to each side are company; a word at distance d counts 1/d.
    x_max : float, default=100
        The count from which on pairs weigh the same; about 10 suits corpora of some ten million words.
    alpha : float, default=0.75
        How the weight grows up to there.
    weighting : {"power", "all", "observed"}, default="power"
        "power" is GloVe's own f, by AdaGrad. "all" weighs every cell alike, those never met included, and fits
        log(1 + n): the best factors are then a singular value decomposition. "observed" weighs every pair that was
        met alike: matrix completion, by alternating least squares.
    biases : bool, default=True
        Fit a bias for every word and every context.
    reg : float, default=0.1
        Ridge of "observed", as in :class:`ALS`: in units of the spread of log n, times the pairs of each word.
    learning_rate : float, default=0.05
        The size of AdaGrad's first steps.
    tol : float, default=0
        Stop when an epoch lowers the cost by no more than this, relatively.
    max_iter : int, default=25
        Epochs over all pairs (sweeps of "observed").
    min_count, max_size, lowercase
        Of the vocabulary, see `Vocabulary`. These and `window` say how a corpus is counted; pairs that come counted
        stay as they are.
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
        The objective is the mean of ½ f(n) (gap)² over the pairs, each as it was when its turn came, which is what the
        original program prints after an epoch. (Of "all" it is exact, over all cells; of "observed" exact, ridge
        included.)

    Notes
    -----
    A pair takes 8 bytes while the epochs run, in memory up to half of the budget (``twofold.config(memory=...)``) and
    in a temporary file beyond. The vectors take 16 bytes a number and word for each side. A corpus in files is
    counted to disk first; to keep the counts, fit a `Cooccurrence` and give that. "observed" holds the pairs in memory
    both ways, 32 bytes each.

    References
    ----------
    Pennington, Socher & Manning (2014), *EMNLP*, 1532-1543. Duchi, Hazan & Singer (2011), *JMLR* 12, 2121-2159.

    Examples
    --------
    >>> from twofold import GloVe
    >>> lines = ["the cat purrs", "the kitten purrs", "the cat sleeps", "the kitten sleeps"]
    >>> lines += ["one boat sails", "one ship sails", "one boat sinks", "one ship sinks"]
    >>> model = GloVe(4, min_count=1, window=2, x_max=10, random_state=0).fit(20 * lines)
    >>> model.vectors_.nearest("cat", n=1)[0][0], model.vectors_.nearest("ship", n=1)[0][0]
    ('kitten', 'boat')
    """

    vectors_: WordVectors
    vocabulary_: Vocabulary
    row_factors_: np.ndarray
    components_: np.ndarray
    row_bias_: np.ndarray
    column_bias_: np.ndarray
    total_: float
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "window": [Interval(Integral, 1, None, closed="left")],
        "x_max": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "weighting": [StrOptions({"power", "all", "observed"})],
        "biases": ["boolean"],
        "reg": [Interval(Real, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "max_size": [Interval(Integral, 1, None, closed="left"), None],
        "lowercase": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        n_components: int = 100,
        *,
        window: int = 10,
        x_max: float = 100.0,
        alpha: float = 0.75,
        weighting: str = "power",
        biases: bool = True,
        reg: float = 0.1,
        learning_rate: float = 0.05,
        tol: float = 0.0,
        max_iter: int = 25,
        min_count: int = 5,
        max_size: int | None = None,
        lowercase: bool = True,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.window = window
        self.x_max = x_max
        self.alpha = alpha
        self.weighting = weighting
        self.biases = biases
        self.reg = reg
        self.learning_rate = learning_rate
        self.tol = tol
        self.max_iter = max_iter
        self.min_count = min_count
        self.max_size = max_size
        self.lowercase = lowercase
        self.random_state = random_state
