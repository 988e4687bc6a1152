"""Arithmetic coding of planes of whole numbers, most of them small: quantized coefficients of images.

    a number is coded as its number of bits in unary, then its bits below the first, then its sign

The chance of every bit is learned during coding, separately for each context: the size of the neighbors already coded,
and the size that other planes predict. One function writes and reads, so the two cannot disagree.
References: Witten, Neal & Cleary 1987 (arithmetic coding); Taubman 2000 (contexts from neighbors).
"""

import numpy as np
from numba import njit

PLANE_KINDS, CONTEXTS, LENGTHS = 3, 20, 32  # CONTEXTS: of neighbors and of predictions; LENGTHS: bits of a number + 1
WORD_MASK, EVEN_CHANCE = 0xFFFFFFFF, 1 << 15
MIN_CHANCE = 32  # of 65536: no bit is less likely


@njit(cache=True, nogil=True, inline="always")
def _code_bit(coder, buffer, chance, bit, reading):
    """Code one bit: the interval low..high of the coder shrinks to its share, chance / 65536 for a 1."""
    low, high, place = coder[0], coder[1], coder[3]
    middle = low + ((high - low) * chance >> 16)
    if reading:
        bit = np.int64(coder[2] <= middle)
    if bit:
        high = middle
    else:
        low = middle + 1
    while (low ^ high) >> 24 == 0:  # the first byte is final
        if reading:  # zeros follow after the end
            coder[2] = (coder[2] << 8 & WORD_MASK) | (np.int64(buffer[place]) if place < len(buffer) else 0)
        else:
            buffer[place] = high >> 24
        place += 1
        low, high = low << 8 & WORD_MASK, (high << 8 & WORD_MASK) | 255
    coder[0], coder[1], coder[3] = low, high, place
    return bit


@njit(cache=True, nogil=True, inline="always")
def _code_adaptive_bit(coder, buffer, odds, bit, reading):
    """Code a bit whose chance is the average of a fast and a slow running mean of the bits before it."""
    bit = _code_bit(coder, buffer, (odds[0] + odds[1]) >> 1, bit, reading)
    target = 65536 - MIN_CHANCE if bit else MIN_CHANCE
    odds[0] += (target - odds[0]) >> 4
    odds[1] += (target - odds[1]) >> 7
    return bit


@njit(cache=True, nogil=True, inline="always")
def _bit_length(x):
    n = 0
    while x > 0:
        x >>= 1
        n += 1
    return n


@njit(cache=True, nogil=True, inline="always")
def _context(x):
    """Return the context of a size, two steps for each doubling: 0, 1, 2, 3, 4-5, 6-7, 8-11, ..."""
    if x < 4:
        return x
    n = _bit_length(x)
    return min(2 * n - 2 + (x >> (n - 2) & 1), CONTEXTS - 1)


@njit(cache=True, nogil=True, inline="always")
def _code_number(coder, buffer, odds, second, x, reading):
    """Code one number with the chances of its context; those of its second bit depend only on its length."""
    size = abs(x)
    length, n = _bit_length(size), 0
    while n < LENGTHS - 1 and _code_adaptive_bit(coder, buffer, odds[n], np.int64(length > n), reading):
        n += 1
    if n == 0:
        return np.int64(0)
    found = np.int64(1)
    for b in range(n - 2, -1, -1):
        bit = size >> b & 1
        if b == n - 2:
            bit = _code_adaptive_bit(coder, buffer, second[n], bit, reading)
        else:
            bit = _code_bit(coder, buffer, EVEN_CHANCE, bit, reading)
        found = found << 1 | bit
    return -found if _code_bit(coder, buffer, EVEN_CHANCE, np.int64(x < 0), reading) else found


@njit(cache=True, nogil=True, inline="always")
def _predict_number(q, i, j):
    """Predict a number from its west, north and northwest neighbors: the median of w, n and w + n - nw."""
    if i == 0 and j == 0:
        return np.int64(0)
    w = np.int64(q[i, j - 1]) if j else np.int64(q[i - 1, j])
    n = np.int64(q[i - 1, j]) if i else w
    between = np.int64(q[i - 1, j - 1]) if i and j else n
    return max(min(w, n), min(max(w, n), w + n - between))


@njit(cache=True, nogil=True)
def code_plane(q, size, expected, kind, odds, second, coder, buffer, reading):
    """Write the plane q (h,w), or read it.

    size (h,w) receives the magnitudes of the coded numbers, expected (h,w) holds predictions of them. A plane of kind 1
    is smooth: it codes the difference between a number and its prediction. odds (PLANE_KINDS, CONTEXTS, CONTEXTS,
    LENGTHS, 2), second (LENGTHS, 2) and coder (low, high, word read, place) continue from plane to plane, and so does
    the buffer. The buffer is returned, because a longer one may replace it.
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
            guess = _predict_number(q, i, j) if kind == 1 else np.int64(0)
            chances = odds[kind, _context(near), _context(expected[i, j])]
            x = _code_number(coder, buffer, chances, second, q[i, j] - guess, reading)
            if reading:
                q[i, j] = guess + x
            size[i, j] = abs(x)
    return buffer
