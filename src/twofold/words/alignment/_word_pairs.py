"""Pairs of words, one of each language: as given, from a file, or spelled alike."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from twofold.core.checks import InputError
from twofold.text.documents import documents
from twofold.words.word_vectors.word_vectors import WordVectors


def pairs_of(pairs: Any, source: WordVectors, target: WordVectors) -> np.ndarray:
    """Pairs as rows of the two (p,2); those with a word that has no vector are left out.

    `pairs` is a list of (source word, target word), a dict, or the path of a file with two words a line.
    """
    listed = _from_file(pairs) if isinstance(pairs, (str, os.PathLike)) else _listed(pairs)
    places = [(source.place(a), target.place(b)) for a, b in listed if a in source and b in target]
    if not places:
        a, b = listed[0] if listed else ("", "")
        raise InputError(
            f"none of the {len(listed)} pairs has both its words among the vectors; the first is {a!r}, {b!r}. Check "
            "that the source's words come first, and that upper and lower case agree."
        )
    return np.array(list(dict.fromkeys(places)), dtype=np.int64)


def same_spelling(source: WordVectors, target: WordVectors, vocabulary: int) -> np.ndarray:
    """The words that both have among their first, as rows of the two (p,2)."""
    common = [word for word in source.words[:vocabulary].tolist() if word in target]
    places = [(source.place(word), target.place(word)) for word in common]
    places = [(a, b) for a, b in places if b < vocabulary]
    if not places:
        raise InputError(
            f"source and target have no word in common among their first {vocabulary:,}. Give pairs=[(source word, "
            "target word), ...] to start from."
        )
    return np.array(places, dtype=np.int64)


def _listed(pairs: Any) -> list[tuple[str, str]]:
    if isinstance(pairs, Mapping):
        pairs = pairs.items()
    if not isinstance(pairs, Iterable):
        raise InputError(f"pairs is {pairs!r}; give a list of (source word, target word), a dict, or a path.")
    found = []
    for at, pair in enumerate(pairs):
        if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(word, str) for word in pair):
            raise InputError(f"pairs[{at}] is {pair!r}, not two words: (source word, target word).")
        found.append((str(pair[0]), str(pair[1])))
    return found


def _from_file(path: Any) -> list[tuple[str, str]]:
    """Two words a line, with a tab or spaces between."""
    found = []
    for number, line in enumerate(documents(path), 1):
        words = str(line).split("\t") if "\t" in line else str(line).split()
        if len(words) == 2:
            found.append((words[0].strip(), words[1].strip()))
        elif words:
            raise InputError(f"{os.fspath(path)}, line {number} has {len(words)} words; a pair is two: source, target.")
    return found
