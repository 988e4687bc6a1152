"""Did you mean: the names spelled most like one that is not there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

MOST = 20_000  # names compared; more would take longer than anyone waits for an error


def close_names(wanted: str, known: Iterable[str], count: int = 3, cutoff: float = 0.6) -> list[str]:
    """At most `count` of the `known` names, those most like `wanted` first, case put aside; none if none comes near.

    >>> close_names("Qeen", ["king", "queen", "been"])
    ['queen', 'been']
    """
    low: dict[str, str] = {}
    for name in islice(known, MOST):
        low.setdefault(name.casefold(), name)
    return [low[name] for name in difflib.get_close_matches(wanted.casefold(), low, count, cutoff)]


def did_you_mean(wanted: str, known: Iterable[str], otherwise: str = "", cutoff: float = 0.6) -> str:
    """A sentence that names the known one most like `wanted`, or `otherwise`.

    >>> did_you_mean("colour", ["color", "size"])
    'Did you mean "color"?'
    """
    near = close_names(wanted, known, 1, cutoff)
    return f'Did you mean "{near[0]}"?' if near else otherwise
