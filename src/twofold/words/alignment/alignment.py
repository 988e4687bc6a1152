"""Alignment: one space of word vectors turned onto another.

    minimise  ‖X W − Y‖²  over  W with WᵗW = I         X, Y (p,k) the vectors of p pairs of words, W (k,k)

One round:  W     ← U Vᵗ, where  XᵗY = U diag(s) Vᵗ     (Procrustes: turned or mirrored, never stretched)
            pairs ← the words that are each other's best match by CSLS

    CSLS(x, y) = 2 cos(xW, y) − r(xW) − r(y)            r: mean cosine with the 10 nearest words of the other side

so that words which are near everything are near nothing in particular.
"""

from __future__ import annotations

import zlib
from functools import cached_property, partial
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from twofold.core.checks import InputError
from twofold.core.estimator import Model, fitting
from twofold.core.loop import Sweep, run
from twofold.core.params import Interval
from twofold.words import _checks
from twofold.words.alignment._matching import Side, density, mutual, prepared, procrustes, side
from twofold.words.alignment._word_pairs import pairs_of, same_spelling
from twofold.words.word_vectors._nearest import Lists, top
from twofold.words.word_vectors.word_vectors import WordVectors

METHODS = ("csls", "nearest")


class State(NamedTuple):
    """What a round hands to the next."""

    matrix: np.ndarray  # (k,k)
    used: np.ndarray  # (p,2) the pairs it was made from
    pairs: np.ndarray  # (q,2) the pairs found with it


class Alignment(Model):
    """A turn that brings the vectors of one set of words onto those of another; see `align`.

    Parameters
    ----------
    refine : int, default=5
        Rounds of learning from what has been learned: words that choose each other become the pairs of the next round.
    vocabulary : int, default=10000
        The first so many words of each side take part in that; all can be translated.
    center : bool, default=True
        Whether the mean of each side is taken off the vectors, which have length 1 before and after.
    neighbors : int, default=10
        How many words of the other side make up the density r of CSLS.

    Attributes
    ----------
    matrix_ : ndarray of shape (k, k)
        The turn W, orthogonal: a prepared source vector times it is its place among the target's.
    pairs_ : ndarray of shape (p, 2)
        The pairs it was made from, as rows of source and target.
    source_, target_ : WordVectors
    history_ : dict
        ``objective``, the mean squared distance of the pairs, ``seconds`` and the number of ``pairs``, a round a row.
    n_iter_, converged_ : int, bool
    """

    matrix_: np.ndarray
    pairs_: np.ndarray
    source_: WordVectors
    target_: WordVectors
    history_: dict
    n_iter_: int
    converged_: bool
    _parameter_constraints: ClassVar[dict] = {
        "refine": [Interval(Integral, 0, None, closed="left")],
        "vocabulary": [Interval(Integral, 1, None, closed="left")],
        "center": ["boolean"],
        "neighbors": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, *, refine: int = 5, vocabulary: int = 10_000, center: bool = True, neighbors: int = 10):
        self.refine = refine
        self.vocabulary = vocabulary
        self.center = center
        self.neighbors = neighbors

    @fitting
    def fit(self, source: Any, target: Any, pairs: Any = None) -> Alignment:
        """Find the turn; arguments as in `align`."""
        source, target = _vectors(source, "source"), _vectors(target, "target")
        if source.vectors_.shape[1] != target.vectors_.shape[1]:
            wide = [v.vectors_.shape[1] for v in (source, target)]
            raise InputError(f"source vectors have {wide[0]} numbers and target vectors {wide[1]}; they must be equal.")
        known = np.empty((0, 2), np.int64) if pairs is None else pairs_of(pairs, source, target)
        start = known if len(known) else same_spelling(source, target, self.vocabulary)
        X, Y = (side(v, self.center, self.vocabulary).rows for v in (source, target))
        self.__dict__.pop("_sides", None)

        def turn(state: State, t: int) -> Sweep:
            x, y = X[state.pairs[:, 0]], Y[state.pairs[:, 1]]
            W, found, last = procrustes(x, y), state.pairs, t == self.refine
            if not last:
                turned = (X[: self.vocabulary] @ W).astype(Y.dtype)
                found = _joined(known, mutual(turned, Y[: self.vocabulary], self.neighbors))
            apart = float(np.square(x @ W - y).sum(axis=1).mean())
            done = last or np.array_equal(found, state.pairs) or not len(found)
            return Sweep(State(W, state.pairs, found), apart, {"pairs": len(x)}, done=done)

        def fitted(state: State) -> dict:
            return {"matrix_": state.matrix, "pairs_": state.used, "source_": source, "target_": target}

        begin = State(np.eye(X.shape[1]), start, start)
        sign = partial(_sign, X, Y, start)
        run(self, turn, begin, max_iter=self.refine + 1, tol=0.0, fitted=fitted, fingerprint=sign)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Source vectors (n,k) among the target's, prepared as these: at length 1."""
        check_is_fitted(self)
        X = np.atleast_2d(np.asarray(X))
        X = X if X.dtype == np.float64 else X.astype(np.float32)
        if X.shape[1:] != self.matrix_.shape[:1]:
            raise InputError(f"the vectors have shape {X.shape}; this alignment takes (n, {len(self.matrix_)}).")
        return (prepared(X, self._sides[0].mean) @ self.matrix_).astype(X.dtype)

    def translate(self, word: Any, n: int = 5, *, method: str = "csls") -> list:
        """The words of the target that match a word of the source best.

        Parameters
        ----------
        word : str, list of str, or array of shape (k,)
            A word of the source, several of them, or a vector among the source's.
        n : int, default=5
        method : {"csls", "nearest"}, default="csls"
            By cosines less the densities on both sides, or by cosines alone.

        Returns
        -------
        list of (word, score), best first; for several words, a list of such lists
        """
        check_is_fitted(self)
        n, words = _checks.count(n), _checks.words_of(word)
        X = self.source_[words] if words else _checks.vector(word, len(self.matrix_))[None]
        for x in X:
            _checks.direction(x)  # one of length 0 matches nothing
        found = self._best(self.transform(X), n, method)
        names = self.target_.words
        lists = [
            [(str(names[at]), score) for at, score in zip(*both, strict=True) if at >= 0]
            for both in zip(found.words.tolist(), found.scores.tolist(), strict=True)
        ]
        return lists if words and not isinstance(word, str) else lists[0]

    def score(self, pairs: Any, y: Any = None, *, n: int = 1, method: str = "csls") -> float:
        """The share of words whose translation is among the n best; pairs as in `align`.

        A word with several translations among the pairs is right with any of them; pairs with a word that has no
        vector are left out.
        """
        check_is_fitted(self)
        known = pairs_of(pairs, self.source_, self.target_)
        words, at = np.unique(known[:, 0], return_inverse=True)
        found = self._best(self.transform(self.source_.vectors_[words]), _checks.count(n), method).words
        right = np.zeros(len(words), bool)
        np.logical_or.at(right, at, (found[at] == known[:, 1:]).any(axis=1))
        return float(right.mean())

    def _best(self, Q: np.ndarray, n: int, method: str) -> Lists:
        if method not in METHODS:
            raise InputError(f'method={method!r} is not "csls" or "nearest".')
        target = self._sides[1]
        Q = Q.astype(target.rows.dtype)
        if method == "nearest":
            return top(Q, target.rows, target.norms, n)
        found = top(Q, target.rows, target.norms, n, handicap=(self._densities() / 2).astype(Q.dtype))
        near = slice(self.vocabulary)
        r = density(Q, target.rows[near], target.norms[near], self.neighbors)
        return Lists(found.words, 2 * found.scores - r[:, None])

    @cached_property
    def _sides(self) -> tuple[Side, Side]:
        source, target = (side(v, self.center, self.vocabulary) for v in (self.source_, self.target_))
        return source, target

    def _densities(self) -> np.ndarray:
        """r of every target word among the turned source words; kept while the turn is the same."""
        made_for, kept = getattr(self, "_kept", (None, np.empty(0)))
        if made_for is not self.matrix_:
            source, target = self._sides
            X = (source.rows[: self.vocabulary] @ self.matrix_).astype(target.rows.dtype)
            kept = density(target.rows, X, source.norms[: self.vocabulary], self.neighbors)
            self._kept = (self.matrix_, kept)
        return kept


def align(source: Any, target: Any, pairs: Any = None, *, refine: int = 5, **options: Any) -> Alignment:
    """Turn the vectors of one set of words onto those of another, so that words can be matched across.

    Minimises ``‖X W − Y‖²`` over orthogonal W for the vectors X, Y of some pairs of words, then lets words that choose
    each other be the pairs, and so on. Vectors learned apart, from two languages or two parts of a corpus, differ by
    such a turn as far as words are used alike.

    Parameters
    ----------
    source, target : WordVectors, or fitted models with ``vectors_``
    pairs : list of (source word, target word), dict, or path, optional
        What is known to match; a file has two words a line. They stay pairs throughout. By default the words that both
        spell alike are the start.
    refine : int, default=5
        Rounds of learning from what has been learned.
    **options
        ``vocabulary=10000``, ``center=True``, ``neighbors=10``, as in `Alignment`.

    Returns
    -------
    Alignment
        With ``matrix_``, ``translate(word)``, ``score(pairs)``, ``transform(vectors)``, ``history_``.

    References
    ----------
    Schönemann (1966), *Psychometrika* 31, 1-10. Conneau, Lample, Ranzato, Denoyer & Jégou (2018), *ICLR* (CSLS).
    Artetxe, Labaka & Agirre (2018), *ACL*, 789-798 (self-learning).

    Examples
    --------
    >>> from twofold.words import WordVectors, align
    >>> rng = np.random.default_rng(0)
    >>> X, turn = rng.normal(size=(200, 10)), np.linalg.qr(rng.normal(size=(10, 10)))[0]
    >>> english = WordVectors.of([f"word{i}" for i in range(200)], X)
    >>> german = WordVectors.of([f"Wort{i}" for i in range(200)], X @ turn + 0.02 * rng.normal(size=X.shape))
    >>> known = [(f"word{i}", f"Wort{i}") for i in range(20)]
    >>> found = align(english, german, known)
    >>> found.translate("word150", n=1)
    [('Wort150', 0.68...)]
    >>> found.score([(f"word{i}", f"Wort{i}") for i in range(20, 200)])
    1.0
    """
    return Alignment(refine=refine, **options).fit(source, target, pairs)


def _vectors(v: Any, what: str) -> WordVectors:
    v = v if isinstance(v, WordVectors) else getattr(v, "vectors_", v)
    if not isinstance(v, WordVectors):
        raise InputError(f"{what} is a {type(v).__name__}; give WordVectors, or a fitted model that has them.")
    len(v)  # says so if there are none in it
    return v


def _joined(known: np.ndarray, found: np.ndarray) -> np.ndarray:
    """The pairs that are known, and of those found what does not contradict them."""
    new = ~(np.isin(found[:, 0], known[:, 0]) | np.isin(found[:, 1], known[:, 1]))
    return np.concatenate([known, found[new]])


def _sign(*arrays: np.ndarray) -> str:
    return ":".join(f"{a.shape}{zlib.crc32(np.ascontiguousarray(a).tobytes()):08x}" for a in arrays)
