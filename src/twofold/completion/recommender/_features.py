"""What is known of users or items beside their ratings: columns of numbers, categories and text as one sparse matrix.

    numbers      a z-score, and one of ten equal groups       18, 25, 61
    categories   one column a value                           writer
    lists        one column an entry                          Action|Comedy
    text         one column a word, by tf-idf                 The Wizard of Oz

Every column of the frame gives a row of F about the length 1, so none outweighs the others for having many values.
A blank cell gives zeros. Words and values that occur once say nothing of others and are left out.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse

from twofold.completion.ids import as_array, places, plain
from twofold.core.checks import InputError
from twofold.io.tables.columns import BLANKS, to_numbers
from twofold.io.tables.read import find_files, read_one
from twofold.io.tables.table import Piece
from twofold.text.tfidf import Weighing, weigh
from twofold.text.tokenize import pieces

GROUPS = 10  # equal groups of a column of numbers
MAX_WORDS = 1000  # words or values kept of a column, the most frequent
LIST = re.compile(r"[|;]")  # between the entries of a list


class Column(NamedTuple):
    """How one column is encoded: words and their idf, or center, scale and cuts of numbers."""

    name: str
    kind: str  # "number", "category", "list" or "text"
    words: list[str]
    numbers: list[float]  # idf of the words; or center, scale and then the cuts


class Features(NamedTuple):
    """Ids, each once, and what is known of them."""

    ids: np.ndarray  # (m,)
    F: sparse.csr_array  # (m,q)
    names: list[str]  # (q,) what each column of F stands for
    columns: list[Column]


def read_features(source: Any, known: np.ndarray, role: str, id_name: str | None = None) -> Features:
    """Features of users or items (`what`), from a frame or a file, for ids some of which the ratings have (`known`)."""
    frame = _as_frame(source, role)
    key = _find_ids(frame, known, role, id_name)
    blank = int(frame[key].null_count())
    if blank:
        raise InputError(f"{blank} rows of the {role}s' features have no id in column {key!r}. Fill or drop them.")
    ids = as_array(plain(frame[key]))
    if len(np.unique(ids)) < len(ids):
        twice = next(value for value, count in Counter(ids.tolist()).items() if count > 1)
        raise InputError(
            f"{role} {twice!r} occurs more than once in column {key!r} of the {role}s' features. Keep one row of each."
        )
    if not (places(known, ids) >= 0).any():
        raise InputError(
            f"none of the {len(ids):,} ids in column {key!r} of the {role}s' features is among the {role}s of the "
            f"ratings: {ids[0]!r} there, {known[0]!r} here. Name the column of ids {role!r}, as in the ratings."
        )
    as_ids(ids[places(known, ids) < 0], known)
    learned = (_learn_column(frame[name]) for name in frame.columns if name != key)
    columns = [column for column in learned if column is not None]
    if not columns:
        raise InputError(f"the {role}s' features have no column that differs between {role}s beside {key!r}.")
    F, names = encode(frame, columns)
    return Features(ids, F, names, columns)


def encode(frame: pl.DataFrame, columns: list[Column]) -> tuple[sparse.csr_array, list[str]]:
    """(rows,q) the features of new rows, by columns learned before, and their names; a column not there is blank."""
    parts, names = [], []
    for column in columns:
        there = frame[column.name] if column.name in frame.columns else pl.Series([None] * len(frame), dtype=pl.String)
        part, of_part = _encode_numbers(there, column) if column.kind == "number" else _encode_words(there, column)
        parts.append(part)
        names += of_part
    return sparse.csr_array(sparse.hstack(parts, format="csr")), names


def encode_one(source: Any, columns: list[Column], role: str) -> sparse.csr_array:
    """(1,q) the features of one new user or item, from ``{column: value}``."""
    if not isinstance(source, dict):
        raise InputError(f"the features of a new {role} are {type(source).__name__}; give a dict, {{column: value}}.")
    known = [column.name for column in columns]
    strange = [name for name in source if name not in known]
    if strange:
        raise InputError(f"{strange[0]!r} is no feature of the {role}s; these are: {', '.join(map(repr, known))}.")
    return encode(pl.DataFrame({name: [value] for name, value in source.items()}), columns)[0]


def as_ids(new: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """New ids in the type of the known ones."""
    if ids.dtype == object:
        out = np.empty(len(new), object)
        out[:] = [str(item) for item in new]
        return out
    try:
        return new.astype(ids.dtype)
    except ValueError as why:
        raise InputError(
            f"the features have an id that is no number, and the ratings' ids are numbers: {why}. Drop its row."
        ) from None


def _as_frame(source: Any, role: str) -> pl.DataFrame:
    if isinstance(source, pl.DataFrame):
        return source
    if hasattr(source, "to_dict") and hasattr(source, "iloc"):  # pandas
        return pl.DataFrame({str(name): pl.Series(source[name].tolist(), strict=False) for name in source.columns})
    if isinstance(source, dict):
        return pl.DataFrame(source)
    if isinstance(source, str) or hasattr(source, "__fspath__"):
        found = read_one(find_files(os.fspath(source))[0])
        if isinstance(found, Piece):
            return pl.DataFrame([_infer_type(column, role) for column in found.frame])
    raise InputError(f"the {role}s' features are {type(source).__name__}; give a frame, a dict of columns, or a file.")


def _infer_type(column: pl.Series, role: str) -> pl.Series:
    """A column of a text file as numbers if all its cells are numbers."""
    if column.dtype != pl.String:
        return column
    text = column.replace("", None)
    found = text.cast(pl.Float64, strict=False)
    odd = found.is_null() & text.is_not_null()
    if not odd.any():
        return found
    if to_numbers(column, BLANKS, False).kind == "mixed":
        row = int(odd.arg_max() or 0)
        warnings.warn(
            f"column {column.name!r} of the {role}s' features is taken for text and not for numbers: row {row + 1} has "
            f"{text[row]!r}. Correct it or leave it blank if it should be numbers.",
            stacklevel=2,
        )
    return text


def _find_ids(frame: pl.DataFrame, known: np.ndarray, role: str, id_name: str | None) -> str:
    """The column of ids: named as in the ratings, after what it holds, else the one most of whose values occur."""
    low = {name.casefold(): name for name in reversed(frame.columns)}
    for name in (id_name, role, f"{role}_id", f"{role}id", "id"):
        if name is not None and name.casefold() in low:
            return low[name.casefold()]
    shares = {name: float((places(known, as_array(plain(frame[name].drop_nulls()))) >= 0).mean() or 0.0)
              for name in frame.columns if frame[name].n_unique() == len(frame)}  # fmt: skip
    best = max(shares, key=lambda name: shares[name], default=None)
    if best is None or shares[best] == 0:
        raise InputError(
            f"no column of the {role}s' features holds {role}s of the ratings, each once; its columns are "
            f"{', '.join(map(repr, frame.columns))}. Name the column of ids {role!r}."
        )
    return best


def _learn_column(values: pl.Series) -> Column | None:
    """The encoding of a column; None if all its values are equal."""
    if values.dtype.is_temporal():
        values = values.cast(pl.Int64, strict=False)
    if values.dtype.is_numeric() or values.dtype == pl.Boolean:
        x = _as_numbers(values, values.name)
        x = x[np.isfinite(x)]
        if len(np.unique(x)) < 2:
            return None
        with np.errstate(over="ignore"):
            mean, spread = float(x.mean()), float(x.std())
        if not np.isfinite(spread):
            raise InputError(f"column {values.name!r} of the features: its numbers are too large. Scale it.")
        if spread == 0:  # numbers so small that their squares vanish
            return None
        cuts = [] if len(np.unique(x)) == 2 else np.unique(np.quantile(x, np.arange(1, GROUPS) / GROUPS)).tolist()
        return Column(values.name, "number", [], [mean, spread, *cuts])
    texts = [text for text in _as_texts(values) if text]
    kind = "list" if values.dtype == pl.List else _choose_kind(texts)
    counts = Counter(word for text in texts for word in set(_split(text, kind)))
    words = [word for word, count in counts.most_common(MAX_WORDS) if 1 < count < len(values)]
    idf = [1 + float(np.log((1 + len(values)) / (1 + counts[word]))) for word in words]
    return Column(values.name, kind, words, idf) if words else None


def _as_texts(values: pl.Series) -> list:
    """A column as text; a list of entries as these with bars between them."""
    if values.dtype == pl.List:
        return values.cast(pl.List(pl.String)).list.join("|").to_list()
    return values.cast(pl.String, strict=False).to_list()


def _choose_kind(texts: list[str]) -> str:
    if not texts:
        return "category"
    if np.mean([bool(LIST.search(text)) for text in texts]) > 0.1:
        return "list"
    return "text" if len(set(texts)) > len(texts) / 2 or np.mean([len(t.split()) for t in texts]) > 4 else "category"


def _split(text: str, kind: str) -> list[str]:
    if kind == "text":
        return [piece for piece in pieces(text, True) if len(piece) > 1]
    return [part.strip() for part in LIST.split(text)] if kind == "list" else [text]


def _as_numbers(values: pl.Series, name: str) -> np.ndarray:
    found = values.cast(pl.Float64, strict=False)
    bad = values.is_not_null() & found.is_null()
    if bad.any():
        raise InputError(f"column {name!r} of the features holds numbers; {values.filter(bad)[0]!r} is none.")
    return found.to_numpy().astype(np.float64)


def _encode_numbers(values: pl.Series, column: Column) -> tuple[sparse.csr_array, list[str]]:
    values = values.cast(pl.Int64, strict=False) if values.dtype.is_temporal() else values
    x, (center, scale, *cuts) = _as_numbers(values, column.name), column.numbers
    there = np.isfinite(x)
    z = np.where(there, (x - center) / scale, 0.0)[:, None]
    if not cuts:
        return sparse.csr_array(z), [column.name]
    group = np.searchsorted(cuts, np.where(there, x, center), side="right")
    hot = sparse.csr_array((there.astype(float), (np.arange(len(x)), group)), shape=(len(x), len(cuts) + 1))
    edges = ["", *(f"{cut:g}" for cut in cuts), ""]
    names = [f"{column.name} {a}–{b}" for a, b in pairwise(edges)]
    return sparse.csr_array(sparse.hstack([z / 2, hot])), [column.name, *names]


def _encode_words(values: pl.Series, column: Column) -> tuple[sparse.csr_array, list[str]]:
    place = {word: a for a, word in enumerate(column.words)}
    rows, cols = [], []
    for i, text in enumerate(_as_texts(values)):
        at = [place[word] for word in _split(text, column.kind) if word in place] if text else []
        rows += [i] * len(at)
        cols += at
    counts = sparse.csr_array((np.ones(len(rows)), (rows, cols)), shape=(len(values), len(place)))
    names = [f"{column.name}: {word}" for word in column.words]
    return weigh(counts, Weighing("tfidf", np.array(column.numbers))), names
