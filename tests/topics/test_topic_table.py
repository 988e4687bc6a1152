"""Topics as tables and maps."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon, pdist, squareform
from sklearn.base import BaseEstimator

from twofold import LSA, BagOfWords, InputError
from twofold.topics.topic_table import topic_map, topic_table


class Fitted(BaseEstimator):
    """A model that has been fitted."""

    def __init__(self, components=None, share=None):
        self.components_, self.topic_share_ = components, share

    def fit(self, X, y=None):
        return self


def topics(k, d, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(d, 0.3), k)


@given(st.integers(1, 6), st.integers(1, 12), st.integers(1, 15))
@settings(max_examples=40, deadline=None)
def test_a_table_lists_the_heaviest_words_of_each_topic_in_order(k, d, top):
    Z = topics(k, d)
    words = [f"w{j}" for j in range(d)]
    frame = topic_table(Z, words, top)
    assert frame.columns == ["topic", "rank", "word", "weight"] and len(frame) == k * min(top, d)
    for c, part in frame.group_by("topic", maintain_order=True):
        rows = part.rows(named=True)
        assert [row["rank"] for row in rows] == list(range(1, len(rows) + 1))
        assert all(row["weight"] == Z[c[0], words.index(row["word"])] for row in rows)
        assert [row["weight"] for row in rows] == sorted(Z[c[0]], reverse=True)[:top]


def test_equal_weights_keep_the_order_of_the_columns():
    assert topic_table([[0.1, 0.4, 0.4, 0.1]], list("abcd"))["word"].to_list() == ["b", "c", "a", "d"]


def test_a_model_gives_its_weights_and_shares_and_a_bag_its_words():
    bag = BagOfWords().fit(["apple pear plum"])
    Z = topics(2, 3)
    frame = topic_table(Fitted(Z, np.array([0.7, 0.3])), bag, top=1)
    assert frame["share"].to_list() == [0.7, 0.3]
    assert frame["word"].to_list() == [bag.vocabulary_[j] for j in Z.argmax(axis=1)]
    assert topic_table(Z, bag, 1, share=[0.5, 0.5])["share"].to_list() == [0.5, 0.5]
    assert frame.schema["topic"] == frame.schema["rank"] == pl.Int64


def test_negative_weights_are_ordered_by_size():
    model = LSA(2, weighting=None).fit(np.random.default_rng(0).normal(size=(30, 6)))
    frame = topic_table(model, list("abcdef"))
    for c in range(2):
        weights = frame.filter(pl.col("topic") == c)["weight"].to_numpy()
        assert np.array_equal(np.abs(weights), np.sort(np.abs(model.components_[c]))[::-1]) and weights[0] > 0


def test_three_topics_are_placed_exactly():
    Z = topics(3, 8)  # three points always lie in a plane
    D = squareform([jensenshannon(Z[a], Z[b], base=2) for a in range(3) for b in range(a + 1, 3)])
    np.testing.assert_allclose(squareform(pdist(topic_map(Z))), D, atol=1e-8)
    np.testing.assert_allclose(squareform(pdist(topic_map(Z, share=[5, 1, 2]))), D, atol=1e-8)


def test_a_map_is_classical_scaling_of_jensen_shannon_distances():
    Z = topics(12, 30)
    D2 = np.array([[jensenshannon(a, b, base=2) ** 2 for b in Z] for a in Z])
    J = np.eye(12) - 1 / 12
    values, vectors = np.linalg.eigh(-0.5 * J @ D2 @ J)
    expected = vectors[:, :-3:-1] * np.sqrt(values[:-3:-1])
    got = topic_map(Z)
    np.testing.assert_allclose(np.abs(got), np.abs(expected), atol=1e-8)
    np.testing.assert_allclose(got.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(topic_map(Z * np.arange(1, 13)[:, None]), got, atol=1e-7)  # only proportions matter


def test_a_topic_of_double_share_counts_like_two():
    Z = topics(6, 20)
    share = np.array([2, 1, 1, 1, 1, 1.0])
    twice = topic_map(np.vstack([Z[:1], Z]))[1:]
    np.testing.assert_allclose(pdist(topic_map(Z, share=share)), pdist(twice), atol=1e-7)


def test_few_equal_and_empty_topics_have_places():
    assert np.array_equal(topic_map([[0.5, 0.5]]), np.zeros((1, 2)))
    two = topic_map([[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(np.abs(two), [[0.5, 0], [0.5, 0]], atol=1e-9)
    assert np.allclose(topic_map(np.ones((4, 5))), 0, atol=1e-7)
    assert np.isfinite(topic_map([[0, 0], [1, 0], [0, 2.0]])).all()


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: topic_table(topics(2, 3), ["a"]), "1 words for topics over 3"),
        (lambda: topic_table(topics(2, 3), list("abc"), top=0), "top=0"),
        (lambda: topic_table(topics(2, 3), list("abc"), share=[1]), "share"),
        (lambda: topic_table([1.0, 2.0], list("ab")), "shape"),
        (lambda: topic_table([[1.0, np.nan]], list("ab")), r"topics\[0, 1\]"),
        (lambda: topic_map([[1.0, -0.5], [1, 1]]), r"topics\[0, 1\] is -0.5"),
        (lambda: topic_map(topics(2, 3), share=[0, 0]), "share"),
    ],
)
def test_what_makes_no_sense_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()
