"""Inner loop of collapsed Gibbs sampling: all topics of a token at once, and a draw without branches.

Chances are stored as rows of 16 topics and summed downwards, row by row, which is one vector operation per row. The
sums of the last row give the column of the draw, the sums above it the row. This takes a few comparisons; a search from
topic to topic would cost a wrong branch prediction at every token.
"""

import numpy as np
from numba import njit

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}
LANES = 16


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
def _sum_chances(weight, row, beta, sums):
    """Sum weight (row + β) down the columns of 16: sums (K,) = chances of c, c − 16, … together."""
    for c in range(sums.size):
        sums[c] = weight[c] * (row[c] + beta)
    for c in range(sums.size - LANES):
        sums[c + LANES] += sums[c]


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_topic(sums, uniform, before):
    """Return the topic at the share `uniform` (from 0 to 1) of the chances, column by column, and their sum."""
    last = sums[sums.size - LANES :]
    a = (last[0] + last[1]) + (last[2] + last[3])
    b = a + ((last[4] + last[5]) + (last[6] + last[7]))
    c = b + ((last[8] + last[9]) + (last[10] + last[11]))
    total = c + ((last[12] + last[13]) + (last[14] + last[15]))
    u = uniform * total
    before[1], before[2], before[3] = a, b, c  # the groups of four columns; before[0] is 0
    group = int(u >= a) + int(u >= b) + int(u >= c)
    u -= before[group]
    group *= 4
    a = last[group]
    b = a + last[group + 1]
    c = b + last[group + 2]
    before[5], before[6], before[7] = a, b, c  # the columns of the group; before[4] is 0
    column = int(u >= a) + int(u >= b) + int(u >= c)
    u -= before[4 + column]
    column += group
    topic = column
    for at in range(column, sums.size - LANES, LANES):
        topic += LANES * int(u >= sums[at])
    return topic, total


@njit(cache=True, nogil=True, error_model="numpy")
def sample_topics(data, indices, indptr, z, counts, totals, alpha, beta, k, uniform, document_counts):
    """Draw new topics z (tokens,) for all tokens of a block, and update counts (d,K) and totals (K,).

    The chance of topic c is (n_ic + α_c)(n_jc + β)/(n_c + dβ), the token itself not counted. K is k rounded up to a
    multiple of 16, alpha (K,) is padded with zeros; document_counts (m,K) receives the documents' counts. Returns
    Σ log p(word of the token | all other tokens).
    """
    (d, K), one, logp, part, t = counts.shape, counts.dtype.type(1), 0.0, 1.0, 0
    weight, sums, before = np.zeros(K, counts.dtype), np.zeros(K, counts.dtype), np.zeros(8, counts.dtype)
    floor, prior = d * float(beta), alpha.sum()
    for i in range(indptr.size - 1):
        n, length = document_counts[i], 0
        for q in range(indptr[i], indptr[i + 1]):
            length += data[q]
        for at in range(t, t + length):
            n[z[at]] += one
        for c in range(k):
            weight[c] = (n[c] + alpha[c]) / (totals[c] + floor)
        share = 1.0 / (length - 1 + prior)
        for q in range(indptr[i], indptr[i + 1]):
            row = counts[indices[q]]
            for _ in range(data[q]):
                old = z[t]
                n[old] -= one
                row[old] -= one
                totals[old] -= 1.0
                weight[old] = (n[old] + alpha[old]) / (totals[old] + floor)
                _sum_chances(weight, row, beta, sums)
                new, total = _draw_topic(sums, uniform[t], before)
                new = min(new, k - 1)
                z[t] = new
                n[new] += one
                row[new] += one
                totals[new] += 1.0
                weight[new] = (n[new] + alpha[new]) / (totals[new] + floor)
                part *= total * share
                t += 1
                if t % LANES == 0:  # one logarithm for 16 chances, whose product does not underflow
                    logp += np.log(part)
                    part = 1.0
    return logp + np.log(part)
