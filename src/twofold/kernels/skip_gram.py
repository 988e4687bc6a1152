"""Skip-gram with negative sampling: a window of text is two small matrix products.

    loss of a pair   log(1 + exp(−⟨x_c, y_w⟩)) + Σ_k log(1 + exp(⟨x_c, y_k⟩))     w the center, c a word in its window

The window of a center has N words, rows of X (V,S); the center and its negatives, which all N share, are M rows of
Y (V,S). Both are copied into small blocks that stay in the first cache. All products of the two are computed at once,
then each row moves along its gradient at the blocks' old values. So a word may occur twice in a window or among the
negatives, and every row is read and written once per window, not once per pair. The rows of the next window are fetched
during the computation of the current one.
"""

import numpy as np
from numba import njit

from twofold.kernels.prefetch import fetch_row
from twofold.kernels.randomness import HIGH, STRIDE, as_integer, mix_bits
from twofold.kernels.small_products import add_products, copy_rows, products

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}
ONE, LIMIT = np.float32(1), np.float32(16)


@njit(cache=True, nogil=True, error_model="numpy")
def thin_tokens(tokens, start, stop, keep, state, kept):
    """Copy token t of start..stop to `kept` with chance keep[t] / 2^32; returns their number and the next state."""
    n = 0
    for q in range(start, stop):
        state += STRIDE
        kept[n] = tokens[q]
        n += (mix_bits(state) >> HIGH) <= keep[tokens[q]]
    return n, state


@njit(cache=True, nogil=True, error_model="numpy")
def list_window(kept, n, c, reach, rows):
    """Write the words at most `reach` places from c; returns their number."""
    N = 0
    for q in range(max(0, c - reach), min(n, c + reach + 1)):
        rows[N] = kept[q]
        N += q != c
    return N


@njit(cache=True, nogil=True, error_model="numpy")
def draw_negatives(cut, other, state, cols, M):
    """Draw negatives cols[1:M] by the alias method: h with chance cut[h] / 2^32, else other[h]."""
    for j in range(1, M):
        state += STRIDE
        bits = mix_bits(state)
        h = as_integer(bits, cut.size)
        cols[j] = h if (bits & np.uint64(0xFFFFFFFF)) < cut[h] else other[h]
    return state


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def compute_steps(G, sign, odds, rate, n):
    """Replace products z by steps −rate · dloss/dz; with s = z, or −z for the center, the loss is log(1 + exp(s)).

    odds = 1 + exp(s), from exp(s/32)^32 by its series to the seventh power (relative error below 1e-5). Beyond
    |s| = 16 the slope is constant in single precision; the part of the loss beyond is returned.
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
def transpose_steps(G, wide, odds, N, M, GT, max_rows, product):
    """Transpose G to GT, with zeros beside an odd last column; returns log-odds and `product` times the other odds."""
    total = 0.0
    for i in range(N):
        for j in range(M):
            GT[j * max_rows + i] = G[i * wide + j]
            product *= np.float64(odds[i * wide + j])
            if product > 1e280:  # one logarithm for many factors
                total += np.log(product)
                product = 1.0
    if N % 2:
        for j in range(M):
            GT[j * max_rows + N] = 0
    return total, product


@njit(cache=True, nogil=True, error_model="numpy")
def thin_line(tokens, start, stop, first, last, keep, state, kept):
    """Thin a line into `kept`; of its n remaining tokens, a..b lie in first..last. Returns n, a, b and the state."""
    begin, end = max(start, min(stop, first)), max(start, min(stop, last))
    a, state = thin_tokens(tokens, start, begin, keep, state, kept)
    inside, state = thin_tokens(tokens, begin, end, keep, state, kept[a:])
    more, state = thin_tokens(tokens, end, stop, keep, state, kept[a + inside :])
    return a + inside + more, a, a + inside, state


@njit(cache=True, nogil=True, error_model="numpy")
def allocate_blocks(max_rows, M, wide, S):
    """Allocate rows, columns and the next columns; blocks; steps and their transpose; signs and odds of a window."""
    sign = np.zeros((max_rows, wide), np.float32)
    sign[:, :M] = ONE
    sign[:, 0] = -ONE
    rows, cols, later = np.empty(max_rows + 1, np.int64), np.empty(M, np.int64), np.empty(M, np.int64)
    xs, ys = np.zeros(max_rows * S, np.float32), np.zeros(wide * S, np.float32)
    G, GT, odds = (
        np.zeros(max_rows * wide, np.float32),
        np.zeros(M * max_rows, np.float32),
        np.zeros(max_rows * wide, np.float32),
    )
    return rows, cols, later, xs, ys, G, GT, sign.reshape(-1), odds


@njit(cache=True, nogil=True, error_model="numpy")
def step_blocks(X, Y, bias_column, rows, N, cols, M, rate, product, xs, ys, G, GT, sign, odds):
    """Move N rows of X and M of Y along the gradient of all their pairs; cols[0] is the center, the others negatives.

    Returns the part of the loss that is not in `product`, and `product` times the odds of all pairs.
    """
    S, wide, max_rows = X.shape[1], M + M % 2, GT.size // M
    copy_rows(X, rows, N, xs)
    copy_rows(Y, cols, M, ys)
    products(xs, ys, N, M, S, G, wide)
    loss = np.float64(compute_steps(G, sign, odds, rate, N * wide))
    more, product = transpose_steps(G, wide, odds, N, M, GT, max_rows, product)
    add_products(X, rows, N, ys, M, G, wide)
    add_products(Y, cols, M, xs, N, GT, max_rows)
    for i in range(N if bias_column >= 0 else 0):
        X[rows[i], bias_column] = ONE
    return loss + more, product


@njit(cache=True, nogil=True, error_model="numpy")
def sgns(
    tokens, ends, first, last, keep, cut, other, X, Y, bias_column, window, negatives, begin, end, seed, fixed=False
):
    """Do one pass over some lines, in place: each token that stays is a center, its window of random size or `fixed`.

    tokens (n,) with lines that end at ends (s,); centers are first..last only. The rate goes from `begin` to `end`;
    at 0 only the loss is computed. Column `bias_column` of X, unless −1, is held at 1,
    which makes that of Y a bias. Returns the loss and the number of pairs it sums.
    """
    S, M, max_rows, wide = X.shape[1], 1 + negatives, 2 * window, negatives + 1 + (negatives + 1) % 2
    kept, flat_X, flat_Y = np.empty(tokens.size, np.int32), X.reshape(-1), Y.reshape(-1)
    rows, cols, later, xs, ys, G, GT, sign, odds = allocate_blocks(max_rows, M, wide, S)
    state = draw_negatives(cut, other, seed, later, M)
    loss, product, pairs, start = 0.0, 1.0, 0, 0
    for stop in ends:
        n, a, b, state = thin_line(tokens, start, stop, first, last, keep, state, kept)
        for c in range(a, b):
            state += STRIDE
            N = list_window(kept, n, c, window if fixed else 1 + as_integer(mix_bits(state), window), rows)
            if N == 0:
                continue
            cols[0] = kept[c]
            for j in range(1, cols.size):
                cols[j] = later[j]
            state = draw_negatives(cut, other, state, later, M)
            later[0] = kept[min(c + 1, n - 1)]
            for j in range(M):
                fetch_row(flat_Y, S, later[j])
            fetch_row(flat_X, S, np.int64(kept[min(c + window + 1, n - 1)]))
            done = (start - first + (stop - start) * c / n) / (last - first)
            rate = np.float32(begin + (end - begin) * min(max(done, 0.0), 1.0))
            more, product = step_blocks(X, Y, bias_column, rows, N, cols, M, rate, product, xs, ys, G, GT, sign, odds)
            loss, pairs = loss + more, pairs + N
        start = stop
    return loss + np.log(product), pairs


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def step_mean(X, Y, bias_column, rows, N, cols, M, rate, h, e):
    """Move N rows of X and M of Y along the gradient of the mean h of the rows with each column; return the loss."""
    S, loss = X.shape[1], 0.0
    for s in range(S):
        h[s] = 0
        e[s] = 0
    for i in range(N):
        for s in range(S):
            h[s] += X[rows[i], s]
    for s in range(S):
        h[s] *= ONE / np.float32(N)
    for j in range(M):
        z = np.float32(0)
        for s in range(S):
            z += h[s] * Y[cols[j], s]
        side = -ONE if j == 0 else ONE  # the center is the first
        z = min(max(side * z, -LIMIT), LIMIT)
        odds = np.exp(z)
        loss += np.log(ONE + odds)
        step = -rate * side * odds / (ONE + odds)
        for s in range(S):
            e[s] += step * Y[cols[j], s]
            Y[cols[j], s] += step * h[s]
    for i in range(N):
        for s in range(S):
            X[rows[i], s] += e[s] * (ONE / np.float32(N))
        if bias_column >= 0:
            X[rows[i], bias_column] = ONE
    return loss


@njit(cache=True, nogil=True, error_model="numpy")
def cbow(
    tokens, ends, first, last, keep, cut, other, X, Y, bias_column, window, negatives, begin, end, seed, fixed=False
):
    """Do one pass over some lines, as `sgns` does, with the mean of a window in place of its words one by one.

    Returns the loss and the number of windows it sums.
    """
    S, M = X.shape[1], 1 + negatives
    kept, rows, cols = np.empty(tokens.size, np.int32), np.empty(2 * window + 1, np.int64), np.empty(M, np.int64)
    h, e = np.empty(S, np.float32), np.empty(S, np.float32)
    state, loss, windows, start = seed, 0.0, 0, 0
    for stop in ends:
        n, a, b, state = thin_line(tokens, start, stop, first, last, keep, state, kept)
        for c in range(a, b):
            state += STRIDE
            N = list_window(kept, n, c, window if fixed else 1 + as_integer(mix_bits(state), window), rows)
            if N == 0:
                continue
            cols[0] = kept[c]
            state = draw_negatives(cut, other, state, cols, M)
            done = (start - first + (stop - start) * c / n) / (last - first)
            rate = np.float32(begin + (end - begin) * min(max(done, 0.0), 1.0))
            loss += step_mean(X, Y, bias_column, rows, N, cols, M, rate, h, e)
            windows += 1
        start = stop
    return loss, windows


@njit(cache=True, nogil=True, error_model="numpy")
def window_pairs(tokens, ends, first, last, keep, window, seed, fixed=False):
    """Return the pairs (word, center) of one such pass, for a loss without negatives: (p,) int32 each."""
    kept, rows = np.empty(tokens.size, np.int32), np.empty(2 * window + 1, np.int64)
    near, center = np.empty((last - first) * 2 * window, np.int32), np.empty((last - first) * 2 * window, np.int32)
    pairs, start, state = 0, 0, seed
    for stop in ends:
        n, a, b, state = thin_line(tokens, start, stop, first, last, keep, state, kept)
        for c in range(a, b):
            state += STRIDE
            N = list_window(kept, n, c, window if fixed else 1 + as_integer(mix_bits(state), window), rows)
            for i in range(N):
                near[pairs + i], center[pairs + i] = rows[i], kept[c]
            pairs += N
        start = stop
    return near[:pairs], center[:pairs]


@njit(cache=True, nogil=True, error_model="numpy")
def sort_pairs_by_tile(near, center, row_group, column_group, count, pairs):
    """Write pairs (p,) to `pairs` (p,2) in order of their tile, count · row_group[near] + column_group[center].

    Returns the starts of the tiles.
    """
    cuts = np.zeros(count * count + 1, np.int64)
    for q in range(near.size):
        cuts[count * row_group[near[q]] + column_group[center[q]] + 1] += 1
    for tile in range(count * count):
        cuts[tile + 1] += cuts[tile]
    at = cuts.copy()
    for q in range(near.size):
        tile = count * row_group[near[q]] + column_group[center[q]]
        pairs[at[tile], 0], pairs[at[tile], 1] = near[q], center[q]
        at[tile] += 1
    return cuts


@njit(cache=True, nogil=True, error_model="numpy")
def group_pairs(pairs, starts, stops, place, words, full):
    """Group the pairs of a tile by up to `full` with the same center, in the order of their first.

    pairs (p,2), of which starts[r]..stops[r] belong to the tile, for each run r; place[w] in 0..words-1, w its centers.
    Returns the words near (p,), the center of each group (b,) and where it ends (b,).
    """
    total = (stops - starts).sum()
    group, near, center = np.empty(total, np.int32), np.empty(total, np.int32), np.empty(total, np.int32)
    ends, latest, p, b = np.zeros(total + 1, np.int64), np.full(words, -1, np.int64), 0, 0
    for r in range(starts.size):
        for q in range(starts[r], stops[r]):
            h = place[pairs[q, 1]]
            if latest[h] < 0 or ends[latest[h] + 1] == full:
                center[b], latest[h] = pairs[q, 1], b
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
            ends[group[p]] += 1  # at last, this is the end of the group
            p += 1
    return near, center[:b], ends[:b]


@njit(cache=True, nogil=True, error_model="numpy")
def draw_negatives_among(words, cut, other, center, count, state, cols, M):
    """Draw negatives cols[1:M] among words (m,), those of one of `count` groups, for a center in this group.

    The group of the center is used every time, that of any other word once in `count` times. So that the center is not
    drawn more often than other words, it is accepted only once in `count` times.
    """
    for j in range(1, M):
        while True:
            state += STRIDE
            bits = mix_bits(state)
            h = as_integer(bits, cut.size)
            cols[j] = words[h if (bits & np.uint64(0xFFFFFFFF)) < cut[h] else other[h]]
            if cols[j] != center:
                break
            state += STRIDE
            if as_integer(mix_bits(state), count) == 0:
                break
    return state


@njit(cache=True, nogil=True, error_model="numpy")
def sgns_tile(near, center, ends, full, words, cut, other, count, X, Y, bias_column, negatives, begin, end, seed):
    """Do one pass over the groups of a tile, in place: each is a block of pairs that share their negatives.

    The negatives are drawn from words (m,), the words of the tile's columns, one of `count` groups. Rates,
    `bias_column` and the results are those of `sgns`.
    """
    S, M, wide = X.shape[1], 1 + negatives, negatives + 1 + (negatives + 1) % 2
    flat_X, flat_Y = X.reshape(-1), Y.reshape(-1)
    rows, cols, later, xs, ys, G, GT, sign, odds = allocate_blocks(full + full % 2, M, wide, S)
    state = draw_negatives_among(words, cut, other, center[0], count, seed, later, M)
    loss, product, start = 0.0, 1.0, 0
    for b in range(center.size):
        stop, after = ends[b], min(b + 1, center.size - 1)
        N = stop - start
        cols[0] = center[b]
        for j in range(1, cols.size):
            cols[j] = later[j]
        for i in range(N):
            rows[i] = near[start + i]
        state = draw_negatives_among(words, cut, other, center[after], count, state, later, M)
        later[0] = center[after]
        for j in range(M):
            fetch_row(flat_Y, S, later[j])
        for i in range(stop, ends[after]):
            fetch_row(flat_X, S, np.int64(near[i]))
        rate = np.float32(begin + (end - begin) * (start / near.size))
        more, product = step_blocks(X, Y, bias_column, rows, N, cols, M, rate, product, xs, ys, G, GT, sign, odds)
        loss, start = loss + more, stop
    return loss + np.log(product), near.size


@njit(cache=True, nogil=True, error_model="numpy")
def make_alias_table(weight):
    """Make cut (V,) uint32 and other (V,) int32, for draws of h in proportion to weight[h] (Vose 1991)."""
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
