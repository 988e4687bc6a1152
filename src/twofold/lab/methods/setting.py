"""Settings of a method: the controls of its page, which follow from the declarations of parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.declarations import read_parameter

TYPES = {"int": (int,), "float": (float, int), "bool": (bool,)}
DECLARED: Any = object()  # a default that is the parameter's own


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
            raise InputError(f"{self.label} is {value:g}; choose from {low:g} to {high:g}.")
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
