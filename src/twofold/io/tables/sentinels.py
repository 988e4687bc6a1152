"""Numbers that stand for a missing value, such as -999: found, and said, but never taken for one unasked."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from twofold.core.spelling import spell_parameters

CODES = tuple(sign * float(digits) for digits in ("9", "99", "999", "9999", "99999", "999999") for sign in (1, -1))
SHARE = 0.005  # of the cells of a column, at least
COLUMNS = 2  # at least: one column may have such a number for other reasons
GAP = 0.5  # to the nearest other number, in ranges of the others, at least


def find_sentinels(numbers: Mapping[str, np.ndarray]) -> dict[float, list[str]]:
    """Codes that stand far from all other numbers of several columns, and those columns.

    >>> x = np.array([1.0, 3, 2, -999, 4, -999])
    >>> find_sentinels({"a": x, "b": 2 * x + 999, "c": x[::-1]})
    {-999.0: ['a', 'b', 'c']}
    """
    found: dict[float, list[str]] = {}
    for name, values in numbers.items():
        ends = (np.fmin.reduce(values), np.fmax.reduce(values))  # a code stands below or above all others
        for code in ends:
            if code in CODES and stands_apart(values, code):
                found.setdefault(float(code), []).append(name)
    return {code: names for code, names in found.items() if len(names) >= COLUMNS}


def stands_apart(values: np.ndarray, code: float) -> bool:
    """Whether a number occurs often enough, below or above all others and far from them."""
    known = values[~np.isnan(values)]
    own = known == code
    count = int(own.sum())
    if count < max(2, SHARE * len(known)) or count == len(known):
        return False
    others = known[~own]
    low, high = others.min(), others.max()
    return bool(high > low and max(low - code, code - high) > GAP * (high - low))


def say_sentinels(numbers: Mapping[str, np.ndarray]) -> list[str]:
    """One note for each code."""
    notes = []
    for code, names in find_sentinels(numbers).items():
        share = float(np.mean([np.mean(numbers[name] == code) for name in names]))
        shown = ", ".join(f'"{name}"' for name in names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        notes.append(
            f"{code:g} stands in {share:.1%} of the cells of {shown}, far from all other numbers: if it means a "
            f"missing value, say {spell_parameters(f'⟨missing={code:g}⟩')}"
        )
    return notes
