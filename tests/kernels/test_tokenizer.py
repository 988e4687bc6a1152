"""The kernel that numbers pieces of text against Python's dict."""

import re
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.kernels.tokenizer import fill_slots, number_pieces

KINDS = np.array([c if c > 127 else ord(chr(c).lower()) if chr(c).isalnum() else 0 for c in range(256)], np.uint8)
texts_of = st.lists(st.text(alphabet="aAbB1é. ", max_size=30), min_size=1, max_size=6)


@given(texts_of, st.integers(1, 40), st.integers(8, 80))
@settings(max_examples=200)
def test_pieces_are_numbered_as_they_come_up(texts, pieces, letters):
    """With too little room the kernel stops before the piece, and goes on when there is more."""
    known = {}
    expected = [
        [known.setdefault(piece, len(known)) for piece in re.findall("[a-z0-9é]+", text.lower())] for text in texts
    ]
    raw = [text.encode() for text in texts]
    text, ends = np.frombuffer(b"".join(raw), np.uint8), np.cumsum([len(r) for r in raw])
    slots, hashes = np.full(64, -1, np.int32), np.empty(pieces, np.uint64)
    starts, spelled = np.zeros(pieces + 1, np.int64), np.empty(letters, np.uint8)
    state, numbers, counts = np.zeros(4, np.int64), np.empty(200, np.int32), np.zeros(len(ends), np.int64)
    while not number_pieces(text, ends, KINDS, state, slots, hashes, starts, spelled, numbers, counts):
        hashes, starts = np.append(hashes, hashes[:1]), np.append(starts, 0)
        spelled = np.concatenate([spelled, spelled])
        slots = np.full(2 * len(slots), -1, np.int32)
        fill_slots(hashes, int(state[2]), slots)
    assert [part.tolist() for part in np.split(numbers[: state[3]], np.cumsum(counts))[:-1]] == expected
    found = [spelled[a:b].tobytes().decode() for a, b in pairwise(starts[: len(known) + 1])]
    assert found == list(known)
