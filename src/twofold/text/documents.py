"""Where documents come from: texts in memory, the lines of a file, the files of a folder.

A document is a text, or a list of its words. Files are read one document at a time, plain or gzipped, as UTF-8;
what is not UTF-8 is taken for Windows-1252, as most old text is.
"""

from __future__ import annotations

import glob
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from twofold.core.checks import InputError
from twofold.core.data.blocks import is_path


def documents(X: Any) -> Iterator[str | list[str]]:
    """The documents in X, one after the other.

    X is a path (a text file has a document a line, empty lines included; in a folder or among the files of a
    pattern such as "texts/*.txt" each file is one, in the order of their names), or something to iterate over:
    texts, or lists of words.
    """
    if is_path(X):
        return _from_path(os.fspath(X))
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


def is_once(X: Any) -> bool:
    """Whether X can be gone through only once, like a generator."""
    return not is_path(X) and isinstance(X, Iterator)


# ---- files -----------------------------------------------------------------------------------------------------


def _from_path(path: str) -> Iterator[str]:
    if os.path.isdir(path):
        found = [p for p in Path(path).rglob("*") if not any(part[0] == "." for part in p.relative_to(path).parts)]
    elif os.path.exists(path):
        return _lines(path)
    elif glob.has_magic(path):
        found = [Path(p) for p in glob.glob(path, recursive=True)]
    else:
        raise InputError(f"{path[:200]}: no such file or folder. For one document give a list of it: [text].")
    files = sorted((p.as_posix() for p in found if p.is_file()), key=lambda name: name.split("/"))
    if not files:
        raise InputError(f"{path}: there are no files in it.")
    return (_whole(name) for name in files)


def open_text(path: str) -> Any:
    return gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb")


def _lines(path: str) -> Iterator[str]:
    number = 0
    try:
        with open_text(path) as file:
            for number, line in enumerate(file, 1):
                yield decoded(line.rstrip(b"\r\n"), f"{path}, line {number}", first=number == 1)
    except (OSError, EOFError, zlib.error) as why:
        raise InputError(f"{path} cannot be read beyond line {number} ({why}).") from None


def _whole(path: str) -> str:
    try:
        with open_text(path) as file:
            return decoded(file.read(), path, first=True)
    except (OSError, EOFError, zlib.error) as why:
        raise InputError(f"{path} cannot be read ({why}).") from None


def decoded(raw: bytes, where: str, first: bool) -> str:
    if b"\0" in raw:
        raise InputError(
            f"{where} is not plain text: it has NUL bytes in it. Save it as UTF-8 text, or leave it out by a pattern "
            'such as "folder/*.txt".'
        )
    if first:
        raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace")


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
