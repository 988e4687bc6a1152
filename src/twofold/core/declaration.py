"""The parameters of a function as its signature and its docstring declare them.

    def cluster(
        data: Any,
        n_clusters: Annotated[int | None, Flag("-k", min=1)] = None,
        *,
        method: Literal["kmeans", "mixture"] | None = None,
    ) -> Clustering:
        '''Find groups of rows that belong together, and what sets each apart.

        Parameters
        ----------
        n_clusters
            Number of clusters. Default: chosen by BIC.
        ...'''

`read_parameters(cluster)["method"].choices` is ("kmeans", "mixture"). Command line, checks, lab and reference all read
this one declaration. `Flag` holds only what a signature cannot say: short names, limits, units, how text is parsed.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from twofold.core.checks import InputError
from twofold.core.spelling import did_you_mean

REQUIRED = inspect.Parameter.empty


class Flag:
    """What a signature cannot say of a parameter.

    Parameters
    ----------
    *names
        Names on a command line in place of the parameter's own, such as "-k" and a long option.
    min, max
        Smallest and largest value.
    unit
        Placeholder of the value in help texts, such as "SECONDS".
    parse
        Function that turns text into the value.
    many
        Whether a positional parameter takes several values.
    sets
        Parameter of an estimator that this one sets under another name, so that the estimator's messages are
        understood.
    """

    def __init__(
        self,
        *names: str,
        min: float | None = None,
        max: float | None = None,
        unit: str = "",
        parse: Callable[[str], Any] | None = None,
        many: bool = False,
        sets: str = "",
    ):
        self.names, self.min, self.max, self.unit = names, min, max, unit
        self.parse, self.many, self.sets = parse, many, sets


@dataclass(frozen=True)
class Parameter:
    """One parameter of a function."""

    name: str
    type: Any  # without None and without annotations
    default: Any  # REQUIRED, if there is none
    meaning: str  # sentences of the docstring, parameters between ⟨ and ⟩
    choices: tuple[Any, ...]
    flag: Flag
    positional: bool

    def check(self, value: Any) -> None:
        """Refuse a value that is none of the choices, or outside the limits."""
        if value is None or not (self.choices or isinstance(value, (int, float))):
            return
        if self.choices and value not in self.choices:
            hint = did_you_mean(value, self.choices) if isinstance(value, str) else ""
            raise InputError(f"⟨{self.name}={value}⟩: choose {join_words(self.choices)}. {hint}".rstrip())
        low, high = self.flag.min, self.flag.max
        if not self.choices and ((low is not None and not value >= low) or (high is not None and not value <= high)):
            raise InputError(f"⟨{self.name}={value}⟩: give a number {describe_limits(low, high)}.")


def describe_limits(low: float | None, high: float | None) -> str:
    """Limits in words.

    >>> describe_limits(1, None), describe_limits(0, 255)
    ('of at least 1', 'from 0 to 255')
    """
    if low is None or high is None:
        return f"of at least {low:g}" if high is None else f"of at most {high:g}"
    return f"from {low:g} to {high:g}"


def join_words(words: Iterable[Any]) -> str:
    """Words with commas and a final "or".

    >>> join_words(["a"]), join_words("abc")
    ('a', 'a, b or c')
    """
    *most, last = map(str, words)
    return f"{', '.join(most)} or {last}" if most else last


@lru_cache
def read_parameters(function: Callable[..., Any]) -> Mapping[str, Parameter]:
    """Parameters of a function by name, in the order of its signature.

    Those of ``**options: Unpack[Options]`` are the fields of the TypedDict, whose docstring explains them.
    """
    meanings, function = read_meanings(function), inspect.unwrap(function)
    hints = get_type_hints(function, include_extras=True)
    out = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            fields = get_args(hints[name])[0]
            own = read_meanings(fields)
            for field, hint in get_type_hints(fields, include_extras=True).items():
                out[field] = _declare(field, hint, None, own.get(field, ""), False)
            continue
        positional = parameter.kind is not parameter.KEYWORD_ONLY
        out[name] = _declare(name, hints.get(name, Any), parameter.default, meanings.get(name, ""), positional)
    known = {**out, **{p.flag.sets: p for p in out.values() if p.flag.sets}}
    return {name: replace(p, meaning=_mark(p.meaning, known)) for name, p in out.items()}


def _declare(name: str, hint: Any, default: Any, meaning: str, positional: bool) -> Parameter:
    flag = Flag()
    if get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        flag = next((extra for extra in extras if isinstance(extra, Flag)), flag)
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    members = tuple(member for member in members if member is not type(None))
    choices = tuple(c for member in members if get_origin(member) is Literal for c in get_args(member))
    return Parameter(name, members[0] if len(members) == 1 else members, default, meaning, choices, flag, positional)


def _mark(text: str, known: Mapping[str, Any]) -> str:
    """The text with `name` as ⟨name⟩ where it is a parameter, and other code without its backticks."""
    parts = text.replace("``", "`").split("`")
    return "".join(f"⟨{part}⟩" if i % 2 and part in known else part for i, part in enumerate(parts))


def read_meanings(documented: Any) -> dict[str, str]:
    """Read what the Parameters section of a docstring says of each name, in one line."""
    lines = (inspect.getdoc(documented) or "").splitlines()
    out: dict[str, str] = {}
    names: Sequence[str] = ()
    start = next((i for i, line in enumerate(lines[:-1]) if line == "Parameters" and lines[i + 1][:3] == "---"), None)
    for line in [] if start is None else lines[start + 2 :]:
        if line[:3] == "---":  # the heading of the next section was taken for a name
            out = {name: text for name, text in out.items() if name not in names}
            break
        if line and not line.startswith(" "):
            names = [name.strip().lstrip("*") for name in line.partition(" :")[0].split(",")]
            out |= dict.fromkeys(names, "")
        else:
            out |= {name: f"{out[name]} {line.strip()}".strip() for name in names}
    return out


def check_arguments(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Refuse the first argument that is none of the choices of its parameter, or outside its limits."""
    parameters = read_parameters(function)
    for name, value in arguments.items():
        if name in parameters:
            parameters[name].check(value)
