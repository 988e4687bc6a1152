"""The sentence of a document with the most weight in a topic."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n(?=[>*#-])")
_WORD = re.compile(r"[^\W\d_]{2,}")
MAX_CHARACTERS = 20_000  # of a document that are searched
MAX_SENTENCE_WORDS = 30  # text without full stops is cut


def snippet(text: str, weights: Mapping[str, float], width: int) -> str:
    """The sentence with most weight of its words in it, cut to a width in characters; the first if none has any."""
    best, most = "", -1.0
    for sentence in pieces(text[:MAX_CHARACTERS]):
        words = _WORD.findall(sentence.lower())
        worth = sum(weights.get(word, 0.0) for word in set(words)) / (len(words) + 8) ** 0.5
        if worth > most and (len(words) >= 3 or not best):
            best, most = sentence, worth
    return cut(best, width)


def pieces(text: str) -> list[str]:
    """Cut a text into sentences of at most MAX_SENTENCE_WORDS words."""
    out = []
    for sentence in _SENTENCE_END.split(text):
        words = sentence.split()
        out += [" ".join(words[i : i + MAX_SENTENCE_WORDS]) for i in range(0, len(words), MAX_SENTENCE_WORDS)]
    return out


def cut(text: str, width: int) -> str:
    """Cut a text to `width` characters, at the end of a word."""
    text = " ".join(text.split())
    if len(text) <= width:
        return text
    head = text[: width - 1]
    return (head.rsplit(" ", 1)[0] if " " in head[width // 2 :] else head).rstrip(" ,;:-") + "…"
