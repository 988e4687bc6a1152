"""Arithmetic coding of planes of whole numbers, most of them small: quantised coefficients of pictures.

    a number is sent as how many bits it has (one yes-or-no question after the other), those below the first, its sign

The chance of every answer is learned on the way, for each context apart: how large the neighbours already sent are, and
how large the number is expected to be from other planes. One function writes and reads: the two cannot disagree.
References: Witten, Neal & Cleary 1987 (arithmetic coding); Taubman 2000 (contexts from neighbours).
"""

import numpy as np
from numba import njit

KINDS, CONTEXTS, LENGTHS = 3, 20, 32  # of planes; of neighbours, and of expectations; bits of a number, at most
WORD, HALF = 0xFFFFFFFF, 1 << 15
RARE = 32  # of 65536: no answer is less likely


@njit(cache=True, nogil=True, inline="always")
def _answer(coder, buffer, chance, bit, reading):
    """One answer: the interval low..high of the coder shrinks to its share, chance / 65536 if it is 1."""
    low, high, place = coder[0], coder[1], coder[3]
    middle = low + ((high - low) * chance >> 16)
    if reading:
        bit = np.int64(coder[2] <= middle)
    if bit:
        high = middle
    else:
        low = middle + 1
    while (low ^ high) >> 24 == 0:  # the first byte is settled
        if reading:  # after the end come zeros
            coder[2] = (coder[2] << 8 & WORD) | (np.int64(buffer[place]) if place < len(buffer) else 0)
        else:
            buffer[place] = high >> 24
        place += 1
        low, high = low << 8 & WORD, (high << 8 & WORD) | 255
    coder[0], coder[1], coder[3] = low, high, place
    return bit


@njit(cache=True, nogil=True, inline="always")
def _learned(coder, buffer, odds, bit, reading):
    """An answer whose chance is the mean of a quick and a slow running mean of those before it."""
    bit = _answer(coder, buffer, (odds[0] + odds[1]) >> 1, bit, reading)
    target = 65536 - RARE if bit else RARE
    odds[0] += (target - odds[0]) >> 4
    odds[1] += (target - odds[1]) >> 7
    return bit


@njit(cache=True, nogil=True, inline="always")
def _length(x):
    n = 0
    while x > 0:
        x >>= 1
        n += 1
    return n


@njit(cache=True, nogil=True, inline="always")
def _context(x):
    """Two steps for each doubling: 0, 1, 2, 3, 4-5, 6-7, 8-11, ..."""
    if x < 4:
        return x
    n = _length(x)
    return min(2 * n - 2 + (x >> (n - 2) & 1), CONTEXTS - 1)


@njit(cache=True, nogil=True, inline="always")
def _number(coder, buffer, odds, second, x, reading):
    """One number, with the chances of its context; those of the bit after the first depend on the length alone."""
    size = abs(x)
    length, n = _length(size), 0
    while n < LENGTHS - 1 and _learned(coder, buffer, odds[n], np.int64(length > n), reading):
        n += 1
    if n == 0:
        return np.int64(0)
    found = np.int64(1)
    for b in range(n - 2, -1, -1):
        bit = size >> b & 1
        if b == n - 2:
            bit = _learned(coder, buffer, second[n], bit, reading)
        else:
            bit = _answer(coder, buffer, HALF, bit, reading)
        found = found << 1 | bit
    return -found if _answer(coder, buffer, HALF, np.int64(x < 0), reading) else found


@njit(cache=True, nogil=True, inline="always")
def _guess(q, i, j):
    """A number from those west, north and between: the median of w, n and w + n - nw."""
    if i == 0 and j == 0:
        return np.int64(0)
    w = np.int64(q[i, j - 1]) if j else np.int64(q[i - 1, j])
    n = np.int64(q[i - 1, j]) if i else w
    between = np.int64(q[i - 1, j - 1]) if i and j else n
    return max(min(w, n), min(max(w, n), w + n - between))


@njit(cache=True, nogil=True)
def code_plane(q, size, expected, kind, odds, second, coder, buffer, reading):
    """Write the plane q (h,w), or read it.

    size (h,w) receives the magnitudes of what was sent, and expected (h,w) is how large they are thought to be. A plane
    of kind 1 is smooth: what is sent is how far a number is from a guess. odds (KINDS, CONTEXTS, CONTEXTS, LENGTHS, 2),
    second (LENGTHS, 2) and coder (low, high, word read, place) go on from plane to plane; so does the buffer, which is
    returned, since a longer one may have taken its place.
    """
    h, w = q.shape
    for i in range(h):
        for j in range(w):
            if not reading and coder[3] + 256 > len(buffer):
                longer = np.empty(2 * len(buffer) + 512, np.uint8)
                for t in range(len(buffer)):
                    longer[t] = buffer[t]
                buffer = longer
            near = np.int64(0)
            if j:
                near += 2 * size[i, j - 1]
            if i:
                near += 2 * size[i - 1, j]
            if i and j:
                near += size[i - 1, j - 1]
            if i and j + 1 < w:
                near += size[i - 1, j + 1]
            guess = _guess(q, i, j) if kind == 1 else np.int64(0)
            chances = odds[kind, _context(near), _context(expected[i, j])]
            x = _number(coder, buffer, chances, second, q[i, j] - guess, reading)
            if reading:
                q[i, j] = guess + x
            size[i, j] = abs(x)
    return buffer
