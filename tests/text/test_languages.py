"""Languages of texts, their stop words and stems, and phrases."""

import numpy as np
import pytest

from twofold import BagOfWords
from twofold.core.checks import InputError
from twofold.text.counting import Chunk
from twofold.text.languages import find_languages, list_languages, list_names, list_stop_words
from twofold.text.phrases import learn_phrases, split_vocabulary

ENGLISH = "The garden is full of roses, and the gardener has cut the hedge."
GERMAN = "Der Garten ist voller Rosen, und der Gärtner hat die Hecke geschnitten."
FRENCH = "Le jardin est plein de roses, et l'arbre est dans la haie du voisin."


def test_the_languages_of_a_collection_are_found_and_rare_ones_are_mistakes():
    assert find_languages([ENGLISH, GERMAN, FRENCH, "12", ""]) == ["en", "de", "fr", "", ""]
    shares = list_languages([ENGLISH] * 30 + [GERMAN] * 10 + [FRENCH])
    assert list(shares) == ["en", "de"] and sum(shares.values()) == pytest.approx(1)


def test_thirty_languages_have_stop_words_and_a_text_loses_its_own():
    assert sum(bool(list_stop_words(code)) for code in list_names()) >= 30
    words = BagOfWords(stop_words="french").fit([FRENCH]).vocabulary_
    assert set(words) == {"jardin", "roses", "arbre", "haie", "voisin"}  # and the article is off the tree
    assert set(BagOfWords(stop_words="de").fit([GERMAN]).vocabulary_) >= {"garten", "rosen", "hecke"}


def test_stems_are_of_a_language_by_name_or_code():
    texts = ["Häuser und Haus", "das Haus"]
    for language in ("german", "de"):
        assert len(BagOfWords(stem=language, stop_words="de").fit(texts).vocabulary_) == 1
    with pytest.raises(InputError, match="klingon"):
        BagOfWords(stem="klingon").fit(texts)


def test_phrases_are_neighbors_that_belong_together():
    rng = np.random.default_rng(0)
    texts = [" ".join([*rng.permutation(["tea", "ship", "bank", "port"]), "hong kong"]) for _ in range(40)]
    bag = BagOfWords(ngrams=2).fit(texts)
    assert [word for word in bag.vocabulary_ if " " in word] == ["hong kong"]
    assert sorted(bag.vocabulary_) == list(bag.vocabulary_)
    counts = dict(
        zip(bag.vocabulary_, bag.transform(["hong kong, kong hong, and Hong Kong"]).toarray()[0], strict=True)
    )
    assert (counts["hong kong"], counts["hong"], counts["kong"]) == (2, 3, 3)


def test_a_phrase_ends_with_its_document_and_at_a_word_that_is_left_out():
    codes = np.array([0, 1, 2, -1, 0], np.int32)
    found = learn_phrases([Chunk(np.tile(codes, 9), np.tile([2, 3], 9))], 3)
    assert found.pairs.tolist() == [0 * 3 + 1] and found.times.tolist() == [9]


def test_the_words_of_a_given_phrase_need_no_columns():
    known = split_vocabulary(np.array(["new york", "tea"], dtype=object))
    assert known.words.tolist() == ["new york", "tea", "new", "york"]
    bag = BagOfWords(vocabulary=["new york", "tea"], ngrams=2)
    assert bag.transform(["Tea in New York", "york new"]).toarray().tolist() == [[1, 1], [0, 0]]


def test_a_given_vocabulary_needs_no_fit_and_a_tokenizer_cuts_texts():
    assert BagOfWords(vocabulary=["rose", "tea"]).transform(["tea, tea"]).toarray().tolist() == [[0, 2]]
    bag = BagOfWords(tokenizer=lambda text: text.split("|")).fit(["Green Tea|the|rose"])
    assert bag.vocabulary_.tolist() == ["green tea", "rose"]
