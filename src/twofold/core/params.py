"""What a constructor parameter may be, and the check of it at fit.

A model says it in `_parameter_constraints`, a list for each parameter; a value is right if one item of the list takes
it. An item is one of the classes below, a type, None, or one of the words "array-like", "boolean", "callable" and
"random_state".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from twofold.core.checks import InputError
from twofold.core.spelling import did_you_mean

NAMES: dict[type, str] = {Integral: "an integer", Real: "a number", str: "a string"}


class ParameterError(InputError, TypeError):
    """A constructor parameter of the wrong type or outside its range; the message says what is allowed."""


class Interval:
    """Numbers of one `type`, Integral or Real, from `left` to `right`; None is no bound, `closed` which bounds count.

    Examples
    --------
    >>> from numbers import Integral, Real
    >>> str(Interval(Integral, 1, None, closed="left")), str(Interval(Real, 0, 1, closed="neither"))
    ('an integer >= 1', 'a number > 0 and < 1')
    """

    def __init__(self, type: type, left: float | None, right: float | None, *, closed: str):
        self.type, self.left, self.right = type, left, right
        self.above, self.below = closed in ("left", "both"), closed in ("right", "both")

    def accepts(self, value: Any) -> bool:
        if not isinstance(value, self.type):
            return False
        left, right = (-np.inf if self.left is None else self.left), (np.inf if self.right is None else self.right)
        number: Any = value  # NaN is in no range: each comparison with it is False
        above = number >= left if self.above else number > left
        return bool(above and (number <= right if self.below else number < right))

    def __str__(self) -> str:
        bounds = [f"{'>' if not self.above else '>='} {self.left}"] if self.left is not None else []
        bounds += [f"{'<' if not self.below else '<='} {self.right}"] if self.right is not None else []
        return " ".join([NAMES[self.type], " and ".join(bounds)]).strip()


class Options:
    """One of a few values of a `type`."""

    def __init__(self, type: type, options: Iterable[Any]):
        self.type, self.options = type, set(options)

    def accepts(self, value: Any) -> bool:
        return isinstance(value, self.type) and value in self.options

    def __str__(self) -> str:
        return " or ".join(sorted(map(repr, self.options)))


class StrOptions(Options):
    """One of a few strings."""

    def __init__(self, options: Iterable[str]):
        super().__init__(str, options)


class HasMethods:
    """Anything with these methods."""

    def __init__(self, methods: Iterable[str]):
        self.methods = list(methods)

    def accepts(self, value: Any) -> bool:
        return all(callable(getattr(value, name, None)) for name in self.methods)

    def __str__(self) -> str:
        return f"an object with the methods {', '.join(self.methods)}"


ITERATIVE: dict[str, list[Any]] = {  # of every model that repeats sweeps until they change little
    "tol": [Interval(Real, 0, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "random_state": ["random_state", np.random.Generator],
}


class _Rule(NamedTuple):
    """A test and its words, for what needs no class."""

    accepts: Callable[[Any], bool]
    words: str

    def __str__(self) -> str:
        return self.words


def _is_array_like(value: Any) -> bool:
    sized = any(hasattr(value, name) for name in ("__len__", "shape", "__array__"))
    return sized and not isinstance(value, (str, bytes, type)) and not np.isscalar(value)


_SEEDS = Interval(Integral, 0, 2**32 - 1, closed="both")
_WORDS = {
    "array-like": _Rule(_is_array_like, "an array"),
    "boolean": _Rule(lambda value: isinstance(value, (bool, np.bool_)), "True or False"),
    "callable": _Rule(callable, "a function"),
    "random_state": _Rule(
        lambda value: value is None or isinstance(value, np.random.RandomState) or _SEEDS.accepts(value),
        f"None or {_SEEDS} or a numpy.random.RandomState",
    ),
}


def _rule(item: Any) -> Any:
    if item is None:
        return _Rule(lambda value: value is None, "None")
    if isinstance(item, type):
        name = NAMES.get(item, f"a {item.__name__}")
        return _Rule(lambda value: isinstance(value, item), name)
    return _WORDS[item] if isinstance(item, str) else item


def check_parameters(constraints: Mapping[str, list[Any]], parameters: Mapping[str, Any], owner: str) -> None:
    """Refuse the first of an `owner`'s parameters that no item of its list accepts."""
    for name, value in parameters.items():
        rules = [_rule(item) for item in constraints.get(name, ())]
        if rules and not any(rule.accepts(value) for rule in rules):
            allowed = " or ".join(map(str, rules))
            words = [word for rule in rules if isinstance(rule, StrOptions) for word in sorted(rule.options)]
            hint = f" {did_you_mean(value, words)}".rstrip() if isinstance(value, str) else ""
            raise ParameterError(f"the {name!r} parameter of {owner} is {value!r}; it must be {allowed}.{hint}")
