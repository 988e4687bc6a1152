"""Bag of words: from texts to counts.

    X[i, j] = how often word j occurs in document i      X (n,d) CSR int32, words in alphabetical order

One pass:   each document  text → pieces → codes → a row of counts
            then once      the words that are neither too rare nor too common become columns
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from twofold.core.checks import InputError
from twofold.core.data.csr_folder import ENDING, write_csr
from twofold.core.estimator import Model, fitting
from twofold.core.params import Interval, Options
from twofold.core.types import Documents
from twofold.text import counting
from twofold.text.documents import check_words, documents, is_iterator
from twofold.text.phrases import MIN_TIMES, learn_phrases, split_vocabulary
from twofold.text.stop_words import stop_words_of
from twofold.text.text_tasks import Counted, TextTasks, count_rows, find_text_tasks
from twofold.text.tokenize import Rules, Stems


class Unseen(NamedTuple):
    """Words of some documents that have no column."""

    words: int
    share: float  # of all words


class BagOfWords(TransformerMixin, Model, auto_wrap_output_keys=None):
    """Counts of words: the table that topic models read.

    ``X[i, j]`` is how often word j occurs in document i. A word is a run of letters of any script, with the marks
    that belong to them and apostrophes inside ("don't"); numbers and stop words are left out.

    Parameters
    ----------
    lowercase : bool, default=True
        Treat "Topic" and "topic" as one word.
    stop_words : str, path, list of str or None, default="english"
        Words to leave out: those of a language, by its name or code, a file (a word a line, # starts a comment), or a
        list. One that is left out takes its apostrophe along: with French ones "l'arbre" is "arbre".
    min_df, max_df : int or float, default=1 and 1.0
        Leave out words that occur in fewer or in more documents than this: a number of documents (int) or a share
        of them (float).
    max_features : int or None, default=None
        Maximum number of words, the most frequent ones; ties in alphabetical order.
    stem : str or None, default=None
        A language, such as "english" or "de": words with one stem share a column, named by their most frequent form.
    ngrams : {1, 2}, default=1
        With 2, phrases have columns as well, such as "hong kong": two neighboring words that occur together five times
        or more (`min_df`, if that is more), with a normalized pointwise mutual information of at least ½. Their words
        are still counted.
    tokenizer : callable or None, default=None
        Cuts a text into a list of words, which then follow the same rules. A model with one cannot be saved.
    min_length : int, default=2
        Shorter words are left out.
    numbers : bool, default=False
        Count words with digits ("1990", "x86").
    vocabulary : list of str or None, default=None
        The words to count, in this order; by default they are learned. With one, `transform` needs no fit.

    Attributes
    ----------
    vocabulary_ : ndarray of shape (d,)
        The words of the columns.
    document_frequency_ : ndarray of shape (d,)
        The number of documents of the fit with each word.
    n_documents_ : int
    stop_words_ : ndarray
        The stop words.

    Notes
    -----
    Documents may be a list of texts, a list of lists of words (which are not split, but follow the same rules), a
    column of a frame, a generator, or a path. A text file has a document a line, or a paragraph where lines are
    wrapped; a folder or a pattern such as ``"texts/*.txt"`` a document a file; a table (CSV, JSONL, Parquet, ...) a
    document a row; plain or packed, as ``twofold topics`` reads them. Text files are read while they are counted.
    ``transform(path, to="counts.csr")`` writes the counts to disk, so that neither the text nor the table must fit
    into memory; every model takes that path for X.

    References
    ----------
    Salton, Wong & Yang (1975), *Communications of the ACM* 18, 613-620. Porter (1980), *Program* 14, 130-137.

    Examples
    --------
    >>> from twofold import BagOfWords
    >>> texts = ["Topics are mixtures of words.", "A mixture of words is a topic; topics mix.", "Don't panic!"]
    >>> bag = BagOfWords(stem="english")
    >>> counts = bag.fit_transform(texts)
    >>> [str(word) for word in bag.vocabulary_]
    ['mix', 'mixture', 'panic', 'topics', 'words']
    >>> counts.toarray()
    array([[0, 1, 0, 1, 1],
           [1, 1, 0, 2, 1],
           [0, 0, 1, 0, 0]], dtype=int32)
    """

    vocabulary_: Annotated[np.ndarray, "v, text"]
    document_frequency_: Annotated[np.ndarray, "v, >= 0"]
    n_documents_: int
    stop_words_: Annotated[np.ndarray, "., text"]
    _takes_text: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict] = {
        "lowercase": ["boolean"],
        "stop_words": [str, os.PathLike, list, tuple, set, frozenset, np.ndarray, None],
        "min_df": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="both")],
        "max_df": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="both")],
        "max_features": [Interval(Integral, 1, None, closed="left"), None],
        "stem": [str, None],
        "ngrams": [Options(Integral, {1, 2})],
        "tokenizer": ["callable", None],
        "min_length": [Interval(Integral, 1, None, closed="left")],
        "numbers": ["boolean"],
        "vocabulary": [list, tuple, np.ndarray, None],
    }

    def __init__(
        self,
        *,
        lowercase: bool = True,
        stop_words: Any = "english",
        min_df: int | float = 1,
        max_df: int | float = 1.0,
        max_features: int | None = None,
        stem: str | None = None,
        ngrams: int = 1,
        tokenizer: Callable[[str], list[str]] | None = None,
        min_length: int = 2,
        numbers: bool = False,
        vocabulary: Any = None,
    ):
        self.lowercase = lowercase
        self.stop_words = stop_words
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.stem = stem
        self.ngrams = ngrams
        self.tokenizer = tokenizer
        self.min_length = min_length
        self.numbers = numbers
        self.vocabulary = vocabulary

    # ---- fitting -----------------------------------------------------------------------------------------------

    @fitting
    def fit(self, X: Documents, y: Any = None) -> BagOfWords:
        """Learn the words of documents: texts or lists of words, in a list, column, generator or file."""
        self._learn(X, keep=False)
        return self

    @fitting
    def fit_transform(self, X: Documents, y: Any = None, *, to: str | os.PathLike | None = None) -> Any:
        """Learn the words and count them: what ``fit(X).transform(X, to=to)`` gives, in one pass if in memory."""
        if to is not None or self.vocabulary is not None or self.ngrams > 1:
            if is_iterator(X):
                raise InputError("X can be read only once, and this takes two passes. Give a list or a path.")
            self._learn(X, keep=False)
            return self.transform(X, to=to)
        return self._learn(X, keep=True)

    def _learn(self, X: Documents, keep: bool) -> Any:
        """Set the fitted attributes; with `keep`, return the counts."""
        self.stop_words_ = self._find_stop_words()
        if self.vocabulary is not None:
            return self._set_words(*self._frequencies(X, check_words(self.vocabulary)))
        if self.ngrams > 1 and is_iterator(X):
            raise InputError("X can be read only once, and ngrams=2 takes two passes. Give a list or a path.")
        texts = self._find_tasks(X)
        if texts is not None:
            counted = texts.count_terms(self._rules(), self.stem, self.min_df, self.max_df)
            self._set_terms(self._choose(counted), counted.n_documents)
            self._add_phrases(X)
            return self.transform(X) if keep else None
        with tempfile.TemporaryDirectory(prefix="twofold-words-") as folder:
            tally = counting.Tally(self._rules(), self._stems(), None if keep else folder)
            parts = []
            for chunk in counting.encode_chunks(self._documents(X), self._rules(), tally.codes):
                counts = tally.add(chunk)
                parts += [counts] if keep else []
            chosen = self._choose(tally)
        self._set_terms(chosen, tally.n_documents)
        self._add_phrases(X)
        return _renumber(parts, tally, chosen) if keep else None

    def _set_terms(self, chosen: list[counting.Term], n: int) -> None:
        words, frequency = [term.name for term in chosen], [term.documents for term in chosen]
        self._set_words(np.array(words, dtype=object), np.array(frequency, np.int64), n)

    def _add_phrases(self, X: Documents) -> None:
        """Add the phrases among the documents to the words, by a second pass."""
        if self.ngrams == 1:
            return
        words, least = self.vocabulary_, counting.document_bounds(self.min_df, 1.0, self.n_documents_)[0]
        found = learn_phrases(self._encode(X, words), len(words), max(MIN_TIMES, int(np.ceil(least))))
        first, second = np.divmod(found.pairs, len(words))
        every = [*words, *(f"{words[a]} {words[b]}" for a, b in zip(first, second, strict=True))]
        self._set_words(*self._frequencies(X, np.array(sorted(every), dtype=object)))

    def _set_words(self, words: np.ndarray, frequency: np.ndarray, n: int) -> None:
        self.vocabulary_, self.document_frequency_, self.n_documents_ = words, frequency, n

    def _frequencies(self, X: Documents, words: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """The words, the documents of each, and the number of all documents."""
        frequency, n = np.zeros(len(words), np.int64), 0
        for rows in self._rows(X, words):
            frequency += np.bincount(rows.indices, minlength=len(words))
            n += rows.shape[0]
        return words, frequency, n

    def _choose(self, tally: counting.Tally | Counted) -> list[counting.Term]:
        n = tally.n_documents
        if not n:
            raise InputError("X has no documents in it; give at least one text.")
        low, high = counting.document_bounds(self.min_df, self.max_df, n)
        if low > high:
            raise InputError(
                f"min_df={self.min_df} asks for at least {low:g} of the {n} documents and max_df={self.max_df} for "
                f"at most {high:g}: no word can have both. Lower min_df, or raise max_df."
            )
        chosen = counting.choose(tally.result(), low, high, self.max_features)
        if not chosen:
            raise InputError(
                f"no word is left of {n} documents: all are stop words, numbers, shorter than "
                f"min_length={self.min_length}, or not in {low:g} to {high:g} documents. Loosen min_df, max_df or "
                "stop_words."
            )
        return chosen

    # ---- using -------------------------------------------------------------------------------------------------

    def transform(self, X: Documents, *, to: str | os.PathLike | None = None) -> Any:
        """The counts of some documents, CSR int32 (n,d); words never seen are ignored (see `unseen`).

        With `to`, the path of a folder that ends in ".csr", the counts are written there and its path is returned. The
        folder appears complete or not at all.
        """
        words = self._words()
        rows = self._rows(X, words)
        if to is not None:
            if not os.fspath(to).lower().endswith(ENDING):
                raise InputError(f'to={os.fspath(to)!r} must end in "{ENDING}": models know a sparse table by that.')
            return write_csr(to, rows)
        parts = list(rows)
        empty = sparse.csr_array((0, len(words)), dtype=np.int32)
        return sparse.vstack(parts, format="csr") if len(parts) > 1 else parts[0] if parts else empty

    def unseen(self, X: Documents) -> Unseen:
        """Count the words of some documents without a column, and their share of all words."""
        missing = total = 0
        for chunk in self._encode(X, self._words()):
            missing += int((chunk.codes == counting.UNSEEN).sum())
            total += int(((chunk.codes == counting.UNSEEN) | (chunk.codes >= 0)).sum())
        return Unseen(missing, missing / total if total else 0.0)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The words of the columns."""
        return np.asarray(self._words(), dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "vocabulary_") or self.vocabulary is not None

    def _words(self) -> np.ndarray:
        """The words of the columns: those learned, or those given."""
        check_is_fitted(self)
        return self.vocabulary_ if hasattr(self, "vocabulary_") else check_words(self.vocabulary)

    def _find_stop_words(self) -> np.ndarray:
        return np.array(sorted(stop_words_of(self.stop_words)), dtype=object)

    def _rules(self) -> Rules:
        words = self.stop_words_ if hasattr(self, "stop_words_") else self._find_stop_words()
        return Rules(self.lowercase, self.numbers, self.min_length, frozenset(words.tolist()))

    def _stems(self) -> Stems:
        return Stems(self.stem)

    def _find_tasks(self, X: Documents) -> TextTasks | None:
        """The tasks of a cluster, which know neither phrases nor a function of the user's."""
        return find_text_tasks(X, split=False) if self.ngrams == 1 and self.tokenizer is None else None

    def _documents(self, X: Documents) -> Iterator[str | list[str]]:
        cut = self.tokenizer
        if cut is None:
            return documents(X)
        return (list(cut(text)) if isinstance(text, str) else text for text in documents(X))

    def _encode(self, X: Documents, words: np.ndarray) -> Iterator[counting.Chunk]:
        rules = self._rules()
        codes: counting.Codes = counting.column_finder(words.tolist(), rules, self._stems())
        return counting.encode_chunks(self._documents(X), rules, codes)

    def _rows(self, X: Documents, words: np.ndarray) -> Iterator[sparse.csr_array]:
        if self.ngrams > 1:
            known = split_vocabulary(words)
            return (known.add(chunk).rows(len(words)) for chunk in self._encode(X, known.words))
        texts = self._find_tasks(X)
        if texts is not None:
            return texts.map(count_rows, texts.tasks.hold(words.tolist()), self._rules(), self.stem)
        return (chunk.rows(len(words)) for chunk in self._encode(X, words))


def _renumber(parts: list, tally: counting.Tally, chosen: list[counting.Term]) -> sparse.csr_array:
    """Move counts of terms in the order of occurrence to columns of the chosen words."""
    columns = np.full(len(tally.terms), -1, np.int32)
    columns[[tally.terms[term.stem] for term in chosen]] = np.arange(len(chosen))
    done = [counting.count(columns[X.indices], np.diff(X.indptr), len(chosen), X.data) for X in parts]
    return sparse.vstack(done, format="csr") if len(done) > 1 else done[0]
