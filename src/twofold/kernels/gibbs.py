"""Inner loops of collapsed Gibbs sampling: alias tables for words, sparse sums for documents."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def alias_tables(mass, keep, other):
    """Walker's tables for every row of mass (d,k): draw a column c, take it with chance keep[c], else other[c].

    Returns nothing; keep (d,k) in mass' dtype, other (d,k) integers.
    """
    d, k = mass.shape
    small, large, scaled = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k)
    for j in range(d):
        total = 0.0
        for c in range(k):
            total += mass[j, c]
        few, many = 0, 0
        for c in range(k):
            scaled[c] = mass[j, c] * k / total
            if scaled[c] < 1.0:
                small[few] = c
                few += 1
            else:
                large[many] = c
                many += 1
        while few and many:
            few -= 1
            a, b = small[few], large[many - 1]
            keep[j, a], other[j, a] = scaled[a], b
            scaled[b] -= 1.0 - scaled[a]
            if scaled[b] < 1.0:
                many -= 1
                small[few] = b
                few += 1
        for q in range(few):
            keep[j, small[q]], other[j, small[q]] = 1.0, small[q]
        for q in range(many):
            keep[j, large[q]], other[j, large[q]] = 1.0, large[q]


@njit(cache=True, nogil=True, error_model="numpy")
def _propose(row, inverse, n, active, beta, rest, keep, other, uniform, upto):
    """A topic from n_c (n_jc + β)/(n_c + dβ) over the document's active topics, or from the alias table's `rest`."""
    s = 0.0
    for q in range(active.size):
        c = active[q]
        s += n[c] * (row[c] + beta) * inverse[c]
        upto[q] = s
    u = uniform * (s + rest)
    if u < s:
        q = 0
        while q < active.size - 1 and upto[q] <= u:
            q += 1
        return active[q]
    v = min((u - s) / rest, 1.0 - 1e-12) * keep.size
    new = int(v)
    return new if v - new < keep[new] else int(other[new])


@njit(cache=True, nogil=True, error_model="numpy")
def sample_topics(words, starts, z, counts, totals, alpha, beta, mass, keep, other, uniform, own):
    """One sweep over the tokens of a block: topics z are drawn anew, counts (d,k) and totals (k,) follow.

    The chance of topic c is (n_ic + α_c)(n_jc + β)/(n_c + dβ). Proposed is from n_ic(n_jc + β)/(n_c + dβ), which is
    sparse and exact, plus `mass` (d,k), the rest as it was when its alias tables were made; a Metropolis–Hastings test
    makes up for the difference. uniform (tokens,2); own (m,k) receives the documents' counts.
    """
    d, k = counts.shape
    place, active, upto = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k)
    inverse, rest = 1.0 / (totals + d * beta), np.zeros(d)
    for j in range(d):
        for c in range(k):
            rest[j] += mass[j, c]
    for i in range(starts.size - 1):
        n, many = own[i], 0
        for t in range(starts[i], starts[i + 1]):
            n[z[t]] += 1
        for c in range(k):
            if n[c] > 0:
                place[c], active[many] = many, c
                many += 1
        for t in range(starts[i], starts[i + 1]):
            j, old = words[t], z[t]
            n[old] -= 1
            counts[j, old] -= 1
            totals[old] -= 1
            inverse[old] = 1.0 / (totals[old] + d * beta)
            if n[old] == 0:
                many -= 1
                active[place[old]] = active[many]
                place[active[many]] = place[old]
            new = _propose(counts[j], inverse, n, active[:many], beta, rest[j], keep[j], other[j], uniform[t, 0], upto)
            if new != old:
                was = (counts[j, old] + beta) * inverse[old]
                now = (counts[j, new] + beta) * inverse[new]
                up = (n[new] + alpha[new]) * now * (n[old] * was + mass[j, old])
                if uniform[t, 1] * (n[old] + alpha[old]) * was * (n[new] * now + mass[j, new]) >= up:
                    new = old
            if n[new] == 0:
                place[new], active[many] = many, new
                many += 1
            n[new] += 1
            counts[j, new] += 1
            totals[new] += 1
            inverse[new] = 1.0 / (totals[new] + d * beta)
            z[t] = new
