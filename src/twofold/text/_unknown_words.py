"""Words that are not there: an error that says so and names those spelled most like them."""

from __future__ import annotations

import difflib
from typing import Any

import numpy as np

from twofold.core.checks import InputError

FREQUENT = 20_000  # words compared; more would take longer than anyone waits for an error


class UnknownWord(InputError, KeyError):
    """A word without a vector or a number."""

    __str__ = Exception.__str__  # KeyError's would put the message in quotes


def unknown(word: Any, words: np.ndarray, what: str = "words") -> UnknownWord:
    """The error for a word that is not among `words`, the most frequent first."""
    if not isinstance(word, str):
        return UnknownWord(f"{word!r} is a {type(word).__name__}, not a word. Give a str.")
    near = close(word, words)
    hint = f" Close to it: {', '.join(repr(item) for item in near)}." if near else ""
    return UnknownWord(f"{word!r} is not among the {len(words):,} {what}.{hint}")


def close(word: str, words: np.ndarray, count: int = 3) -> list[str]:
    """The words spelled most like one, case put aside; none if nothing comes near.

    >>> close("Qeen", np.array(["king", "queen", "been"]))
    ['queen', 'been']
    """
    low = {str(item).casefold(): str(item) for item in reversed(words[:FREQUENT].tolist())}
    found = difflib.get_close_matches(word.casefold(), low, n=count, cutoff=0.6)
    return [low[item] for item in found]
