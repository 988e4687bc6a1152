"""analyses.topics, asked from Python."""

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from twofold import NMF, PLSA, LatentDirichletAllocation, analyses, load
from twofold.analyses.topics.models import MODELS, fit, mixtures_of_texts, weigh_counts
from twofold.analyses.topics.number import Trial, choose_trial, judge_words
from twofold.core.checks import InputError

GARDEN = "rose tulip soil seed compost hedge bulb lawn petal root prune bloom"
ENGINE = "piston valve petrol gear clutch torque diesel axle exhaust brake cylinder throttle"
MUSIC = "violin chord melody rhythm concert cello opera choir tempo sonata quartet tune"
SUBJECTS = [words.split() for words in (GARDEN, ENGINE, MUSIC)]
GLUE = ["the", "of", "and", "to", "in", "is", "it", "that", "for", "was", "on", "with", "as", "are", "this"]


@pytest.fixture(scope="module")
def texts():
    """90 texts, one in three about each subject."""
    rng = np.random.default_rng(0)
    out = []
    for i in range(90):
        words = rng.choice(SUBJECTS[i % 3], 24)
        out.append(" ".join(f"{rng.choice(GLUE)} {word}" for word in words) + ".")
    return out


@pytest.mark.parametrize("method", MODELS)
def test_a_saved_model_finds_the_topics_of_new_texts(texts, tmp_path, method):
    answer = analyses.topics(texts[:75], 3, method=method)
    answer.save(tmp_path / "t.twofold", tmp_path / "t.csv")
    model = load(tmp_path / "t.twofold")
    assert answer.figures["perplexity"] < 0.6 * answer.baseline["perplexity"]
    known = mixtures_of_texts(model, texts[:75])
    np.testing.assert_allclose(known, answer.mixtures, atol=1e-6)
    subject = [int(answer.mixtures[s::3].sum(axis=0).argmax()) for s in range(3)]
    assert sorted(subject) == [0, 1, 2]
    new = mixtures_of_texts(model, [*texts[75:], ""])
    assert new.argmax(axis=1).tolist()[:-1] == [subject[i % 3] for i in range(75, 90)]
    np.testing.assert_allclose(new.sum(axis=1), 1, atol=1e-6)
    assert pl.read_csv(tmp_path / "t_words.csv")["word"].to_list() == answer.words["word"].to_list()


def test_topics_are_numbered_by_their_share_also_where_there_are_as_many_words():
    rng = np.random.default_rng(0)
    words = ["rose", "piston", "violin", "gavel"]
    texts = [" ".join(np.repeat(words[i % 4], rng.integers(1, 9) + 3 * (i % 4))) for i in range(40)]
    answer = analyses.topics(texts, 4, method="nmf", stop_words=["the"])
    assert len(answer.vocabulary) == 4 == answer.k and (np.diff(answer.shares) <= 0).all()
    said = [str(answer.vocabulary[answer.topics[c].argmax()]) for c in range(4)]
    assert said == words[::-1]  # the longer the texts, the more of all words
    np.testing.assert_allclose(mixtures_of_texts(answer.model, texts), answer.mixtures, atol=1e-9)


def test_models_without_words_and_other_faults_are_refused(texts):
    with pytest.raises(InputError, match="which words"):
        mixtures_of_texts(NMF(2), texts)
    with pytest.raises(InputError, match="nowhere"):
        analyses.topics(["nowhere.txt", "elsewhere.txt"])
    with pytest.raises(InputError, match="choose lda, plsa, nmf or lsa"):
        analyses.topics(texts, method="tfidf")
    with pytest.raises(InputError, match="stop_words="):
        analyses.topics(texts, stop_words="none.txt")


def test_nmf_sees_documents_of_length_one_and_repeated_words_by_their_logarithm():
    X = sparse.csr_array(np.array([[1.0, 1, 0, 0], [3, 1, 0, 0], [0, 0, 5, 5], [0, 1, 1, 2]]))
    model = fit("nmf", X, 2, 0)
    seen = weigh_counts(model, X).toarray()
    np.testing.assert_allclose((seen**2).sum(axis=1), 1)
    idf = model.idf_
    np.testing.assert_allclose(seen[1, 0] / seen[1, 1], 2 * idf[0] / idf[1])  # log(1 + 3) is twice log(1 + 1)
    np.testing.assert_allclose(idf, np.log([5 / 3, 5 / 4, 5 / 3, 5 / 3]).clip(np.log(2)))  # of 4 documents, 2 or 3


@pytest.mark.parametrize("method, name", [("nmf", "topic"), ("nmf", "topic_1"), ("lsa", "direction_1")])
def test_a_column_named_like_a_figure_is_said_to_be_given(texts, method, name):
    frame = pl.DataFrame({name: [f"text {i}" for i in range(len(texts))], "text": texts})
    table = analyses.topics(frame, method=method, n_topics=3).table
    assert name in table.columns and table.columns[0] == f"{name} (given)"
    assert table[f"{name} (given)"].equals(frame[name])


def test_a_mixed_folder_is_said_to_be_mixed_and_can_be_taken_apart(texts):
    glue = ["der", "die", "und", "zu", "im", "ist", "es", "nicht", "für", "war", "auf", "mit", "als", "sind", "eine"]
    rng = np.random.default_rng(1)
    german = [" ".join(f"{rng.choice(glue)} {word}" for word in rng.choice(WERKSTATT, 5)) + "." for _ in range(60)]
    answer = analyses.topics([*texts, *german], 4)
    note = next(note for note in answer.notes if "languages" in note)
    assert "English" in note and "German" in note and "language" in note
    shown = {word for c in range(4) for word in answer.top(c)}
    assert not shown & {*GLUE, *glue}
    alone = analyses.topics([*texts, *german], 2, language="German", stem=True)
    assert alone.counts.shape[0] == 60 and set(alone.vocabulary) <= set(WERKSTATT)
    with pytest.raises(InputError, match="no documents in Finnish"):
        analyses.topics(texts, language="fi")


WERKSTATT = "hammer zange schraube nagel säge bohrer leim holz feile hobel werkbank meißel".split()  # noqa: SIM905


@pytest.mark.parametrize("make", [LatentDirichletAllocation, PLSA, NMF])
def test_topics_are_merged_and_split_by_hand(make):
    rng = np.random.default_rng(0)
    planted = np.repeat(np.eye(4), 5, axis=1) / 5
    X = np.array([rng.multinomial(60, p @ planted) for p in rng.dirichlet([0.2] * 4, size=150)], dtype=float)
    model = make(4, random_state=0).fit(X)
    merged = model.merge([1, 3])
    share = merged.components_ / merged.components_.sum(axis=1, keepdims=True)
    assert (share > 0.05).sum(axis=1).tolist() == [5, 10, 5]  # the words of both
    np.testing.assert_allclose(model.merge([1, 3], weight=[1, 1, 1, 0]).components_[1], model.components_[1], atol=1e-9)
    again = merged.split(1, X)
    share = again.components_ / again.components_.sum(axis=1, keepdims=True)
    assert (share > 0.05).sum(axis=1).tolist() == [5, 5, 5, 5]
    assert again.transform(X).shape == (150, 4)
    for bad in ([0], [0, 4], [-1, 0]):
        with pytest.raises(InputError, match="no group"):
            model.merge(bad)
    with pytest.raises(InputError, match="two groups"):
        model.merge([0, 1], [1, 2])


def test_a_topic_with_half_of_its_words_in_another_repeats_it():
    X = sparse.csr_array(np.ones((4, 8)))
    assert judge_words(np.array([[0, 1, 2, 3], [2, 3, 4, 5]]), X)[1] == 0.5
    assert judge_words(np.array([[0, 1, 2, 3], [3, 4, 5, 6]]), X)[1] == 1.0


def test_the_more_coherent_method_answers_with_most_topics_of_equal_clarity():
    trials = [Trial("nmf", 8, 0.30, 0.5, 9.0), Trial("nmf", 12, 0.20, 1.0, 9.0), Trial("nmf", 18, 0.195, 1.0, 9.0)]
    assert choose_trial([*trials, Trial("lda", 8, 0.29, 1.0, 1.0)]).k == 18
    assert choose_trial([*trials, Trial("lda", 8, 0.31, 1.0, 1.0)]).method == "lda"


def test_titles_have_phrases_and_every_topic_has_its_bar(texts):
    rng = np.random.default_rng(2)
    trade = [f"the {' and '.join(rng.choice(['tea', 'silk', 'port', 'ship'], 9))} of hong kong" for _ in range(30)]
    answer = analyses.topics([*texts, *trade], 30)
    assert any("hong kong" in answer.name_topic(c, 8) for c in range(answer.k))
    written = [text.get_text() for ax in answer.plot().axes for text in ax.texts]
    assert all(any(text.startswith(f"{c + 1}  ") for text in written) for c in range(answer.k))


def test_a_column_of_plain_dates_is_found_by_how_it_is_written(texts):
    days = pl.date_range(pl.date(2020, 1, 1), pl.date(2022, 12, 31), "12d", eager=True)[: len(texts)].cast(pl.String)
    answer = analyses.topics(pl.DataFrame({"when": days, "said": texts}), 3, method="nmf")
    assert answer.over_time is not None and len(answer.over_time[0]) > 10
