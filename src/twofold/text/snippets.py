"""The sentence of a document that says most about a topic."""

from __future__ import annotations

import re
from collections.abc import Mapping

_ENDS = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n(?=[>*#-])")
_WORD = re.compile(r"[^\W\d_]{2,}")
LOOKED_AT = 20_000  # characters
LONGEST = 30  # words of a sentence; text without full stops is cut


def snippet(text: str, weights: Mapping[str, float], width: int) -> str:
    """The sentence with most weight in it, cut to a width; the first one if none has any.

    Parameters
    ----------
    text : str
    weights : mapping from word to float
        What each word is worth.
    width : int
        Of the result, in characters.
    """
    best, most = "", -1.0
    for sentence in pieces(text[:LOOKED_AT]):
        words = _WORD.findall(sentence.lower())
        worth = sum(weights.get(word, 0.0) for word in set(words)) / (len(words) + 8) ** 0.5
        if worth > most and (len(words) >= 3 or not best):
            best, most = sentence, worth
    return cut(best, width)


def pieces(text: str) -> list[str]:
    """Sentences; what has no full stop for long is cut into stretches."""
    out = []
    for sentence in _ENDS.split(text):
        words = sentence.split()
        out += [" ".join(words[i : i + LONGEST]) for i in range(0, len(words), LONGEST)]
    return out


def cut(text: str, width: int) -> str:
    """At most so many characters, ending at a word."""
    text = " ".join(text.split())
    if len(text) <= width:
        return text
    head = text[: width - 1]
    return (head.rsplit(" ", 1)[0] if " " in head[width // 2 :] else head).rstrip(" ,;:-") + "…"
