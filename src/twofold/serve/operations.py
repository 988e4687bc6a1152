"""What a fitted model can be asked, found from its class: each operation with its fields, an example, and its answers.

    rows        transform, predict, predict_proba, score_samples, inverse_transform, fold_in      (m,d) → (m,...)
    texts       transform of a model that reads text
    words       nearest, similarity, analogy, document                 of word vectors
    users       recommend, recommend_new, predict, similar_items, similar_users, explain          of a recommender

Fields of methods and what they mean come from their signatures and docstrings. Requests of one operation with equal
options are answered together: rows are stacked, users are ranked in one pass.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic import Field as Limits

from twofold.completion.recommender.recommender import Recommender
from twofold.core.checks import InputError
from twofold.core.declaration import read_meanings
from twofold.web.requests import Refused
from twofold.words.word_vectors.word_vectors import WordVectors

ROW_METHODS = ("transform", "predict", "predict_proba", "score_samples", "inverse_transform", "fold_in")
MAX_LISTED = 1_000  # items of one list, users of one request
MAX_ROWS = 100_000  # of one request
Id = int | float | str
TYPES: dict[str, Any] = {
    "user": Id, "item": Id, "users": Id | list[Id], "items": list[Id] | None, "exclude": list[Id], "n": int,
    "filter_seen": bool, "features": dict[str, Any] | list[dict[str, Any]] | None,
    "ratings": dict[str, float] | list[Id] | list[dict[str, float]] | None,
    "query": str | list[str], "a": str, "b": str, "c": str, "text": str | list[str], "method": str,
}  # fmt: skip


@dataclass
class Operation:
    """One thing that a model can be asked."""

    name: str
    about: str
    fields: type[BaseModel]
    answer: Callable[[Any, list[dict[str, Any]]], list[Any]]  # of the model and some requests with equal options
    example: dict[str, Any] = field(default_factory=dict)
    by_rows: bool = False  # takes arrays in bulk, too
    merged: str | None = None  # the field in which requests that are answered together differ; None: none are

    def read(self, body: bytes) -> dict[str, Any]:
        """Check the body of a request; the answer to a wrong one names the field."""
        try:
            return dict(self.fields.model_validate_json(body or b"{}"))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"][:1])
            raise Refused(422, f"{where}: {first['msg']}." if where else f"The request: {first['msg']}.") from None


def find_operations(model: Any) -> dict[str, Operation]:
    """The operations of a fitted model, by name."""
    if isinstance(model, Recommender):
        found = list_recommender_operations(model)
    else:
        vectors = model if isinstance(model, WordVectors) else getattr(model, "vectors_", None)
        found = list_word_operations(vectors) if isinstance(vectors, WordVectors) else list_row_operations(model)
    if not found:
        raise InputError(f"a {type(model).__name__} has nothing that could be asked over HTTP. Serve another model.")
    return {one.name: one for one in found}


# --- rows ---------------------------------------------------------------------------------------------------


def list_row_operations(model: Any) -> list[Operation]:
    """Methods that take rows, or texts, and give a value or more for each."""
    found = []
    for name in ROW_METHODS:
        method = getattr(model, name, None)
        if not callable(method) or (name == "fold_in" and hasattr(model, "transform")):
            continue
        example = make_rows(model, name)
        if example is None:
            continue
        fields = make_row_fields(type(model).__name__, name, {"rows": example}, model._takes_text)
        one = Operation(name, summarize(method), fields, partial(run_rows, name), {"rows": example})
        one.by_rows, one.merged = not model._takes_text, "rows"
        try:
            one.answer(model, [one.example])
        except (InputError, TypeError, ValueError, AttributeError, NotImplementedError):
            continue  # it is not for rows of this kind
        found.append(one)
    return found


def make_row_fields(kind: str, name: str, example: dict[str, Any], takes_text: bool) -> type[BaseModel]:
    """Fields of a request of rows: numbers, null for what is missing, or texts."""
    row: Any = str if takes_text else list[Any]
    meaning = "Texts, one a document." if takes_text else "Rows of numbers; null is a missing one."
    rows: Any = (list[row], Limits(description=meaning, min_length=1, max_length=MAX_ROWS))
    config = ConfigDict(extra="forbid", json_schema_extra={"examples": [example]})
    return create_model(f"{kind}_{name}", __config__=config, rows=rows)


def make_rows(model: Any, name: str) -> list[Any] | None:
    """An example of rows that a method takes, of plausible values; None if their shape is not known."""
    if model._takes_text:
        return ["one short text", "another text"]
    if name == "inverse_transform":
        if not hasattr(model, "get_feature_names_out"):
            return None
        return [[0.0] * len(model.get_feature_names_out())]
    shape = getattr(model, "image_shape_", None) if not getattr(model, "flat_", True) else None
    if shape is None and not hasattr(model, "n_features_in_"):
        return None
    mean = getattr(model, "mean_", None)
    if shape is None and isinstance(mean, np.ndarray) and mean.shape == (model.n_features_in_,):
        return [[float(f"{value:.4g}") for value in mean]]
    value = 0.5 if not model._allow_negative else 0.0
    return np.full((1, *(shape or (model.n_features_in_,))), value).tolist()


def run_rows(name: str, model: Any, asked: list[dict[str, Any]]) -> list[Any]:
    """One call for the rows of all requests; the results, cut apart again."""
    parts = [one["rows"] if isinstance(one["rows"], np.ndarray) else as_rows(one["rows"], model) for one in asked]
    if model._takes_text:
        rows: Any = [text for part in parts for text in part]
    else:
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = getattr(model, name)(rows)
    result = result.toarray() if hasattr(result, "toarray") else np.asarray(result)
    ends = np.cumsum([len(part) for part in parts])[:-1]
    return np.split(result, ends) if len(parts) > 1 else [result]


def as_rows(rows: list[Any], model: Any) -> Any:
    """Rows of JSON as an array in the model's own precision; None is NaN."""
    if model._takes_text:
        return rows
    try:
        array = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        widths = {len(row) for row in rows}
        reason = f"rows have {min(widths)} to {max(widths)} entries" if len(widths) > 1 else "an entry is no number"
        raise Refused(422, f"rows: {reason}. Give rows of equally many numbers.") from None
    return check_shape(array)


def check_shape(array: np.ndarray) -> np.ndarray:
    """The array; Refused if it has no shape of rows, before it is stacked with those of others."""
    if array.dtype.kind not in "biuf":
        raise Refused(422, f"rows: an array of {array.dtype} came. Give numbers.")
    if array.ndim < 2 or not array.size:
        raise Refused(422, f"rows: an array of shape {array.shape} came. Give rows of numbers.")
    return array


# --- words --------------------------------------------------------------------------------------------------


def list_word_operations(vectors: WordVectors) -> list[Operation]:
    """Questions about words."""
    first, second, third = (3 * list(vectors.words[:3]))[:3]
    examples: dict[str, dict[str, Any]] = {
        "nearest": {"query": first, "n": 5},
        "similarity": {"a": first, "b": second},
        "analogy": {"a": first, "b": second, "c": third, "n": 3},
        "document": {"text": f"{first} {second}"},
    }

    def ask(name: str) -> Callable[[Any, list[dict[str, Any]]], list[Any]]:
        def answer(model: Any, asked: list[dict[str, Any]]) -> list[Any]:
            vectors = model if isinstance(model, WordVectors) else model.vectors_
            return [call(getattr(vectors, name), one) for one in asked]

        return answer

    return [make_operation(WordVectors, name, ask(name), example) for name, example in examples.items()]


# --- users --------------------------------------------------------------------------------------------------


def list_recommender_operations(rec: Recommender) -> list[Operation]:
    """Lists, ratings and likenesses by id."""
    user, item = rec.users_[0], rec.items_[0]
    user, item = (one.item() if isinstance(one, np.generic) else one for one in (user, item))
    examples: dict[str, dict[str, Any]] = {
        "recommend": {"users": user, "n": 10},
        "recommend_new": {"ratings": [item] if rec.implicit_ else {str(item): float(rec.range_[1])}, "n": 10},
        "similar_items": {"item": item, "n": 10},
        "similar_users": {"user": user, "n": 10},
        "explain": {"user": user, "item": item, "n": 5},
        "predict": {"users": [user], "items": [item]},
    }

    def ask(name: str) -> Callable[[Any, list[dict[str, Any]]], list[Any]]:
        return lambda model, asked: [call(getattr(model, name), one) for one in asked]

    found = []
    for name, example in examples.items():
        one = make_operation(Recommender, name, recommend_together if name == "recommend" else ask(name), example)
        try:
            one.answer(rec, [dict(one.fields.model_validate(example))])
        except InputError:
            continue  # this recommender cannot, as those made for serving cannot predict ratings of counts
        found.append(one)
    found[0].merged = "users"
    return found


def recommend_together(rec: Any, asked: list[dict[str, Any]]) -> list[Any]:
    """The lists of the users of all requests, whose options are equal, in one pass."""
    maker, given = (
        rec._list_maker,
        [one["users"] if isinstance(one["users"], list) else [one["users"]] for one in asked],
    )
    users = [user for part in given for user in part]
    rows, new = maker.find_users(users)
    known = (rows >= 0) | (new >= 0)
    options = {name: value for name, value in asked[0].items() if name != "users"}
    choice = maker.choose(*(options[name] for name in ("n", "exclude", "items", "filter_seen")))
    frame = maker.list_users([user for user, there in zip(users, known, strict=True) if there], choice, by_place=True)
    lists: list[list[Any]] = [[] for _ in range(int(known.sum()))]
    for user, *values in frame.iter_rows():
        lists[user].append(dict(zip(frame.columns[1:], values, strict=True)))
    out: list[Any] = []
    start, filled = 0, iter(lists)
    for one, part in zip(asked, given, strict=True):
        there = known[start : start + len(part)]
        start += len(part)
        answers = [{"user": user, "items": next(filled)} for user, found in zip(part, there, strict=True) if found]
        if there.all():
            out.append(answers if isinstance(one["users"], list) else answers[0])
        else:
            out.append(explain_unknown(rec, part[int(np.argmin(there))]))
    return out


def explain_unknown(rec: Any, user: Any) -> Refused:
    """The refusal of a user that the ratings do not have."""
    try:
        rec.recommend(user, 1)
    except InputError as error:
        return Refused(422, str(error))
    return Refused(422, f"user {user!r} is unknown.")


# --- both ---------------------------------------------------------------------------------------------------


def make_operation(
    owner: type, name: str, answer: Callable[[Any, list[dict[str, Any]]], list[Any]], example: dict[str, Any]
) -> Operation:
    """An operation whose fields are the parameters of a method."""
    method = getattr(owner, name)
    meanings = read_meanings(method)
    fields: dict[str, Any] = {}
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        kind, required = TYPES[parameter.name], parameter.default is inspect.Parameter.empty
        limits: dict[str, Any] = {"description": meanings.get(parameter.name)}
        if parameter.name == "n":
            limits |= {"ge": 1, "le": MAX_LISTED}
        elif name == "predict":
            kind, limits = list[Id], limits | {"max_length": MAX_ROWS}
        elif parameter.name == "users":
            kind = Id | list[Id]
        default = ... if required else list(parameter.default) if parameter.default == () else parameter.default
        fields[parameter.name] = (kind, Limits(default, **limits))
    config = ConfigDict(extra="forbid", json_schema_extra={"examples": [example]})
    made: Any = create_model(f"{owner.__name__}_{name}", __config__=config, **fields)
    return Operation(name, summarize(method), made, answer, example)


def call(method: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Call a method of ids; ids that are keys of JSON, and so text, become numbers where ids are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of unknown items, which the answer leaves out
        result = method(**options)
    return result.to_dicts() if hasattr(result, "to_dicts") else as_plain(result)


def as_plain(value: Any) -> Any:
    """A value as JSON has it: lists, and null for what is not finite."""
    if isinstance(value, np.ndarray):
        finite = value.dtype.kind != "f" or bool(np.isfinite(value).all())
        return value.tolist() if finite else as_plain(value.tolist())
    if isinstance(value, np.generic):
        return as_plain(value.item())
    if isinstance(value, (list, tuple)):
        return [as_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def summarize(method: Any) -> str:
    """The first sentence of a docstring."""
    return " ".join((inspect.getdoc(method) or method.__name__).split("\n\n")[0].split())
