"""Predictions of decision trees that are kept as arrays.

node i      feature[i] >= 0: rows with x[feature[i]] <= threshold[i] go on at node i + 1, others at node right[i]
            feature[i] = -1: a leaf, whose values are leaves[right[i] : right[i] + width]
roots       the first node of every tree; right[i] > i, so that every walk ends
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def average_leaves(X, roots, feature, threshold, right, leaves, width):
    """(m,width) the mean over trees of the leaf values that each row of X (m,d) float32 arrives at."""
    out = np.zeros((len(X), width))
    for i in range(len(X)):
        for root in roots:
            node = root
            while feature[node] >= 0:
                node = node + 1 if X[i, feature[node]] <= threshold[node] else right[node]
            for a in range(width):
                out[i, a] += leaves[right[node] + a]
        for a in range(width):
            out[i, a] /= len(roots)
    return out
