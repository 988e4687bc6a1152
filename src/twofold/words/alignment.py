"""Alignment: a rotation of one space of word vectors onto another.

    minimize  ‖X W − Y‖²  over  W with WᵗW = I         X, Y (p,k) the vectors of p pairs of words, W (k,k)

One round:  W     ← U Vᵗ, where  XᵗY = U diag(s) Vᵗ     (Procrustes: a rotation or reflection)
            pairs ← the words that are each other's best match by CSLS

    CSLS(x, y) = 2 cos(xW, y) − r(xW) − r(y)            r: mean cosine with the 10 nearest words of the other side

which lowers the similarity of words that are close to many words.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from twofold.core.checks import InputError
from twofold.core.estimator import Model, fitting
from twofold.core.loop import Sweep, run
from twofold.core.params import Interval
from twofold.core.types import Table
from twofold.io.documents import number_lines
from twofold.words._nearest import Lists, find_nearest, normalize_rows, row_norms
from twofold.words.word_vectors.word_vectors import WordVectors, as_direction, as_vector, as_words, check_n

METHODS = ("csls", "nearest")


class State(NamedTuple):
    """The result of a round."""

    matrix: np.ndarray  # (k,k)
    used: np.ndarray  # (p,2) its pairs
    pairs: np.ndarray  # (q,2) the pairs found with it


class Alignment(Model):
    """A rotation of the vectors of one set of words onto those of another; see `align`.

    Parameters
    ----------
    refine : int, default=5
        Rounds of self-learning: words that choose each other become the pairs of the next round.
    vocabulary : int, default=10000
        Number of frequent words of each side that take part in that; all words can be translated.
    center : bool, default=True
        Subtract the mean of each side from the vectors, which have length 1 before and after.
    neighbors : int, default=10
        Number of words of the other side in the density r of CSLS.

    Attributes
    ----------
    matrix_ : ndarray of shape (k, k)
        The orthogonal W: a prepared source vector times W is its place in the space of the target.
    pairs_ : ndarray of shape (p, 2)
        Its pairs, as rows of source and target.
    source_, target_ : WordVectors
    history_ : dict
        ``objective``, the mean squared distance of the pairs, ``seconds`` and the number of ``pairs``, a round a row.
    n_iter_, converged_ : int, bool
    """

    matrix_: np.ndarray
    pairs_: np.ndarray
    source_: WordVectors
    target_: WordVectors
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
        """Find the rotation; arguments as in `align`."""
        source, target = _get_vectors(source, "source"), _get_vectors(target, "target")
        if source.vectors_.shape[1] != target.vectors_.shape[1]:
            wide = [v.vectors_.shape[1] for v in (source, target)]
            raise InputError(f"source vectors have {wide[0]} numbers and target vectors {wide[1]}; they must be equal.")
        known = np.empty((0, 2), np.int64) if pairs is None else find_pairs(pairs, source, target)
        start = known if len(known) else find_same_spelling(source, target, self.vocabulary)
        X, Y = (prepare_side(v, self.center, self.vocabulary).rows for v in (source, target))
        self.__dict__.pop("_sides", None)

        def rotate(state: State, t: int) -> Sweep:
            x, y = X[state.pairs[:, 0]], Y[state.pairs[:, 1]]
            W, pairs, last = procrustes(x, y), state.pairs, t == self.refine
            if not last:
                rotated = (X[: self.vocabulary] @ W).astype(Y.dtype)
                pairs = _join(known, match_mutually(rotated, Y[: self.vocabulary], self.neighbors))
            distance = float(np.square(x @ W - y).sum(axis=1).mean())
            done = last or np.array_equal(pairs, state.pairs) or not len(pairs)
            return Sweep(State(W, state.pairs, pairs), distance, {"pairs": len(x)}, done=done)

        def list_fitted(state: State) -> dict:
            return {"matrix_": state.matrix, "pairs_": state.used, "source_": source, "target_": target}

        begin = State(np.eye(X.shape[1]), start, start)
        sign = partial(_sign, X, Y, start)
        run(self, rotate, begin, max_iter=self.refine + 1, tol=0.0, fitted=list_fitted, fingerprint=sign)
        return self

    def transform(self, X: Table) -> np.ndarray:
        """Source vectors (n,k) in the space of the target, at length 1."""
        check_is_fitted(self)
        X = np.atleast_2d(np.asarray(X))
        X = X if X.dtype == np.float64 else X.astype(np.float32)
        if X.shape[1:] != self.matrix_.shape[:1]:
            raise InputError(f"the vectors have shape {X.shape}; this alignment takes (n, {len(self.matrix_)}).")
        return (normalize(X, self._sides[0].mean) @ self.matrix_).astype(X.dtype)

    def translate(self, word: Any, n: int = 5, *, method: str = "csls") -> list:
        """The n words of the target that match a word of the source best: (word, score), best first.

        Several words have a list of such lists; a vector (k,) of the source's space may stand for a word. "csls" ranks
        by cosines less the densities on both sides, "nearest" by cosines alone.
        """
        check_is_fitted(self)
        n, words = check_n(n), as_words(word)
        X = self.source_[words] if words else as_vector(word, len(self.matrix_))[None]
        for x in X:
            as_direction(x)  # raises if a vector is zero
        best = self._best(self.transform(X), n, method)
        rows, names = zip(best.words.tolist(), best.scores.tolist(), strict=True), self.target_.words
        lists = [[(str(names[at]), score) for at, score in zip(*row, strict=True) if at >= 0] for row in rows]
        return lists if words and not isinstance(word, str) else lists[0]

    def score(self, pairs: Any, y: Any = None, *, n: int = 1, method: str = "csls") -> float:
        """The share of words whose translation is among the n best; pairs as in `align`.

        Any translation among the pairs counts; pairs with a word that has no vector are left out.
        """
        check_is_fitted(self)
        known = find_pairs(pairs, self.source_, self.target_)
        words, at = np.unique(known[:, 0], return_inverse=True)
        best = self._best(self.transform(self.source_.vectors_[words]), check_n(n), method).words
        right = np.zeros(len(words), bool)
        np.logical_or.at(right, at, (best[at] == known[:, 1:]).any(axis=1))
        return float(right.mean())

    def _best(self, Q: np.ndarray, n: int, method: str) -> Lists:
        if method not in METHODS:
            raise InputError(f'method={method!r} is not "csls" or "nearest".')
        target = self._sides[1]
        Q = Q.astype(target.rows.dtype)
        if method == "nearest":
            return find_nearest(Q, target.rows, target.norms, n)
        best = find_nearest(Q, target.rows, target.norms, n, handicap=(self._densities() / 2).astype(Q.dtype))
        near = slice(self.vocabulary)
        r = neighbor_density(Q, target.rows[near], target.norms[near], self.neighbors)
        return Lists(best.words, 2 * best.scores - r[:, None])

    @cached_property
    def _sides(self) -> tuple[Side, Side]:
        source, target = (prepare_side(v, self.center, self.vocabulary) for v in (self.source_, self.target_))
        return source, target

    def _densities(self) -> np.ndarray:
        """r of every target word among the rotated source words; computed once for a matrix."""
        matrix, kept = getattr(self, "_kept", (None, np.empty(0)))
        if matrix is not self.matrix_:
            source, target = self._sides
            X = (source.rows[: self.vocabulary] @ self.matrix_).astype(target.rows.dtype)
            kept = neighbor_density(target.rows, X, source.norms[: self.vocabulary], self.neighbors)
            self._kept = (self.matrix_, kept)
        return kept


def align(source: Any, target: Any, pairs: Any = None, *, refine: int = 5, **options: Any) -> Alignment:
    """Rotate the vectors of one set of words onto those of another, so that words can be matched.

    Minimizes ``‖X W − Y‖²`` over orthogonal W for the vectors X, Y of some pairs of words; words that choose each other
    are the pairs of the next round. Vectors of two languages, or of two parts of a corpus, differ by such a rotation if
    their words have similar contexts.

    Parameters
    ----------
    source, target : WordVectors, or fitted models with ``vectors_``
    pairs : list of (source word, target word), dict, or path, optional
        Known pairs, which do not change; a file has two words a line. By default the words that both sides have are the
        first pairs.
    refine : int, default=5
        Rounds of self-learning.
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


def _get_vectors(v: Any, name: str) -> WordVectors:
    v = v if isinstance(v, WordVectors) else getattr(v, "vectors_", v)
    if not isinstance(v, WordVectors):
        raise InputError(f"{name} is a {type(v).__name__}; give WordVectors, or a fitted model that has them.")
    len(v)  # raises if it is empty
    return v


def _join(known: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """The known pairs, and those of `pairs` that do not contradict them."""
    new = ~(np.isin(pairs[:, 0], known[:, 0]) | np.isin(pairs[:, 1], known[:, 1]))
    return np.concatenate([known, pairs[new]])


def _sign(*arrays: np.ndarray) -> str:
    return ":".join(f"{a.shape}{zlib.crc32(np.ascontiguousarray(a).tobytes()):08x}" for a in arrays)


# --- vectors and rotations ----------------------------------------------------------------------------------


class Side(NamedTuple):
    """The vectors of one side, prepared."""

    rows: np.ndarray  # (V,k) of length 1, or zero
    norms: np.ndarray  # (V,)
    mean: np.ndarray  # (k,) that was subtracted


def normalize(W: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Rows at length 1, minus the mean, at length 1 again; a zero vector stays zero."""
    rows = normalize_rows(W)
    if mean.any():
        zero = row_norms(rows) == 0
        rows = normalize_rows(rows - mean.astype(W.dtype))
        rows[zero] = 0
    return rows


def prepare_side(v: WordVectors, center: bool, vocabulary: int) -> Side:
    W = v.vectors_
    mean = normalize_rows(W[:vocabulary]).mean(axis=0, dtype=np.float64) if center else np.zeros(W.shape[1])
    rows = normalize(W, mean)
    return Side(rows, row_norms(rows), mean)


def procrustes(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """The orthogonal matrix (k,k) that brings the rows X (p,k) nearest to the rows Y (p,k).

    >>> turn = procrustes(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[0.0, 1.0], [-2.0, 0.0]]))
    >>> turn.round(6) + 0.0
    array([[ 0.,  1.],
           [-1.,  0.]])
    """
    U, _, Vt = np.linalg.svd(X.astype(np.float64).T @ Y.astype(np.float64))
    return U @ Vt


def neighbor_density(Q: np.ndarray, other: np.ndarray, norms: np.ndarray, neighbors: int) -> np.ndarray:
    """r: the mean cosine of each row Q (m,k) with its nearest rows among the others."""
    scores = find_nearest(Q, other, norms, neighbors).scores.astype(np.float64)
    known = np.isfinite(scores)
    return np.where(known, scores, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)


def match_mutually(X: np.ndarray, Y: np.ndarray, neighbors: int) -> np.ndarray:
    """Pairs (p,2) of rows of X (n,k), already rotated, and Y (m,k) that choose each other by CSLS."""
    nx, ny = row_norms(X), row_norms(Y)
    rx, ry = neighbor_density(X, Y, ny, neighbors), neighbor_density(Y, X, nx, neighbors)
    best = find_nearest(X, Y, ny, 1, handicap=(ry / 2).astype(Y.dtype)).words[:, 0]  # r(x) is the same for all y
    back = find_nearest(Y, X, nx, 1, handicap=(rx / 2).astype(X.dtype)).words[:, 0]
    x = np.flatnonzero((best >= 0) & (nx > 0))
    x = x[back[best[x]] == x]
    return np.column_stack([x, best[x]])


# --- pairs of words -----------------------------------------------------------------------------------------


def find_pairs(pairs: Any, source: WordVectors, target: WordVectors) -> np.ndarray:
    """Pairs as rows of the two (p,2); those with a word that has no vector are left out.

    `pairs` is a list of (source word, target word), a dict, or the path of a file with two words a line.
    """
    listed = _read_pairs(pairs) if isinstance(pairs, (str, os.PathLike)) else _list_pairs(pairs)
    places = [(source.place(a), target.place(b)) for a, b in listed if a in source and b in target]
    if not places:
        a, b = listed[0] if listed else ("", "")
        raise InputError(
            f"none of the {len(listed)} pairs has both its words among the vectors; the first is {a!r}, {b!r}. Check "
            "that the source's words come first, and that upper and lower case agree."
        )
    return np.array(list(dict.fromkeys(places)), dtype=np.int64)


def find_same_spelling(source: WordVectors, target: WordVectors, vocabulary: int) -> np.ndarray:
    """The words among the first `vocabulary` of both, as rows of the two (p,2)."""
    common = [word for word in source.words[:vocabulary].tolist() if word in target]
    places = [(source.place(word), target.place(word)) for word in common]
    places = [(a, b) for a, b in places if b < vocabulary]
    if not places:
        raise InputError(
            f"source and target have no word in common among their first {vocabulary:,}. Give pairs=[(source word, "
            "target word), ...] to start from."
        )
    return np.array(places, dtype=np.int64)


def _list_pairs(pairs: Any) -> list[tuple[str, str]]:
    if isinstance(pairs, Mapping):
        pairs = pairs.items()
    if not isinstance(pairs, Iterable):
        raise InputError(f"pairs is {pairs!r}; give a list of (source word, target word), a dict, or a path.")
    found = []
    for at, pair in enumerate(pairs):
        if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(word, str) for word in pair):
            raise InputError(f"pairs[{at}] is {pair!r}, not two words: (source word, target word).")
        found.append((str(pair[0]), str(pair[1])))
    return found


def _read_pairs(path: Any) -> list[tuple[str, str]]:
    """Read two words a line, separated by a tab or spaces."""
    found = []
    for number, line in number_lines(path):
        words = str(line).split("\t") if "\t" in line else str(line).split()
        if len(words) == 2:
            found.append((words[0].strip(), words[1].strip()))
        elif words:
            raise InputError(f"{os.fspath(path)}, line {number} has {len(words)} words; a pair is two: source, target.")
    return found
