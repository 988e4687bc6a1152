"""From text to words, the same ones every time.

A word is a run of letters, the marks that belong to them, and apostrophes inside it: "don't", "naïve", "हिन्दी".
A run with a digit in it, "1990" or "x86", is a number. Text is put into one form first (Unicode's NFC, ’ as ',
no soft hyphens), so that what looks alike is alike. Writing without spaces (Chinese, Thai) has to be cut before.

Splitting keeps whatever might be a word; `Rules.word` then judges each distinct piece once, which is what makes
counting quick: pieces repeat, and looking one up costs less than looking at it.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass

from twofold.core.checks import InputError

_JOINERS = "\u200c\u200d"  # stand inside words of Persian and of Indian scripts
ASCII_BETWEEN = frozenset(c for c in map(chr, range(128)) if not (c.isalnum() or c == "'"))  # between words
_ASCII = "".join(" " if c in ASCII_BETWEEN else c for c in map(chr, range(128)))
_BEYOND_BMP = re.compile("[\U00010000-\U0010ffff]")


def normalised(text: str, lowercase: bool) -> str:
    """One spelling for one appearance."""
    if lowercase:
        text = text.lower()
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.replace("\u2019", "'").replace("\u00ad", ""))
    return text


def pieces(text: str, lowercase: bool) -> list[str]:
    """The runs of letters, digits, marks and apostrophes in a text, in order."""
    text = normalised(text, lowercase)
    plain = text.isascii()
    text = text.translate(_ASCII) if plain else text.replace("_", " ")
    if "''" in text:
        text = text.replace("''", "  ")  # a quotation mark typed as two apostrophes
    return text.split() if plain else _pattern(_has_rare_marks(text)).findall(text)


def _has_rare_marks(text: str) -> bool:
    """Whether marks beyond the basic plane occur: testing for them slows the pattern ten times over."""
    return bool(_BEYOND_BMP.search(text)) and any(_category(c) == "M" for c in set(text) if c > "\uffff")


@functools.cache
def _pattern(rare_marks: bool) -> re.Pattern[str]:
    """Python's \\w has letters and digits of all scripts, but not the marks that finish them."""
    codes = [*range(0x300, 0x20000), *range(0xE0100, 0xE01F0)] if rare_marks else range(0x300, 0x10000)
    marks = "".join(chr(c) for c in codes if _category(chr(c)) == "M")
    return re.compile(f"[\\w'{_JOINERS}{marks}]+")


def _category(character: str) -> str:
    return unicodedata.category(character)[0]


@dataclass(frozen=True)
class Rules:
    """What counts as a word."""

    lowercase: bool = True
    numbers: bool = False
    min_length: int = 2
    stop_words: frozenset[str] = frozenset()

    def split(self, document: str | list[str]) -> list[str]:
        """A text's pieces; the words of a list, spelled alike."""
        if isinstance(document, str):
            return pieces(document, self.lowercase)
        return [normalised(word, self.lowercase) for word in document]

    def word(self, piece: str) -> str | None:
        """The word in a piece, or None if it is a stop word, a number, too short, or none at all."""
        word = piece if _plain(piece) else bare(piece)
        kinds = {"L"} if _plain(word) else {_category(c) for c in word}
        if len(word) < self.min_length or not ("L" in kinds or (self.numbers and "N" in kinds)):
            return None
        if ("N" in kinds and not self.numbers) or word.lower() in self.stop_words:
            return None
        return word


def _plain(piece: str) -> bool:
    """Nothing but the letters a to z, which most words are: no need to look at each."""
    return piece.isascii() and piece.isalpha()


def bare(piece: str) -> str:
    """A piece without quotation marks around it, and without marks that have no letter before them."""
    word = piece.strip("'" + _JOINERS)
    while word and _category(word[0]) == "M":
        word = word[1:].strip("'" + _JOINERS)
    return word


class Stems:
    """word ↦ what it shares with its other forms: "topics", "topic" ↦ "topic". None leaves words as they are."""

    def __init__(self, language: str | None):
        self.find = None
        if language is not None:
            import snowballstemmer

            if language not in snowballstemmer.algorithms():
                known = ", ".join(sorted(snowballstemmer.algorithms()))
                raise InputError(f"stem={language!r} is not a language the stemmer knows: {known}.")
            self.find = snowballstemmer.stemmer(language).stemWord

    def __call__(self, word: str) -> str:
        return word if self.find is None else self.find(word) or word
