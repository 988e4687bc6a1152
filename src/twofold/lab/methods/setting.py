"""Settings of a method: the controls of its page, which follow from the declarations of parameters.

    read_parameter("KMeans", "n_clusters")    → its default, choices, limits and meaning
    summarize("KMeans")                       → "k-means: every row belongs to the nearest of k centers, …"

Declarations are read from the source without importing it, so that the catalog is quick. A class is named as in
``twofold``, "KMeans"; a function by its file, "signals.images.denoise:denoise_image".
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import twofold
from twofold.core.checks import InputError
from twofold.core.declaration import REQUIRED, describe_limits, read_parameters
from twofold.core.spelling import spell_parameters

TYPES = {"int": (int,), "float": (float, int), "bool": (bool,)}
DECLARED: Any = object()  # a default that is the parameter's own
MAX_LETTERS = 320  # of a meaning; the reference has further sentences
HOMES: dict[str, str] = vars(twofold)["_HOMES"]  # public class → its module


@dataclass(frozen=True)
class Setting:
    """One control: its name, label and explanation, and the values it takes."""

    name: str
    label: str
    about: str
    default: Any
    min: float | None = None
    max: float | None = None
    step: float | None = None
    log: bool = False
    choices: tuple[str, ...] = ()
    advanced: bool = False
    type: str = ""  # int, float, choice, bool, mask; "": follows from the choices or the default

    def __post_init__(self) -> None:
        kind = self.type or ("choice" if self.choices else type(self.default).__name__)
        object.__setattr__(self, "type", kind)

    def check(self, value: Any) -> Any:
        """Return the value, or raise an error that says which values are allowed."""
        if self.type == "mask" or (value is None and self.default is None):
            return value
        if self.type == "choice":
            if value not in self.choices:
                raise InputError(f"{self.label} is {value!r}; choose {', '.join(self.choices)}.")
            return value
        right = isinstance(value, TYPES[self.type]) and (self.type == "bool" or not isinstance(value, bool))
        if self.type == "int" and isinstance(value, float) and value.is_integer():
            value, right = int(value), True
        if not right or (self.type != "bool" and not np.isfinite(value)):
            needed = "it is on or off" if self.type == "bool" else "a number is needed"
            raise InputError(f"{self.label} is {value!r}; {needed}.")
        low, high = self.min, self.max
        if (low is not None and value < low) or (high is not None and value > high):
            raise InputError(f"{self.label} is {value:g}; give a number {describe_limits(low, high)}.")
        return float(value) if self.type == "float" else value


Control = Setting | Callable[[str], Setting]  # of a parameter of the method's estimator, until its name is known


def control(name: str, label: str = "", *, owner: str = "", **parts: Any) -> Callable[[str], Setting]:
    """Declare the control of a parameter of the method's estimator, or of `owner`; the rest is for `control_of`."""
    return lambda estimator: control_of(owner or estimator, name, label, **parts)


def control_of(
    owner: str | Callable[..., Any],
    name: str,
    label: str = "",
    *,
    default: Any = DECLARED,
    about: str = "",
    **parts: Any,
) -> Setting:
    """Make the control of a parameter of an estimator or function from its declaration.

    Parameters
    ----------
    owner : str or analysis
        The class or function as `read_parameter` takes it.
    name : str
        Its parameter.
    label : str
        Plain words for the page. "": the name.
    default : object
        A value to start with where the declared one is not good to look at.
    about : str
        Explains a parameter that has no meaning in the numpydoc section.
    **parts
        Parts of `Setting` that differ from the declaration, as the range of a slider.
    """
    declared = read_parameter(owner, name)
    if default is DECLARED:
        default = "none" if declared.default is None and declared.choices else declared.default
    read: dict[str, Any] = {}
    if isinstance(default, str):  # the value that a run starts with is listed first
        read["choices"] = tuple(dict.fromkeys((default, *declared.choices)))
    elif not isinstance(default, bool) and declared.kind is not None:
        kind = type(default) if default is not None else declared.kind
        read |= {"type": kind.__name__, "min": declared.minimum, "max": declared.maximum}
    return Setting(name, label or name.replace("_", " "), declared.meaning or about, default, **read | parts)


def sweep_limit(**parts: Any) -> Control:
    return control("max_iter", "sweeps at most", min=1, max=10_000, advanced=True, **parts)


def loop_controls(**defaults: Any) -> tuple[Control, Control]:
    """Declare the controls of the end of the sweeps; `defaults` differ from the declared ones."""
    tol, max_iter = ({"default": defaults[name]} if name in defaults else {} for name in ("tol", "max_iter"))
    return control("tol", "tolerance", **tol, max=1, log=True, advanced=True), sweep_limit(**max_iter)


def seed(owner: str) -> Setting:
    """Make the control of the seed of all random numbers."""
    meaning = f"{read_parameter(owner, 'random_state').meaning} The same seed gives the same run.".lstrip()
    return Setting("random_state", "seed", meaning, 0, min=0, max=2**31 - 1, advanced=True)


# --- declarations ---------------------------------------------------------------------------------------------


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
    interval = _find_interval(owner, name)
    if interval is None:
        return Parameter(default, kind, None, None, choices, body)
    kind = int if ast.unparse(interval.args[0]) == "Integral" else float
    ends, closed = map(ast.literal_eval, interval.args[1:]), ast.literal_eval(interval.keywords[0].value)
    low, high = (end if closed in (side, "both") else None for end, side in zip(ends, ("left", "right"), strict=True))
    return Parameter(default, kind, low, high, choices, body)


def summarize(owner: str) -> str:
    """Return the first line of its docstring."""
    return _strip_markup(_read_docstring(owner).partition("\n\n")[0])


@cache
def takes_blanks(owner: str) -> bool:
    """Return whether a class declares that cells may be blank; a function does not."""
    module, node = _find_owner(owner)
    parts = (part for _, one in _list_classes(module, node) for part in one.body if isinstance(part, ast.AnnAssign))
    found = next((part.value for part in parts if ast.unparse(part.target) == "_allow_nan"), None)
    return found is not None and bool(ast.literal_eval(found))


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


@cache
def _parse(module: str) -> list[ast.stmt]:
    path = Path(twofold.__file__).parent.joinpath(*module.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8")).body


@cache
def _find(module: str, name: str) -> tuple[str, Any]:
    """Return the statement that binds a name, or one in another module, and its module; imports are followed."""
    first, _, rest = name.partition(".")
    for node in _parse(module):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name:
            return module, node
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if name in map(ast.unparse, targets):
                return module, node.value
        if isinstance(node, ast.ImportFrom):
            home = node.module or ""
            for alias in node.names:
                if first == (alias.asname or alias.name):
                    place = (f"{home}.{alias.name}", rest) if rest else (home, alias.name)
                    return _find(*place) if home.startswith("twofold") else (module, None)
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


def _find_interval(owner: str, name: str) -> ast.Call | None:
    """Return the first call of Interval in the constraints of a parameter; those of base classes count."""
    rules = getattr(_find_rules(*_find_owner(owner), name), "elts", ())
    return next((rule for rule in rules if getattr(getattr(rule, "func", None), "id", "") == "Interval"), None)


def _find_rules(module: str, node: Any, name: str) -> Any:
    """Return the constraints of a parameter, those of the first class that declares it."""
    bodies = ((home, part) for home, one in _list_classes(module, node) for part in one.body)
    dicts = ((home, part.value) for home, part in bodies if isinstance(part, ast.AnnAssign) and _is_rules(part))
    return next((rules for home, value in dicts if (rules := _find_entry(home, value, name)) is not None), None)


def _is_rules(part: ast.AnnAssign) -> bool:
    return ast.unparse(part.target) == "_parameter_constraints"


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
