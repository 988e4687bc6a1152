"""k-medoids: one look at every row as a new medoid, with swaps as soon as they pay.

D (n,n) holds in row j the distances of all rows to row j. Of every row the nearest and the second nearest medoid are
known, so that one run over row j of D gives what the swap of j with each of the k medoids would gain.
Reference: Schubert & Rousseeuw 2021 (FasterPAM).
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def rank_medoids(D, medoids, near, second, d_near, d_second):
    """Fill for every row its nearest and second nearest medoid, by number, and the distances to both."""
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
def swap_all(D, w, medoids, near, second, d_near, d_second, least):
    """Look at every row once and swap it with the medoid for which that pays by more than `least`; the swaps made."""
    n, k = len(w), len(medoids)
    lost = np.zeros(k)  # by leaving out each medoid
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
        shared = 0.0  # gained whichever medoid goes
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
        if gain[c] + shared < -least:
            medoids[c] = j
            rank_medoids(D, medoids, near, second, d_near, d_second)
            swaps += 1
            stale = True
    return swaps
