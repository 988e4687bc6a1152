"""How names are spelled: parameters by the face that shows a message, and near misses of a name.

A message names a parameter between ⟨ and ⟩, and a value it should have after an equals sign:

    InputError("⟨scale⟩ is for tables: leave it out, or give ⟨method=kmeans⟩.")

    in Python               scale= is for tables: leave it out, or give method='kmeans'.
    on the command line     the same with the names of its options.

A face that spells parameters in its own way does its work inside `parameters_spelled_by(its_speller)`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice

MAX_COMPARED_NAMES = 20_000  # the comparison of more takes longer than a user waits for an error
PARAMETER = re.compile("⟨(\\w+)(?:=([^⟩]*))?⟩")  # its name, and its value or None

Speller = Callable[[str, str | None], str]  # (name of a parameter, its value or None) → how a face writes it


def spell_in_python(name: str, value: str | None) -> str:
    """A parameter as Python writes it.

    >>> spell_in_python("scale", None), spell_in_python("k", "3"), spell_in_python("method", "kmeans")
    ('scale=', 'k=3', "method='kmeans'")
    """
    if value is None:
        return f"{name}="
    literal = value in ("True", "False", "None") or re.fullmatch(r"-?[\d_.]+(e-?\d+)?|\[.*\]", value) is not None
    return f"{name}={value if literal else repr(value)}"


_speller: ContextVar[Speller] = ContextVar("speller", default=spell_in_python)


@contextmanager
def parameters_spelled_by(speller: Speller) -> Iterator[None]:
    """In the block, messages write parameters as `speller` does; so does an error that leaves it."""
    token = _speller.set(speller)
    try:
        yield
    except Exception as error:
        if error.args and isinstance(error.args[0], str):
            error.args = (spell_parameters(error.args[0]), *error.args[1:])
        raise
    finally:
        _speller.reset(token)


def spell_parameters(message: str, speller: Speller | None = None) -> str:
    """The message with its parameters as the present face writes them, or as `speller` does.

    >>> spell_parameters("⟨scale⟩ is for tables. Give ⟨method=kmeans⟩.")
    "scale= is for tables. Give method='kmeans'."
    """
    spell = speller or _speller.get()
    return PARAMETER.sub(lambda match: spell(match[1], match[2]), message)


def close_names(wanted: str, known: Iterable[str], count: int = 3, cutoff: float = 0.6) -> list[str]:
    """At most `count` of the `known` names, those most like `wanted` first, case put aside; none if none comes near.

    >>> close_names("Qeen", ["king", "queen", "been"])
    ['queen', 'been']
    """
    low: dict[str, str] = {}
    for name in islice(known, MAX_COMPARED_NAMES):
        low.setdefault(name.casefold(), name)
    return [low[name] for name in difflib.get_close_matches(wanted.casefold(), low, count, cutoff)]


def did_you_mean(wanted: str, known: Iterable[str], otherwise: str = "", cutoff: float = 0.6) -> str:
    """A sentence that names the known one most like `wanted`, or `otherwise`.

    >>> did_you_mean("colour", ["color", "size"])
    'Did you mean "color"?'
    """
    near = close_names(wanted, known, 1, cutoff)
    return f'Did you mean "{near[0]}"?' if near else otherwise
