"""twofold topics on text as users have it."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.helpers import run_twofold
from tests.cli.worlds import GLUE, SUBJECTS, make_letters, write_letters
from twofold import load
from twofold.analyses.topics.models import mixtures_of_texts

KLEISTER = ["der", "die", "und", "zu", "im", "ist", "es", "dass", "für", "war", "auf", "mit", "als", "sind", "dies"]


@pytest.fixture
def table(folder):
    return write_letters()


def subjects_of(answer):
    """Return the subject of each topic, which must be one."""
    of = {word: name for name, words in SUBJECTS.items() for word in words.split()}
    out = []
    for topic in answer["topics"]:
        names = {of[word] for word in list(topic["words"])[:8]}
        assert len(names) == 1, topic["words"]
        out.append(names.pop())
    return out


def test_planted_subjects_are_found(ask, table):
    found = ask("topics", "letters.csv", "-k", 3, "--model", "plsa", "-o", "out.csv")
    names = subjects_of(found)
    assert sorted(names) == sorted(SUBJECTS)
    out = pl.read_csv("out.csv")
    assert out["key"].to_list() == table["key"].to_list()
    told = [list(SUBJECTS).index(names[c - 1]) for c in out["topic"].to_list()]
    assert np.mean(np.array(told) == make_letters()[1]) > 0.95
    assert found["figures"]["perplexity"] < 0.6 * found["baseline"]["perplexity"]
    for c, topic in enumerate(found["topics"]):
        for document in topic["telling"]:
            row = out.filter(pl.col("key") == document["key"])
            assert row[f"topic_{c + 1}"][0] == pytest.approx(document["share"], abs=1e-4)
            assert row["topic"][0] == c + 1


def test_tables_hold_probabilities_also_those_of_the_saved_model(ask, table):
    found = ask("topics", "letters.csv", "-k", 4, "-o", "out.csv", "-o", "out.parquet", "--save", "m.twofold")
    assert found["written"] == ["out.csv", "out_words.csv", "out.parquet", "out_words.parquet", "m.twofold"]
    out, words = pl.read_csv("out.csv"), pl.read_parquet("out_words.parquet")
    shares = [f"topic_{c}" for c in range(1, 5)]
    assert out.columns == ["key", "title", "sent_date", "topic", *shares]
    np.testing.assert_allclose(out.select(shares).to_numpy().sum(axis=1), 1, atol=1e-4)
    np.testing.assert_allclose(words.select(shares).to_numpy().sum(axis=0), 1, rtol=1e-6)
    assert words.columns == ["word", "count", *shares] and words["count"].is_sorted(descending=True)
    total = [topic["share"] for topic in found["topics"]]
    assert sum(total) == pytest.approx(1) and total == sorted(total, reverse=True)
    assert words["count"].sum() == found["tokens"]
    mixtures = mixtures_of_texts(load("m.twofold"), table["body"].to_list())
    np.testing.assert_allclose(mixtures, out.select(shares).to_numpy(), atol=1e-4)


@pytest.mark.parametrize("kind", ["lines", "csv"])
def test_standard_input(folder, table, kind):
    text = {"lines": "\n".join(make_letters()[0]), "csv": table.write_csv()}[kind]
    result = run_twofold("topics", "-", "-k", "3", "--json", stdin=text)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["documents"] == 90 and sorted(subjects_of(found)) == sorted(SUBJECTS)
    assert ("line" if kind == "lines" else "key") in found["topics"][0]["telling"][0]


def test_prevalence_follows_the_calendar_and_word_frequencies_are_of_36_words(ask, table):
    """All 36 words are about equally frequent, so guessing by frequency is about as hard as among 36."""
    found = ask("topics", "letters.csv", "-k", 3)
    assert found["words"] == 36 and found["baseline"]["perplexity"] == pytest.approx(36, rel=0.1)
    names, time = subjects_of(found), found["over_time"]
    assert time["period"] == "week"  # spring to autumn of one year
    months = [int(day[5:7]) for day in time["start"]]
    shares = np.array(time["shares"], dtype=float)
    for name, season in zip(SUBJECTS, ((3, 4), (6, 7), (9, 10)), strict=True):
        own = [t for t, month in enumerate(months) if month in season and not np.isnan(shares[t]).any()]
        assert (shares[own].mean(axis=0).argmax() == names.index(name)) and len(own) >= 4


def test_the_number_of_topics_is_the_clearest_of_those_tried(ask, table):
    found = ask("topics", "letters.csv")
    tried = found["tried"]
    assert found["n_topics"] == tried["best"] in tried["ks"] and len(tried["ks"]) > 1
    assert set(tried["coherences"]) == {"LDA", "NMF"}  # both were tried
    note = next(note for note in found["notes"] if "tried" in note)
    assert "to predict words alone" in note and "NPMI" in note
    assert found["figures"]["coherence"] > found["baseline"]["coherence"]
    assert found["figures"]["perplexity"] < found["baseline"]["perplexity"]


def test_other_languages_and_lists_of_stop_words(ask, folder):
    glue = dict(zip(GLUE, KLEISTER, strict=True))
    texts = [" ".join(glue.get(word, word) for word in text.lower().split()) for text in make_letters()[0]]
    Path("briefe.txt").write_text("\n".join(texts))
    found = ask("topics", "briefe.txt", "-k", 3)
    assert not set(KLEISTER) & {word for topic in found["topics"] for word in topic["words"]}
    Path("stop.txt").write_text("\n".join(glue.values()))
    found = ask("topics", "briefe.txt", "-k", 3, "--stop-words", "stop.txt")
    assert sorted(subjects_of(found)) == sorted(SUBJECTS) and found["words"] == 36


def test_blank_documents_get_the_mixture_of_all(ask, table):
    table.with_columns(pl.when(pl.int_range(90) == 5).then(None).otherwise("body").alias("body")).write_csv("b.csv")
    found = ask("topics", "b.csv", "-k", 3, "-o", "out.parquet")
    assert any("1 document has none" in note for note in found["notes"])
    row = pl.read_parquet("out.parquet").row(5)[4:]
    assert sum(row) == pytest.approx(1, abs=1e-4) and max(row) < 0.6


def test_the_words_beside_are_not_overwritten(twofold, table):
    Path("out_words.csv").write_text("mine")
    result = twofold("topics", "letters.csv", "-k", 3, "-o", "out.csv")
    assert result.exit_code == 2 and "out_words.csv exists" in result.stderr
    assert Path("out_words.csv").read_text() == "mine" and not Path("out.csv").exists()


def test_a_folder_without_text_is_refused(twofold, folder):
    Path("pics").mkdir()
    Path("pics/a.png").write_bytes(b"\x89PNG")
    result = twofold("topics", "pics")
    assert result.exit_code == 2 and "1 .png" in result.stderr
    assert twofold("topics", "nowhere").exit_code == 2


def test_directions_of_lsa_tell_subjects_apart(twofold, ask, table):
    found = ask("topics", "letters.csv", "--method", "lsa", "-k", 3, "-o", "at.csv", "--save", "m.twofold")
    assert found["model"] == "LSA" and len(found["directions"]) == found["n_directions"] == 3
    assert found["figures"]["kept"] > found["baseline"]["kept"] > 0
    at = pl.read_csv("at.csv")
    codes = at.select(f"direction_{c}" for c in (1, 2, 3)).to_numpy()
    unit = codes / np.linalg.norm(codes, axis=1, keepdims=True)
    same = make_letters()[1][:, None] == make_letters()[1]
    cosines = unit @ unit.T
    assert cosines[same].min() > cosines[~same].max()
    weights = pl.read_csv("at_words.csv")
    assert set(weights["word"]) >= set(SUBJECTS["garden"].split())
    assert twofold("apply", "m.twofold", "letters.csv", "-o", "again.csv").exit_code == 0
    again = pl.read_csv("again.csv").select(f"direction{c}" for c in (1, 2, 3)).to_numpy()
    np.testing.assert_allclose(again, codes, atol=1e-9)


def test_the_number_of_directions_is_chosen_and_drawn(twofold, table):
    result = twofold("topics", "letters.csv", "--method", "lsa", "-o", "map.png", "-o", "page.html")
    assert result.exit_code == 0, result.stderr
    assert "directions by LSA" in result.stdout and "tried, by words held out" in result.stderr
    assert Path("map.png").stat().st_size > 0
