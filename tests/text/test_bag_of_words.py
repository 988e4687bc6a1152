"""Words and their counts: what a word is, which are kept, and that every way of giving documents counts the same."""

import gzip
import sys
import unicodedata
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

import twofold
from tests.text.helpers import measure_growth, read_slowly
from twofold import LSA, BagOfWords, InputError
from twofold.core.data.blocks import as_blocks
from twofold.text import counting
from twofold.text.tokenize import Rules, pieces

RAW = {"stop_words": None, "min_length": 1}
TEXTS = [
    "The cat sat on the mat; the cat slept.",
    "Dogs and cats: a dog's life, a cat's life!",
    "",
    "Ωμέγα naïve NAÏVE Straße 'quoted' don't don’t 1990 x86 snake_case",
    "हिन्दी में लिखा हिन्दी",
]
words_in = st.text(
    alphabet=st.sampled_from("abcXYZ éßΣσıİ'’_-.1²٣\u0301\u00ad\u200dहिन्\U0001d165\U0001f600\t\n"), max_size=60
)


def table(bag, X):
    """The counts as one dict a document."""
    words = bag.get_feature_names_out()
    return [
        {words[j]: int(n) for j, n in zip(row.indices, row.data, strict=True)}
        for row in (X[[i]] for i in range(X.shape[0]))
    ]


# ---- what a word is --------------------------------------------------------------------------------------------


@given(st.lists(words_in, min_size=1, max_size=8), st.booleans())
@settings(max_examples=300, deadline=None, derandomize=True)
def test_counts_are_those_of_a_slow_reader(texts, lowercase):
    expected = [Counter(read_slowly(text, lowercase, numbers=False)) for text in texts]
    bag = BagOfWords(lowercase=lowercase, **RAW)
    if not any(expected):
        with pytest.raises(InputError, match="no word is left"):
            bag.fit(texts)
        return
    X = bag.fit_transform(texts)
    assert X.dtype == np.int32 and X.has_canonical_format
    assert table(bag, X) == expected
    assert list(bag.vocabulary_) == sorted(set().union(*expected))
    assert (bag.transform(texts) != X).nnz == 0
    assert np.array_equal(bag.document_frequency_, (X > 0).sum(axis=0))


@given(st.text(max_size=80))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_any_text_is_read_and_words_are_read_again_as_themselves(text):
    rules = Rules(min_length=1)
    words = [w for w in map(rules.word, rules.split(text)) if w is not None]
    for word in words:
        assert rules.word(word) == word and any(unicodedata.category(c)[0] == "L" for c in word)
        assert not any(c.isspace() for c in word)


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=80))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_plain_text_is_cut_as_the_same_text_with_an_accent_far_away(text):
    assert pieces(text, True) == pieces(text + " é", True)[:-1]


def test_words_of_several_scripts():
    found = Rules(min_length=2)
    read = [[w for w in map(found.word, found.split(text)) if w] for text in TEXTS]
    assert read[1] == ["dogs", "and", "cats", "dog's", "life", "cat's", "life"]
    assert read[3] == ["ωμέγα", "naïve", "naïve", "straße", "quoted", "don't", "don't", "snake", "case"]
    assert read[4] == ["हिन्दी", "में", "लिखा", "हिन्दी"]


def test_numbers_count_when_asked():
    bag = BagOfWords(numbers=True, stop_words=None).fit(["x86 in 1990", "x86"])
    assert list(bag.vocabulary_) == ["1990", "in", "x86"] and list(bag.document_frequency_) == [1, 1, 2]


def test_two_spellings_of_one_look_are_one_word():
    composed, apart = "café don't coöperate", "cafe\u0301 don’t co\u00ado\u0308perate"
    bag = BagOfWords(stop_words=None).fit([composed])
    assert np.array_equal(bag.transform([composed]).toarray(), bag.transform([apart]).toarray())
    assert bag.unseen([apart]).words == 0


# ---- against scikit-learn --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def corpus():
    return twofold.datasets.docstrings(300).documents


@pytest.mark.parametrize(
    "options",
    [{}, {"min_df": 3}, {"min_df": 0.02, "max_df": 0.4}, {"max_df": 40}, {"max_features": 200}, {"lowercase": False}],
    ids=str,
)
def test_counts_equal_those_of_countvectorizer_at_equal_tokens(corpus, options):
    rules = Rules(lowercase=options.get("lowercase", True))

    def words(text):
        return [w for w in map(rules.word, rules.split(text)) if w]

    other = CountVectorizer(analyzer=words, **options)
    Y = other.fit_transform(corpus)
    bag = BagOfWords(stop_words=None, **options)
    X = bag.fit_transform(corpus)
    if "max_features" not in options:  # its ties are broken otherwise
        assert list(bag.vocabulary_) == list(other.get_feature_names_out())
        assert (X != Y).nnz == 0
    assert X.sum() == Y.sum() and X.shape == Y.shape


def test_tokens_are_those_of_a_token_pattern_on_plain_words(corpus):
    letters = ["".join(c if c.isascii() and (c.isalpha() or c == " ") else " " for c in text) for text in corpus]
    other = CountVectorizer()
    Y = other.fit_transform(letters)
    bag = BagOfWords(stop_words=None)
    assert (bag.fit_transform(letters) != Y).nnz == 0
    assert list(bag.vocabulary_) == list(other.get_feature_names_out())


# ---- which words are kept --------------------------------------------------------------------------------------


def test_the_most_frequent_words_win_and_ties_go_to_the_alphabet():
    texts = ["pear fig", "fig apple", "kiwi"]
    for order in (texts, texts[::-1], [texts[1], texts[2], texts[0]]):
        assert list(BagOfWords(max_features=2).fit(order).vocabulary_) == ["apple", "fig"]
        assert list(BagOfWords(max_features=3).fit(order).vocabulary_) == ["apple", "fig", "kiwi"]


def test_rare_and_common_words_are_dropped_by_number_and_by_share():
    texts = ["aa bb", "aa cc", "aa bb dd", "aa"]
    kept = lambda **options: "".join(w[0] for w in BagOfWords(stop_words=None, **options).fit(texts).vocabulary_)  # noqa: E731
    assert kept() == "abcd" and kept(min_df=2) == "ab" and kept(max_df=2) == "bcd" and kept(min_df=0.5) == "ab"
    assert kept(max_df=0.5) == "bcd" and kept(min_df=2, max_df=3) == "b" and kept(max_df=1) == "cd"


def test_stop_words_come_from_a_list_a_file_or_are_english(tmp_path):
    (tmp_path / "german.txt").write_text("# Artikel\nDer\ndie # und so weiter\n\ndas\nÜBER\n", encoding="utf-8")
    texts = ["Der Hund über the cat and DAS Haus", "hund"]
    left = lambda stop: list(BagOfWords(stop_words=stop).fit(texts).vocabulary_)  # noqa: E731
    assert left(tmp_path / "german.txt") == left(str(tmp_path / "german.txt")) == ["and", "cat", "haus", "hund", "the"]
    assert left(["Hund", "haus"]) == ["and", "cat", "das", "der", "the", "über"]
    assert left("english") == ["cat", "das", "der", "haus", "hund", "über"]
    assert len(left(None)) == 8


def test_a_stop_word_file_may_go_after_the_fit(tmp_path):
    (tmp_path / "stop.txt").write_text("the\n")
    bag = BagOfWords(stop_words=tmp_path / "stop.txt", stem="english").fit(["the cats"])
    (tmp_path / "stop.txt").unlink()
    assert bag.unseen(["the dog"]) == (1, 1.0)


def test_a_stem_is_named_by_its_most_frequent_form():
    texts = ["connected connected connection", "connecting a connection, connection", "dog dogs"]
    bag = BagOfWords(stem="english")
    X = bag.fit_transform(texts)
    assert list(bag.vocabulary_) == ["connection", "dog"]  # dog and dogs are equally frequent
    assert np.array_equal(X.toarray(), [[3, 0], [3, 0], [0, 2]])
    assert list(bag.document_frequency_) == [2, 1]
    assert np.array_equal(bag.transform(["she connects; it dogged"]).toarray(), [[1, 1]])  # forms never met


def test_stems_add_up_the_counts_of_their_forms(corpus):
    import snowballstemmer

    stem = snowballstemmer.stemmer("english").stemWord
    forms, stems = BagOfWords(), BagOfWords(stem="english")
    X, Y = forms.fit_transform(corpus), stems.fit_transform(corpus)
    place = {stem(w): j for j, w in enumerate(stems.vocabulary_)}
    assert len(place) == Y.shape[1] and set(stems.vocabulary_) <= set(forms.vocabulary_)
    merge = sparse.csr_array(
        (np.ones(X.shape[1], int), (np.arange(X.shape[1]), [place[stem(w)] for w in forms.vocabulary_]))
    )
    assert (X @ merge != Y).nnz == 0
    totals = np.asarray(X.sum(axis=0)).ravel()
    best = {}
    for j, word in enumerate(forms.vocabulary_):
        best[stem(word)] = min(best.get(stem(word), (1, "")), (-totals[j], word))
    assert {w for _, w in best.values()} == set(stems.vocabulary_)


def test_a_given_vocabulary_is_kept_as_it_is():
    words = ["zebra", "the", "x86", "ant"]
    bag = BagOfWords(vocabulary=words, min_df=5)
    X = bag.fit_transform(["the ant saw the x86", "bee"])
    assert list(bag.vocabulary_) == words and np.array_equal(X.toarray(), [[0, 2, 1, 1], [0, 0, 0, 0]])
    assert list(bag.document_frequency_) == [0, 1, 1, 1] and bag.n_documents_ == 2


# ---- new documents ---------------------------------------------------------------------------------------------


def test_words_never_seen_are_ignored_and_counted():
    bag = BagOfWords().fit(["cats sleep", "dogs bark"])
    before = {k: np.copy(v) for k, v in vars(bag).items() if k.endswith("_")}
    X = bag.transform(["the cats meow 42 meow", "", "birds"])
    assert np.array_equal(X.toarray(), [[0, 1, 0, 0], [0] * 4, [0] * 4])
    assert bag.unseen(["the cats meow 42 meow", "", "birds"]) == (3, 0.75)
    assert bag.unseen(["cats"]) == (0, 0.0) and bag.unseen([""]) == (0, 0.0)
    assert all(np.array_equal(getattr(bag, k), v) for k, v in before.items())


def test_no_documents_are_no_rows():
    bag = BagOfWords().fit(["cats"])
    assert bag.transform([]).shape == (0, 1)
    with pytest.raises(InputError, match="no documents"):
        bag.fit([])


# ---- every way of giving documents -----------------------------------------------------------------------------


def test_all_in_memory_inputs_count_alike():
    X = BagOfWords().fit_transform(TEXTS)
    rules = Rules()
    tokens = [[w for w in rules.split(text)] for text in TEXTS]
    inputs = {
        "tuple": tuple(TEXTS),
        "array": np.array(TEXTS),
        "objects": np.array(TEXTS, dtype=object),
        "pandas": pd.Series(TEXTS),
        "polars": pl.Series(TEXTS),
        "generator": (text for text in TEXTS),
        "tokens": tokens,
        "polars tokens": pl.Series(tokens),
        "tuples": [tuple(t) for t in tokens],
    }
    for name, given_ in inputs.items():
        assert (BagOfWords().fit_transform(given_) != X).nnz == 0, name


def test_files_count_like_their_text(tmp_path):
    (tmp_path / "lines.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    (tmp_path / "dos.txt").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(TEXTS).encode())
    with gzip.open(tmp_path / "lines.txt.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(TEXTS))
    folder = tmp_path / "texts"
    (folder / "b").mkdir(parents=True)
    (folder / ".hidden").write_bytes(b"\0")
    for i, text in enumerate(TEXTS):
        path = folder / ("b" if i > 2 else ".") / f"{i}.txt"
        path.write_text(text.replace(" ", "\n"), encoding="utf-8")
    with gzip.open(folder / "b" / "4.txt.gz", "wt", encoding="utf-8") as file:
        file.write(TEXTS[4])
    (folder / "b" / "4.txt").unlink()
    X = BagOfWords().fit_transform(TEXTS)
    full = [i for i, text in enumerate(TEXTS) if text]  # a blank line is no document, an empty file is
    for path in (tmp_path / "lines.txt", str(tmp_path / "dos.txt"), tmp_path / "lines.txt.gz", folder):
        own = X if path == folder else X[full]
        assert (BagOfWords().fit_transform(path) != own).nnz == 0, path
        assert (BagOfWords().fit(path).transform(path) != own).nnz == 0, path
    some = BagOfWords().fit(TEXTS).transform(str(folder / "**" / "*.txt"))
    assert (some != X[:4]).nnz == 0


@pytest.mark.parametrize(
    "given_, words",
    [
        (["a text", float("nan")], "document 1"),
        (sparse.csr_array((2, 2)), "Counts go straight to a topic model"),
        ("*.nothing", "matches no file"),
    ],
)
def test_what_is_no_document_is_refused(given_, words):
    """The contract of word models has what every reader of texts refuses."""
    with pytest.raises(InputError, match=words):
        BagOfWords().fit(given_)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"min_df": 3}, "min_df=3"),
        ({"min_df": 2, "max_df": 1}, "no word can have both"),
        ({"stop_words": "klingon"}, "neither"),
        ({"stop_words": ["a", 3]}, r"stop_words\[1\]"),
        ({"stem": "klingon"}, "english"),
        ({"vocabulary": ["a", "b", "a"]}, r"vocabulary\[2\]"),
        ({"vocabulary": []}, "empty"),
        ({"vocabulary": ["a", 1]}, r"vocabulary\[1\]"),
        ({"min_length": 50}, "no word is left"),
        ({"max_df": 1.5}, "max_df"),
    ],
)
def test_settings_that_cannot_be_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        BagOfWords(**options).fit(["some words", "others"])


# ---- larger than memory ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"stem": "english", "min_df": 2}, {"max_features": 50}], ids=str)
def test_streaming_in_small_pieces_equals_memory(corpus, options, tmp_path, monkeypatch):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(" ".join(text.split()) for text in corpus), encoding="utf-8")
    whole = BagOfWords(**options)
    X = whole.fit_transform(corpus)
    monkeypatch.setattr(counting, "PIECES_PER_CHUNK", 500)
    monkeypatch.setattr(counting, "max_words", lambda: 1000)
    monkeypatch.setattr(counting, "MAX_RUNS", 3)
    spilled = []
    spill = counting.Tally._spill
    monkeypatch.setattr(counting.Tally, "_spill", lambda self: (spilled.append(1), spill(self)))
    bag = BagOfWords(**options).fit(path)
    assert len(spilled) > 4
    assert list(bag.vocabulary_) == list(whole.vocabulary_) and bag.n_documents_ == len(corpus)
    assert np.array_equal(bag.document_frequency_, whole.document_frequency_)
    assert (bag.transform(path) != X).nnz == 0
    given_back = bag.transform(path, to=tmp_path / "counts.csr")
    assert given_back == str(tmp_path / "counts.csr")
    assert (sparse.vstack(list(as_blocks(given_back))) != X).nnz == 0
    assert as_blocks(BagOfWords(**options).fit_transform(path, to=tmp_path / "again.csr")).shape == X.shape


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_counting_keeps_to_its_budget_however_many_words_there_are(tmp_path):
    rng = np.random.default_rng(0)
    letters = np.array(list("bcdfghjklmnpqrst"))
    rare = ["".join(word) for word in letters[rng.integers(0, 16, (200_000, 9))]]  # tens of MB of dictionary
    (tmp_path / "small.txt").write_text("common words\n" * 2000)
    with open(tmp_path / "big.txt", "w") as file:
        for at in range(0, len(rare), 30):
            file.write(f"common words {' '.join(rare[at : at + 30])}\n")
    fit = "bag = twofold.BagOfWords(min_df=3).fit(path); bag.transform(path, to=path + '.csr'); "
    fit += "size = len(bag.vocabulary_)"
    growth, words = measure_growth(fit, tmp_path / "small.txt", tmp_path / "big.txt")
    assert growth <= 32 and words == 2


def test_where_counts_may_be_written(tmp_path):
    bag = BagOfWords().fit(TEXTS)
    with pytest.raises(InputError, match="must end"):
        bag.transform(TEXTS, to=tmp_path / "counts.npz")
    with pytest.raises(InputError, match="only once"):
        bag.fit_transform((t for t in TEXTS), to=tmp_path / "counts.csr")
    with pytest.raises(InputError, match="document 1"):
        bag.transform(["a text", None], to=tmp_path / "counts.csr")
    assert not list(tmp_path.iterdir())


# ---- manners ---------------------------------------------------------------------------------------------------


def test_works_in_a_pipeline(corpus):
    pipe = clone(make_pipeline(BagOfWords(min_df=2), LSA(3, random_state=0)))
    assert pipe.fit_transform(corpus).shape == (len(corpus), 3)
    assert pipe.transform(["an array of floats", ""]).shape == (2, 3)
    tags = BagOfWords().__sklearn_tags__()
    assert tags.input_tags.string and not tags.input_tags.two_d_array


def words_of(text):
    rules = Rules()
    return [word for word in map(rules.word, rules.split(text)) if word is not None]


def test_writing_without_spaces_is_cut_into_pairs():
    """Chinese, Japanese and Thai lines are many words, not one; marks stay with their letters, other scripts whole."""
    assert words_of("我爱北京天安门") == ["我爱", "爱北", "北京", "京天", "天安", "安门"]
    assert words_of("東京は、日本の首都です。") == ["東京", "京は", "日本", "本の", "の首", "首都", "都で", "です"]
    assert words_of("テレビを見るNHKの2020年") == ["テレビ", "を見", "見る", "nhk"]
    assert words_of("ที่นี่") == ["ที่นี่"] and words_of("ที่นี่ไทย") == ["ที่นี่", "นี่ไ", "ไท", "ทย"]
    assert words_of("한국어 문장") == ["한국어", "문장"] and words_of("हिन्दी में") == ["हिन्दी", "में"]


@pytest.mark.parametrize("long", [False, True])
def test_pairs_are_counted_in_short_texts_and_in_long_ones(long):
    lines = ["我爱北京天安门", "北京是中国的首都", "我爱吃苹果", "苹果和香蕉"] * (20_000 if long else 1)
    bag = BagOfWords(min_df=1, max_df=1.0, stop_words=None).fit(lines)
    counts = bag.transform(lines)
    for word, documents in (("北京", [0, 1]), ("苹果", [2, 3]), ("我爱", [0, 2])):
        own = counts[:, [bag.vocabulary_.tolist().index(word)]].toarray().ravel()
        assert np.flatnonzero(own[-4:]).tolist() == documents and own.sum() == len(lines) / 2
