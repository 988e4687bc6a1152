"""Where documents come from: texts or lists of words in memory, or whatever `twofold.io.documents` finds at a path."""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from twofold.core.checks import InputError
from twofold.core.data.blocks import is_dask, is_path
from twofold.core.engine.tasks import list_pieces
from twofold.io.documents import Documents, TextFiles, find_documents


def documents(X: Any) -> Iterator[str | list[str]]:
    """The documents in X, one after the other.

    X is a path (a text file has a document a line, or a paragraph where lines are wrapped; in a folder or among the
    files of a pattern such as "texts/*.txt" each file is one, in the order of their names; a table has one a row), or
    something to iterate over: texts, or lists of words.
    """
    if is_path(X):
        found = from_path(os.fspath(X), split=False)
        return iter(found.texts if isinstance(found, Documents) else found)
    if is_dask(X):
        pieces = (piece.compute(scheduler="synchronous") for piece in list_pieces(X))
        return (document for piece in pieces for document in documents(piece))
    if hasattr(X, "columns"):
        raise InputError(f'X is a {type(X).__name__}, a whole table. Give the column that holds the text: X["text"].')
    if getattr(X, "ndim", 1) != 1 or isinstance(X, (dict, bytes)) or not isinstance(X, Iterable):
        what = f"of shape {X.shape}" if hasattr(X, "shape") else repr(X)[:40]
        raise InputError(
            f"X is a {type(X).__name__} {what}; documents are a list of texts, a list of lists of words, a column of "
            "text, or the path of a file or folder. Counts go straight to a topic model."
        )
    return (_checked(document, at) for at, document in enumerate(X))


def _checked(document: Any, at: int) -> str | list[str]:
    if isinstance(document, str):
        return document
    if hasattr(document, "to_list") or hasattr(document, "tolist"):  # a Series or an array of words
        document = document.to_list() if hasattr(document, "to_list") else document.tolist()
    if not isinstance(document, (list, tuple)):
        remedy = "Decode it first." if isinstance(document, bytes) else "Drop it, or put an empty text there."
        raise InputError(f"document {at} is {str(document)[:40]!r} ({type(document).__name__}), not text. {remedy}")
    for place, word in enumerate(document):
        if not isinstance(word, str):
            raise InputError(
                f"word {place} of document {at} is {word!r} ({type(word).__name__}), not text. Give texts or "
                "lists of words; counts go straight to a topic model."
            )
    return list(document)


class Texts:
    """Iterates over the texts of a corpus; a line of a file that is longer than a piece comes as several.

    A path means lines, or paragraphs where lines are wrapped, also of the files of a folder: words of different ones
    are no neighbors. `continued` has the positions of the texts that go on in the next one, so far as they were read.
    """

    def __init__(self, corpus: Any):
        self.corpus, self.read = corpus, 0
        self.continued: set[int] = set()

    @property
    def n_lines(self) -> int:
        return self.read - len(self.continued)

    def __iter__(self) -> Iterator[str | list[str]]:
        self.read, self.continued = 0, set()
        found = from_path(os.fspath(self.corpus), split=True) if is_path(self.corpus) else self.corpus
        if not isinstance(found, TextFiles):
            for text in documents(found.texts if isinstance(found, Documents) else found):
                self.read += 1
                yield text
            return
        for text, _, goes_on in found.parts():
            if goes_on:
                self.continued.add(self.read)
            self.read += 1
            yield text


def is_once(X: Any) -> bool:
    """Whether X can be gone through only once, like a generator."""
    return not is_path(X) and isinstance(X, Iterator)


def from_path(path: str, split: bool) -> Documents | TextFiles:
    """The documents at a path; what is left out is said in a warning."""
    if not (os.path.exists(path.split("::")[0]) or glob.has_magic(path)):
        raise InputError(f"{path[:200]}: no such file or folder. For one document give a list of it: [text].")
    found = find_documents([path], split=split, stream=True)
    for note in found.left_out:
        warnings.warn(note, stacklevel=2)
    return found


def as_words(words: Any) -> np.ndarray:
    """A given vocabulary as an array of distinct words."""
    found = np.array(list(words), dtype=object)
    for at, word in enumerate(found):
        if not isinstance(word, str) or not word:
            raise InputError(f"vocabulary[{at}] is {word!r}, not a word.")
    distinct, places = np.unique(found.astype(str), return_index=True)
    if len(distinct) != len(found):
        at = int(np.setdiff1d(np.arange(len(found)), places)[0])
        raise InputError(f"vocabulary[{at}] is {found[at]!r}, which is there already. Give every word once.")
    if not len(found):
        raise InputError("vocabulary is empty; give the words to count, or None to learn them.")
    return found
