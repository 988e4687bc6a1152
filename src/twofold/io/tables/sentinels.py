"""Numbers that stand for a missing value, such as -999: found, and said, but never taken for one unasked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from twofold.core.spelling import spell_parameters

CODES = tuple(sign * float(digits) for digits in ("9", "99", "999", "9999", "99999", "999999") for sign in (1, -1))
SHARE = 0.005  # of the cells of a column, at least
COLUMNS = 2  # at least, where the number might be measured: one column may have it for other reasons
GAP = 0.5  # to the nearest other number, in ranges of the others, at least
CLEAR_GAP = 2.0  # the same where one column is enough
ZERO_GAP, MIN_STEPS = 0.25, 3  # from 0 to the smallest other number: in ranges, and in steps of the others
MIN_CELLS = 2
MAX_SHARE = 0.5  # of the known cells of one column


def find_sentinels(numbers: Mapping[str, np.ndarray]) -> dict[float, list[str]]:
    """Codes that stand far from all other numbers of their columns, and those columns.

    One column is enough for a negative code where no other number is negative, for one very far away, and for 0 where
    no other number is near 0.

    >>> x = np.array([1.0, 3, 2, -999, 4, -999])
    >>> find_sentinels({"a": x, "b": 2 * x + 999, "c": x[::-1]})
    {-999.0: ['a', 'b', 'c']}
    """
    found: dict[float, list[str]] = {}
    sure = set()
    for name, values in numbers.items():
        ends = (np.fmin.reduce(values), np.fmax.reduce(values))  # a code stands below or above all others
        for code in ends:
            if (code in CODES or code == 0) and (gap := gap_to_others(values, code)) is not None:
                clear = is_clear(gap, code)
                if clear or (code != 0 and gap.size > GAP and gap.share >= SHARE):
                    found.setdefault(float(code), []).append(name)
                    sure |= {code} if clear else set()
    return {code: names for code, names in found.items() if code in sure or len(names) >= COLUMNS}


class Gap(NamedTuple):
    """How far a number stands from all others of a column."""

    size: float  # in ranges of the others
    share: float  # of the known cells that have it
    low: float  # the smallest other number
    step: float  # the range of the others by their number of values


def gap_to_others(values: np.ndarray, code: float) -> Gap | None:
    """Measure how far a number stands apart; None if it occurs but once, or alone."""
    known = values[~np.isnan(values)]
    own = known == code
    count = int(own.sum())
    if count < MIN_CELLS or count == len(known):
        return None
    others = known[~own]
    low, high = float(others.min()), float(others.max())
    if not high > low:
        return None
    step = (high - low) / (len(np.unique(others)) - 1)
    return Gap(max(low - code, code - high) / (high - low), count / len(known), low, step)


def is_clear(gap: Gap, code: float) -> bool:
    """Tell whether one column is enough to suspect a code."""
    if gap.share > MAX_SHARE:
        return False
    if code == 0:
        return gap.low > MIN_STEPS * gap.step and gap.size > ZERO_GAP
    return gap.size > CLEAR_GAP or (code < 0 <= gap.low)


def stands_apart(values: np.ndarray, code: float) -> bool:
    """Tell whether a number occurs often enough, below or above all others and far from them."""
    gap = gap_to_others(values, code)
    return gap is not None and gap.size > GAP and gap.share >= SHARE


def say_sentinels(numbers: Mapping[str, np.ndarray]) -> list[str]:
    """One note for each code."""
    notes = []
    for code, names in find_sentinels(numbers).items():
        share = float(np.mean([np.mean(numbers[name] == code) for name in names]))
        shown = ", ".join(f'"{name}"' for name in names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        remedy = spell_parameters(f"say ⟨missing={code:g}⟩") if code else "leave these cells empty"
        notes.append(
            f"{code:g} stands in {share:.1%} of the cells of {shown}, far from all other numbers: if it means a "
            f"missing value, {remedy}"
        )
    return notes
