"""Co-occurrence: counts of pairs of words near each other.

    n[i, j] = Σ  1/(p − q)  over places p of word i and q of word j, at most `window` apart in one line
    n (V,V) CSR float32, symmetric; rows and columns in the order of the vocabulary

One pass:   each line   text → ids, by a vocabulary that is learned while the text is read
            each word   its row is the sum of the windows at its places
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, as_blocks
from twofold.core.data.csr_folder import ENDING, write_csr
from twofold.core.estimator import Model, fitting
from twofold.core.params import Interval, StrOptions
from twofold.core.types import Documents
from twofold.text.text_tasks import TextTasks, find_text_tasks
from twofold.text.vocabulary import Vocabulary
from twofold.words.cooccurrence._pairs import count_vocabulary, pair_rows, pair_rows_on_cluster
from twofold.words.corpus import encode_corpus, fit_and_encode


class Cooccurrence(Model):
    """Counts of the pairs of words that occur near each other: the table that GloVe and PMI embeddings factorize.

    ``counts_[i, j]`` adds up 1/d over all pairs of a word i and a word j that are d ≤ `window` places apart in one
    line: neighbors count 1, words with one between them 1/2. Words that are not in the vocabulary are left out
    first, and windows never cross the end of a line.

    Parameters
    ----------
    window : int, default=10
        Maximum distance of a pair, in words.
    weighting : {"harmonic", "flat"}, default="harmonic"
        A pair at distance d counts 1/d, or 1.
    symmetric : bool, default=True
        Count both sides of a word. If False, ``counts_[i, j]`` counts the words j before a word i; the symmetric table
        is that one plus its transpose.
    min_count, max_size, lowercase
        Of the vocabulary that is learned, see `Vocabulary`.
    vocabulary : Vocabulary, list of str or None, default=None
        The words to count, in this order; by default they are learned.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        Of the rows and columns.
    counts_ : csr_array of shape (V, V), float32, or str
        The table, or the path of the folder it was written to.

    Notes
    -----
    Sums are exact: weights are whole multiples of 1/lcm(1..window), added as integers, and rounded once at the end.
    (For windows above about 25 that multiple is too large; weights are then multiples of a power of two.) So neither
    threads nor the memory budget change a bit.

    A corpus is read line by line, and stored in 4 bytes a word; beyond the memory budget it is in temporary files, like
    the tables of its parts. With ``fit(corpus, to="pairs.csr")`` the table is written to disk and is never in memory.

    References
    ----------
    Lund & Burgess (1996), *Behavior Research Methods* 28, 203-208. Pennington, Socher & Manning (2014), *EMNLP*.

    Examples
    --------
    >>> from twofold.words.cooccurrence.cooccurrence import Cooccurrence
    >>> pairs = Cooccurrence(window=2, min_count=1).fit(["a rose is a rose"])
    >>> [str(word) for word in pairs.vocabulary_.words_]
    ['a', 'rose', 'is']
    >>> pairs.counts_.toarray()  # "is" has "a" and "rose" beside it, and both once more with one word between
    array([[0. , 2.5, 1.5],
           [2.5, 0. , 1.5],
           [1.5, 1.5, 0. ]], dtype=float32)
    """

    vocabulary_: Vocabulary
    counts_: Any
    _takes_text: ClassVar[bool] = True
    _fitted: ClassVar[dict[str, str]] = {"counts_": "v v, >= 0, sparse, or path", "vocabulary_.words_": "v, text"}
    _parameter_constraints: ClassVar[dict] = {
        "window": [Interval(Integral, 1, None, closed="left")],
        "weighting": [StrOptions({"harmonic", "flat"})],
        "symmetric": ["boolean"],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "max_size": [Interval(Integral, 1, None, closed="left"), None],
        "vocabulary": [Vocabulary, list, tuple, np.ndarray, None],
        "lowercase": ["boolean"],
    }

    def __init__(
        self,
        *,
        window: int = 10,
        weighting: str = "harmonic",
        symmetric: bool = True,
        min_count: int = 5,
        max_size: int | None = None,
        vocabulary: Any = None,
        lowercase: bool = True,
    ):
        self.window = window
        self.weighting = weighting
        self.symmetric = symmetric
        self.min_count = min_count
        self.max_size = max_size
        self.vocabulary = vocabulary
        self.lowercase = lowercase

    @fitting
    def fit(self, corpus: Documents, y: Any = None, *, to: str | os.PathLike | None = None) -> Cooccurrence:
        """Count the pairs.

        Parameters
        ----------
        corpus : path, or list or generator of str or of lists of str
            A text file has a sentence or document a line; a folder or pattern of files a document a file.
        y : ignored
        to : path, optional
            A folder to write, ending in ".csr"; then `counts_` is its path. It appears whole or not at all.
        """
        if to is not None and not os.fspath(to).lower().endswith(ENDING):
            raise InputError(f'to={os.fspath(to)!r} must end in "{ENDING}": models know a sparse table by that.')
        how = (int(self.window), self.weighting == "harmonic", bool(self.symmetric))
        vocabulary, texts = self._start_vocabulary(), find_text_tasks(corpus, split=True)
        if texts is not None:
            max_count = self._count_on_cluster(texts, vocabulary)
            beside = None if to is None else os.path.dirname(os.path.abspath(to))
            with tempfile.TemporaryDirectory(prefix="twofold-words-", dir=beside) as folder:
                counts = _gather(pair_rows_on_cluster(texts, vocabulary, max_count, *how, folder), len(vocabulary), to)
        else:
            with (fit_and_encode if self.vocabulary is None else encode_corpus)(corpus, vocabulary) as lines:
                if not len(lines):
                    raise _none_of(vocabulary)
                counts = _gather(pair_rows(lines, len(vocabulary), *how), len(vocabulary), to)
        self.vocabulary_, self.counts_ = vocabulary, counts
        return self

    def _start_vocabulary(self) -> Vocabulary:
        """The words to count, or a vocabulary to fit."""
        if self.vocabulary is None:
            return Vocabulary(min_count=self.min_count, max_size=self.max_size, lowercase=self.lowercase)
        if isinstance(self.vocabulary, Vocabulary):
            return self.vocabulary
        return Vocabulary.of(self.vocabulary, lowercase=self.lowercase)

    def _count_on_cluster(self, texts: TextTasks, vocabulary: Vocabulary) -> int:
        """Fit the vocabulary on a cluster if it is not given; return the count of the most frequent word."""
        if self.vocabulary is None:
            return int(vocabulary._fit_on_cluster(texts).counts_.max())
        max_count = int(count_vocabulary(texts, vocabulary).max())
        if not max_count:
            raise _none_of(vocabulary)
        return max_count


def _none_of(vocabulary: Vocabulary) -> InputError:
    return InputError(
        f"the corpus has none of the {len(vocabulary):,} words of the vocabulary in it. Give other words or "
        "another text, or leave vocabulary=None to learn them."
    )


def _gather(blocks: Iterable[sparse.csr_array], V: int, to: str | os.PathLike | None) -> Any:
    """Blocks of rows as one array, or in a folder."""
    return _stack(blocks, V) if to is None else write_csr(to, blocks)


def _stack(blocks: Iterable[sparse.csr_array], V: int) -> sparse.csr_array:
    """Blocks of rows as one array, which grows in place, so that no copy is made."""
    values, indices, lengths, stored = np.empty(0, np.float32), np.empty(0, np.int32), list[np.ndarray](), 0
    for block in blocks:
        for whole, more in ((values, block.data), (indices, block.indices)):
            whole.resize(stored + block.nnz, refcheck=False)
            whole[stored:] = more
        stored += block.nnz
        lengths.append(np.diff(block.indptr))
    indptr = np.concatenate([[0], *lengths]).cumsum().astype(np.int32 if stored < 2**31 else np.int64)
    counts = sparse.csr_array((values, indices, indptr), shape=(V, V))
    counts.has_canonical_format = True
    return counts


class PairCounts(NamedTuple):
    """Counts n (V,V) in blocks of rows, and their words."""

    vocabulary: Vocabulary
    blocks: Blocks


OPTIONS = ("window", "min_count", "max_size", "lowercase")  # of Cooccurrence that models of pairs also have


@contextmanager
def count_pairs(X: Any, model: Any, vocabulary: Vocabulary | None = None) -> Iterator[PairCounts]:
    """Yield the pairs of a fitted `Cooccurrence`, or those of a corpus, counted with the options of `model`.

    Lists are counted in memory; the table of files, which may have any size, is in a temporary folder and is read a few
    megabytes at a time.
    """
    with tempfile.TemporaryDirectory(prefix="twofold-words-") as folder:
        if not isinstance(X, Cooccurrence):
            small = isinstance(X, (list, tuple))
            options = {name: getattr(model, name) for name in OPTIONS}
            to = None if small else os.path.join(folder, "pairs.csr")
            X = Cooccurrence(**options, vocabulary=vocabulary).fit(X, to=to)
        check_is_fitted(X)
        blocks = as_blocks(X.counts_)
        if not blocks.source.n_stored:
            raise InputError(
                f"no two of the {len(X.vocabulary_):,} words of the vocabulary occur within ⟨window={X.window}⟩ places "
                "of each other. Give longer lines, or lower min_count."
            )
        yield PairCounts(X.vocabulary_, blocks)
