"""Vocabulary: the words of a corpus, numbered by how often they occur.

    word 0 is the most frequent one, ties go to the alphabet      words_ (V,)   counts_ (V,)

One pass:   each line   text → pieces → codes, which are counted
            then once   the frequent words are sorted
"""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from twofold.core.checks import InputError
from twofold.core.estimator import Model, fitting
from twofold.core.params import Interval
from twofold.core.spelling import MAX_COMPARED_NAMES, close_names
from twofold.core.types import Documents
from twofold.text.counting import Chunk, Codes, Tally, column_finder, encode_chunks
from twofold.text.documents import Texts, check_words
from twofold.text.text_tasks import Counted, TextTasks, find_text_tasks
from twofold.text.tokenize import Rules, Stems, normalize


def rules_of(lowercase: bool) -> Rules:
    """The rules of words: numbers and single letters count, and there are no stop words."""
    return Rules(lowercase, numbers=True, min_length=1)


class Vocabulary(Model):
    """The words of a corpus and how often each occurs, most frequent first.

    A word is a run of letters or digits of any script, with the marks that belong to them and apostrophes inside
    ("don't", "1990"). Word i is the one of rank i, so that ids below n are the n most frequent words.

    Parameters
    ----------
    min_count : int, default=5
        Leave out words that occur less often.
    max_size : int or None, default=None
        Maximum number of words, the most frequent ones; ties in alphabetical order.
    lowercase : bool, default=True
        Treat "Word" and "word" as one word.

    Attributes
    ----------
    words_ : ndarray of shape (V,)
        By falling count; ties in alphabetical order.
    counts_ : ndarray of shape (V,), int64
    n_tokens_ : int
        The number of words in the corpus, with those left out.
    n_lines_ : int

    Notes
    -----
    A corpus is a path (text files with a sentence or document a line, or a paragraph where lines are wrapped; a folder
    or a pattern such as ``"texts/*.txt"``; a table with a column of text; plain or packed), a list of texts, or a list
    of lists of words, which are not split but follow the same rules. Files are read while they are counted, and
    distinct words beyond the memory budget are on disk. ``len(v)``, ``word in v``, ``v[word]`` and
    ``v.encode(text)`` are what the other models use.

    References
    ----------
    Zipf (1949), *Human Behavior and the Principle of Least Effort*.

    Examples
    --------
    >>> from twofold.text.vocabulary import Vocabulary
    >>> v = Vocabulary(min_count=2).fit(["A rose is a rose", "is a rose. Isn't it?"])
    >>> [(str(word), int(n)) for word, n in zip(v.words_, v.counts_)]
    [('a', 3), ('rose', 3), ('is', 2)]
    >>> v["rose"], "it" in v, v.encode("It is a ROSE!")
    (1, False, array([2, 0, 1], dtype=int32))
    """

    words_: Annotated[np.ndarray, "v, text"]
    counts_: Annotated[np.ndarray, "v, >= 0"]
    n_tokens_: int
    n_lines_: int
    _takes_text: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict] = {
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "max_size": [Interval(Integral, 1, None, closed="left"), None],
        "lowercase": ["boolean"],
    }

    def __init__(self, *, min_count: int = 5, max_size: int | None = None, lowercase: bool = True):
        self.min_count = min_count
        self.max_size = max_size
        self.lowercase = lowercase

    @classmethod
    def of(cls, words: Iterable[str], counts: Any = None, *, lowercase: bool = True) -> Vocabulary:
        """A vocabulary of `words` in their order; without `counts` each has count 1."""
        made = cls(min_count=1, lowercase=lowercase)
        made.words_ = check_words(list(words))
        made.counts_ = np.ones(len(made.words_), np.int64) if counts is None else np.array(counts, np.int64)
        if made.counts_.shape != made.words_.shape:
            raise InputError(f"counts has shape {made.counts_.shape} for {len(made)} words; give one count a word.")
        made.n_tokens_, made.n_lines_ = int(made.counts_.sum()), 0
        return made

    # ---- fitting -----------------------------------------------------------------------------------------------

    @fitting
    def fit(self, corpus: Documents, y: Any = None) -> Vocabulary:
        """Count the words of a corpus: texts or lists of words, in a list, generator or file."""
        texts = find_text_tasks(corpus, split=True)
        if texts is not None:
            return self._fit_on_cluster(texts)
        self._learn(corpus)
        return self

    def _fit_on_cluster(self, texts: TextTasks) -> Vocabulary:
        """Fit on the workers of a cluster."""
        counted = texts.count_words(rules_of(self.lowercase), self.min_count)
        self._set(self._choose(counted, counted.n_tokens), counted.n_tokens, counted.n_lines)
        return self

    def _learn(self, corpus: Documents, visit: Callable[[Chunk, Tally, Texts], None] | None = None) -> Tally:
        """Set the fitted attributes; `visit` is called with every chunk of codes."""
        n_tokens, texts, rules = 0, Texts(corpus), rules_of(self.lowercase)
        with tempfile.TemporaryDirectory(prefix="twofold-words-") as folder:
            tally = Tally(rules, Stems(None), folder)
            for chunk in encode_chunks(texts, rules, tally.codes):
                n_tokens += int((chunk.codes >= 0).sum())
                tally.add_words(chunk)
                if visit is not None:
                    visit(chunk, tally, texts)
            chosen = self._choose(tally, n_tokens)
        self._set(chosen, n_tokens, texts.n_lines)
        return tally

    def _set(self, chosen: list[tuple[str, int]], n_tokens: int, n_lines: int) -> None:
        self.words_ = np.array([word for word, _ in chosen], dtype=object)
        self.counts_ = np.array([times for _, times in chosen], np.int64)
        self.n_tokens_, self.n_lines_ = n_tokens, n_lines

    def _choose(self, tally: Tally | Counted, n_tokens: int) -> list[tuple[str, int]]:
        """The words to keep and their counts, in order."""
        if not n_tokens:
            raise InputError("the corpus has no words in it; give at least one line of text.")
        words = tally.words(self.min_count)
        chosen = sorted(words, key=_rank) if self.max_size is None else heapq.nsmallest(self.max_size, words, key=_rank)
        if not chosen:
            raise InputError(
                f"none of the words occurs ⟨min_count={self.min_count}⟩ times in the {n_tokens} of the corpus. "
                "Lower min_count, or give more text."
            )
        return chosen

    # ---- using -------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        check_is_fitted(self)
        return len(self.words_)

    def __contains__(self, word: Any) -> bool:
        return self._find(word) is not None

    def __getitem__(self, word: str) -> int:
        """The id of a word; the error for an unknown word names the closest spellings."""
        at = self._find(word)
        if at is None:
            raise unknown_word(word, self.words_, "words of the vocabulary")
        return at

    def encode(self, text: str | list[str]) -> np.ndarray:
        """The ids (n,) int32 of a text's words, or of the words of a list, in order; unknown ones are left out."""
        check_is_fitted(self)
        pieces = rules_of(self.lowercase).split(text)
        ids = np.fromiter(map(self.finder().__getitem__, pieces), np.int32)
        return ids[ids >= 0]

    def finder(self) -> Codes:
        """piece of text ↦ id, below 0 if it is no word of the vocabulary."""
        return column_finder(self.words_.tolist(), rules_of(self.lowercase), Stems(None))

    def _find(self, word: Any) -> int | None:
        check_is_fitted(self)
        if not isinstance(word, str):
            return None
        former, ids = vars(self).get("_ids", (None, {}))
        if former is not self.words_:  # computed at the first look-up after a fit
            ids = {known: at for at, known in enumerate(self.words_.tolist())}
            self._ids = (self.words_, ids)
        return ids.get(word, ids.get(normalize(word, self.lowercase)))


def _rank(word: tuple[str, int]) -> tuple[int, str]:
    return -word[1], word[0]


class UnknownWord(InputError, KeyError):
    """A word without a vector or a number."""

    __str__ = Exception.__str__  # KeyError's would put the message in quotes


def unknown_word(word: Any, words: np.ndarray, noun: str = "words") -> UnknownWord:
    """The error for a word that is not among `words`; it names the closest of the first ones."""
    if not isinstance(word, str):
        return UnknownWord(f"{word!r} is a {type(word).__name__}, not a word. Give a str.")
    near = close_names(word, map(str, words[:MAX_COMPARED_NAMES].tolist()))
    hint = f" Close to it: {', '.join(repr(item) for item in near)}." if near else ""
    return UnknownWord(f"{word!r} is not among the {len(words):,} {noun}.{hint}")
