"""Skip-gram with negative sampling: a window of text is two small matrix products.

    loss of a pair   log(1 + exp(−⟨x_c, y_w⟩)) + Σ_k log(1 + exp(⟨x_c, y_k⟩))     w the centre, c a word near it

Around a centre are N words, rows of X (V,S); the centre and its negatives, which all N share, are M rows of Y (V,S).
Both are copied into small blocks that stay in the first cache; all products of the two are taken at once, then each
row moves along its gradient at the blocks' old values. So a word may occur twice in a window or among the
negatives, and every row is read and written once a window, not once a pair. What the next window needs is fetched
while this one is computed.
"""

import numpy as np
from numba import njit

from twofold.kernels.prefetch import fetch_row
from twofold.kernels.randomness import HIGH, STRIDE, below, mixed
from twofold.kernels.small_products import gathered, moved, products

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}
ONE, LIMIT = np.float32(1), np.float32(16)


@njit(cache=True, nogil=True, error_model="numpy")
def thinned(tokens, start, stop, keep, state, kept):
    """Token t of start..stop stays with chance keep[t] / 2^32; those that do are put into `kept`."""
    n = 0
    for q in range(start, stop):
        state += STRIDE
        kept[n] = tokens[q]
        n += (mixed(state) >> HIGH) <= keep[tokens[q]]
    return n, state


@njit(cache=True, nogil=True, error_model="numpy")
def around(kept, n, c, reach, rows):
    """The words at most `reach` places from c; returns how many."""
    N = 0
    for q in range(max(0, c - reach), min(n, c + reach + 1)):
        rows[N] = kept[q]
        N += q != c
    return N


@njit(cache=True, nogil=True, error_model="numpy")
def sampled(cut, other, state, cols, M):
    """Negatives cols[1:M] by the alias method: h with chance cut[h] / 2^32, else other[h]."""
    for j in range(1, M):
        state += STRIDE
        bits = mixed(state)
        h = below(bits, cut.size)
        cols[j] = h if (bits & np.uint64(0xFFFFFFFF)) < cut[h] else other[h]
    return state


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def steps(G, sign, odds, rate, n):
    """Products z become steps −rate · dloss/dz; with s = z, or −z for the centre, the loss is log(1 + exp(s)).

    odds = 1 + exp(s), from exp(s/32)^32 by its series to the seventh power (relative error below 1e-5). Beyond
    |s| = 16 the slope no longer changes in single precision; what the loss lacks there is returned.
    """
    lacking = np.float32(0)
    for q in range(n):
        lacking += max(G[q] * sign[q] - LIMIT, np.float32(0))
    for q in range(n):
        t = min(max(G[q] * sign[q], -LIMIT), LIMIT) * np.float32(1 / 32)
        e = t * np.float32(1 / 7) + ONE
        e = e * t * np.float32(1 / 6) + ONE
        e = e * t * np.float32(1 / 5) + ONE
        e = e * t * np.float32(1 / 4) + ONE
        e = e * t * np.float32(1 / 3) + ONE
        e = e * t * np.float32(1 / 2) + ONE
        e = e * t + ONE
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        odds[q] = ONE + e
        G[q] = -rate * sign[q] * e / (ONE + e)
    return lacking


@njit(cache=True, nogil=True, error_model="numpy")
def settled(G, wide, odds, N, M, GT, most, product):
    """G transposed to GT, with zeros beside an odd last column; and `product` times the odds of all pairs."""
    total = 0.0
    for i in range(N):
        for j in range(M):
            GT[j * most + i] = G[i * wide + j]
            product *= np.float64(odds[i * wide + j])
            if product > 1e280:  # a logarithm now and then serves for all
                total += np.log(product)
                product = 1.0
    if N % 2:
        for j in range(M):
            GT[j * most + N] = 0
    return total, product


@njit(cache=True, nogil=True, error_model="numpy")
def line(tokens, start, stop, first, last, keep, state, kept):
    """A line, thinned into `kept`; of the n that stay, a..b lie in first..last. Returns n, a, b."""
    begin, end = max(start, min(stop, first)), max(start, min(stop, last))
    a, state = thinned(tokens, start, begin, keep, state, kept)
    own, state = thinned(tokens, begin, end, keep, state, kept[a:])
    more, state = thinned(tokens, end, stop, keep, state, kept[a + own :])
    return a + own + more, a, a + own, state


@njit(cache=True, nogil=True, error_model="numpy")
def room(most, M, wide, S):
    """What a window needs: rows, columns and the next columns; blocks; steps and their transpose; signs and odds."""
    sign = np.zeros((most, wide), np.float32)
    sign[:, :M] = ONE
    sign[:, 0] = -ONE
    rows, cols, later = np.empty(most + 1, np.int64), np.empty(M, np.int64), np.empty(M, np.int64)
    xs, ys = np.zeros(most * S, np.float32), np.zeros(wide * S, np.float32)
    G, GT, odds = np.zeros(most * wide, np.float32), np.zeros(M * most, np.float32), np.zeros(most * wide, np.float32)
    return rows, cols, later, xs, ys, G, GT, sign.reshape(-1), odds


@njit(cache=True, nogil=True, error_model="numpy")
def moved_block(X, Y, one, rows, N, cols, M, rate, product, xs, ys, G, GT, sign, odds):
    """N rows of X and M of Y step along the gradient of all their pairs; cols[0] was met, the others were not.

    Returns what the loss lacks in `product`, and that times the odds of all pairs.
    """
    S, wide, most = X.shape[1], M + M % 2, GT.size // M
    gathered(X, rows, N, xs)
    gathered(Y, cols, M, ys)
    products(xs, ys, N, M, S, G, wide)
    loss = np.float64(steps(G, sign, odds, rate, N * wide))
    more, product = settled(G, wide, odds, N, M, GT, most, product)
    moved(X, rows, N, ys, M, G, wide)
    moved(Y, cols, M, xs, N, GT, most)
    for i in range(N if one >= 0 else 0):
        X[rows[i], one] = ONE
    return loss + more, product


@njit(cache=True, nogil=True, error_model="numpy")
def sgns(tokens, ends, first, last, keep, cut, other, X, Y, one, window, negatives, begin, end, seed, fixed=False):
    """One pass over some lines, in place: every token that stays is the centre of a window, of random reach or `fixed`.

    tokens (n,) with lines that end at ends (s,); centres are first..last only. The rate goes from `begin` to `end`;
    at 0 nothing changes, and the loss alone is of interest. Column `one` of X, unless −1, is held at 1, which makes
    that of Y a bias. Returns the loss, and how many pairs it is the sum of.
    """
    S, M, most, wide = X.shape[1], 1 + negatives, 2 * window, negatives + 1 + (negatives + 1) % 2
    kept, flat_X, flat_Y = np.empty(tokens.size, np.int32), X.reshape(-1), Y.reshape(-1)
    rows, cols, later, xs, ys, G, GT, sign, odds = room(most, M, wide, S)
    state = sampled(cut, other, seed, later, M)
    loss, product, pairs, start = 0.0, 1.0, 0, 0
    for stop in ends:
        n, a, b, state = line(tokens, start, stop, first, last, keep, state, kept)
        for c in range(a, b):
            state += STRIDE
            N = around(kept, n, c, window if fixed else 1 + below(mixed(state), window), rows)
            if N == 0:
                continue
            cols[0] = kept[c]
            for j in range(1, cols.size):
                cols[j] = later[j]
            state = sampled(cut, other, state, later, M)
            later[0] = kept[min(c + 1, n - 1)]
            for j in range(M):
                fetch_row(flat_Y, S, later[j])
            fetch_row(flat_X, S, np.int64(kept[min(c + window + 1, n - 1)]))
            done = (start - first + (stop - start) * c / n) / (last - first)
            rate = np.float32(begin + (end - begin) * min(max(done, 0.0), 1.0))
            more, product = moved_block(X, Y, one, rows, N, cols, M, rate, product, xs, ys, G, GT, sign, odds)
            loss, pairs = loss + more, pairs + N
        start = stop
    return loss + np.log(product), pairs


@njit(cache=True, nogil=True, error_model="numpy")
def window_pairs(tokens, ends, first, last, keep, window, seed, fixed=False):
    """The pairs (word near it, centre) of one such pass, for a loss that needs no negatives: (p,) int32 each."""
    kept, rows = np.empty(tokens.size, np.int32), np.empty(2 * window + 1, np.int64)
    near, centre = np.empty((last - first) * 2 * window, np.int32), np.empty((last - first) * 2 * window, np.int32)
    pairs, start, state = 0, 0, seed
    for stop in ends:
        n, a, b, state = line(tokens, start, stop, first, last, keep, state, kept)
        for c in range(a, b):
            state += STRIDE
            N = around(kept, n, c, window if fixed else 1 + below(mixed(state), window), rows)
            for i in range(N):
                near[pairs + i], centre[pairs + i] = rows[i], kept[c]
            pairs += N
        start = stop
    return near[:pairs], centre[:pairs]


@njit(cache=True, nogil=True, error_model="numpy")
def dealt_pairs(near, centre, row_group, column_group, count, pairs):
    """Pairs (p,) put into `pairs` (p,2) in order of their tile, count · row_group[near] + column_group[centre].

    Returns where tiles begin.
    """
    cuts = np.zeros(count * count + 1, np.int64)
    for q in range(near.size):
        cuts[count * row_group[near[q]] + column_group[centre[q]] + 1] += 1
    for tile in range(count * count):
        cuts[tile + 1] += cuts[tile]
    at = cuts.copy()
    for q in range(near.size):
        tile = count * row_group[near[q]] + column_group[centre[q]]
        pairs[at[tile], 0], pairs[at[tile], 1] = near[q], centre[q]
        at[tile] += 1
    return cuts


@njit(cache=True, nogil=True, error_model="numpy")
def grouped(pairs, starts, stops, place, words, full):
    """The pairs of a tile in groups of up to `full` that have their centre in common, in the order of their first.

    pairs (p,2), of which starts[r]..stops[r] belong to the tile, for each run r; place[w] in 0..words-1, w its centres.
    Returns the words near (p,), the centre of each group (b,) and where it ends (b,).
    """
    total = (stops - starts).sum()
    group, near, centre = np.empty(total, np.int32), np.empty(total, np.int32), np.empty(total, np.int32)
    ends, latest, p, b = np.zeros(total + 1, np.int64), np.full(words, -1, np.int64), 0, 0
    for r in range(starts.size):
        for q in range(starts[r], stops[r]):
            h = place[pairs[q, 1]]
            if latest[h] < 0 or ends[latest[h] + 1] == full:
                centre[b], latest[h] = pairs[q, 1], b
                b += 1
            group[p] = latest[h]
            ends[group[p] + 1] += 1
            p += 1
    for g in range(b):
        ends[g + 1] += ends[g]
    p = 0
    for r in range(starts.size):
        for q in range(starts[r], stops[r]):
            near[ends[group[p]]] = pairs[q, 0]
            ends[group[p]] += 1  # so that in the end it is where the group ends
            p += 1
    return near, centre[:b], ends[:b]


@njit(cache=True, nogil=True, error_model="numpy")
def sampled_among(own, cut, other, centre, count, state, cols, M):
    """Negatives cols[1:M] among own (m,), the words of one of `count` groups, for a centre that is one of them.

    The centre is in its own group every time, any other word once in `count` times. So that it is drawn no more often
    than they are, it is put back but once in `count` times.
    """
    for j in range(1, M):
        while True:
            state += STRIDE
            bits = mixed(state)
            h = below(bits, cut.size)
            cols[j] = own[h if (bits & np.uint64(0xFFFFFFFF)) < cut[h] else other[h]]
            if cols[j] != centre:
                break
            state += STRIDE
            if below(mixed(state), count) == 0:
                break
    return state


@njit(cache=True, nogil=True, error_model="numpy")
def sgns_tile(near, centre, ends, full, own, cut, other, count, X, Y, one, negatives, begin, end, seed):
    """One pass over the groups of a tile, in place: each is a block of pairs that share their negatives.

    The negatives are drawn from own (m,), the words of the tile's columns, one of `count` groups. Rates, `one` and what
    is returned are those of `sgns`.
    """
    S, M, wide = X.shape[1], 1 + negatives, negatives + 1 + (negatives + 1) % 2
    flat_X, flat_Y = X.reshape(-1), Y.reshape(-1)
    rows, cols, later, xs, ys, G, GT, sign, odds = room(full + full % 2, M, wide, S)
    state = sampled_among(own, cut, other, centre[0], count, seed, later, M)
    loss, product, start = 0.0, 1.0, 0
    for b in range(centre.size):
        stop, after = ends[b], min(b + 1, centre.size - 1)
        N = stop - start
        cols[0] = centre[b]
        for j in range(1, cols.size):
            cols[j] = later[j]
        for i in range(N):
            rows[i] = near[start + i]
        state = sampled_among(own, cut, other, centre[after], count, state, later, M)
        later[0] = centre[after]
        for j in range(M):
            fetch_row(flat_Y, S, later[j])
        for i in range(stop, ends[after]):
            fetch_row(flat_X, S, np.int64(near[i]))
        rate = np.float32(begin + (end - begin) * (start / near.size))
        more, product = moved_block(X, Y, one, rows, N, cols, M, rate, product, xs, ys, G, GT, sign, odds)
        loss, start = loss + more, stop
    return loss + np.log(product), near.size


@njit(cache=True, nogil=True, error_model="numpy")
def alias_table(weight):
    """cut (V,) uint32 and other (V,) int32, by which `sampled` draws h in proportion to weight[h] (Vose 1991)."""
    V = weight.size
    share = weight * (V / weight.sum())
    cut, other = np.full(V, np.uint32(0xFFFFFFFF)), np.arange(V).astype(np.int32)
    poor, rich = np.empty(V, np.int64), np.empty(V, np.int64)
    n_poor, n_rich = 0, 0
    for h in range(V):
        if share[h] < 1:
            poor[n_poor] = h
            n_poor += 1
        else:
            rich[n_rich] = h
            n_rich += 1
    while n_poor and n_rich:
        n_poor -= 1
        low, high = poor[n_poor], rich[n_rich - 1]
        cut[low], other[low] = np.uint32(min(share[low] * 4294967296.0, 4294967295.0)), high
        share[high] -= 1 - share[low]
        if share[high] < 1:
            n_rich -= 1
            poor[n_poor] = high
            n_poor += 1
    return cut, other
