"""Groups of similar patches of an image, each cleaned in the principal directions of its group.

    Y (n,d) the noisy patches of a group, noise of variance 1      m their mean      C (d,d) a covariance

    first pass    C of Y:             X = m + (Y − m)(C − I) C⁻¹   = Y − (Y − m) C⁻¹
    second pass   C of a cleaner P:   X = m + (Y − m) C (C + I)⁻¹  = Y − (Y − m)(C + I)⁻¹

In the directions of C, with variances λ, these shrink a coefficient by (λ − 1) / λ and λ / (λ + 1): Wiener's rule.
Reference: Zhang, Dong, Zhang & Shi 2010; Lebrun, Buades & Morel 2013.
"""

import numpy as np
from numba import njit

from twofold.kernels.cholesky import factor, invert

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}
MIN_PIVOT = 0.2  # of a covariance of noisy patches: a direction has about the noise's variance 1, or more


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
def compare_patches(guide, i, j, size, radius, distances, places):
    """Write squared distances of the patch at (i, j) to all patches of a window around it, and return their number."""
    h, w = guide.shape
    t = 0
    for a in range(max(i - radius, 0), min(i + radius, h - size) + 1):
        for b in range(max(j - radius, 0), min(j + radius, w - size) + 1):
            total = guide.dtype.type(0)
            for u in range(size):
                for v in range(size):
                    difference = guide[i + u, j + v] - guide[a + u, b + v]
                    total += difference * difference
            distances[t] = total if a != i or b != j else -1  # a group has its own patch, whatever else is equal
            places[t] = a * w + b
            t += 1
    return t


@njit(cache=True, nogil=True, error_model="numpy")
def take_group(plane, places, size, group, mean):
    """Write the patches of `plane` (h,w) at some places to `group` (n,d), without their mean (d,)."""
    n, w = places.size, plane.shape[1]
    mean[:] = 0
    for q in range(n):
        a, b = divmod(places[q], w)
        for u in range(size):
            for v in range(size):
                value = plane[a + u, b + v]
                group[q, u * size + v] = value
                mean[u * size + v] += value
    mean /= n
    for q in range(n):
        group[q] -= mean


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
def is_plain(group, mean, limit):
    """Check that a group has less than `limit` times the variance of noise, and set its `mean` to one level."""
    n, d = group.shape
    level = mean.mean()
    total = group.dtype.type(0)
    for x in range(d):
        total += n * (mean[x] - level) ** 2
    for q in range(n):
        for x in range(d):
            total += group[q, x] * group[q, x]
    if total >= limit * n * d:
        return False
    mean[:] = level
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def invert_covariance(group, noise, extra):
    """Compute (C + noise · I)⁻¹ of a centered group; `extra` rows of noise stand in for patches that are too few."""
    n, d = group.shape
    C = np.dot(group.T, group)
    C /= group.dtype.type(max(n - 1, 1) if extra == 0 else n + extra)
    for x in range(d):
        C[x, x] += group.dtype.type(noise + extra / (n + extra))
    factor(C, group.dtype.type(MIN_PIVOT))
    invert(C)
    for x in range(d):
        C[x, x + 1 :] = 0
    return np.dot(C.T, C)


@njit(cache=True, nogil=True, error_model="numpy")
def add_group(group, mean, places, size, first, plane):
    """Add patches, with their mean, to `plane` (rows, w), whose row 0 is row `first` of the image."""
    w = plane.shape[1]
    for q in range(places.size):
        a, b = divmod(places[q], w)
        for u in range(size):
            for v in range(size):
                plane[a + u - first, b + v] += group[q, u * size + v] + mean[u * size + v]


@njit(cache=True, nogil=True, error_model="numpy")
def clean_group(noisy, pilot, second, places, size, limit, first, sums, counts):
    """Clean the patches at some places in each channel of `noisy` (c,h,w), and add them to `sums` and `counts`."""
    n, d = places.size, size * size
    Y, P = np.empty((n, d), noisy.dtype), np.empty((n, d), noisy.dtype)
    mean, unused = np.empty(d, noisy.dtype), np.empty(d, noisy.dtype)
    for c in range(noisy.shape[0]):
        take_group(noisy[c], places, size, Y, mean)
        if second:
            take_group(pilot[c], places, size, P, unused)
            Y -= np.dot(Y, invert_covariance(P, 1.0, 0))
        elif is_plain(Y, mean, limit):
            Y[:] = 0
        else:
            Y -= np.dot(Y, invert_covariance(Y, 0.0, max(0, 2 * d - n)))
        add_group(Y, mean, places, size, first, sums[c])
    Y[:] = 1
    mean[:] = 0
    add_group(Y, mean, places, size, first, counts)


@njit(cache=True, nogil=True, error_model="numpy")
def clean_rows(noisy, pilot, guide, second, size, radius, n, step, limit, rows, first, sums, counts):
    """Clean the groups of every `step`-th place whose row is among `rows` (start, stop), the last places included.

    noisy, pilot (c,h,w) with noise of variance 1; guide (h,w) says which patches are similar; sums (c,rows,w) and
    counts (rows,w) begin with row `first`.
    """
    h, w = guide.shape
    window = (2 * radius + 1) ** 2
    distances, places = np.empty(window, guide.dtype), np.empty(window, np.int64)
    for i in range(rows[0], rows[1]):
        if i % step and i != h - size:
            continue
        for j in range(w - size + 1):
            if j % step and j != w - size:
                continue
            t = compare_patches(guide, i, j, size, radius, distances, places)
            m = min(n, t)
            best = np.argpartition(distances[:t], m - 1)[:m] if m < t else np.arange(t)
            clean_group(noisy, pilot, second, places[best], size, limit, first, sums, counts)
