"""From text to words, the same ones every time.

A word is a run of letters, the marks that belong to them, and apostrophes inside it: "don't", "naïve", "हिन्दी".
A run with a digit, "1990" or "x86", is a number. Text is normalized first (Unicode's NFC, ’ as ', no soft hyphens), so
that words with equal appearance are equal.

Writing without spaces (Chinese, Japanese except Katakana, Thai, Lao, Khmer, Burmese) is cut into overlapping pairs of
characters, 東京都 into 東京 and 京都: most words there have two, and longer ones are several pairs. Users with a
dictionary cut texts by it and pass lists of words.

Splitting keeps every possible word; `Rules.word` then checks each distinct piece once, since pieces repeat and a
look-up is faster than the check.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass
from itertools import pairwise

from twofold.core.checks import InputError

_JOINERS = "\u200c\u200d"  # stand inside words of Persian and of Indian scripts
ASCII_BETWEEN = frozenset(c for c in map(chr, range(128)) if not (c.isalnum() or c == "'"))  # between words
_ASCII = "".join(" " if c in ASCII_BETWEEN else c for c in map(chr, range(128)))
_UNSPACED = re.compile(
    "[\u0e01-\u0e4e\u0e80-\u0ecf\u1000-\u103f\u1050-\u109f\u1780-\u17d3\u3005\u3041-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003134f]+"
)
_BEYOND_BMP = re.compile("[\U00010000-\U0010ffff]")


def normalize(text: str, lowercase: bool) -> str:
    """Give words of equal appearance one spelling."""
    if lowercase:
        text = text.lower()
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.replace("\u2019", "'").replace("\u00ad", ""))
    return text


def pieces(text: str, lowercase: bool) -> list[str]:
    """The runs of letters, digits, marks and apostrophes in a text, in order."""
    text = normalize(text, lowercase)
    plain = text.isascii()
    text = text.translate(_ASCII) if plain else text.replace("_", " ")
    if "''" in text:
        text = text.replace("''", "  ")  # a quotation mark typed as two apostrophes
    if plain:
        return text.split()
    found = _pattern(_has_rare_marks(text)).findall(text)
    return [part for piece in found for part in cut_in_pairs(piece)] if _UNSPACED.search(text) else found


def cut_in_pairs(piece: str) -> list[str]:
    """A piece with every run of a writing without spaces cut into its pairs of characters, marks with their letters.

    >>> cut_in_pairs("東京都のテレビ"), cut_in_pairs("word"), cut_in_pairs("ภาษาไทย")
    (['東京', '京都', '都の', 'テレビ'], ['word'], ['ภา', 'าษ', 'ษา', 'าไ', 'ไท', 'ทย'])
    """
    out, done = list[str](), 0
    for run in _UNSPACED.finditer(piece):
        letters = list[str]()
        for c in run[0]:
            if letters and _category(c) == "M":
                letters[-1] += c
            else:
                letters.append(c)
        out += [piece[done : run.start()]] + ([a + b for a, b in pairwise(letters)] or letters)
        done = run.end()
    return [part for part in [*out, piece[done:]] if part]


def _has_rare_marks(text: str) -> bool:
    """Return whether marks beyond the basic plane occur; a pattern with them is ten times slower."""
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
    """The rules of words."""

    lowercase: bool = True
    numbers: bool = False
    min_length: int = 2
    stop_words: frozenset[str] = frozenset()

    def split(self, document: str | list[str]) -> list[str]:
        """A text's pieces, or the words of a list, normalized."""
        if isinstance(document, str):
            return pieces(document, self.lowercase)
        return [normalize(word, self.lowercase) for word in document]

    def word(self, piece: str) -> str | None:
        """The word in a piece, or None if it is a stop word, a number, too short, or none at all."""
        word = piece if _plain(piece) else self._cut_article(bare(piece))
        kinds = {"L"} if _plain(word) else {_category(c) for c in word}
        if len(word) < self.min_length or not ("L" in kinds or (self.numbers and "N" in kinds)):
            return None
        if ("N" in kinds and not self.numbers) or word.lower() in self.stop_words:
            return None
        return word

    def _cut_article(self, word: str) -> str:
        """Leave out a stop word and its apostrophe at the beginning: l'arbre is arbre, dell'arte is arte."""
        head, apostrophe, rest = word.partition("'")
        if not apostrophe or word.lower() in self.stop_words:
            return word
        return rest if self.stop_words & {head.lower(), head.lower() + "'"} else word


def _plain(piece: str) -> bool:
    """Return whether a piece has only letters a to z, like most words, whose characters need no check."""
    return piece.isascii() and piece.isalpha()


def bare(piece: str) -> str:
    """A piece without quotation marks around it, and without marks before the first letter."""
    word = piece.strip("'" + _JOINERS)
    while word and _category(word[0]) == "M":
        word = word[1:].strip("'" + _JOINERS)
    return word


class Stems:
    """word ↦ its stem: "topics", "topic" ↦ "topic"; with None words do not change."""

    def __init__(self, language: str | None):
        self.find = None
        if language is not None:
            import snowballstemmer

            from twofold.text.languages import look_up, name_stemmer

            name = language if language in snowballstemmer.algorithms() else name_stemmer(look_up(language) or "")
            if name is None:
                known = ", ".join(sorted(snowballstemmer.algorithms()))
                raise InputError(f"stem={language!r} is not a language the stemmer knows: {known}.")
            self.find = snowballstemmer.stemmer(name).stemWord

    def __call__(self, word: str) -> str:
        return word if self.find is None else self.find(word) or word
