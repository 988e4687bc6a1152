"""Declarations of estimators and functions, read from the source without importing it, so that the catalog is quick.

    read_parameter("KMeans", "n_clusters")    → its default, choices, limits and meaning
    summarize("KMeans")                       → "k-means: every row belongs to the nearest of k centers, …"

A class is named as in ``twofold``, "KMeans"; a function by its file, "signals.images.denoise:denoise_image".
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import twofold
from twofold.core.declaration import REQUIRED, read_parameters
from twofold.core.spelling import spell_parameters

MAX_LETTERS = 320  # of a meaning; the reference has further sentences
HOMES: dict[str, str] = vars(twofold)["_HOMES"]  # public class → its module


class Parameter(NamedTuple):
    """One parameter as its signature, its numpydoc section and `_parameter_constraints` declare it."""

    default: Any
    kind: type | None  # int or float of a number, None of all else
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]
    meaning: str


@cache
def read_parameter(owner: str | Callable[..., Any], name: str) -> Parameter:
    """Read one parameter of a class or function; parts that are not declared are None or empty.

    An analysis may be given itself: its annotations declare choices and limits.
    """
    if not isinstance(owner, str):
        own = read_parameters(owner)[name]
        number = next((kind for kind in (int, float) if own.type is kind), None)
        text = spell_parameters(own.meaning, lambda name, value: name.replace("_", " "))
        default = own.choices[0] if own.default is REQUIRED and own.choices else own.default
        return Parameter(default, number, own.flag.min, own.flag.max, own.choices, text)
    heading, body = _find_section(owner, name)
    listed = re.search(r"\{(.*?)\}", heading)
    choices = tuple(re.findall(r'"([^"]+)"', listed[1])) if listed else ()
    choices += ("none",) if choices and "None" in heading else ()
    default, annotation = _find_argument(owner, name)
    kind = int if "int" in annotation else float if "float" in annotation else None
    left = right = None
    for interval in _find_intervals(owner, name):
        kind = int if ast.unparse(interval.args[0]) == "Integral" else float
        closed = ast.literal_eval(interval.keywords[0].value)
        left = ast.literal_eval(interval.args[1]) if closed in ("left", "both") else None
        right = ast.literal_eval(interval.args[2]) if closed in ("right", "both") else None
        break
    return Parameter(default, kind, left, right, choices, body)


def summarize(owner: str) -> str:
    """Return the first line of its docstring."""
    return _strip_markup(_read_docstring(owner).partition("\n\n")[0])


# --- the docstring ------------------------------------------------------------------------------------------


@cache
def _read_docstring(owner: str) -> str:
    return inspect.cleandoc(ast.get_docstring(_find_owner(owner)[1]) or "")


def _find_section(owner: str, name: str) -> tuple[str, str]:
    """Return type and meaning of a parameter, "" if it has none; "As in :class:`SVP`" is followed."""
    part = re.search(r"(?ms)^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+$|\Z)", _read_docstring(owner))
    entries = re.findall(r"(?m)^(\S[^\n]*(?:\\\n[^\n]*)*)\n((?:[ \t]+[^\n]*\n?|\n)*)", part[1] if part else "")
    for heading, body in entries:
        names, _, kind = heading.partition(" : ")
        if name in re.split(r"[,\s]+", names.strip()):
            text = " ".join(body.split())
            other = re.search(r"[Aa]s (?:in|for) :(?:class|func):`(\w+)`", text)
            followed = _find_section(other[1], name) if other and other[1] in HOMES else ("", "")
            return followed if followed[1] else (kind, _shorten(_strip_markup(text)))
    return "", ""


def _strip_markup(text: str) -> str:
    """Remove the marks of reStructuredText."""
    text = re.sub(r":\w+:`~?\.?([^`]*)`", lambda match: match[1].rpartition(".")[2], " ".join(text.split()))
    return re.sub(r"`{1,2}([^`]*)`{1,2}", r"\1", text).replace("*", "")


def _shorten(text: str) -> str:
    """Keep as many whole sentences as MAX_LETTERS hold, but at least one."""
    first, *rest = re.split(r"(?<=[.?!])\s+(?=[A-Z\"])", text)
    for sentence in rest:
        if len(first) + len(sentence) >= MAX_LETTERS:
            break
        first += " " + sentence
    return first


# --- the signature and the constraints ----------------------------------------------------------------------


@cache
def _parse(module: str) -> list[ast.stmt]:
    path = Path(twofold.__file__).parent.joinpath(*module.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8")).body


@cache
def _find(module: str, name: str) -> tuple[str, Any]:
    """Return the statement that binds a name, and the module it stands in; imports are followed."""
    home, _, name = name.rpartition(".")
    for node in _parse(module):
        if home and isinstance(node, ast.ImportFrom):  # of a module, as `from twofold.completion import _auto_ridge`
            for alias in node.names:
                if home == (alias.asname or alias.name):
                    return _find(f"{node.module}.{alias.name}", name)
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name:
            return module, node
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if name in map(ast.unparse, targets):
                return module, node.value
        if isinstance(node, ast.ImportFrom) and name in [alias.asname or alias.name for alias in node.names]:
            return _find(node.module or "", name) if (node.module or "").startswith("twofold") else (module, None)
    raise LookupError(f"{module} has no {name}")


def _find_owner(owner: str) -> tuple[str, Any]:
    home, _, name = owner.rpartition(":")
    return _find(f"twofold.{home}" if home else HOMES[name], name)


def _list_classes(module: str, node: Any) -> Iterator[tuple[str, ast.ClassDef]]:
    """List a class and its bases of twofold, each with its module."""
    if isinstance(node, ast.ClassDef):
        yield module, node
        for base in node.bases:
            with suppress(LookupError):
                yield from _list_classes(*_find(module, ast.unparse(base).partition("[")[0]))


def _find_argument(owner: str, name: str) -> tuple[Any, str]:
    """Return the default of an argument, None where it is no literal, and its annotation; base classes count."""
    module, node = _find_owner(owner)
    parts = [part for _, one in _list_classes(module, node) for part in one.body]
    makers: list[Any] = [part for part in parts if getattr(part, "name", "") == "__init__"] if parts else [node]
    for maker in makers:
        places = [*maker.args.posonlyargs, *maker.args.args], maker.args.kwonlyargs
        values = [None] * (len(places[0]) - len(maker.args.defaults)) + maker.args.defaults, maker.args.kw_defaults
        for arguments, defaults in zip(places, values, strict=True):
            for argument, default in zip(arguments, defaults, strict=True):
                if argument.arg == name:
                    return _read_default(default), ast.unparse(argument.annotation)
    fields = (part for part in parts if isinstance(part, ast.AnnAssign) and ast.unparse(part.target) == name)
    field = next(fields, None)  # of a dataclass
    return (_read_default(field.value), ast.unparse(field.annotation)) if field else (None, "")


def _read_default(value: Any) -> Any:
    return ast.literal_eval(value) if isinstance(value, (ast.Constant, ast.UnaryOp)) else None


def _find_intervals(owner: str, name: str) -> list[ast.Call]:
    """Return the calls of Interval in the constraints of a parameter; those of base classes count."""
    rules = _find_rules(*_find_owner(owner), name)
    return [rule for rule in getattr(rules, "elts", ()) if getattr(getattr(rule, "func", None), "id", "") == "Interval"]


def _find_rules(module: str, node: Any, name: str) -> Any:
    found = (
        _find_entry(home, _find_value(one, "_parameter_constraints"), name) for home, one in _list_classes(module, node)
    )
    return next(filter(None, found), None)


def _find_value(node: ast.ClassDef, name: str) -> Any:
    """Return the value that a class body gives to a name."""
    values = (part.value for part in node.body if isinstance(part, ast.AnnAssign) and ast.unparse(part.target) == name)
    return next(values, None)


def _find_entry(module: str, node: Any, name: str) -> Any:
    """Return the value of a key in a dict of the source, or in the dicts that it spreads."""
    for key, value in zip(getattr(node, "keys", ()), getattr(node, "values", ()), strict=True):
        if key is not None and ast.unparse(key) == repr(name):
            return value
        if key is None:
            parts = (part for part in ast.walk(value) if isinstance(part, ast.Attribute))
            spread = next((part.value for part in parts if part.attr == "_parameter_constraints"), value)
            with suppress(LookupError):  # the limits of a dict that is made in another way are not read
                home, other = _find(module, ast.unparse(spread))
                find = _find_rules if isinstance(other, ast.ClassDef) else _find_entry
                if (entry := find(home, other, name)) is not None:
                    return entry
    return None
