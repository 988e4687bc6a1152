"""The kernels of pair counting against plain NumPy."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.kernels.cooccurrence import lay_out, merge_rows, window_rows

V = 5000  # more than 64 · 64 words, so that all levels of bits are used
words = st.one_of(st.integers(0, 3), st.sampled_from([63, 64, 127, 4095, 4096, V - 1]))
lines_of = st.lists(st.lists(words, max_size=9), min_size=1, max_size=6)


def spare():
    return np.zeros(V, np.int64), np.zeros(V // 64 + 1, np.uint64), np.zeros(V // 4096 + 1, np.uint64)


def room(rows, max_stored):
    return np.zeros(rows + 1, np.int64), np.empty(max_stored, np.int32), np.empty(max_stored, np.int64)


def as_dense(indptr, indices, values):
    """The rows as an array; columns must ascend, and no stored value be zero."""
    out = np.zeros((len(indptr) - 1, V), np.int64)
    for r, (a, b) in enumerate(pairwise(indptr)):
        assert np.all(np.diff(indices[a:b]) > 0) and np.all(values[a:b] != 0)
        out[r, indices[a:b]] = values[a:b]
    return out


def join_lines(lines):
    return np.array([-1, *(token for line in lines if line for token in [*line, -1])], np.int32)


def lay_out_lines(lines, first, last):
    tokens = np.array([token for line in lines for token in line], np.int32)
    ends = np.cumsum([len(line) for line in lines])
    starts = np.concatenate([[0], np.cumsum(np.bincount(tokens[first:last], minlength=V))])
    out, places = np.empty(len(tokens) + len(ends) + 1, np.int32), np.empty(starts[-1], np.int32)
    used = lay_out(tokens, ends, first, last, starts, out, places)
    return out[:used], places, starts


@given(lines_of, st.integers(0, 20), st.integers(0, 20))
@settings(max_examples=100)
def test_lines_are_separated_and_places_listed(lines, first, more):
    n = sum(map(len, lines))
    first = min(first, n)
    last = min(first + more, n)
    out, places, starts = lay_out_lines(lines, first, last)
    assert out.tolist() == join_lines(lines).tolist()
    own = np.flatnonzero(out >= 0)[first:last]
    assert places.tolist() == own[np.argsort(out[own], kind="stable")].tolist()
    assert starts[-1] == last - first


@given(lines_of, st.lists(st.integers(1, 50), min_size=1, max_size=4), st.sampled_from([1, 2]))
@settings(max_examples=100)
def test_rows_are_sums_over_windows(lines, weights, sides):
    out, places, starts = lay_out_lines(lines, 0, sum(map(len, lines)))
    used = np.flatnonzero(np.diff(starts))
    expected = {i: np.zeros(V, np.int64) for i in used}
    for line in lines:
        for p, i in enumerate(line):
            for d, w in enumerate(weights, 1):
                for q in (p - d, p + d)[:sides]:
                    if 0 <= q < len(line):
                        expected[i][line[q]] += w
    left = spare()
    for i in used:
        found = room(1, int((starts[i + 1] - starts[i]) * sides * len(weights)))
        window_rows(out, places, starts[i : i + 2], np.array(weights), sides, *left, *found)
        assert np.array_equal(as_dense(*found)[0], expected[i])
        assert not any(array.any() for array in left)  # ready for the next row
    whole = room(V, int(len(places) * sides * len(weights)))
    window_rows(out, places, starts, np.array(weights), sides, *left, *whole)
    assert np.diff(whole[0])[used].tolist() == [np.count_nonzero(expected[i]) for i in used]
    assert whole[0][-1] == sum(np.count_nonzero(row) for row in expected.values())


tables = st.lists(st.dictionaries(words, st.integers(1, 2**40), max_size=6), min_size=3, max_size=3)


@given(st.lists(tables, min_size=1, max_size=4))
@settings(max_examples=100)
def test_merged_rows_are_sums(parts):
    starts, columns, counts = [], [], []
    expected = np.zeros((3, V), np.int64)
    for part in parts:
        starts.append(len(columns) + np.concatenate([[0], np.cumsum([len(row) for row in part])]))
        for r, row in enumerate(part):
            columns += sorted(row)
            counts += [row[c] for c in sorted(row)]
            expected[r, list(row)] += np.array(list(row.values()), np.int64)
    found, left = room(3, len(columns)), spare()
    merge_rows(np.array(starts), np.array(columns, np.int32), np.array(counts, np.int64), *left, *found)
    assert np.array_equal(as_dense(*found), expected)
    assert not any(array.any() for array in left)
