"""Skip-gram's windows against plain Python, draw by draw."""

import numpy as np
import pytest

from twofold.kernels import skip_gram
from twofold.kernels.skip_gram import (
    compute_steps,
    group_pairs,
    make_alias_table,
    sgns,
    sgns_tile,
    sort_pairs_by_tile,
    window_pairs,
)

ALL = 2**32 - 1
V, S = 11, 16


class Draws:
    """SplitMix64 in Python's integers."""

    def __init__(self, seed):
        self.state = seed

    def bits(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        return z ^ (z >> 31)

    def below(self, n):
        return ((self.bits() >> 32) * n) >> 32


def text(seed=0, lines=12):
    """Lines of 0 to 9 words, the first and the last run on: their outer parts are not centers."""
    rng = np.random.default_rng(seed)
    lengths = np.append(rng.integers(0, 10, lines), [1, 7])
    lengths[0] = 8
    tokens = rng.integers(0, V, lengths.sum()).astype(np.int32)
    return tokens, np.cumsum(lengths), 3, len(tokens) - 2


def tables(seed=0, all_stay=False):
    rng = np.random.default_rng(seed)
    keep = np.full(V, ALL, np.uint32) if all_stay else (rng.random(V) * ALL).astype(np.uint32)
    return keep, *make_alias_table(rng.random(V) + 0.05)


def windows(tokens, ends, first, last, keep, window, draws):
    """(center, words near it, how far the center is) of every window, as the draws fall."""
    start = 0
    for stop in ends.tolist():
        kept = [q for q in range(start, stop) if (draws.bits() >> 32) <= keep[tokens[q]]]
        for c in [c for c, q in enumerate(kept) if first <= q < last]:
            reach = 1 + draws.below(window)
            near = [kept[i] for i in range(len(kept)) if 0 < abs(i - c) <= reach]
            done = (start - first + (stop - start) * c / len(kept)) / (last - first)
            yield tokens[kept[c]], tokens[near], min(max(done, 0.0), 1.0)
        start = stop


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def draw_plainly(cut, other, negatives, draws):
    bits = [draws.bits() for _ in range(negatives)]
    cells = [((b >> 32) * len(cut)) >> 32 for b in bits]
    return [h if b % 2**32 < cut[h] else other[h] for h, b in zip(cells, bits, strict=True)]


def draw_among_plainly(words, cut, other, center, count, draws):
    while True:
        k = words[draw_plainly(cut, other, 1, draws)[0]]
        if k != center or draws.below(count) == 0:
            return k


def step_block(X, Y, rows, cols, rate, bias_column):
    """Move rows and columns along the gradient of their pairs, in place; cols[0] is the center. Returns the loss."""
    x, y, met = X[rows], Y[cols], np.eye(len(cols))[0]
    z = x @ y.T
    g = rate * (met - sigmoid(z))
    np.add.at(X, rows, g @ y)
    np.add.at(Y, cols, g.T @ x)
    if bias_column >= 0:
        X[:, bias_column] = 1
    return np.logaddexp(0, np.where(met, -z, z)).sum()


def twin(tokens, ends, first, last, keep, cut, other, X, Y, bias_column, window, negatives, begin, end, seed):
    X, Y, draws = X.astype(float), Y.astype(float), Draws(seed)
    loss, pairs, later = 0.0, 0, draw_plainly(cut, other, negatives, draws)
    for center, near, done in windows(tokens, ends, first, last, keep, window, draws):
        if not len(near):
            continue
        cols = [center, *later]
        later = draw_plainly(cut, other, negatives, draws)  # a window ahead
        loss += step_block(X, Y, near, cols, begin + (end - begin) * done, bias_column)
        pairs += len(near)
    return loss, pairs, X, Y


def factors(scale=1.0, seed=5, bias_column=-1):
    rng = np.random.default_rng(seed)
    X, Y = (scale * rng.normal(size=(2, V, S)) / np.sqrt(S)).astype(np.float32)
    if bias_column >= 0:
        X[:, bias_column] = 1
    return X, Y


@pytest.mark.parametrize("window", [1, 2, 7])
@pytest.mark.parametrize("negatives", [1, 4, 5, 13])
@pytest.mark.parametrize("bias_column", [-1, 9])
def test_a_pass_is_that_of_plain_python(window, negatives, bias_column):
    given, settings = (*text(), *tables()), (bias_column, window, negatives, 0.2, 0.05)
    X, Y = factors(bias_column=bias_column)
    loss, pairs, expected_X, expected_Y = twin(*given, X, Y, *settings, 77)
    found = sgns(*given, X, Y, *settings, np.uint64(77))
    assert found[1] == pairs > 0
    np.testing.assert_allclose(found[0], loss, rtol=1e-5)
    np.testing.assert_allclose(X, expected_X, atol=2e-5)
    np.testing.assert_allclose(Y, expected_Y, atol=2e-5)


@pytest.mark.parametrize("full", [1, 3, 8])
def test_tiles_have_every_pair_once_in_groups_of_one_center(full):
    near, center = window_pairs(*text(lines=60), np.full(V, ALL, np.uint32), 3, np.uint64(5))
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, (2, V))
    cut = len(near) // 3
    pairs = np.empty((len(near), 2), np.int32)
    spans = (0, cut), (cut, cut), (cut, len(near))
    dealt = [(pairs[a:b], sort_pairs_by_tile(near[a:b], center[a:b], *groups, 2, pairs[a:b])) for a, b in spans]
    pairs = np.concatenate([found for found, _ in dealt])
    cuts = np.array([places for _, places in dealt]) + [[0], [cut], [cut]]
    place = np.argsort(np.argsort(groups[1], kind="stable")) - np.where(groups[1], (groups[1] == 0).sum(), 0)
    for tile in range(4):
        inside = (groups[0][near] == tile // 2) & (groups[1][center] == tile % 2)
        c, w, ends = group_pairs(pairs, cuts[:, tile], cuts[:, tile + 1], place, (groups[1] == tile % 2).sum(), full)
        sizes = np.diff(ends, prepend=0)
        assert 0 < sizes.min() <= sizes.max() <= full
        found, given = np.stack([c, np.repeat(w, sizes)]), np.stack([near[inside], center[inside]])
        for word in np.unique(w):  # those of a center in the order of the text
            np.testing.assert_array_equal(found[0, found[1] == word], given[0, given[1] == word])
        assert np.array_equal(np.unique(w), np.unique(given[1])) and found.shape == given.shape


@pytest.mark.parametrize("negatives", [1, 4, 5])
@pytest.mark.parametrize("bias_column", [-1, 9])
def test_a_tile_is_that_of_plain_python(negatives, bias_column):
    rng = np.random.default_rng(1)
    words = np.array([1, 4, 6, 9])
    cut, other = make_alias_table(rng.random(len(words)) + 0.05)
    sizes, near = np.array([3, 1, 3, 2, 3]), rng.integers(0, V, 12).astype(np.int32)
    center, draws = words[rng.integers(0, len(words), len(sizes))].astype(np.int32), Draws(77)
    X, Y = factors(bias_column=bias_column)
    tile = near, center, np.cumsum(sizes), 3, words, cut, other, 4
    A, B, loss, start = X.astype(float), Y.astype(float), 0.0, 0
    for w, n in zip(center, sizes, strict=True):
        cols = [w, *(draw_among_plainly(words, cut, other, w, 4, draws) for _ in range(negatives))]
        loss += step_block(A, B, near[start : start + n], cols, 0.2 - 0.15 * start / len(near), bias_column)
        start += n
    found = sgns_tile(*tile, X, Y, bias_column, negatives, 0.2, 0.05, np.uint64(77))
    assert found[1] == len(near)
    np.testing.assert_allclose(found[0], loss, rtol=1e-5)
    np.testing.assert_allclose(X, A, atol=2e-5)
    np.testing.assert_allclose(Y, B, atol=2e-5)


def test_at_rate_zero_nothing_moves():
    X, Y = factors()
    sgns(*text(), *tables(), X, Y, -1, 3, 5, 0.0, 0.0, np.uint64(3))
    assert all(np.array_equal(a, b) for a, b in zip((X, Y), factors(), strict=True))


def test_the_loss_of_large_products_is_right():
    """Products in the hundreds, beyond what exp holds in single precision."""
    given, settings = (*text(), *tables()), (-1, 3, 5, 0.0, 0.0)
    X, Y = factors(scale=20)
    expected = twin(*given, X, Y, *settings, 3)[0]
    np.testing.assert_allclose(sgns(*given, X, Y, *settings, np.uint64(3))[0], expected, rtol=1e-5)


def test_steps_are_slopes_of_the_loss():
    z = np.linspace(-30, 30, 2001).astype(np.float32)
    for sign in (-1, 1):
        G, odds = z.copy(), np.empty_like(z)
        lacking = compute_steps(G, np.full_like(z, sign), odds, np.float32(0.5), len(z))
        np.testing.assert_allclose(G, -0.5 * sign * sigmoid(sign * z.astype(float)), rtol=2e-5, atol=1e-7)
        np.testing.assert_allclose(
            np.log(odds).sum() + lacking, np.logaddexp(0, sign * z.astype(float)).sum(), rtol=1e-6
        )


@pytest.mark.parametrize("window", [1, 4])
def test_pairs_are_those_of_the_windows(window):
    given = (*text(), tables()[0])
    near, center = window_pairs(*given, window, np.uint64(9))
    found = list(windows(*given, window, Draws(9)))
    np.testing.assert_array_equal(near, np.concatenate([n for _, n, _ in found]))
    np.testing.assert_array_equal(center, np.concatenate([np.full(len(n), c) for c, n, _ in found]))


@pytest.mark.parametrize("weight", [[3.0], [1.0, 1e-6], [5.0, 1.0, 1.0, 0.5], np.arange(1.0, 200.0) ** -1.1])
def test_the_alias_table_holds_the_distribution(weight):
    weight = np.asarray(weight)
    cut, other = make_alias_table(weight)
    share = cut / 2**32
    np.add.at(share, other, 1 - cut / 2**32)
    np.testing.assert_allclose(share / len(weight), weight / weight.sum(), atol=1e-9)


def test_draws_follow_the_table():
    weight = np.array([8.0, 4.0, 2.0, 1.0, 1.0])
    cols, cut_other = np.zeros(40_001, np.int64), make_alias_table(weight)
    skip_gram.draw_negatives(*cut_other, np.uint64(1), cols, len(cols))
    share = np.bincount(cols[1:], minlength=5) / 40_000
    np.testing.assert_allclose(share, weight / 16, atol=4 * np.sqrt(0.25 / 40_000))


def test_words_stay_as_often_as_they_should():
    keep = np.array([0.1, 0.5, 1.0])
    tokens, kept = np.repeat(np.arange(3, dtype=np.int32), 20_000), np.empty(60_000, np.int32)
    n, _ = skip_gram.thin_tokens(tokens, 0, 60_000, (keep * ALL).astype(np.uint32), np.uint64(4), kept)
    share = np.bincount(kept[:n], minlength=3) / 20_000
    np.testing.assert_allclose(share, keep, atol=4 * np.sqrt(0.25 / 20_000))
    assert share[2] == 1
