"""The declaration of an analysis: its function's signature and docstring, and nothing else.

    @analysis(streams=True)
    def cluster(data: Data, n_clusters: Annotated[int | None, Flag("-k", min=1)] = None, ...)

The decorator checks arguments by what `twofold.core.declaration` reads of them, says in the answer which call gives it
again, and completes the docstring with the parameters that all analyses share. The command line, the lab and the
reference read the same declaration.
"""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypedDict, TypeVar, get_args, get_type_hints

import numpy as np

from twofold.core.declaration import Flag, check_arguments, read_meanings, read_parameters
from twofold.core.progress import report_to
from twofold.core.spelling import did_you_mean, spell_parameters

if TYPE_CHECKING:
    from twofold.analyses.common.answer import Answer

Data = Annotated[Any, Flag(unit="INPUT", many=True)]  # a path or several, or what holds the data
OneFile = Annotated[Any, Flag(unit="INPUT")]  # a path, or what holds the data
Seed = Annotated[int, Flag(min=0, unit="N")]
Column = Annotated[str | None, Flag(unit="COLUMN")]
Count = Annotated[int | None, Flag(min=1, unit="N")]
File = Annotated[str | os.PathLike | None, Flag(unit="FILE")]

Options = ParamSpec("Options")
Found = TypeVar("Found", bound="Answer")


class Reading(TypedDict, total=False):
    """How a table is read.

    Parameters
    ----------
    missing
        Text or number that means a missing value; repeatable.
    drop
        Column that is not used; repeatable.
    columns
        Column to use, and no other but those named so; repeatable.
    id
        Column that names rows or things, and is never fitted; repeatable.
    category
        Column of categories, though its cells are numbers or seldom repeat; repeatable.
    number
        Column of numbers, though it looks like an identifier; repeatable.
    """

    missing: Annotated[Sequence[Any], Flag("--missing", "--na", unit="VALUE")]
    drop: Annotated[Sequence[str], Flag(unit="COLUMN")]
    columns: Annotated[Sequence[str], Flag(unit="COLUMN")]
    id: Annotated[Sequence[str], Flag(unit="COLUMN")]
    category: Annotated[Sequence[str], Flag(unit="COLUMN")]
    number: Annotated[Sequence[str], Flag(unit="COLUMN")]


SHARED = {
    "seed": "Seed of all random numbers.",
    "progress": "Receives progress reports.",
}

_planned: ContextVar[Sequence[Path]] = ContextVar("planned", default=())


@contextmanager
def plan_files(files: Sequence[Path]) -> Iterator[None]:
    """Tell an analysis in the block which files its answer will be written to."""
    token = _planned.set(files)
    try:
        yield
    finally:
        _planned.reset(token)


def list_planned_files() -> Sequence[Path]:
    """List the files of the answer: an analysis refuses, before it fits, what they could not hold."""
    return _planned.get()


def analysis(*, streams: bool = False) -> Callable[[Callable[Options, Found]], Callable[Options, Found]]:
    """Declare an analysis; `streams` says that files larger than the memory budget can be read by workers."""

    def decorate(function: Callable[Options, Found]) -> Callable[Options, Found]:
        signature = inspect.signature(function)

        @wraps(function)
        def analyze(*args: Options.args, **options: Options.kwargs) -> Found:
            start = time.perf_counter()
            arguments = bind(function, signature, args, options)
            check_arguments(function, arguments)
            with report_to(options.get("progress")):  # type: ignore[arg-type]
                answer = function(*args, **options)
            answer.seconds = time.perf_counter() - start
            answer.notes = [spell_parameters(note) for note in answer.notes]
            answer.call = {"verb": function.__name__, **arguments, **answer.chosen}
            if answer.model is not None and ".twofold" in answer.endings:
                answer.model.made_by_ = function.__name__  # so that `apply` does the same to new rows
                keep_schema(answer)
            return answer

        analyze.streams = streams  # type: ignore[attr-defined]
        analyze.__doc__ = complete_docstring(function, signature)
        return analyze

    return decorate


def keep_schema(answer: Answer) -> None:
    """Keep in the model the roles of its table's columns, so that `apply` reads other tables the same way."""
    from twofold.io.tables.table import Table

    table = getattr(answer, "data", None)
    table = getattr(table, "table", table)  # data for a network holds the table that it came from
    if isinstance(table, Table) and table.frame is not None:
        columns = [[c.name, c.role, list(c.levels)] for c in table.schema if c.role != "number"]
        answer.model.schema_ = {"coded": table.is_coded, "columns": columns}


def bind(
    function: Callable[..., Any], signature: inspect.Signature, args: Sequence[Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all arguments of a call by name, defaults included, but `progress`."""
    known = read_parameters(function)
    for name in options:
        if name not in known:
            raise TypeError(f"{function.__name__}() has no parameter {name!r}. {did_you_mean(name, known)}".rstrip())
    bound = signature.bind(*args, **options)
    bound.apply_defaults()
    out: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        out |= value if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD else {name: value}
    out.pop("progress", None)
    return out


def answers_of(analyze: Callable[..., Answer]) -> tuple[type[Answer], ...]:
    """Return the kinds of answer that an analysis gives, as its signature declares them."""
    hint = get_type_hints(inspect.unwrap(analyze))["return"]
    return get_args(hint) or (hint,)


def complete_docstring(function: Callable[..., Any], signature: inspect.Signature) -> str:
    """Add the parameters that analyses share to the end of the docstring's Parameters section."""
    text = inspect.getdoc(function) or ""
    entries = [f"{name}\n    {SHARED[name]}" for name in SHARED if name in signature.parameters]
    if any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        entries += [f"{name}\n    {meaning}" for name, meaning in read_meanings(Reading).items()]
    next_sections = (text.find(f"\n\n{name}\n---") for name in ("Returns", "Examples"))
    end = min((at for at in next_sections if at > 0), default=len(text))
    return "\n".join([text[:end], *entries]) + text[end:]


def write_argument(name: str, value: Any) -> str:
    """Write an argument in Python; what has no literal stands as a variable of the parameter's name.

    >>> write_argument("data", ["wine.csv"]), write_argument("data", object()), write_argument("drop", ["id"])
    ("'wine.csv'", 'data', "['id']")
    """
    if isinstance(value, (list, tuple)) and len(value) == 1 and name == "data":
        value = value[0]
    return write_literal(value) or name


def write_literal(value: Any) -> str | None:
    """Write the literal of a number, a text, a path, or a list or dict of them; None if there is none."""
    if isinstance(value, Mapping):
        pairs = [(write_literal(key), write_literal(one)) for key, one in value.items()]
        return None if any(None in pair for pair in pairs) else f"{{{', '.join(f'{k}: {v}' for k, v in pairs)}}}"
    if isinstance(value, (list, tuple)):
        parts = [write_literal(one) for one in value]
        return None if None in parts else f"[{', '.join(map(str, parts))}]"
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    return repr(value) if isinstance(value, (str, int, float)) else None
