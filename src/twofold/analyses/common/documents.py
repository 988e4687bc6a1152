"""Documents from whatever holds them: paths, a frame, or the texts themselves."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

from twofold.core.checks import InputError
from twofold.io.documents import Documents, from_pieces, read_documents
from twofold.io.tables.table import Piece

MAX_PATH_LETTERS = 1000


def as_documents(data: Any, text: str | None = None, date: str | None = None, title: str | None = None) -> Documents:
    """Read documents into memory; `text`, `date` and `title` name columns of tables."""
    paths = as_paths(data)
    if paths is not None:
        return read_documents(paths, text, date, title)
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
        data = pl.from_pandas(data)
    given = {"text": text, "date": date, "title": title}
    if isinstance(data, pl.DataFrame):
        return from_pieces([Piece(data, "the table")], "the table", given, [])
    for option, column in given.items():
        if column is not None:
            raise InputError(f"⟨{option}={column}⟩: the documents are texts without columns. Omit it, or give a frame.")
    if not isinstance(data, Iterable) or sparse.issparse(data):
        raise InputError(f"the documents are a {type(data).__name__}. Give texts; a model of topics takes counts.")
    texts = ["" if one is None else one for one in data]
    wrong = next((i for i, one in enumerate(texts) if not isinstance(one, str)), None)
    if wrong is not None:
        kind = type(texts[wrong]).__name__
        raise InputError(f"document {wrong} is a {kind}, not text. Give texts, or paths of files.")
    return Documents(texts, pl.Series("row", np.arange(1, len(texts) + 1)), source="the documents")


def as_paths(data: Any) -> list[str] | None:
    """Return the paths that data is, or None if it is texts or a table.

    One string is a path. Of a list of strings, those that name files are paths, and those without a space, too: the
    first that does not exist is then named in the error.
    """
    if isinstance(data, (str, os.PathLike)):
        return [os.fspath(data)]
    if not isinstance(data, (list, tuple)) or not all(isinstance(one, (str, os.PathLike)) for one in data):
        return None
    given = [os.fspath(one) for one in data]
    if len(given) == 1 and (len(given[0]) > MAX_PATH_LETTERS or "\n" in given[0]):
        return None
    if len(given) == 1 or not any(" " in one or "\n" in one for one in given) or any(map(is_there, given)):
        return given
    return None


def is_there(path: str) -> bool:
    """Return True for a file, a folder, or a pattern of files."""
    if len(path) > MAX_PATH_LETTERS or "\n" in path or "\0" in path:
        return False
    if glob.has_magic(path):
        return any(True for _ in glob.iglob(path, recursive=True))
    return path == "-" or os.path.exists(path.partition("::")[0])
