"""Words that are not there: an error that says so and names those spelled most like them."""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold.core.checks import InputError
from twofold.core.spelling import MAX_COMPARED_NAMES, close_names


class UnknownWord(InputError, KeyError):
    """A word without a vector or a number."""

    __str__ = Exception.__str__  # KeyError's would put the message in quotes


def unknown(word: Any, words: np.ndarray, what: str = "words") -> UnknownWord:
    """The error for a word that is not among `words`, the most frequent first."""
    if not isinstance(word, str):
        return UnknownWord(f"{word!r} is a {type(word).__name__}, not a word. Give a str.")
    near = close_names(word, map(str, words[:MAX_COMPARED_NAMES].tolist()))
    hint = f" Close to it: {', '.join(repr(item) for item in near)}." if near else ""
    return UnknownWord(f"{word!r} is not among the {len(words):,} {what}.{hint}")
