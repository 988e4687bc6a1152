"""Text to numbers: runs of word bytes, found in a table of the pieces before."""

import numpy as np
from numba import njit

_BASIS, _PRIME, _SHIFT = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3), np.uint64(29)


@njit(cache=True, nogil=True)
def number_pieces(text, ends, kinds, state, slots, hashes, starts, spelled, numbers, counts):
    """Write the number of every piece in a text of several documents; new pieces get the next numbers.

    kinds (256,) uint8 is 0 for bytes between pieces, else the byte in lower case. Piece i is
    spelled[starts[i]:starts[i+1]]; slots (a power of two) find a piece by its hash. `numbers` takes the pieces'
    numbers, counts[d] the number of pieces of document d, which ends at ends[d].

    state is (place in the text, document, pieces known, numbers written). If there is no room for another piece,
    False is returned with the state before it; call again with more room.
    """
    at, document, known, written = state
    mask = np.uint64(slots.size - 1)
    while document < ends.size:
        end = ends[document]
        while at < end:
            if kinds[text[at]] == 0:
                at += 1
                continue
            begin, h = at, _BASIS
            while at < end and kinds[text[at]] != 0:
                h = (h ^ np.uint64(kinds[text[at]])) * _PRIME
                at += 1
            h ^= h >> _SHIFT
            slot = h & mask
            while slots[slot] >= 0 and not (
                hashes[slots[slot]] == h and _equal_spelling(text, begin, at, kinds, starts, spelled, slots[slot])
            ):
                slot = (slot + np.uint64(1)) & mask
            piece = slots[slot]
            if piece < 0:
                if known == hashes.size or starts[known] + (at - begin) > spelled.size:
                    state[:] = begin, document, known, written
                    return False
                piece = known
                known += 1
                slots[slot], hashes[piece] = piece, h
                starts[known] = starts[piece] + (at - begin)
                for i in range(at - begin):
                    spelled[starts[piece] + i] = kinds[text[begin + i]]
            numbers[written] = piece
            written += 1
            counts[document] += 1
        document += 1
    state[:] = at, document, known, written
    return True


@njit(cache=True, nogil=True)
def _equal_spelling(text, begin, end, kinds, starts, spelled, piece):
    first = starts[piece]
    if starts[piece + 1] - first != end - begin:
        return False
    for i in range(end - begin):  # noqa: SIM110  (a generator would be slower)
        if spelled[first + i] != kinds[text[begin + i]]:
            return False
    return True


@njit(cache=True, nogil=True)
def fill_slots(hashes, known, slots):
    """Enter pieces 0..known into empty slots."""
    mask = np.uint64(slots.size - 1)
    for piece in range(known):
        slot = hashes[piece] & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = piece
