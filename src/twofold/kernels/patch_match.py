"""Nearest patches by chance and by neighbors: a good match of a patch, moved by one pixel, is good for the next patch.

    for each patch in turn: try the matches of its neighbors, moved; then places drawn at random, nearer and nearer
Reference: Barnes, Shechtman, Finkelstein & Goldman 2009.
"""

import numpy as np
from numba import njit

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
def compare(image, a, b, i, j, size, limit):
    """Compute the squared distance of two patches of `image` (h,w,c), or something above `limit`."""
    total = image.dtype.type(0)
    for u in range(size):
        for v in range(size):
            for c in range(image.shape[2]):
                difference = image[a + u, b + v, c] - image[i + u, j + v, c]
                total += difference * difference
        if total > limit:
            return total
    return total


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def draw(state, low, high):
    """Draw a whole number from low to high, both included; state (1,) uint64 moves on (xorshift)."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return low + np.int64((x >> np.uint64(11)) % np.uint64(high - low + 1))


@njit(cache=True, nogil=True, error_model="numpy")
def improve_matches(image, places, usable, size, matches, distances, backward, state):
    """Improve the matches of the patches at `places` (n,2), rows of `matches` (h,w,2), one after the other.

    usable (h,w): patches that may be a match. distances (h,w) of the matches; of places without one, infinite.
    """
    h, w = usable.shape
    step = -1 if backward else 1
    for t in range(len(places)):
        i, j = places[len(places) - 1 - t if backward else t]
        best, a, b = distances[i, j], matches[i, j, 0], matches[i, j, 1]
        for turn in range(2):
            u, v = (i - step, j) if turn == 0 else (i, j - step)
            if 0 <= u < h and 0 <= v < w and distances[u, v] < np.inf:
                x, y = matches[u, v, 0] + i - u, matches[u, v, 1] + j - v
                if 0 <= x < h and 0 <= y < w and usable[x, y]:
                    found = compare(image, i, j, x, y, size, best)
                    if found < best:
                        best, a, b = found, x, y
        radius = max(h, w)
        while radius >= 1:
            x = draw(state, max(a - radius, 0), min(a + radius, h - 1))
            y = draw(state, max(b - radius, 0), min(b + radius, w - 1))
            if usable[x, y]:
                found = compare(image, i, j, x, y, size, best)
                if found < best:
                    best, a, b = found, x, y
            radius //= 2
        distances[i, j], matches[i, j, 0], matches[i, j, 1] = best, a, b


@njit(cache=True, nogil=True, error_model="numpy")
def measure_matches(image, places, matches, size, distances):
    """Write the squared distance of each patch at `places` to its match."""
    for t in range(len(places)):
        i, j = places[t]
        a, b = matches[i, j]
        distances[i, j] = compare(image, i, j, a, b, size, np.inf)


@njit(cache=True, nogil=True, error_model="numpy")
def vote(image, places, matches, weights, size, sums, counts):
    """Add the matches of the patches at `places`, each with its weight (n,), to sums (h,w,c) and counts (h,w)."""
    for t in range(len(places)):
        i, j = places[t]
        a, b = matches[i, j]
        for u in range(size):
            for v in range(size):
                counts[i + u, j + v] += weights[t]
                for c in range(image.shape[2]):
                    sums[i + u, j + v, c] += weights[t] * image[a + u, b + v, c]
