"""Readers of documents: texts or lists of words in memory, or the files that `twofold.io.documents` finds."""

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
    """Iterate over the documents in X.

    X is a path (a text file has a document a line, or a paragraph where lines are wrapped; a folder or a pattern such
    as "texts/*.txt" a document a file, in the order of names; a table a document a row), or an iterable of texts or of
    lists of words.
    """
    if is_path(X):
        texts = from_path(os.fspath(X), split=False)
        return iter(texts.texts if isinstance(texts, Documents) else texts)
    if is_dask(X):
        pieces = (piece.compute(scheduler="synchronous") for piece in list_pieces(X))
        return (document for piece in pieces for document in documents(piece))
    if hasattr(X, "columns"):
        raise InputError(f'X is a {type(X).__name__}, a whole table. Give the column that holds the text: X["text"].')
    if getattr(X, "ndim", 1) != 1 or isinstance(X, (dict, bytes)) or not isinstance(X, Iterable):
        shown = f"of shape {X.shape}" if hasattr(X, "shape") else repr(X)[:40]
        raise InputError(
            f"X is a {type(X).__name__} {shown}; documents are a list of texts, a list of lists of words, a column of "
            "text, or the path of a file or folder. Counts go straight to a topic model."
        )
    return (_check_document(document, at) for at, document in enumerate(X))


def _check_document(document: Any, at: int) -> str | list[str]:
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
    """Iterates over the texts of a corpus; a long line of a file comes in parts, so that no file is in memory whole.

    A path means lines, or paragraphs where lines are wrapped, also of the files of a folder: words of different lines
    are no neighbors. `continued` has the positions of the texts read so far that the next one continues.
    """

    def __init__(self, corpus: Any):
        self.corpus, self.read = corpus, 0
        self.continued: set[int] = set()

    @property
    def n_lines(self) -> int:
        return self.read - len(self.continued)

    def __iter__(self) -> Iterator[str | list[str]]:
        self.read, self.continued = 0, set()
        texts = from_path(os.fspath(self.corpus), split=True) if is_path(self.corpus) else self.corpus
        if not isinstance(texts, TextFiles):
            for text in documents(texts.texts if isinstance(texts, Documents) else texts):
                self.read += 1
                yield text
            return
        for text, _, goes_on in texts.parts():
            if goes_on:
                self.continued.add(self.read)
            self.read += 1
            yield text


def is_iterator(X: Any) -> bool:
    """Return whether X can be read only once, like a generator."""
    return not is_path(X) and isinstance(X, Iterator)


def from_path(path: str, split: bool) -> Documents | TextFiles:
    """The documents at a path; a warning names files that are left out."""
    if not (os.path.exists(path.split("::")[0]) or glob.has_magic(path)):
        raise InputError(f"{path[:200]}: no such file or folder. For one document give a list of it: [text].")
    texts = find_documents([path], split=split, stream=True)
    for note in texts.left_out:
        warnings.warn(note, stacklevel=2)
    return texts


def check_words(words: Any, name: str = "vocabulary") -> np.ndarray:
    """Words (V,), each once."""
    array = np.empty(len(words), object)
    array[:] = list(words)
    first: dict[str, int] = {}
    for at, word in enumerate(array):
        if not isinstance(word, str) or not word:
            raise InputError(f"{name}[{at}] is {word!r}, not a word. Give non-empty text.")
        if first.setdefault(word, at) != at:
            raise InputError(f"{name}[{at}] is {word!r}, and so is {name}[{first[word]}]. Give every word once.")
        array[at] = str(word)
    if not len(array):
        raise InputError(f"{name} is empty; give one word at least.")
    return array
