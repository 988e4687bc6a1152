"""Word vectors, and the questions that they answer.

    cos(a, b) = a·b / |a||b|        W (V,k) vectors, the words by falling frequency

Nearest words and analogies are in _nearest; files (of word2vec) are beside this file.

    accuracy     share of questions "a is to b as c is to d" whose best word, a, b, c left out, is d
    Spearman, Pearson   between the cosines of pairs of words and human scores

Case is ignored; the first of several spellings in the vocabulary represents all. Questions and pairs with a word that
has no vector are skipped and counted; `accuracy_of_all` counts skipped questions as wrong.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from numbers import Integral
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl
from scipy import stats
from sklearn.exceptions import NotFittedError

from twofold.core.checks import InputError, first_bad
from twofold.core.estimator import Model
from twofold.core.files import model_file
from twofold.core.seeds import seed_of
from twofold.core.types import Seed
from twofold.io.documents import number_lines
from twofold.linalg import truncated_svd
from twofold.text.documents import check_words
from twofold.text.tokenize import Rules, bare
from twofold.text.vocabulary import unknown_word
from twofold.words._nearest import (
    Excluded,
    Lists,
    exclude,
    find_nearest,
    normalize_rows,
    row_norms,
    solve_questions,
)
from twofold.words.word_vectors.files import read_word2vec, write_word2vec
from twofold.words.word_vectors.subwords import MAX_WORDS, Subwords, learn_subwords

DOCUMENT_RULES = Rules(lowercase=False, numbers=True, min_length=1)
NO_SECTION = "all"  # questions before the first section
COMMON_SHARE = 1e-3  # words more frequent than this have a low weight in a document


class WordVectors(Model):
    """Words and their vectors, with the questions that they answer.

    Word models keep one in ``vectors_``; ``WordVectors.of`` makes one from arrays, ``WordVectors.load_word2vec``
    from the files of other programs. Similarity is the cosine of the angle between two vectors.

    Attributes
    ----------
    words_ : ndarray of shape (V,)
        The words, each once, the most frequent first if counts are known. Also as ``words``.
    vectors_ : ndarray of shape (V, k)
    counts_ : ndarray of shape (V,) or None
        Counts of the words in the training corpus, if known.

    References
    ----------
    Mikolov, Yih & Zweig (2013), *NAACL-HLT*, 746-751 (additive analogies). Levy & Goldberg (2014), *CoNLL*, 171-180
    (multiplicative). Arora, Liang & Ma (2017), *ICLR* (the weights in `document`).

    Examples
    --------
    >>> from twofold import WordVectors
    >>> royal, male, female, fruit = np.eye(4)
    >>> v = WordVectors.of(
    ...     ["king", "man", "queen", "woman", "apple", "prince"],
    ...     [royal + male, male, royal + female, female, fruit, royal + male + 0.5 * fruit])
    >>> "king" in v, len(v), round(v.similarity("king", "queen"), 2)
    (True, 6, 0.5)
    >>> v.nearest("king", n=1)
    [('prince', 0.9428...)]
    >>> v.analogy("man", "king", "woman")
    [('queen', 0.9585...)]
    """

    words_: Annotated[np.ndarray, "v, text"]
    vectors_: Annotated[np.ndarray, "v k"]
    counts_: Annotated[np.ndarray | None, "v, >= 0, or None"]

    @classmethod
    def of(cls, words: Any, vectors: Any, counts: Any = None) -> WordVectors:
        """Word vectors from V distinct words, the most frequent first, and an array (V, k).

        The array stays float64 if it is, else it becomes float32. `document` uses `counts` (V,) of the words as
        weights.
        """
        made = cls()
        made.words_ = check_words(words, "words")
        made.vectors_ = check_vectors(vectors, made.words_)
        made.counts_ = None if counts is None else check_counts(counts, len(made.words_))
        return made

    def save(self, path: str | os.PathLike) -> None:
        """Write them to one `.twofold` file: no pickle, no code, replaced atomically."""
        self._check()
        model_file.save(self, path)

    # ---- looking up ------------------------------------------------------------------------------------------------

    @property
    def words(self) -> np.ndarray:
        """The words (V,), in the order of the vectors."""
        self._check()
        return self.words_

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: Any) -> bool:
        self._check()
        return isinstance(word, str) and word in self._places

    def __iter__(self) -> Any:
        return iter(self.words.tolist())

    def __getitem__(self, word: Any) -> np.ndarray:
        """The vector (k,) of a word, or the vectors (n,k) of a list of words."""
        at = self.place(word) if isinstance(word, str) else self._all(word)
        return self.vectors_[at].copy()

    def place(self, word: str) -> int:
        """The row of a word; the error for an unknown word names the closest spellings."""
        self._check()
        at = self._places.get(word) if isinstance(word, str) else None
        if at is None:
            raise unknown_word(word, self.words_)
        return at

    # ---- questions -------------------------------------------------------------------------------------------------

    def similarity(self, a: str, b: str) -> float:
        """The cosine of the angle between two words' vectors; 0 if one of them is zero."""
        x, y = self._units(self._all([a, b]))
        return float(x @ y)

    def nearest(self, query: Any, n: int = 10) -> list[tuple[str, float]]:
        """The n words nearest to a word, to the mean direction of several, or to a vector (k,): (word, cosine), best
        first.

        Words of the query are left out of the answer, and so are words whose vector is zero.
        """
        self._check()
        n, words = check_n(n), as_words(query)
        at = self._all(words or [])
        mean = self._units(at).mean(axis=0) if words else as_vector(query, self.vectors_.shape[1])
        Q = as_direction(mean).astype(self.vectors_.dtype)[None]
        return self._pair_names(find_nearest(Q, self.vectors_, self._norms, n, exclude([at])))

    def analogy(self, a: str, b: str, c: str, n: int = 1, *, method: str = "additive") -> list[tuple[str, float]]:
        """Find the n words that are to `c` as `b` is to `a`: ``analogy("man", "king", "woman")`` is "queen".

        By the cosine with b − a + c, or with method="multiplicative" by the product of the cosines with b and c over
        that with a, in which no single large cosine decides. All vectors have length 1; the three words are left out of
        the answer.
        """
        n, at = check_n(n), self._all([a, b, c])
        return self._pair_names(solve_questions(at[None], self.vectors_, self._norms, n, exclude([at]), method))

    def document(self, text: Any) -> np.ndarray:
        """A vector (k,) for a text or a list of words: the weighted mean of its words' vectors, each at length 1.

        A word with share p of all words has weight a / (a + p), a = 0.001, which is low for "the"; without ``counts_``,
        all words have equal weight. Words without a vector, as they are or in lower case, are left out.
        """
        self._check()
        pieces = map(bare, DOCUMENT_RULES.split(text))
        places = [self._places.get(piece, self._places.get(piece.lower(), -1)) for piece in pieces]
        at = np.array([place for place in places if place >= 0], dtype=np.int64)
        if not len(at):
            raise InputError(f"no word of {str(text)[:40]!r} is among the {len(self):,} words that have vectors.")
        weight = (
            np.ones(len(at))
            if self.counts_ is None
            else COMMON_SHARE / (COMMON_SHARE + self.counts_[at] / self.counts_.sum())
        )
        return (weight @ self._units(at) / weight.sum()).astype(self.vectors_.dtype)

    def documents(self, texts: Any, *, common: int = 1) -> np.ndarray:
        """Vectors (n,k) of several texts: that of :meth:`document` for each, less what all have in common.

        The `common` strongest directions of all texts together are taken out; they are mostly grammar. A text without
        a known word has a vector of zeros.
        """
        self._check()
        rows = np.zeros((len(texts), self.vectors_.shape[1]))
        for i, text in enumerate(texts):
            with suppress(InputError):
                rows[i] = self.document(text)
        k = min(common, min(rows.shape) - 1)
        if k > 0 and rows.any():
            directions = truncated_svd(rows, k)[2]  # (k,D)
            rows = rows - (rows @ directions.T) @ directions
        return rows.astype(self.vectors_.dtype)

    def most_similar(self, positive: Any = (), negative: Any = (), n: int = 10) -> list[tuple[str, float]]:
        """The n words nearest to the sum of some words less that of others, each at length 1: (word, cosine).

        ``most_similar(["king", "woman"], ["man"])`` is the analogy; words of the query are left out.
        """
        plus, minus = ([words] if isinstance(words, str) else list(words) for words in (positive, negative))
        at = self._all([*plus, *minus])
        if not len(at):
            raise InputError("give one word at least, in positive or negative.")
        sign = np.repeat([1.0, -1.0], [len(plus), len(minus)])
        Q = as_direction(sign @ self._units(at)).astype(self.vectors_.dtype)[None]
        return self._pair_names(find_nearest(Q, self.vectors_, self._norms, check_n(n), exclude([at])))

    def unseen(self, word: str) -> np.ndarray:
        """A vector (k,) for a word that has none, from its letters; ``nearest`` takes it as a query.

        The n-grams of 3 to 6 letters have vectors whose means approximate those of the words at length 1, the most
        frequent 20,000. They are computed when they are first asked for. An unusual form of a known word comes out near
        it; a word of which no n-gram is known is refused.

        Examples
        --------
        >>> from twofold import WordVectors
        >>> v = WordVectors.of(["walking", "walked", "talking", "rivers"], np.eye(4)[[0, 0, 1, 2]])
        >>> v.nearest(v.unseen("walks"), n=1)[0][0] in ("walking", "walked")
        True
        """
        self._check()
        found = self._subwords.estimate(word)
        if found is None or not found.any():
            raise unknown_word(word, self.words_)
        return found.astype(self.vectors_.dtype)

    def map_2d(self, words: Any = None, *, method: str = "pca", random_state: Seed = 0) -> np.ndarray:
        """Points (n,2) for n words, by default all; words with similar vectors are close.

        "pca" takes the two directions of greatest variance of the vectors at length 1; "tsne" shows neighbors better,
        but no distances, and begins where `random_state` says.
        """
        self._check()
        at = np.arange(len(self)) if words is None else self._all([words] if isinstance(words, str) else words)
        return map_to_plane(self._units(at), method, random_state)

    # ---- files -----------------------------------------------------------------------------------------------------

    def to_gensim(self) -> Any:
        """The same words and vectors as gensim's ``KeyedVectors``."""
        return importlib.import_module("twofold.interchange.arrays").to_gensim(self)

    def to_faiss(self) -> Any:
        """An exact faiss index of the vectors, each at length 1: its inner products are those of :meth:`similarity`."""
        return importlib.import_module("twofold.interchange.arrays").to_faiss(self.vectors_, cosine=True)

    def save_word2vec(self, path: str | os.PathLike, binary: bool | None = None) -> None:
        """Write the words and vectors, as float32, to a file that word2vec, gensim and many others read.

        The file is replaced atomically, and gzipped if its name ends in ".gz". Numbers are bytes with `binary`, by
        default if the name ends in ".bin" or ".bin.gz"; text has the shortest decimals that give the same float32.
        """
        self._check()
        write_word2vec(self.words_, self.vectors_, path, binary)

    @classmethod
    def load_word2vec(cls, path: Any, *, binary: bool | None = None, limit: int | None = None) -> WordVectors:
        """Read vectors that word2vec, gensim, fastText (text) or GloVe wrote, plain or gzipped.

        The content decides whether numbers are bytes, unless `binary` does; `limit` is a number of words to stop after.
        """
        return cls.of(*read_word2vec(path, binary, limit))

    # ---- how good they are -----------------------------------------------------------------------------------------

    def evaluate_analogies(
        self, path: Any, vocabulary: int | None = 30_000, *, method: str = "additive"
    ) -> AnalogyScore:
        """The share of the analogies in a file that are solved: a question a line, ``Athens Greece Oslo Norway``.

        Lines such as ``: capitals`` begin a section. Questions and answers are among the first `vocabulary` words (None
        for all); figures for different vocabularies cannot be compared. Case is ignored. Questions that are skipped
        because a word is unknown count as wrong in ``accuracy_of_all``; ``syntactic`` sections are those whose names
        start with "gram".
        """
        self._check()
        return solve_analogies(self.words_, self.vectors_, self._norms, path, vocabulary, method)

    def evaluate_similarity(self, path: str | os.PathLike) -> SimilarityScore:
        """The correlation of the cosines with human judgment: a pair a line, ``tiger cat 7.35``.

        Tabs, commas or spaces stand between; a header line is skipped. Pairs with an unknown word are skipped and
        counted.
        """
        self._check()
        return compare_similarities(self.words_, self.vectors_, self._norms, path)

    # ---- inside ----------------------------------------------------------------------------------------------------

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words_.tolist())}

    @cached_property
    def _subwords(self) -> Subwords:
        some = np.arange(min(len(self), MAX_WORDS))
        return learn_subwords(self.words_[some].tolist(), self._units(some))

    @cached_property
    def _norms(self) -> np.ndarray:
        return row_norms(self.vectors_)

    def _check(self) -> None:
        if not hasattr(self, "vectors_"):
            raise NotFittedError("These WordVectors are empty. Make some with WordVectors.of(words, vectors).")

    def _all(self, words: Any) -> np.ndarray:
        return np.array([self.place(word) for word in words], dtype=np.int64)

    def _units(self, at: np.ndarray) -> np.ndarray:
        """Some rows at length 1, in float64."""
        return normalize_rows(self.vectors_[at].astype(np.float64), self._norms[at])

    def _pair_names(self, best: Lists) -> list[tuple[str, float]]:
        """The answer to one query."""
        pairs = zip(best.words[0].tolist(), best.scores[0].tolist(), strict=True)
        return [(str(self.words_[at]), score) for at, score in pairs if at >= 0]


def map_to_plane(X: np.ndarray, method: str, random_state: Any) -> np.ndarray:
    """Rows (n,k) as points (n,2): by the two directions of greatest variance, or by t-SNE."""
    n = len(X)
    if method not in ("pca", "tsne"):
        raise InputError(f'method={method!r} is not "pca" or "tsne".')
    if method == "tsne" and n > 3:
        from sklearn.manifold import TSNE  # takes a second to import

        perplexity, method = min(30.0, (n - 1) / 3), "barnes_hut" if n > 500 else "exact"
        model = TSNE(2, init="pca", perplexity=perplexity, method=method, random_state=seed_of(random_state))
        return model.fit_transform(X)
    places = np.zeros((n, 2))
    k = min(2, *X.shape)
    if k:
        U, s, _ = truncated_svd(X, k, center=True)
        places[:, :k] = U * s
    return places


# --- checks --------------------------------------------------------------------------------------


def check_vectors(vectors: Any, words: np.ndarray) -> np.ndarray:
    """Vectors (V,k) of words, float64 if they are, else float32."""
    W = np.asarray(vectors)
    W = np.ascontiguousarray(W, dtype=np.float64 if W.dtype == np.float64 else np.float32)
    if W.ndim != 2 or not W.shape[1] or len(W) != len(words):
        raise InputError(f"vectors has shape {W.shape}; {len(words)} words need ({len(words)}, k), a row a word.")
    bad = first_bad(W, allow_nan=False)
    if bad is not None:
        raise InputError(f"vectors[{bad[0]}, {bad[1]}], of {words[bad[0]]!r}, is {bad[2]}; numbers must be finite.")
    return W


def check_counts(counts: Any, V: int) -> np.ndarray:
    """Counts of V words."""
    n = np.asarray(counts)
    if n.shape != (V,) or n.dtype.kind not in "iuf" or not (n >= 0).all() or not 0 < n.sum() < np.inf:
        raise InputError(f"counts has shape {n.shape}; {V} numbers >= 0 are needed, one a word, not all zero.")
    return n


def check_n(n: Any) -> int:
    """A number of answers."""
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise InputError(f"n={n!r} must be a whole number of at least 1.")
    return int(n)


def as_words(query: Any) -> list[str] | None:
    """The words of a query, or None if it has none."""
    if isinstance(query, str):
        return [query]
    listed = isinstance(query, (list, tuple, set)) or (isinstance(query, np.ndarray) and query.dtype.kind in "UO")
    return list(query) if listed and len(query) and any(isinstance(word, str) for word in query) else None


def as_vector(query: Any, k: int) -> np.ndarray:
    """A query that is a vector (k,)."""
    try:
        found = np.asarray(query, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"the query {query!r} is neither a word, nor a list of words, nor a vector.") from None
    if found.shape != (k,):
        raise InputError(f"the query has shape {found.shape}; a vector here has {(k,)}.")
    return found


def as_direction(x: np.ndarray) -> np.ndarray:
    """A vector (k,) at length 1."""
    length = np.linalg.norm(x)
    if not (np.isfinite(length) and length > 0):
        raise InputError(f"the query's vector has length {length:g}: it has no direction, so no word is near it.")
    return x / length


# --- analogies and judgments of similarity in files -------------------------------------------------------------------


class AnalogyScore(NamedTuple):
    """Results of analogy questions."""

    accuracy: float  # of the questions asked
    accuracy_of_all: float  # of all: skipped ones count as wrong
    correct: int
    asked: int
    skipped: int  # because a word is not in the vocabulary
    semantic: float  # accuracy of those asked, in sections whose names do not start with "gram"
    syntactic: float  # and in those whose names do
    sections: pl.DataFrame  # section, kind, accuracy, accuracy_of_all, correct, asked, skipped


class SimilarityScore(NamedTuple):
    """Agreement of cosines with human scores."""

    spearman: float  # correlation of ranks
    pearson: float  # of values
    asked: int
    skipped: int  # because a word is not in the vocabulary


class Spellings(NamedTuple):
    """Groups of words that differ by case only."""

    group: dict[str, int]  # folded spelling ↦ group, in the order of first members
    first: np.ndarray  # (G,) the word that represents a group
    of: np.ndarray  # (V,) the group of each word
    starts: np.ndarray  # (G+1,) where each group's members start in
    members: np.ndarray  # (V,)

    def places(self, words: list[str]) -> list[int]:
        return [self.group.get(word.casefold(), -1) for word in words]

    def exclude(self, groups: np.ndarray) -> Excluded:
        """For each row of groups (m,p), all their members."""
        sizes = np.diff(self.starts)[groups]  # (m,p)
        ends = np.cumsum(sizes)
        jump = self.starts[groups].ravel() - (ends - sizes.ravel())
        at = np.arange(ends[-1] if len(ends) else 0) + np.repeat(jump, sizes.ravel())
        return Excluded(np.concatenate([[0], np.cumsum(sizes.sum(axis=1))]).astype(np.int64), self.members[at])


def spellings(words: np.ndarray) -> Spellings:
    group: dict[str, int] = {}
    of = np.array([group.setdefault(word.casefold(), len(group)) for word in words.tolist()], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=len(group)))]).astype(np.int64)
    members = np.argsort(of, kind="stable")
    return Spellings(group, members[starts[:-1]], of, starts, members)


def solve_analogies(
    words: np.ndarray, W: np.ndarray, norms: np.ndarray, path: Any, vocabulary: int | None, method: str
) -> AnalogyScore:
    """Solve the questions of a file with words and vectors (V,k)."""
    if vocabulary is not None and (not isinstance(vocabulary, Integral) or vocabulary < 1):
        raise InputError(f"vocabulary={vocabulary!r} must be a whole number of at least 1, or None for all words.")
    words, W, norms = words[:vocabulary], W[:vocabulary], norms[:vocabulary]
    known = spellings(words)
    sections, of, questions = _read_questions(path, known)
    asked = np.all(questions >= 0, axis=1)
    quads = questions[asked]
    left = known.exclude(quads[:, :3])
    best = solve_questions(known.first[quads[:, :3]], W, norms, 1, left, method).words[:, 0]
    correct = np.zeros_like(asked)
    correct[asked] = (best >= 0) & (known.of[best] == quads[:, 3])
    return _analogy_score(sections, of, asked, correct)


def _read_questions(path: Any, known: Spellings) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The sections' names, the section of each question, and its four words as groups (m,4), -1 where unknown."""
    sections: list[str] = []
    of: list[int] = []
    questions: list[list[int]] = []
    for number, line in _lines(path):
        fields = line.split()
        if line.startswith(":"):
            sections.append(line[1:].strip() or f"section {len(sections) + 1}")
            continue
        if len(fields) != 4:
            raise InputError(
                f"{os.fspath(path)}, line {number} has {len(fields)} words; a question has four: a b c d, a is to b as "
                'c is to d. The names of sections start with ":".'
            )
        if not sections:
            sections.append(NO_SECTION)
        of.append(len(sections) - 1)
        questions.append(known.places(fields))
    if not questions:
        raise InputError(f"{os.fspath(path)} has no questions in it. A line is one: a b c d, a is to b as c is to d.")
    return sections, np.array(of), np.array(questions, dtype=np.int64)


def _analogy_score(sections: list[str], of: np.ndarray, asked: np.ndarray, correct: np.ndarray) -> AnalogyScore:
    n, m, hit = (np.bincount(of, weights=w, minlength=len(sections)).astype(int) for w in (of >= 0, asked, correct))
    syntactic = np.array([name.casefold().startswith("gram") for name in sections])
    table = pl.DataFrame(
        {
            "section": sections,
            "kind": np.where(syntactic, "syntactic", "semantic").tolist(),
            "accuracy": [share(*pair) for pair in zip(hit, m, strict=True)],
            "accuracy_of_all": [share(*pair) for pair in zip(hit, n, strict=True)],
            "correct": hit,
            "asked": m,
            "skipped": n - m,
        }
    )
    total, done, right = int(n.sum()), int(m.sum()), int(hit.sum())
    semantic, syntax = (share(hit[kind].sum(), m[kind].sum()) for kind in (~syntactic, syntactic))
    return AnalogyScore(share(right, done), share(right, total), right, done, total - done, semantic, syntax, table)


def share(part: Any, whole: Any) -> float:
    """part/whole, or NaN if the whole is 0."""
    return float(part) / float(whole) if whole else float("nan")


def compare_similarities(words: np.ndarray, W: np.ndarray, norms: np.ndarray, path: Any) -> SimilarityScore:
    """Compare the cosines of a file's pairs with its scores."""
    known = spellings(words)
    places, scores = _read_pairs(path, known)
    asked = (places >= 0).all(axis=1)
    a, b = known.first[places[asked]].T
    x, y = (normalize_rows(W[at].astype(np.float64), norms[at]) for at in (a, b))
    cosine = np.einsum("ij,ij->i", x, y)
    scores = scores[asked]
    varies = len(scores) > 1 and np.ptp(scores) > 0 and np.ptp(cosine) > 0  # else no correlation is defined
    spearman = float(stats.spearmanr(cosine, scores).statistic) if varies else float("nan")
    pearson = float(stats.pearsonr(cosine, scores).statistic) if varies else float("nan")
    return SimilarityScore(spearman, pearson, int(asked.sum()), int((~asked).sum()))


def _read_pairs(path: Any, known: Spellings) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of words as groups (m,2), -1 where unknown, and the scores (m,); a header line is skipped."""
    places: list[list[int]] = []
    figures: list[float] = []
    started = False
    for number, line in _lines(path):
        fields = [field.strip() for field in line.split("\t" if "\t" in line else "," if "," in line else None)]
        figure = _figure(fields[2]) if len(fields) > 2 else None
        if figure is None and not started and len(fields) > 2:
            started = True
            continue
        started = True
        if figure is None:
            raise InputError(
                f"{os.fspath(path)}, line {number} is {line[:40]!r}; a pair is two words and a number, with tabs, "
                "commas or spaces between."
            )
        places.append(known.places(fields[:2]))
        figures.append(figure)
    if not figures:
        raise InputError(f"{os.fspath(path)} has no pairs in it. A line is one: two words and a number.")
    return np.array(places, dtype=np.int64), np.array(figures)


def _figure(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _lines(path: Any) -> Iterator[tuple[int, str]]:
    """The lines of a file that are neither empty nor a comment, with their numbers."""
    if not isinstance(path, (str, os.PathLike)) or os.path.isdir(path):
        raise InputError(f"{path!r} is not the path of a file.")
    for number, line in number_lines(path):
        if line.strip() and not line.startswith("#"):
            yield number, line.strip()
