"""Ranking metrics against their definitions, written out slowly."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import ndcg_score

from twofold import InputError
from twofold.metrics import coverage, map_at_k, mrr_at_k, ndcg_at_k, novelty, precision_at_k, recall_at_k

MEASURES = (precision_at_k, recall_at_k, ndcg_at_k, map_at_k, mrr_at_k)


def slowly(name, row, right, k):
    hits = [item in right for item in row[:k]]
    if name == "precision_at_k":
        return sum(hits) / k
    if name == "recall_at_k":
        return sum(hits) / len(right)
    if name == "ndcg_at_k":
        gain = sum(hit / np.log2(rank + 2) for rank, hit in enumerate(hits))
        return gain / sum(1 / np.log2(rank + 2) for rank in range(min(k, len(right))))
    if name == "mrr_at_k":
        return next((1 / (rank + 1) for rank, hit in enumerate(hits) if hit), 0.0)
    return sum(sum(hits[: r + 1]) / (r + 1) for r in range(len(hits)) if hits[r]) / min(k, len(right))


@pytest.fixture
def lists():
    rng = np.random.default_rng(0)
    recommended = np.array([rng.permutation(30)[:12] for _ in range(50)])
    relevant = rng.random((50, 30)) < 0.2
    relevant[7] = False
    return recommended, relevant


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("k", [1, 5, 12, 20])
def test_as_defined(measure, k, lists):
    recommended, relevant = lists
    right = [set(np.flatnonzero(row)) for row in relevant]
    slow = [
        slowly(measure.__name__, row.tolist(), r, k) if r else np.nan for row, r in zip(recommended, right, strict=True)
    ]
    for given in (right, sparse.csr_array(relevant)):
        np.testing.assert_allclose(measure(recommended, given, k, average=False), slow)
        assert measure(recommended, given, k) == pytest.approx(np.nanmean(slow))


@pytest.mark.parametrize("k", [3, 10, 30])
def test_ndcg_is_scikit_learns(k):
    rng = np.random.default_rng(1)
    score, truth = rng.random((40, 30)), rng.random((40, 30)) < 0.3
    recommended = np.argsort(-score, axis=1)
    assert ndcg_at_k(recommended, sparse.csr_array(truth), k) == pytest.approx(ndcg_score(truth, score, k=k))


@pytest.mark.parametrize("k", [5, 20, 30])
def test_all_are_those_of_trec_eval(k):
    """As ir-measures has them; its average precision divides by all relevant items, ours by those that fit."""
    ir = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(3)
    score, truth = rng.random((40, 30)), rng.random((40, 30)) < 0.3
    truth[:, 0] = True
    recommended, relevant = np.argsort(-score, axis=1), sparse.csr_array(truth)
    qrels = [ir.Qrel(str(i), str(j), 1) for i, j in zip(*np.nonzero(truth), strict=True)]
    run = [ir.ScoredDoc(str(i), str(j), float(score[i, j])) for i, j in np.ndindex(score.shape)]
    theirs = {m: {} for m in (ir.nDCG @ k, ir.P @ k, ir.R @ k, ir.RR @ k, ir.AP @ k)}
    for found in ir.iter_calc(list(theirs), qrels, run):
        theirs[found.measure][int(found.query_id)] = found.value
    ours = (ndcg_at_k, precision_at_k, recall_at_k, mrr_at_k, map_at_k)
    for (measure, values), own in zip(theirs.items(), ours, strict=True):
        scale = truth.sum(axis=1) / np.minimum(truth.sum(axis=1), k) if own is map_at_k else 1.0
        want = np.array([values[i] for i in range(40)]) * scale
        np.testing.assert_allclose(own(recommended, relevant, k, average=False), want, err_msg=str(measure))


def test_novelty_is_the_mean_surprise():
    counts = {"a": 8, "b": 2, "c": 0}
    lists = [["a", "b", "c"], ["b"]]
    want = np.mean([np.log2(16 / 8), np.log2(16 / 2), np.log2(16), np.log2(16 / 2)])
    assert novelty(lists, counts, 16) == pytest.approx(want)
    array = np.array([[0, 1, 2], [1, -1, -1]])
    assert novelty(array, [8, 2, 0], 16) == pytest.approx(want)
    assert novelty(array, [8, 2, 0], 16, k=1) == pytest.approx(np.mean([1, 3]))
    with pytest.raises(InputError, match="no list has an item"):
        novelty(np.full((2, 3), -1), [1], 4)


def test_short_lists_and_empty_places():
    padded, right = np.array([[3, -1, -1], [1, 2, 0]]), sparse.csr_array(np.eye(2, 4, 3) + np.eye(2, 4))
    plain = [[3], [1, 2, 0]]
    for measure in MEASURES:
        assert measure(padded, right, 3) == pytest.approx(measure(plain, [{0, 3}, {1}], 3))
    assert coverage(padded, 8, 3) == coverage(plain, 8, 3) == 0.5
    assert coverage(plain, 8, 1) == 0.25


def test_ids_may_be_anything_hashable():
    assert recall_at_k([["ü, x", ("a", 1)]], [{("a", 1)}], 2) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: precision_at_k([[1, 1]], [{1}], 2), ["recommended[0]", "1"]),
        (lambda: precision_at_k(np.array([[1, 1]]), sparse.csr_array(np.ones((1, 2))), 2), ["recommended[0]"]),
        (lambda: precision_at_k([[1]], [{1}, {2}], 2), ["1 users", "2"]),
        (lambda: recall_at_k([[1]], [set()], 2), ["relevant"]),
        (lambda: ndcg_at_k([[1]], [{1}], 0), ["k=0"]),
        (lambda: map_at_k(np.array([[9]]), sparse.csr_array(np.ones((1, 2))), 2), ["item 9", "0 to 1"]),
        (lambda: map_at_k(np.array([[0.5]]), sparse.csr_array(np.ones((1, 2))), 2), ["float64"]),
        (lambda: coverage([[1, 2, 3]], 2), ["n_items=2"]),
    ],
)
def test_refusals_name_the_place(call, words):
    with pytest.raises(InputError) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
