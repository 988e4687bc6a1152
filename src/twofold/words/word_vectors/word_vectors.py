"""Word vectors: a direction a word, and the questions that directions answer.

    cos(a, b) = a·b / |a||b|        W (V,k) vectors, the words by falling frequency

Here are the words and the questions; how answers are found is in _nearest (nearest words), _analogies, evaluation and
files (word2vec's).
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import NotFittedError

from twofold.core.checks import InputError
from twofold.core.estimator import Model
from twofold.core.files import model_file
from twofold.core.seeds import seed_of
from twofold.core.types import Seed
from twofold.linalg import truncated_svd
from twofold.text.tokenize import Rules, bare
from twofold.text.vocabulary import unknown_word
from twofold.words import _checks
from twofold.words._nearest import Lists, exclude, find_nearest, normalize_rows, row_norms
from twofold.words.word_vectors._analogies import solve
from twofold.words.word_vectors.evaluation import AnalogyScore, SimilarityScore, compare_similarities, solve_analogies
from twofold.words.word_vectors.files import read_word2vec, write_word2vec

DOCUMENT_RULES = Rules(lowercase=False, numbers=True, min_length=1)
COMMON = 1e-3  # words more frequent than this share count little in a document


class WordVectors(Model):
    """Words and their vectors, with the questions one asks of them.

    Word models keep one in ``vectors_``; ``WordVectors.of`` makes one from arrays, ``WordVectors.load_word2vec``
    from the files of other programs. Similarity is the cosine of the angle between two vectors.

    Attributes
    ----------
    words_ : ndarray of shape (V,)
        The words, each once, the most frequent first if their frequency was known. Also as ``words``.
    vectors_ : ndarray of shape (V, k)
    counts_ : ndarray of shape (V,) or None
        How often each word occurred where the vectors were learned, if that is known.

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

    words_: np.ndarray
    vectors_: np.ndarray
    counts_: np.ndarray | None
    _fitted: ClassVar[dict[str, str]] = {"words_": "v, text", "vectors_": "v k", "counts_": "v, >= 0, or None"}

    @classmethod
    def of(cls, words: Any, vectors: Any, counts: Any = None) -> WordVectors:
        """Word vectors from words and an array.

        Parameters
        ----------
        words : sequence of V distinct str, the most frequent first
        vectors : array of shape (V, k), kept if it is float64, else made float32
        counts : array of shape (V,), optional
            How often each word occurs; `document` weighs words by it.
        """
        made = cls()
        made.words_ = _checks.check_words(words)
        made.vectors_ = _checks.check_vectors(vectors, made.words_)
        made.counts_ = None if counts is None else _checks.check_counts(counts, len(made.words_))
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
        """The row of a word; an error names the closest spellings if it is not there."""
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
        """The words nearest to a word, to the mean direction of several, or to a vector.

        Parameters
        ----------
        query : str, list of str, or array of shape (k,)
            Words of the query are left out of the answer, and so are words whose vector is zero.
        n : int, default=10

        Returns
        -------
        list of (word, cosine), best first; fewer than n where there are no more
        """
        self._check()
        n, words = _checks.check_n(n), _checks.as_words(query)
        at = self._all(words or [])
        mean = self._units(at).mean(axis=0) if words else _checks.as_vector(query, self.vectors_.shape[1])
        Q = _checks.as_direction(mean).astype(self.vectors_.dtype)[None]
        return self._named(find_nearest(Q, self.vectors_, self._norms, n, exclude([at])))

    def analogy(self, a: str, b: str, c: str, n: int = 1, *, method: str = "additive") -> list[tuple[str, float]]:
        """What `c` is to as `a` is to `b`, best first: ``analogy("man", "king", "woman")`` asks for the queen.

        Parameters
        ----------
        a, b, c : str
            They are left out of the answer.
        n : int, default=1
        method : {"additive", "multiplicative"}, default="additive"
            The cosine with b − a + c, or the product of the cosines with b and c over that with a, which lets no
            single large one decide. All vectors are taken at length 1.
        """
        n, at = _checks.check_n(n), self._all([a, b, c])
        return self._named(solve(at[None], self.vectors_, self._norms, n, exclude([at]), method))

    def document(self, text: Any) -> np.ndarray:
        """A vector (k,) for a text: the weighted mean of its words' vectors, each at length 1.

        A word that makes up the share p of all words has the weight a / (a + p), a = 0.001, so that "the" says little;
        where ``counts_`` are not known, all words weigh the same.

        Parameters
        ----------
        text : str or list of str
            Words without a vector, as they are or in lower case, are left out.
        """
        self._check()
        pieces = DOCUMENT_RULES.split(text)
        found = [self._places.get(piece, self._places.get(piece.lower(), -1)) for piece in map(bare, pieces)]
        at = np.array([place for place in found if place >= 0], dtype=np.int64)
        if not len(at):
            raise InputError(f"no word of {str(text)[:40]!r} is among the {len(self):,} words that have vectors.")
        weight = np.ones(len(at)) if self.counts_ is None else COMMON / (COMMON + self.counts_[at] / self.counts_.sum())
        return (weight @ self._units(at) / weight.sum()).astype(self.vectors_.dtype)

    def map_2d(self, words: Any = None, *, method: str = "pca", random_state: Seed = 0) -> np.ndarray:
        """Places (n,2) for words, near each other where they point the same way.

        Parameters
        ----------
        words : list of n str, default=all words
        method : {"pca", "tsne"}, default="pca"
            The two directions in which the vectors, at length 1, differ most; or t-SNE, which shows neighbours
            better and distances not at all.
        random_state : int, RandomState, Generator or None, default=0, for t-SNE
        """
        self._check()
        at = np.arange(len(self)) if words is None else self._all([words] if isinstance(words, str) else words)
        return map_to_plane(self._units(at), method, random_state)

    # ---- files -----------------------------------------------------------------------------------------------------

    def save_word2vec(self, path: str | os.PathLike, binary: bool | None = None) -> None:
        """Write the words and vectors, as float32, to a file that word2vec, gensim and many others read.

        Parameters
        ----------
        path : str or path
            Replaced atomically; gzipped if it ends in ".gz".
        binary : bool, optional
            Whether numbers are written as bytes; by default if the name ends in ".bin" or ".bin.gz". Text has the
            shortest decimals that give the same float32 again.
        """
        self._check()
        write_word2vec(self.words_, self.vectors_, path, binary)

    @classmethod
    def load_word2vec(cls, path: Any, *, binary: bool | None = None, limit: int | None = None) -> WordVectors:
        """Read vectors that word2vec, gensim, fastText (text) or GloVe wrote, plain or gzipped.

        Parameters
        ----------
        path : str or path
        binary : bool, optional
            Whether numbers are bytes; by default the file shows it.
        limit : int, optional, to read the first so many words and no more
        """
        return cls.of(*read_word2vec(path, binary, limit))

    # ---- how good they are -----------------------------------------------------------------------------------------

    def evaluate_analogies(
        self, path: Any, vocabulary: int | None = 30_000, *, method: str = "additive"
    ) -> AnalogyScore:
        """The share of the analogies in a file that are solved.

        Parameters
        ----------
        path : str or path
            A question a line, ``Athens Greece Oslo Norway``; lines such as ``: capitals`` begin a section.
        vocabulary : int or None, default=30000
            Ask about, and answer with, the first so many words alone; None for all. Figures for different
            vocabularies cannot be compared.
        method : {"additive", "multiplicative"}, default="additive"

        Returns
        -------
        AnalogyScore
            ``accuracy`` of the questions asked and ``accuracy_of_all`` (those skipped because a word is unknown count
            as wrong), ``correct``, ``asked``, ``skipped``, ``semantic`` and ``syntactic`` accuracies (of sections whose
            names start with "gram"), and ``sections``, a table of the same. Case is put aside.
        """
        self._check()
        return solve_analogies(self.words_, self.vectors_, self._norms, path, vocabulary, method)

    def evaluate_similarity(self, path: str | os.PathLike) -> SimilarityScore:
        """The correlation of the cosines with people's judgement.

        Parameters
        ----------
        path : str or path
            A pair a line, ``tiger cat 7.35``, with tabs, commas or spaces between; a first line of names is passed.

        Returns
        -------
        SimilarityScore : ``spearman``, ``pearson``, pairs ``asked`` and ``skipped`` because a word is unknown
        """
        self._check()
        return compare_similarities(self.words_, self.vectors_, self._norms, path)

    # ---- inside ----------------------------------------------------------------------------------------------------

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words_.tolist())}

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

    def _named(self, found: Lists) -> list[tuple[str, float]]:
        """One query's answer."""
        pairs = zip(found.words[0].tolist(), found.scores[0].tolist(), strict=True)
        return [(str(self.words_[at]), score) for at, score in pairs if at >= 0]


def map_to_plane(X: np.ndarray, method: str, random_state: Any) -> np.ndarray:
    """Rows (n,k) as places (n,2): by the two directions of greatest variance, or by t-SNE."""
    n = len(X)
    if method not in ("pca", "tsne"):
        raise InputError(f'method={method!r} is not "pca" or "tsne".')
    if method == "tsne" and n > 3:
        from sklearn.manifold import TSNE  # a second to import, and seldom needed

        perplexity, method = min(30.0, (n - 1) / 3), "barnes_hut" if n > 500 else "exact"
        return TSNE(
            2, init="pca", perplexity=perplexity, method=method, random_state=seed_of(random_state)
        ).fit_transform(X)
    places = np.zeros((n, 2))
    k = min(2, *X.shape)
    if k:
        U, s, _ = truncated_svd(X, k, center=True)
        places[:, :k] = U * s
    return places
