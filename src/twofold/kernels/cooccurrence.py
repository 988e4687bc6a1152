"""Sums of pairs of words within a window, one word's whole row at a time.

A row is summed in `sums` (V,), where the frequent words, to which most pairs belong, stay in the nearest cache. Bits
mark the sums that are not zero: word c is bit c % 64 of blocks[c // 64], and a block b that is not zero is bit b % 64
of groups[b // 64]. Reading the bits gives the columns in order without sorting, and resets everything to zero.
"""

import numpy as np
from numba import njit

_MAGIC = 0x03F79D71B4CB0A89  # its 64 shifts have 64 different heads, so a head identifies the bit that is set
_HEADS = np.zeros(64, np.int64)
_HEADS[[((_MAGIC << bit) & (2**64 - 1)) >> 58 for bit in range(64)]] = np.arange(64)
_FACTOR, _ONE, _HIGH = np.uint64(_MAGIC), np.uint64(1), np.uint64(58)


@njit(cache=True, nogil=True)
def lay_out(tokens, ends, first, last, starts, out, places):
    """Put −1 before, between and after the lines, and list the positions of each word.

    `out` (tokens + lines + 1,) takes the separated tokens; its used length is returned. places[starts[w]:starts[w+1]]
    takes the positions in `out` of word w among tokens first..last, ascending.
    """
    free = starts.copy()
    out[0], used, begin = -1, 1, 0
    for end in ends:
        for i in range(begin, end):
            w = tokens[i]
            out[used] = w
            if first <= i < last:
                places[free[w]] = used
                free[w] += 1
            used += 1
        if end > begin:
            out[used] = -1
            used += 1
        begin = end
    return used


@njit(cache=True, nogil=True)
def window_rows(tokens, places, starts, weights, sides, sums, blocks, groups, indptr, indices, values):
    """Sum rows of weights: weights[d−1] for a word d places before one of the row's places.

    With 2 `sides`, words after it count too. Tokens are separated by −1, which windows do not cross; row r has
    places[starts[r]:starts[r+1]]. The CSR row pointers, columns and values are written; sums, blocks and groups are
    zero before and after.
    """
    stored = 0
    for r in range(starts.size - 1):
        for o in range(starts[r], starts[r + 1]):
            for step in range(-1, sides, 2):
                at = places[o]
                for d in range(weights.size):
                    at += step
                    c = tokens[at]
                    if c < 0:
                        break
                    former = sums[c]
                    if former == 0:
                        b = c >> 6
                        if blocks[b] == 0:
                            groups[b >> 6] |= _ONE << np.uint64(b & 63)
                        blocks[b] |= _ONE << np.uint64(c & 63)
                    sums[c] = former + weights[d]
        stored = _write_row(stored, sums, blocks, groups, indices, values)
        indptr[r + 1] = stored


@njit(cache=True, nogil=True)
def merge_rows(starts, columns, counts, sums, blocks, groups, indptr, indices, values):
    """Add up rows: those of part q are columns, counts [starts[q, r]:starts[q, r+1]]; output as in `window_rows`."""
    stored = 0
    for r in range(starts.shape[1] - 1):
        for q in range(starts.shape[0]):
            for at in range(starts[q, r], starts[q, r + 1]):
                c = columns[at]
                former = sums[c]
                if former == 0:
                    b = c >> 6
                    if blocks[b] == 0:
                        groups[b >> 6] |= _ONE << np.uint64(b & 63)
                    blocks[b] |= _ONE << np.uint64(c & 63)
                sums[c] = former + counts[at]
        stored = _write_row(stored, sums, blocks, groups, indices, values)
        indptr[r + 1] = stored


@njit(cache=True, nogil=True)
def _write_row(stored, sums, blocks, groups, indices, values):
    """Move the sums that are not zero to the end of a CSR array, in the order of the columns."""
    for g in range(groups.size):
        group = groups[g]
        groups[g] = 0
        while group:
            b = (g << 6) + _HEADS[((group & (~group + _ONE)) * _FACTOR) >> _HIGH]
            group &= group - _ONE
            block = blocks[b]
            blocks[b] = 0
            while block:
                c = (b << 6) + _HEADS[((block & (~block + _ONE)) * _FACTOR) >> _HIGH]
                block &= block - _ONE
                indices[stored] = c
                values[stored] = sums[c]
                sums[c] = 0
                stored += 1
    return stored
