"""k-medoids: try every row once as a new medoid, and swap as soon as that lowers the cost.

Row j of D (n,n) contains the distances of all rows to row j. The nearest and second nearest medoid of every row are
kept, so that one pass over row j of D gives the gain of a swap of j with each of the k medoids.
Reference: Schubert & Rousseeuw 2021 (FasterPAM).
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def rank_medoids(D, medoids, near, second, d_near, d_second):
    """Write for every row the numbers of its nearest and second nearest medoid, and the distances to both."""
    for o in range(len(near)):
        near[o] = second[o] = -1
        d_near[o] = d_second[o] = np.inf
        for c in range(len(medoids)):
            d = D[medoids[c], o]
            if d < d_near[o]:
                second[o], d_second[o] = near[o], d_near[o]
                near[o], d_near[o] = c, d
            elif d < d_second[o]:
                second[o], d_second[o] = c, d


@njit(cache=True, nogil=True)
def swap_medoids(D, w, medoids, near, second, d_near, d_second, min_gain):
    """Visit every row once; swap it with its best medoid if that gains more than `min_gain`. Returns the swaps made."""
    n, k = len(w), len(medoids)
    lost = np.zeros(k)  # the cost of leaving out each medoid
    gain = np.empty(k)
    swaps = 0
    stale = True
    for j in range(n):
        if d_near[j] == 0.0 and medoids[near[j]] == j:
            continue
        if stale:
            lost[:] = 0.0
            for o in range(n):
                if k > 1:
                    lost[near[o]] += w[o] * (d_second[o] - d_near[o])
            stale = False
        for m in range(k):
            gain[m] = lost[m]
        shared = 0.0  # gain that does not depend on the medoid replaced
        for o in range(n):
            d = D[j, o]
            if k == 1:
                shared += w[o] * (d - d_near[o])
            elif d < d_near[o]:
                shared += w[o] * (d - d_near[o])
                gain[near[o]] += w[o] * (d_near[o] - d_second[o])
            elif d < d_second[o]:
                gain[near[o]] += w[o] * (d - d_second[o])
        c = np.argmin(gain)
        if gain[c] + shared < -min_gain:
            medoids[c] = j
            rank_medoids(D, medoids, near, second, d_near, d_second)
            swaps += 1
            stale = True
    return swaps
