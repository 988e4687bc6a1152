"""The words of a corpus: which, how often, in which order, and that every way of giving them counts the same."""

import gzip
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold
from tests.text.helpers import read_slowly
from twofold import InputError
from twofold.io import documents
from twofold.text import counting
from twofold.text.documents import Texts
from twofold.text.vocabulary import Vocabulary

LINES = ["The cat sat on the mat.", "", "A cat's life: 9 lives, naïve NAÏVE don’t don't!", "हिन्दी में लिखा हिन्दी"]
FULL = [line for line in LINES if line]
lines_of = st.lists(st.text(alphabet=st.sampled_from("abAB éσΣ'’_-.1२\u0301\n"), max_size=30), min_size=1, max_size=8)


def as_dict(v):
    return dict(zip(v.words_.tolist(), v.counts_.tolist(), strict=True))


@given(lines_of, st.booleans(), st.integers(1, 3))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_counts_are_those_of_a_slow_reader(lines, lowercase, min_count):
    expected = Counter(word for line in lines for word in read_slowly(line, lowercase))
    often = {word: n for word, n in expected.items() if n >= min_count}
    v = Vocabulary(min_count=min_count, lowercase=lowercase)
    if not often:
        with pytest.raises(InputError, match="min_count" if expected else "no words"):
            v.fit(lines)
        return
    v.fit(lines)
    assert as_dict(v) == often
    assert v.words_.tolist() == sorted(often, key=lambda word: (-often[word], word))
    assert (v.n_tokens_, v.n_lines_, len(v)) == (expected.total(), len(lines), len(often))
    assert v.encode(lines[0]).tolist() == [v[word] for word in read_slowly(lines[0], lowercase) if word in often]


def test_max_size_keeps_the_first_words():
    whole = Vocabulary(min_count=1).fit(LINES)
    for size in (1, 3, len(whole), 100):
        part = Vocabulary(min_count=1, max_size=size).fit(LINES)
        assert part.words_.tolist() == whole.words_.tolist()[:size]
        assert part.n_tokens_ == whole.n_tokens_


def test_every_way_of_giving_a_corpus_counts_the_same(tmp_path):
    text = "\n".join(LINES)
    (tmp_path / "plain.txt").write_text(text, "utf-8")
    (tmp_path / "dos.txt").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    (tmp_path / "packed.txt.gz").write_bytes(gzip.compress((text + "\n").encode()))
    (tmp_path / "folder").mkdir()
    for at, line in enumerate(LINES):
        (tmp_path / "folder" / f"{at}.txt").write_text(line, "utf-8")
    lists = [read_slowly(line) for line in LINES]
    expected = Vocabulary(min_count=1).fit(LINES)
    for corpus in (
        tmp_path / "plain.txt", tmp_path / "dos.txt", str(tmp_path / "packed.txt.gz"), tmp_path / "folder",
        str(tmp_path / "folder" / "*.txt"), lists, iter(LINES), (line for line in LINES),
    ):  # fmt: skip
        v = Vocabulary(min_count=1).fit(corpus)
        assert as_dict(v) == as_dict(expected)
        assert v.n_tokens_ == expected.n_tokens_
        assert v.n_lines_ == (len(FULL) if "folder" in str(corpus) else len(LINES))  # an empty file has no line


@pytest.mark.parametrize("piece", [1, 7, 40])
def test_a_long_line_may_be_read_in_pieces(tmp_path, monkeypatch, piece):
    path = tmp_path / "long.txt"
    path.write_text("\n".join(LINES), "utf-8")
    monkeypatch.setattr(documents, "PIECE_BYTES", piece)
    assert [line.replace(" ", "") for line in join_lines(Texts(path))] == [line.replace(" ", "") for line in LINES]
    v = Vocabulary(min_count=1).fit(path)
    assert as_dict(v) == as_dict(Vocabulary(min_count=1).fit(LINES))
    assert v.n_lines_ == len(LINES)


def join_lines(read):
    lines, begun = [], ""
    for at, text in enumerate(read):
        begun += text
        if at not in read.continued:
            lines.append(begun)
            begun = ""
    assert not begun
    return lines


def test_words_beyond_the_budget_wait_on_disk():
    generator = np.random.default_rng(0)
    lines = [" ".join(f"w{n}" for n in generator.integers(0, 20_000, 50)) for _ in range(600)]
    expected = Vocabulary(min_count=2, max_size=5000).fit(lines)
    with twofold.config(memory="1MiB"):
        assert counting.max_words() < 0.5 * len(np.unique(" ".join(lines).split()))
        v = Vocabulary(min_count=2, max_size=5000).fit(lines)
    assert v.words_.tolist() == expected.words_.tolist()
    assert v.counts_.tolist() == expected.counts_.tolist()


def test_looking_up_words():
    v = Vocabulary(min_count=1).fit(LINES)
    assert all(v[word] == at for at, word in enumerate(v.words_))
    assert v["CAT"] == v["cat"] and v["don’t"] == v["don't"]
    assert "dog" not in v and 3 not in v
    assert v.encode(["cat", "dog", "The"]).tolist() == [v["cat"], v["the"]]
    assert v.encode("").tolist() == [] and v.encode("").dtype == np.int32
    with pytest.raises(InputError, match=r"'catt' is not among .*'cat'") as caught:
        v["catt"]
    assert isinstance(caught.value, KeyError)
    v.fit(["dog dog dog"])  # after another fit nothing of the former is left
    assert v["dog"] == 0 and "cat" not in v
    assert "Cat" in Vocabulary(min_count=1, lowercase=False).fit(["Cat"])


def test_a_vocabulary_of_given_words():
    v = Vocabulary.of(["b", "a"], [3, 7])
    assert (v["b"], v["a"], v.n_tokens_) == (0, 1, 10)
    with pytest.raises(InputError, match="one count a word"):
        Vocabulary.of(["b", "a"], [3])
    with pytest.raises(InputError, match="and so is"):
        Vocabulary.of(["b", "b"])
