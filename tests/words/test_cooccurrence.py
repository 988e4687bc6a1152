"""Pairs of words: the table is that of counting by hand, exactly, in whatever way it is made."""

import gzip
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold
from tests.text.helpers import measure_growth
from twofold import InputError
from twofold.core.data.blocks import as_blocks
from twofold.text.vocabulary import Vocabulary
from twofold.words.cooccurrence import cooccurrence as module
from twofold.words.cooccurrence.cooccurrence import Cooccurrence

corpora = st.lists(st.lists(st.sampled_from("abcdefgé"), max_size=14), min_size=1, max_size=6).filter(any)


def by_hand(lines, v, window, harmonic=True, symmetric=True):
    """{(i, j): Fraction} over all pairs of places."""
    table = defaultdict(Fraction)
    for line in lines:
        ids = v.encode(line).tolist()
        for p, i in enumerate(ids):
            for q in range(max(p - window, 0), p):
                weight = Fraction(1, p - q) if harmonic else Fraction(1)
                table[i, ids[q]] += weight
                if symmetric:
                    table[ids[q], i] += weight
    return table


def as_table(counts):
    X = counts.tocoo()
    return {(i, j): x for i, j, x in zip(X.row.tolist(), X.col.tolist(), X.data.tolist(), strict=True)}


def round_table(table):
    return {cell: float(np.float32(float(x))) for cell, x in table.items()}


def zipf_lines(n=120, length=200, words=400):
    generator = np.random.default_rng(0)
    return [" ".join(f"w{k}" for k in generator.zipf(1.2, size) % words) for size in generator.integers(0, length, n)]


def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("data", "indices", "indptr"))


# ---- what is counted -------------------------------------------------------------------------------------------


@given(corpora, st.integers(1, 16), st.sampled_from(["harmonic", "flat"]), st.booleans(), st.integers(1, 2))
@settings(max_examples=200, deadline=None)
def test_counts_are_those_by_hand(lines, window, weighting, symmetric, min_count):
    model = Cooccurrence(window=window, weighting=weighting, symmetric=symmetric, min_count=min_count)
    try:
        model.fit(lines)
    except InputError:
        return
    expected = by_hand(lines, model.vocabulary_, window, weighting == "harmonic", symmetric)
    assert as_table(model.counts_) == round_table(expected)
    assert model.counts_.has_sorted_indices and model.counts_.shape == (len(model.vocabulary_),) * 2


@given(corpora, st.integers(1, 5), st.integers(2, 6))
@settings(max_examples=100, deadline=None)
def test_counting_in_parts_gives_the_same(lines, window, size):
    expected = Cooccurrence(window=window, min_count=1).fit(lines).counts_
    with pytest.MonkeyPatch.context() as patch, twofold.config(memory="1MiB"):
        patch.setattr(module, "MIN_RUN_TOKENS", size)
        patch.setattr(module, "TOKEN_BYTES", 10**9)
        patch.setattr(module, "MAX_PARTS", 3)
        patch.setattr(module, "MAX_PANEL_PAIRS", 5)
        assert same(Cooccurrence(window=window, min_count=1).fit(lines).counts_, expected)


def test_wide_windows_are_right_to_rounding():
    """Beyond some 25 the least common multiple is too large for whole numbers."""
    lines = zipf_lines(8, 100)
    model = Cooccurrence(window=60, min_count=1).fit(lines)
    expected = by_hand(lines, model.vocabulary_, 60)
    found = as_table(model.counts_)
    assert found.keys() == expected.keys()
    np.testing.assert_allclose([found[c] for c in expected], [float(x) for x in expected.values()], rtol=1e-6)


@pytest.mark.parametrize("window", [1, 10, 22, 23, 40, 1000])
@pytest.mark.parametrize("max_count", [1, 10**6, 10**9])
def test_no_sum_can_overflow(window, max_count):
    weights = module.make_weights(window, True, True, max_count)
    assert 0 < 2 * max_count * sum(weights.table.tolist()) < 2**63
    errors = [abs(Fraction(w, weights.unit) - Fraction(1, d + 1)) for d, w in enumerate(weights.table.tolist())]
    assert max(errors) == 0 if window <= 22 else max(errors) < 1e-6


# ---- how it is made --------------------------------------------------------------------------------------------


def test_threads_budget_and_source_do_not_change_a_bit(tmp_path, monkeypatch):
    lines = zipf_lines(700, 400)
    text = "\n".join(lines)
    (tmp_path / "x.txt").write_text(text)
    (tmp_path / "x.txt.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "x").mkdir()
    for at, line in enumerate(lines):
        (tmp_path / "x" / f"{at:04}.txt").write_text(line)
    model = Cooccurrence(window=8, min_count=3)
    expected = model.fit(lines).counts_
    written, write = [], module._write_part
    monkeypatch.setattr(module, "_write_part", lambda panels: written.append(1) or write(panels))
    sources = [lines, [line.split() for line in lines], *(tmp_path / name for name in ("x.txt", "x.txt.gz", "x"))]
    for at, corpus in enumerate(sources):
        for threads, memory in ((1, "1GB"), (3, "1MiB")) if at in (0, 3) else ((2, "1MiB"),):
            with twofold.config(threads=threads, memory=memory):
                assert same(model.fit(corpus).counts_, expected)
    assert len(written) >= 6  # parts were on disk


def test_the_table_may_be_written_to_disk(tmp_path):
    lines = zipf_lines()
    model = Cooccurrence(min_count=2)
    expected = model.fit(lines).counts_
    assert model.fit(lines, to=tmp_path / "pairs.csr").counts_ == str(tmp_path / "pairs.csr")
    blocks = as_blocks(model.counts_)
    assert blocks.shape == expected.shape and blocks.dtype == np.float32
    assert same(blocks[0], expected)
    with pytest.raises(InputError, match=r'must end in "\.csr"'):
        model.fit(lines, to=tmp_path / "pairs.npz")


def test_a_given_vocabulary_is_kept():
    lines = ["the cat sat on the mat", "the dog sat"]
    model = Cooccurrence(window=1, vocabulary=["sat", "cat", "bird"]).fit(lines)
    assert model.counts_.toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    v = Vocabulary(min_count=2).fit(lines)
    model = Cooccurrence(window=2, vocabulary=v).fit(lines)
    assert model.vocabulary_ is v
    assert same(model.counts_, Cooccurrence(window=2, min_count=2).fit(lines).counts_)
    with pytest.raises(InputError, match="none of the 1 words"):
        Cooccurrence(vocabulary=["bird"]).fit(lines)


def test_a_corpus_without_pairs_is_an_empty_table():
    assert Cooccurrence(min_count=1).fit(["alone", "", "here"]).counts_.nnz == 0


def test_a_damaged_file_is_refused_and_nothing_is_left(tmp_path, monkeypatch):
    raw = gzip.compress("\n".join(zipf_lines(400)).encode())
    (tmp_path / "x.txt.gz").write_bytes(raw[: len(raw) // 2])
    with pytest.raises(InputError, match=r"x\.txt\.gz is a damaged gzip file"):
        Cooccurrence().fit(tmp_path / "x.txt.gz", to=tmp_path / "pairs.csr")
    assert [path.name for path in tmp_path.iterdir()] == ["x.txt.gz"]


# ---- memory ----------------------------------------------------------------------------------------------------


@pytest.mark.soak  # tests/text/test_bag_of_words.py holds it of counts of single words
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_counting_keeps_to_its_budget(tmp_path):
    generator = np.random.default_rng(0)
    words = np.array([f"w{k}" for k in range(4000)])
    lines = "\n".join(" ".join(words[generator.integers(0, 4000, 500)]) for _ in range(1000))
    (tmp_path / "small.txt").write_text(lines[: 2**20])
    with open(tmp_path / "big.txt", "w") as file:
        for _ in range(3):
            file.write(lines + "\n")
    fit = "size = len(twofold.Cooccurrence(window=4, min_count=1).fit(path, to=path + '.csr').vocabulary_)"
    growth, _ = measure_growth(fit, tmp_path / "small.txt", tmp_path / "big.txt")
    assert growth <= 30
