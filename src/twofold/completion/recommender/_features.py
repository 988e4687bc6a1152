"""What is known of users or items beside their ratings: columns of numbers, categories and text as one sparse matrix.

    numbers      a z-score, and one of ten equal groups       18, 25, 61
    categories   one column a value                           writer
    lists        one column an entry                          Action|Comedy
    text         one column a word, by tf-idf                 The Wizard of Oz

Every column of the frame gives a row of F about the length 1, so none outweighs the others for having many values.
A blank cell gives zeros. Words and values that occur once say nothing of others and are left out.

Scores of items without ratings, and of users without ratings: a model's own scores, regressed on features.

    S (m,d) scores of d known lines    F (d,q) their features, less their means
    ŝ = s̄ + (S − s̄) F (FᵀF + λI)⁻¹ f                          f (q,) the features of a new line

For an item, S are what a model says about the known items, one row a user: the regression is linear in S, so for a
model of factors it is the item's factors that are regressed on features, and for EASE its column of weights. For a user
the sides are exchanged. With the ratings themselves in place of a model's scores it is the pure content model.
λ has the least error when each known line is left out once, which the eigenvectors of FᵀF give for all λ at once:

    left out error = (s − ŝ) / (1 − f_jᵀ (FᵀF + λI)⁻¹ f_j − 1/d)

Beyond the MAX_DIRECTIONS directions a in which features vary most, all have their mean eigenvalue c, so that what is
kept and what a list costs grow with the features' stored cells:

    (FᵀF + λI)⁻¹  ≈  I/(c + λ)  +  Σ_a (1/(v_a + λ) − 1/(c + λ)) a aᵀ
References: Gantner et al. 2010 (factors from attributes); Golub, Heath & Wahba 1979 (leaving one out).
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
from scipy.linalg import eigh

from twofold.completion.ids import as_array, places, plain
from twofold.core.checks import InputError
from twofold.io.tables.columns import BLANKS, to_numbers
from twofold.io.tables.read import find_files, read_one
from twofold.io.tables.table import Piece
from twofold.text.tfidf import Weighing, weigh
from twofold.text.tokenize import pieces

GROUPS = 10  # equal groups of a column of numbers
MAX_WORDS = 1000  # words or values kept of a column, the most frequent
LAMBDAS = 10.0 ** np.arange(-1.0, 4.5, 0.5)
MAX_DIRECTIONS = 512  # of the features, those of the largest variance
SAMPLE = 500  # rows of scores that choose λ
CHUNK = 2**22  # scores at a time
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


# ---- scores, regressed on features -----------------------------------------------------------------------------------


class Content(NamedTuple):
    """The known lines' features, directions of these, and how much each counts."""

    mean: np.ndarray  # (q,)
    axes: np.ndarray  # (q,r) eigenvectors of FᵀF with the largest eigenvalues
    held: np.ndarray  # (r,) its eigenvalues plus λ
    rest: float  # 1 / (mean of the other eigenvalues plus λ), 0 if there are none
    F: sparse.csr_array  # (d,q) of the known lines
    explained: float  # share of the squared scores of a line left out that is explained


def learn_content(F: sparse.csr_array, S: np.ndarray) -> Content:
    """From the features of the known lines (d,q) and some rows of scores (m,d)."""
    d, q = F.shape
    mean = np.asarray(F.mean(axis=0)).ravel()
    G = (F.T @ F).toarray() - d * np.outer(mean, mean)
    total = float(np.trace(G))
    values, axes = eigh(G, subset_by_index=(max(0, q - MAX_DIRECTIONS), q - 1), overwrite_a=True)
    others = max(total - float(values.sum()), 0.0) / (q - len(values)) if q > len(values) else None
    keep = values > 1e-9 * max(values[-1], 1e-300)
    values, axes = values[keep], np.ascontiguousarray(axes[:, keep])
    R = np.asarray(S[:: max(1, len(S) // SAMPLE)], dtype=np.float64)
    R = R - R.mean(axis=1, keepdims=True)
    squares = (F @ axes - mean @ axes) ** 2
    length = np.asarray(F.multiply(F).sum(axis=1)).ravel() - 2 * (F @ mean) + mean @ mean
    found = []
    for lam in LAMBDAS:
        content = Content(mean, axes, values + lam, 0.0 if others is None else 1 / (others + lam), F, 0.0)
        free = 1 - length * content.rest - squares @ (1 / content.held - content.rest) - 1 / d
        gaps = R - score_new(content, make_profiles(content, R)[0], np.zeros(len(R)), F)
        found.append((float(((gaps / np.maximum(free, 1e-6)) ** 2).mean()), content))
    error, best = min(found, key=lambda pair: pair[0])
    plain = max(float((R**2).mean()), 1e-300)
    return best._replace(explained=max(0.0, 1 - error / plain))


def make_profiles(content: Content, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(m,q) what each feature adds to a score, and (m,) the mean score, for rows of scores (m,d) of the known lines."""
    middle = S.mean(axis=1)
    along = (content.F.T @ (S - middle[:, None]).T).T
    factors = (1 / content.held - content.rest).astype(along.dtype)
    return along.dtype.type(content.rest) * along + ((along @ content.axes) * factors) @ content.axes.T, middle


def score_new(content: Content, profiles: np.ndarray, middle: np.ndarray, F: sparse.csr_array) -> np.ndarray:
    """(m,new) scores of lines with features F (new,q)."""
    return middle[:, None] + (F @ profiles.T).T - (profiles @ content.mean)[:, None]


# ---- beside a model -----------------------------------------------------------------------------------------------


def learn_items(features: Features, model: Any, seen: sparse.csr_array, ids: np.ndarray) -> dict:
    """Fit the regression on the items' features; keep it, and the features of items that `seen` does not have."""
    at = places(ids, features.ids)
    there = at >= 0
    rows = np.arange(0, seen.shape[0], max(1, seen.shape[0] // SAMPLE))
    content = learn_content(features.F[there], _score(model, seen, rows)[:, at[there]])
    return {**_describe(features, content), **_keep_new(features, ~there, ids), "F": content.F, "at": at[there]}


def learn_users(features: Features, model: Any, seen: sparse.csr_array, ids: np.ndarray) -> dict:
    """Fit the regression on the users' features; keep what each direction adds to every item's score, and the mean.

    Other directions are left out: what they add would be as many numbers as there are features times items.
    """
    at = places(ids, features.ids)
    there = np.flatnonzero(at >= 0)
    some = np.arange(0, seen.shape[1], max(1, seen.shape[1] // SAMPLE))
    step = max(1, CHUNK // seen.shape[1])
    blocks = [there[a : a + step] for a in range(0, len(there), step)]
    content = learn_content(features.F[there], np.concatenate([_score(model, seen, at[b])[:, some] for b in blocks]).T)
    total, along = np.zeros(seen.shape[1]), np.zeros((content.axes.shape[1], seen.shape[1]))
    for b in blocks:
        S = _score(model, seen, at[b])
        total += S.sum(axis=0)
        known = features.F[b] @ content.axes - content.mean @ content.axes
        along += known.T @ S  # the known lines are centered, so the mean scores add nothing
    kept = {"added": along / content.held[:, None], "middle": total / len(there)}
    return {**_describe(features, content), **_keep_new(features, at < 0, ids), **kept}


def _keep_new(features: Features, new: np.ndarray, ids: np.ndarray) -> dict:
    return {"ids": as_ids(features.ids[new], ids), "new": features.F[new]}


def _describe(features: Features, content: Content) -> dict:
    columns = [[c.name, c.kind, c.words, c.numbers] for c in features.columns]
    kept = {"mean": content.mean, "axes": content.axes, "held": content.held, "rest": content.rest}
    return {**kept, "explained": content.explained, "names": features.names, "columns": columns}


def get_content(kept: dict) -> Content:
    """The regression, from what was kept of it."""
    return Content(kept["mean"], kept["axes"], kept["held"], kept["rest"], kept["F"], kept["explained"])


def get_columns(kept: dict) -> list[Column]:
    """The encoding of features, from what was kept of it."""
    return [Column(*column) for column in kept["columns"]]


def score_users(kept: dict, f: sparse.csr_array) -> np.ndarray:
    """(m,d) the scores of all known items for users with features f (m,q)."""
    return kept["middle"] + (f @ kept["axes"] - kept["mean"] @ kept["axes"]) @ kept["added"]


def score_items(kept: dict, S: np.ndarray) -> np.ndarray:
    """(m,new) scores of the new items for rows of scores (m,d) of all known ones."""
    content = get_content(kept)
    return score_new(content, *make_profiles(content, S[:, kept["at"]]), kept["new"])


def split_features(kept: dict, scores: np.ndarray, new: int) -> np.ndarray:
    """(q,) what each feature adds to a new item's score, for the scores (d,) of the known ones."""
    profile, _ = make_profiles(get_content(kept), scores[None, kept["at"]].astype(np.float64))
    return profile[0] * (kept["new"][[new]].toarray()[0] - kept["mean"])


def _score(model: Any, seen: sparse.csr_array, rows: np.ndarray) -> np.ndarray:
    return model.make_scorer(seen).score_fully(rows).astype(np.float64)
