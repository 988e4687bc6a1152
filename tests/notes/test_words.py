"""A worked example of word vectors in the notes; docs/learn/concordance.md names the sets."""

import numpy as np
import pytest

from twofold.words import WordVectors


def test_equal_products_are_not_equal_angles():
    """Fei § 5.2, remark 5.3: a long vector has large products; the cosine tells the two apart."""
    x = np.array([[1, 0], [1, 0.1], [1, 10]])
    words = WordVectors.of(["one", "two", "three"], x)
    assert x[0] @ x[1] == x[0] @ x[2] == 1
    assert words.similarity("one", "two") == pytest.approx(1 / np.sqrt(1.01), rel=1e-5)
    assert words.similarity("one", "three") == pytest.approx(1 / np.sqrt(101), rel=1e-5)
    assert [word for word, _ in words.nearest("one")] == ["two", "three"]
