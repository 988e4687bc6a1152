"""Codes of the words in long texts, by a compiled look-up of pieces; `Rules.split` runs once for each distinct piece.

Pieces end at ASCII characters that are in no word. `Rules.split` makes the same words of a piece as of the whole text,
since they do not depend on text beyond such a character. The exception is a capital Σ, which is lowered differently at
the end of a word; texts with one take the plain way.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from twofold.kernels.tokenizer import fill_slots, number_pieces
from twofold.text.tokenize import ASCII_BETWEEN, Rules

FIRST_CAPACITY = 2**12  # pieces


class Pieces:
    """piece ↦ codes of its words; `find` gives the code of a piece that is one word."""

    def __init__(self, rules: Rules, find: Callable[[str], int]):
        self.rules, self.find = rules, find
        kinds = np.arange(256, dtype=np.uint8)
        kinds[:128][[c in ASCII_BETWEEN for c in map(chr, range(128))]] = 0
        if rules.lowercase:
            kinds[ord("A") : ord("Z") + 1] += 32
        self.kinds = kinds
        self.clear()

    def __len__(self) -> int:
        return self.known

    def clear(self) -> None:
        self.known = 0
        self.slots = np.full(4 * FIRST_CAPACITY, -1, np.int32)
        self.hashes, self.starts = np.empty(FIRST_CAPACITY, np.uint64), np.zeros(FIRST_CAPACITY + 1, np.int64)
        self.spelled = np.empty(16 * FIRST_CAPACITY, np.uint8)
        self.codes = np.empty(FIRST_CAPACITY, np.int32)  # of a piece's word; for pieces of none or several words:
        self.several: dict[int, list[int]] = {}

    def takes(self, text: object) -> bool:
        """Return whether a document is a text that can be cut into pieces."""
        return isinstance(text, str) and not (self.rules.lowercase and "Σ" in text)

    def encode_texts(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """The codes of all words in order, and the number of words of each text."""
        raw = [text.encode("utf-8", "surrogatepass") for text in texts]
        text, ends = np.frombuffer(b"".join(raw), np.uint8), np.cumsum([len(r) for r in raw], dtype=np.int64)
        numbers, counts = np.empty(len(text) // 2 + len(ends) + 1, np.int32), np.zeros(len(ends), np.int64)
        state = np.array([0, 0, self.known, 0])
        while not number_pieces(
            text, ends, self.kinds, state, self.slots, self.hashes, self.starts, self.spelled, numbers, counts
        ):
            self._grow(int(state[2]))
        self._learn(int(state[2]))
        return self._expand(numbers[: state[3]], counts)

    def _grow(self, known: int) -> None:
        """Double the capacity for pieces or for their spelling, whichever is full."""
        if known == len(self.hashes):
            self.hashes = np.concatenate([self.hashes, np.empty_like(self.hashes)])
            self.codes = np.concatenate([self.codes, np.empty_like(self.codes)])
            self.starts = np.concatenate([self.starts, np.zeros(known, np.int64)])
            self.slots = np.full(2 * len(self.slots), -1, np.int32)
            fill_slots(self.hashes, known, self.slots)
        else:
            self.spelled = np.concatenate([self.spelled, np.empty_like(self.spelled)])

    def _learn(self, known: int) -> None:
        """Find the words of new pieces."""
        find, split = self.find, self.rules.split
        first, starts = self.known, self.starts[self.known : known + 1].tolist()
        spelled = self.spelled[starts[0] : starts[-1]].tobytes()
        for at in range(known - first):
            piece = spelled[starts[at] - starts[0] : starts[at + 1] - starts[0]]
            text = piece.decode("utf-8", "surrogatepass")
            if text.isalnum() and piece.isascii():
                self.codes[first + at] = find(text)
            else:
                codes = [find(word) for word in split(text)]
                self.codes[first + at] = codes[0] if codes else 0
                if len(codes) != 1:
                    self.several[first + at] = codes
        self.known = known

    def _expand(self, numbers: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Replace piece numbers by codes, where a piece may be several words, or none."""
        if not self.several:
            return self.codes[numbers], counts
        words = np.ones(self.known, np.int64)
        for piece, several in self.several.items():
            words[piece] = len(several)
        times = words[numbers]
        document = np.repeat(np.arange(len(counts)), counts)
        codes = np.repeat(self.codes[numbers], times)
        ends = np.cumsum(times)
        for at in np.flatnonzero(times > 1):
            codes[ends[at] - times[at] : ends[at]] = self.several[int(numbers[at])]
        return codes, np.bincount(document, weights=times, minlength=len(counts)).astype(np.int64)
