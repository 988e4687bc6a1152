"""A saved model on new data: codes, labels, filled cells, topics, recommendations, densities.

What a model is applied to follows from the model: rows of a table, documents, images or ratings. What it gives is what
the verb that made it gives; `what` asks for something else that the model can do.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Unpack

import numpy as np
import polars as pl
import scipy.sparse as sp

from twofold.analyses.common.analysis import Column, Data, Reading, analysis
from twofold.analyses.common.answer import FRAMES, Answer, Grid, count
from twofold.analyses.common.documents import as_documents
from twofold.analyses.common.encoding import Encoding
from twofold.analyses.common.tables import append_columns, as_table, keep_columns, warnings_as_notes
from twofold.core.checks import InputError
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing
from twofold.io.tables.roles import CODED, codes_of, decode
from twofold.io.tables.roles import Column as TableColumn
from twofold.io.tables.table import Table, quote_names
from twofold.io.tables.write import COMMAS, Dialect

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WHATS = ("codes", "labels", "filled", "scores")
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".npz")
WORD_MODELS = ("SkipGram", "GloVe", "PMIEmbedding", "WordVectors")
MAX_DECIMALS, MAX_DIGITS = 6, 12  # of known cells that guesses follow, and of guesses beside others
SHOWN = 8  # columns in the printed table


@dataclass(kw_only=True, repr=False, eq=False)
class Application(Answer):
    """What a model says about new data, a row each."""

    what: str
    result: pl.DataFrame
    written: Dialect = COMMAS  # how the new data was written

    endings: ClassVar[tuple[str, ...]] = (*FRAMES, ".png", ".html")

    @property
    def dialect(self) -> Dialect:
        return self.written

    @property
    def heading(self) -> str:
        return f"{self.source}: {count(len(self.result), 'row')}"

    @property
    def outcome(self) -> str:
        return f"{self.what} by {type(self.model).__name__}"

    @cached_property
    def table(self) -> pl.DataFrame:
        return self.result

    def grids(self) -> list[Grid]:
        shown = self.result.columns[:SHOWN]
        numbers = [j for j, name in enumerate(shown) if self.result[name].dtype.is_numeric()]
        rows = [[show_cell(value) for value in row] for row in self.result.select(shown).head(500).iter_rows()]
        rest = f"rows; with -o all are written, and {len(self.result.columns)} columns"
        return [Grid(shown, rows, right=numbers, most=10, rest=rest)]

    def lines(self) -> list[str]:
        out = []
        if "accuracy" in self.figures:
            out.append(
                f"{self.figures['accuracy']:.1%} of the rows with a known label are right; always the commonest label "
                f"gives {self.baseline['accuracy']:.1%}"
            )
        return out

    def facts(self) -> dict[str, Any]:
        return {
            "model": type(self.model).__name__,
            "what": self.what,
            "rows": len(self.result),
            "columns": self.result.columns,
            "result": self.result.head(1000).to_dicts(),
        }

    def plot(self) -> Figure:
        from twofold.plots.reports.apply import application_figure

        return application_figure(self.result, self.title)


class Given(NamedTuple):
    """New data as the model takes it."""

    source: str
    X: Any
    kept: pl.DataFrame  # columns of the input, written before the results
    notes: list[str]
    truth: pl.Series | None = None  # labels, if the data has them
    dialect: Dialect = COMMAS


@analysis()
def apply(
    model: Annotated[Any, Flag(unit="MODEL")],
    data: Data,
    *,
    what: Literal["codes", "labels", "filled", "scores"] | None = None,
    n: Annotated[int, Flag("-n", min=1, unit="N")] = 10,
    text: Column = None,
    progress: Progress | None = None,
    **reading: Unpack[Reading],
) -> Application:
    """Apply a saved model to new rows, documents, images or ratings.

    Parameters
    ----------
    model : path or fitted estimator
        A model file (.twofold), as every verb saves it.
    data : path, list of paths, frame, array or list of texts
        New data of the kind the model was fitted to: a table, documents, images or ratings. Columns are found by name.
    what
        What to compute; scores are log-densities. Default: what the verb that made the model gives.
    n
        Items to recommend to each user.
    text
        Column of texts. Default: the longest.

    Examples
    --------
    >>> from twofold import PCA, datasets
    >>> X = datasets.iris().data
    >>> apply(PCA(2).fit(X[:100]), X[100:]).table.shape
    (50, 2)
    """
    model = model_of(model)
    with doing("reading"):
        given = read_for(model, data, text, reading)
    with doing("applying"), warnings_as_notes(given.notes):
        computed, columns = results(model, given, what, n)
    result = columns if isinstance(columns, pl.DataFrame) else join_results(model, given, computed, columns)
    figures, baseline = measure(columns, given.truth)
    return Application(
        source=given.source,
        model=model,
        figures=figures,
        baseline=baseline,
        notes=given.notes,
        chosen={"what": computed if computed in WHATS else None},
        what=computed,
        result=result,
        written=given.dialect,
    )


def model_of(model: Any) -> Any:
    """The model, read from its file if it is given by a path."""
    if not isinstance(model, (str, os.PathLike)):
        return model
    from twofold.core.checks import ModelFileError
    from twofold.core.files.model_file import load
    from twofold.io.tables.read import missing_message

    if not Path(model).is_file():
        raise ModelFileError(missing_message(os.fspath(model)))
    return load(model)


# --- reading ------------------------------------------------------------------------------------------------


def read_for(model: Any, data: Any, text: str | None, reading: Reading) -> Given:
    """The data as the kind of thing that the model was fitted to."""
    if type(model).__name__ == "Recommender":
        return read_given_ratings(data, reading.get("missing", ()))
    if hasattr(model, "bag_of_words_") or type(model).__name__ in WORD_MODELS:
        return read_texts(data, text)
    if wants_images(model, data):
        return read_images_as_rows(model, data)
    return read_rows(model, as_table(data, find_known_columns(model), **reading))


def find_known_columns(model: Any) -> list[TableColumn]:
    """Return the columns to which the model was fitted."""
    names = dict.fromkeys((str(name) for name in getattr(model, "feature_names_in_", [])), TableColumn("", "number"))
    kept = getattr(model, "schema_", {}).get("columns", [])
    others = {str(name): TableColumn(str(name), role, tuple(levels)) for name, role, levels in kept}
    return [replace(column, name=name) for name, column in (names | others).items()]


def wants_images(model: Any, data: Any) -> bool:
    if hasattr(model, "image_shape_") and not getattr(model, "flat_", False):
        return True
    if hasattr(model, "feature_names_in_") or not isinstance(data, (str, os.PathLike)):
        return False
    path = Path(data)
    if path.is_dir():
        return any(p.suffix.lower() in IMAGES or "idx" in p.name for p in path.rglob("*"))
    return path.suffix.lower() in IMAGES or "idx3" in path.name


def read_rows(model: Any, table: Table) -> Given:
    """The columns of the fit, in their order."""
    if hasattr(model, "encoding_"):
        return read_mixed_rows(model, table)
    X: Any = table.numbers
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    target = getattr(model, "target_name_", None)
    kept = keep_columns(table)
    truth = kept[target] if target in kept.columns else None
    if is_coded(model):
        table.notes[:] = [note for note in table.notes if note not in table.aside]
        X = read_codes(model, names, table)
    elif names and names != table.columns:
        check_columns(model, names, table)
        places = [table.columns.index(name) for name in names]
        X = table.array()[:, places]
    usable = [column.name for column in table.schema if column.role in CODED or column.name in table.columns]
    extra = [name for name in usable if name not in names and name != target]
    if names and extra:
        table.notes.append(f"{quote_names(extra)} not used: the model was fitted without")
        table.notes[:] = [note for note in table.notes if note not in table.aside]
    X = table.array() if isinstance(X, Path) and X.suffix not in (".npy", ".parquet") else X
    if isinstance(X, np.ndarray):
        check_known(model, X, names or table.columns, table.source)
        X = pl.DataFrame(X, schema=names) if names else X
    return Given(table.source, X, kept, table.notes, truth, table.dialect)


def is_coded(model: Any) -> bool:
    """Tell whether the model was fitted to columns of several kinds, categories by their codes."""
    return bool(getattr(model, "schema_", {}).get("coded")) and hasattr(model, "feature_names_in_")


def read_codes(model: Any, names: list[str], table: Table) -> np.ndarray:
    """The columns of the fit as numbers (n,d), with the codes of the fit; values that it has not seen are blank."""
    frame = keep_columns(table)
    if missing := [name for name in names if name not in frame.columns]:
        raise InputError(
            f"{table.source} has no column {quote_names(missing)}, which {type(model).__name__} was fitted to; it has "
            f"{quote_names(frame.columns)}."
        )
    known = {column.name: column for column in find_known_columns(model)}
    X = np.empty((frame.height, len(names)))
    for j, name in enumerate(names):
        series = frame[name]
        try:
            X[:, j] = codes_of(known[name], series)
        except pl.exceptions.PolarsError:
            kind = known[name].role
            raise InputError(
                f'{table.source}, column "{name}" holds {series.dtype}; it was of the kind {kind} in the fit.'
            ) from None
        new = series.filter(series.is_not_null() & pl.Series(np.isnan(X[:, j])))
        if known[name].levels and len(new):
            values = [str(value) for value in new.unique(maintain_order=True).to_list()]
            table.notes.append(f'"{name}": {quote_names(values)} not seen in the fit, taken as blank')
    return X


def read_mixed_rows(model: Any, table: Table) -> Given:
    """Columns of several kinds, encoded as they were for the fit."""
    encoding = Encoding.from_lists(model.encoding_)
    table.notes[:] = [note for note in table.notes if note not in table.aside]
    X = encoding.read(table, getattr(model, "_allow_nan", False))
    names, kept = [str(name) for name in model.feature_names_in_], keep_columns(table)
    target = getattr(model, "target_name_", None)
    if getattr(model, "made_by_", "") == "train":  # to which a blank was average, too
        X = np.nan_to_num(X)
    check_known(model, X, names, table.source)
    truth = kept[target] if target in kept.columns else None
    return Given(table.source, pl.DataFrame(X, schema=names), kept, table.notes, truth, dialect=table.dialect)


def check_columns(model: Any, names: list[str], table: Table) -> None:
    missing = [name for name in names if name not in table.columns]
    if not missing:
        return
    text = [name for name in missing if name in table.others.columns]
    why = f"{quote_names(text)} holds text there" if text else f"it has {quote_names(table.columns)}"
    raise InputError(
        f"{table.source} has no column of numbers {quote_names(missing)}, which {type(model).__name__} was fitted to; "
        f"{why}."
    )


def check_known(model: Any, X: np.ndarray, names: Sequence[str], source: str) -> None:
    """Blanks are named by row and column, with the remedy."""
    if getattr(model, "_allow_nan", False) or not np.isnan(X).any():
        return
    row, column = np.argwhere(np.isnan(X))[0]
    raise InputError(
        f'{source}, row {row + 1}, column "{names[column]}" is blank, which {type(model).__name__} cannot use. Fill '
        "the blanks first, with twofold complete."
    )


def check_width(model: Any, given: Given) -> None:
    wanted: int | None = getattr(model, "n_features_in_", None)
    shape: tuple[int, ...] = getattr(given.X, "shape", ())
    if wanted is not None and len(shape) == 2 and shape[1] != wanted:
        raise InputError(f"{given.source} has {shape[1]} numbers a row; {type(model).__name__} was fitted to {wanted}.")


def read_texts(data: Any, text: str | None) -> Given:
    documents = as_documents(data, text)
    return Given(documents.source, documents.texts, pl.DataFrame([documents.ids]), documents.notes)


def read_images_as_rows(model: Any, data: Any) -> Given:
    if not isinstance(data, (str, os.PathLike)):
        X = np.asarray(data)
        return Given("the images", X, pl.DataFrame([pl.Series("image", np.arange(len(X)))]), [])
    from twofold.io.image_sets import read_pictures

    shape = getattr(model, "image_shape_", None)
    square = shape is not None and shape[0] == shape[1] and Path(data).is_dir()
    found = read_pictures(Path(data), shape[0] if shape is not None and square else None)
    rows = not hasattr(model, "image_shape_") or getattr(model, "flat_", False)
    X = found.pixels.reshape(len(found.pixels), -1) if rows else found.pixels
    truth = None if found.labels is None else pl.Series("known_label", found.labels)
    names = np.arange(len(X)) if found.names is None else found.names
    kept = pl.DataFrame([pl.Series("image", names), *([truth] if truth is not None else [])])
    return Given(found.source, X, kept, found.notes, truth)


def read_given_ratings(data: Any, missing: Sequence[Any]) -> Given:
    from twofold.io.ratings import read_ratings

    ratings = read_ratings(data, missing=missing)
    return Given(ratings.source, ratings, pl.DataFrame(), list(ratings.notes))


def join_results(model: Any, given: Given, computed: str, columns: dict[str, np.ndarray]) -> pl.DataFrame:
    """Every column of the input in its order, then the results; filled columns stand where they stood."""
    if computed != "filled" or not set(columns) <= set(given.kept.columns):
        return append_columns(given.kept, columns)
    known = {column.name: column for column in find_known_columns(model)}
    filled = []
    for name, values in columns.items():
        found, old = known.get(name, TableColumn(name, "number")), given.kept[name]
        if old.dtype.is_float() and not found.levels:
            values = round_like(values, old)
        new = decode(found if is_coded(model) else replace(found, levels=()), values, old.dtype)
        filled.append(old.fill_null(new) if old.null_count() else old)
    return given.kept.with_columns(filled)


def round_like(values: np.ndarray, known: pl.Series) -> np.ndarray:
    """Numbers with as many decimals as the known ones of their column, if these are few."""
    cells = known.drop_nulls().drop_nans().to_numpy()
    decimals = (d for d in range(MAX_DECIMALS) if len(cells) and (np.round(cells, d) == cells).all())
    return np.round(values, next(decimals, MAX_DIGITS))


# --- what the model says ------------------------------------------------------------------------------------


def results(model: Any, given: Given, what: str | None, n: int) -> tuple[str, Any]:
    """Return the name of what is computed, and its columns."""
    kind = type(model).__name__
    if kind == "Recommender":
        return "recommendations", recommendations(model, given.X, n)
    if type(model).__name__ == "LSA" and hasattr(model, "bag_of_words_"):
        return "codes", number_columns(
            "direction", model.transform(model.bag_of_words_.transform(list(given.X))), first=1
        )
    if hasattr(model, "bag_of_words_"):
        from twofold.analyses.topics.models import mixtures_of_texts

        return "topics", number_columns("topic", mixtures_of_texts(model, given.X), first=1)
    if kind in WORD_MODELS:
        return "codes", number_columns("v", document_vectors(model, given))
    check_width(model, given)
    what = what or usual(model)
    found = CAN[what](model, given.X)
    if found is None:
        able = [name for name, function in CAN.items() if name != what and possible(model, name)]
        hint = f"Choose {' or '.join(able)}." if able else "Draw from it with twofold generate."
        raise InputError(f"{kind} gives no {what}. {hint}")
    return what, found


def usual(model: Any) -> str:
    """Choose the result of the verb that made the model, else the usual one of such a model."""
    made_by = {"complete": "filled", "reduce": "codes"}.get(getattr(model, "made_by_", ""))
    if made_by is not None:
        return made_by
    return next((what for what in ("labels", "codes", "filled", "scores") if possible(model, what)), "codes")


def possible(model: Any, what: str) -> bool:
    if what == "labels":
        return hasattr(model, "predict") and not hasattr(model, "complete")
    if what == "filled":
        return (hasattr(model, "complete") or hasattr(model, "impute")) and not hasattr(model, "image_shape_")
    if what == "codes":
        fills = hasattr(model, "complete") and getattr(model, "made_by_", "") != "reduce"
        return hasattr(model, "transform") and not fills
    return hasattr(model, "score_samples") or hasattr(model, "log_likelihood")


def labels(model: Any, X: Any) -> dict[str, Any] | None:
    """The label of every row, blank for outliers, and how sure it is: a probability, or a distance."""
    if not possible(model, "labels"):
        return None
    found = np.asarray(model.predict(X))
    name = "label" if hasattr(model, "classes_") else "cluster"
    if hasattr(model, "predict_proba"):
        return {name: found, "confidence": np.asarray(model.predict_proba(X)).max(axis=1)}
    if hasattr(model, "cluster_centers_"):
        return {name: found, "distance": np.asarray(model.transform(X)).min(axis=1)}
    if type(model).__name__ == "NearestRows":
        outside = pl.Series(found < 0)
        return {name: pl.Series(found).set(outside, None), "distance": np.asarray(model.transform(X)).ravel()}
    return {"value": found}


def codes(model: Any, X: Any) -> dict[str, np.ndarray] | None:
    if not possible(model, "codes"):
        return None
    U = model.transform(X)
    U = np.asarray(U.toarray() if sp.issparse(U) else U)
    names = [f"PC{c + 1}" for c in range(U.shape[1])] if getattr(model, "made_by_", "") == "reduce" else None
    return dict(zip(names, U.T, strict=True)) if names else number_columns("code", U.reshape(len(U), -1), first=1)


def filled(model: Any, X: Any) -> dict[str, np.ndarray] | None:
    """Blanks filled, everything else as it was."""
    if not possible(model, "filled"):
        return None
    fill = model.impute if hasattr(model, "impute") else model.complete
    Y = np.asarray(fill(X))
    if hasattr(model, "column_range_"):
        Y = np.where(np.isnan(np.asarray(X, dtype=np.float64)), np.clip(Y, *model.column_range_), Y)
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    return dict(zip(names, Y.T, strict=True)) if names else number_columns("column_", Y, first=1)


def scores(model: Any, X: Any) -> dict[str, np.ndarray] | None:
    """Log-densities: the lower, the stranger the row."""
    density = next((getattr(model, m) for m in ("score_samples", "log_likelihood") if hasattr(model, m)), None)
    return None if density is None else {"log_density": np.asarray(density(X))}


CAN = {"labels": labels, "codes": codes, "filled": filled, "scores": scores}


def number_columns(name: str, U: np.ndarray, first: int = 0) -> dict[str, np.ndarray]:
    return {f"{name}{c + first}": U[:, c] for c in range(U.shape[1])}


def document_vectors(model: Any, given: Given) -> np.ndarray:
    """A vector a text; zeros where no word is known, which is said."""
    vectors = getattr(model, "vectors_", model) if type(model).__name__ != "WordVectors" else model
    out, unknown = np.zeros((len(given.X), vectors.vectors_.shape[1])), 0
    for i, one in enumerate(given.X):
        try:
            out[i] = vectors.document(one)
        except InputError:
            unknown += 1
    if unknown:
        given.notes.append(f"{count(unknown, 'text')} without a known word: zeros")
    return out


def recommendations(model: Any, ratings: Any, n: int) -> pl.DataFrame:
    """Lists for the users of these ratings, known to the model or not, from these ratings alone."""
    user, item, rating = (ratings.columns[role] for role in ("user", "item", "rating"))
    parts = []
    for own in ratings.frame.partition_by(user, maintain_order=True):
        items = own[item].to_list()
        liked = dict(zip(items, own[rating].to_list(), strict=True)) if rating else items
        lists = model.recommend_new(liked, n)
        parts.append(lists.select(pl.lit(own[user][0]).alias("user"), pl.all()))
    found = pl.concat(parts, how="vertical_relaxed")
    if model.names_ is None:
        return found
    called = dict(zip(model.items_.tolist(), model.names_.tolist(), strict=True))
    names = pl.Series("name", [called[item] or str(item) for item in found["item"].to_list()], dtype=pl.String)
    return found.insert_column(found.get_column_index("item") + 1, names)


def measure(columns: Any, truth: pl.Series | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Compare the share of right labels, where the data has them, with always giving the commonest."""
    if truth is None or not isinstance(columns, dict) or "label" not in columns:
        return {}, {}
    known = truth.is_not_null().to_numpy()
    right = truth.cast(pl.String).to_numpy() == np.asarray(columns["label"]).astype(str)
    most = truth.drop_nulls().value_counts()["count"].to_numpy().max(initial=0)
    figures = {"what": "share of the labels that are right", "rows": int(known.sum())}
    baseline = {"method": "the commonest label", "accuracy": float(most / max(known.sum(), 1))}
    return figures | {"accuracy": float(right[known].mean()) if known.any() else float("nan")}, baseline


def show_cell(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
