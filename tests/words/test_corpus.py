"""Encoded corpora: the ids of the words in order, wherever they are kept, and runs that cover them once."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold
from twofold import InputError
from twofold.io import documents
from twofold.text import counting
from twofold.text.vocabulary import Vocabulary
from twofold.words import corpus as module
from twofold.words.corpus import Corpus, Store, encode_corpus, fit_and_encode, runs

lines_of = st.lists(st.text(alphabet=st.sampled_from("aabcd éσΣ'’-.1\n"), max_size=40), min_size=1, max_size=12)


def lists_of(corpus):
    """The lines as lists of ids."""
    return [part.tolist() for part in np.split(corpus.tokens, corpus.ends)[:-1]]


def make_corpus(lengths):
    """A corpus of lines of these lengths, its tokens all different."""
    tokens, ends = Store(np.int32), Store(np.int64)
    tokens.append(np.arange(sum(lengths)))
    ends.append(np.cumsum(lengths, dtype=np.int64))
    return Corpus(tokens, ends)


@given(lines_of, st.integers(1, 2))
@settings(max_examples=100, deadline=None)
def test_lines_are_encoded_one_by_one(lines, min_count):
    v = Vocabulary(min_count=min_count)
    try:
        v.fit(lines)
    except InputError:
        return
    expected = [v.encode(line).tolist() for line in lines]
    assert lists_of(encode_corpus(lines, v)) == expected
    assert lists_of(fit_and_encode(lines, Vocabulary(min_count=min_count))) == expected


@given(lines_of, st.booleans(), st.sampled_from([1, 5, 64]))
@settings(max_examples=200, deadline=None)
def test_the_compiled_look_up_finds_the_same_words(lines, lowercase, chunk):
    """Small batches, so that all but the first take the way of long _texts."""
    corpus = [line if at % 4 else line.split() for at, line in enumerate(lines)]
    try:
        v = Vocabulary(min_count=1, lowercase=lowercase).fit(corpus)
    except InputError:
        return
    expected = [v.encode(line).tolist() for line in corpus]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "PIECES_PER_CHUNK", chunk)
        again = Vocabulary(min_count=1, lowercase=lowercase)
        assert lists_of(fit_and_encode(corpus, again)) == lists_of(encode_corpus(corpus, v)) == expected
        assert again.words_.tolist() == v.words_.tolist() and again.counts_.tolist() == v.counts_.tolist()


def test_many_distinct_words_fit_the_look_up(monkeypatch):
    monkeypatch.setattr(counting, "PIECES_PER_CHUNK", 10)
    lines = [" ".join(f"{'long' * (n % 9)}{n:x}" for n in range(a, a + 500)) for a in range(0, 12_000, 400)]
    v = Vocabulary(min_count=1).fit(lines)
    assert len(v) == 12_100
    assert lists_of(encode_corpus(lines, v)) == [v.encode(line).tolist() for line in lines]


# ---- where it is kept ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", [2**20, 50])
def test_memory_file_and_gzip_give_the_same(tmp_path, monkeypatch, piece):
    generator = np.random.default_rng(0)
    lines = [" ".join(f"w{n}" for n in generator.zipf(1.3, length) % 500) for length in generator.integers(0, 300, 400)]
    expected, v = fit_and_encode(lines, first := Vocabulary(min_count=3)), Vocabulary(min_count=3)
    (tmp_path / "x.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    monkeypatch.setattr(documents, "PIECE_BYTES", piece)
    monkeypatch.setattr(module, "TOKENS_AT_ONCE", 1000)
    with twofold.config(memory="1MiB"), fit_and_encode(tmp_path / "x.txt.gz", v) as corpus:
        assert isinstance(corpus.tokens, np.memmap) and not isinstance(expected.tokens, np.memmap)
        assert np.array_equal(corpus.tokens, expected.tokens) and np.array_equal(corpus.ends, expected.ends)
        assert v.words_.tolist() == first.words_.tolist()
        for run, other in zip(runs(corpus, 900, 4), runs(expected, 900, 4), strict=True):
            assert run[1:] == other[1:]
            assert all(np.array_equal(a, b) for a, b in zip(run.read(), other.read(), strict=True))
        file = corpus.stored.file
    assert file.closed


def test_a_generator_is_read_once():
    lines = ["a rose is a rose"] * 3
    v = Vocabulary(min_count=1)
    assert lists_of(fit_and_encode((line for line in lines), v)) == [v.encode(line).tolist() for line in lines]


def test_more_words_than_the_budget_take_a_second_reading():
    lines = [" ".join(f"w{n}" for n in range(a, a + 1000)) for a in range(0, 9000, 500)]
    expected = fit_and_encode(lines, Vocabulary(min_count=2))
    with twofold.config(memory="1MiB"):
        assert lists_of(fit_and_encode(lines, Vocabulary(min_count=2))) == lists_of(expected)
        with pytest.raises(InputError, match=r"only once.*config\(memory"):
            fit_and_encode(iter(lines), Vocabulary(min_count=2))


# ---- runs ------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 12), min_size=1, max_size=15), st.integers(1, 9), st.integers(0, 4))
@settings(max_examples=300, deadline=None)
def test_runs_own_every_token_once_and_see_its_window(lengths, size, margin):
    corpus = make_corpus(lengths)
    found = runs(corpus, size, margin)
    lines = [found for found in lists_of(corpus) if found]
    line_of = {token: line for line in lines for token in line}
    assert np.concatenate([np.arange(0), *(run.read().own for run in found)]).tolist() == list(range(sum(lengths)))
    for run in found:
        here = run.read()
        assert 0 < len(here.own) <= 2 * size
        assert here.ends[-1] == len(here.tokens)
        local = [part.tolist() for part in np.split(here.tokens, here.ends)[:-1] if len(part)]
        for token in here.own.tolist():
            (part,) = [part for part in local if token in part]
            line, i, j = line_of[token], line_of[token].index(token), part.index(token)
            assert line[max(i - margin, 0) : i] == part[max(j - margin, 0) : j]
            assert line[i : i + margin + 1] == part[j : j + margin + 1]
    cut = {run.stop for run in found} - set(np.cumsum(lengths).tolist())
    assert all(len(line_of[stop]) > size for stop in cut)  # only long lines are cut
