"""The coder of coefficients against a reader written plainly from its description."""

import numpy as np
import pytest

from twofold.kernels.arithmetic_coder import CONTEXTS, EVEN_CHANCE, LENGTHS, PLANE_KINDS, WORD_MASK, code_plane


def fresh(data=None):
    word = 0 if data is None else int.from_bytes(data[:4].ljust(4, b"\0"), "big")
    odds, second = (
        np.full((PLANE_KINDS, CONTEXTS, CONTEXTS, LENGTHS, 2), EVEN_CHANCE),
        np.full((LENGTHS, 2), EVEN_CHANCE),
    )
    return odds, second, np.array([0, WORD_MASK, word, 0 if data is None else 4])


def write_planes(planes, kinds, expected):
    odds, second, coder = fresh()
    buffer = np.zeros(8, np.uint8)
    for q, kind, e in zip(planes, kinds, expected, strict=True):
        buffer = code_plane(q.copy(), np.zeros_like(q), e, kind, odds, second, coder, buffer, False)
    return buffer[: coder[3]].tobytes() + bytes([min((int(coder[0]) >> 24) + 1, 255)])


class Reader:
    """Answers from the bytes, as one number in a shrinking interval."""

    def __init__(self, data):
        self.data, self.low, self.high, self.odds = data + bytes(8), 0, WORD_MASK, {}
        self.word, self.place = int.from_bytes(self.data[:4], "big"), 4

    def answer(self, chance):
        middle = self.low + (self.high - self.low) * chance // 65536
        yes = self.word <= middle
        self.low, self.high = (self.low, middle) if yes else (middle + 1, self.high)
        while self.low // 2**24 == self.high // 2**24:
            self.low, self.high = self.low % 2**24 * 256, self.high % 2**24 * 256 + 255
            self.word = self.word % 2**24 * 256 + self.data[min(self.place, len(self.data) - 1)]
            self.place += 1
        return int(yes)

    def read_adaptive(self, *context):
        quick, slow = self.odds.get(context, (EVEN_CHANCE, EVEN_CHANCE))
        yes = self.answer((quick + slow) // 2)
        goal = 65536 - 32 if yes else 32
        self.odds[context] = quick + (goal - quick) // 16, slow + (goal - slow) // 128
        return yes

    def number(self, *context):
        n = 0
        while n < LENGTHS - 1 and self.read_adaptive(*context, n):
            n += 1
        if n == 0:
            return 0
        bits = [1] + [self.read_adaptive("second", n) if b == 0 else self.answer(EVEN_CHANCE) for b in range(n - 1)]
        size = int("".join(map(str, bits)), 2)
        return -size if self.answer(EVEN_CHANCE) else size

    def plane(self, shape, expected, kind):
        q, sent = np.zeros(shape, np.int64), np.zeros((shape[0] + 1, shape[1] + 2), np.int64)  # with a border of zeros
        for i, j in np.ndindex(shape):
            near = 2 * sent[i + 1, j] + 2 * sent[i, j + 1] + sent[i, j] + sent[i, j + 2]
            x = self.number(kind, context(near), context(expected[i, j]))
            sent[i + 1, j + 1] = abs(x)
            q[i, j] = x + (guess(q, i, j) if kind == 1 else 0)
        return q


def context(x):
    bounds = [0, 1, 2, 3, 4] + [round(2**n * (1 + half / 2)) for n in range(2, 14) for half in (0, 1)][1:]
    return min(int(np.searchsorted(bounds, x, side="right")) - 1, CONTEXTS - 1)


def guess(q, i, j):
    if i == 0 or j == 0:
        return q[i, j - 1] if j else q[i - 1, j] if i else 0
    w, n, between = q[i, j - 1], q[i - 1, j], q[i - 1, j - 1]
    return np.median([w, n, w + n - between])


@pytest.mark.parametrize("scale", [0.0, 0.3, 3.0, 1e4, 5e8])
def test_a_plain_reader_reads_what_was_written(scale):
    rng = np.random.default_rng(0)
    shapes, kinds = [(7, 9), (1, 5), (6, 1), (12, 12), (0, 3)], [0, 1, 1, 2, 0]
    planes = [np.rint(scale * rng.laplace(size=s)).clip(-(2**30), 2**30).astype(np.int32) for s in shapes]
    expected = [rng.integers(0, 40, size=s) for s in shapes]
    data = write_planes(planes, kinds, expected)
    reader = Reader(data)
    for q, kind, e in zip(planes, kinds, expected, strict=True):
        np.testing.assert_array_equal(reader.plane(q.shape, e, kind), q)


def test_writing_and_reading_are_inverse_and_short():
    rng = np.random.default_rng(1)
    q = np.rint(rng.laplace(size=(200, 200)) * 0.4).astype(np.int32)
    zeros = np.zeros(q.shape, np.int64)
    data = write_planes([q], [0], [zeros])
    out, odds, second, coder = np.zeros_like(q), *fresh(data)
    code_plane(out, np.zeros_like(q), zeros, 0, odds, second, coder, np.frombuffer(data, np.uint8).copy(), True)
    np.testing.assert_array_equal(out, q)
    chances = np.unique(q, return_counts=True)[1] / q.size
    entropy = -float((chances * np.log2(chances)).sum()) * q.size / 8
    assert entropy < len(data) + 20 < 1.04 * entropy + 40
