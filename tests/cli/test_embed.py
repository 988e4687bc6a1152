"""twofold embed on text as users have it."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.worlds import GLUE, SUBJECT_OF, write_sentences
from twofold import WordVectors, config, load
from twofold.analyses.common.corpus import HeldOut, read_corpus
from twofold.words.skip_gram import _steps


@pytest.fixture
def lines(folder):
    return write_sentences()


@pytest.mark.parametrize("method", ["skipgram", "glove", "pmi"])
def test_words_of_a_subject_are_neighbours(ask, lines, method):
    """By chance, 22% would be of the same subject. (GloVe wants more text than this.)"""
    found = ask("embed", "lines.txt", "--method", method, "-k", 10)
    assert len(found["nearest"]) >= 3 and not set(found["nearest"]) & set(GLUE)
    own = [SUBJECT_OF[word] == SUBJECT_OF.get(other) for word, near in found["nearest"].items() for other in near]
    assert np.mean(own) > (0.9 if method != "glove" else 0.4), found["nearest"]
    assert found["figures"]["right"] > 0.58
    assert found["tokens"] == 7200 and found["words"] == 51 and found["n_components"] == 10


def test_words_that_go_with_nothing_are_not_told_apart(ask, folder):
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(30)]
    Path("noise.txt").write_text("\n".join(" ".join(rng.choice(words, 12)) for _ in range(600)))
    found = ask("embed", "noise.txt", "--method", "pmi", "-k", 5)
    assert found["figures"]["right"] == pytest.approx(0.5, abs=0.06)


def test_what_is_held_out_is_not_learned_from():
    texts = [f"text {i}" for i in range(1000)]
    parts = HeldOut(texts, 10, 0)
    learned = list(parts)
    held = list(parts.held)
    assert 60 < len(held) < 140 and sorted(learned + held) == sorted(texts)
    assert list(parts) == learned and parts.held == held  # every pass is the same
    other = HeldOut(texts, 10, 1)
    assert list(other) != learned
    gaps = np.diff([int(text.split()[1]) for text in held])
    assert len(set(gaps.tolist())) > 5  # not every tenth


def test_files_are_streamed(folder, lines):
    found = read_corpus(["lines.txt"], None)
    assert not isinstance(found.lines, list) and list(found.lines) == lines
    Path("more.txt").write_text("one\n\ntwo\n")
    found = read_corpus(["lines.txt", "more.txt"], None)
    assert not isinstance(found.lines, list) and list(found.lines) == list(found.lines) == [*lines, "one", "", "two"]


def test_results_can_be_read_by_others(ask, lines):
    outs = [part for ending in ("txt", "bin", "csv", "parquet") for part in ("-o", f"a.{ending}")]
    found = ask("embed", "lines.txt", "--method", "pmi", "-k", 6, *outs, "--save", "a.twofold", "--seed", 3)
    assert found["written"] == [*outs[1::2], "a.twofold"]
    model = load("a.twofold")
    for file in ("a.txt", "a.bin"):
        back = WordVectors.load_word2vec(file)
        assert list(back.words) == list(model.vectors_.words)
        np.testing.assert_allclose(back.vectors_, model.vectors_.vectors_, rtol=1e-5, atol=1e-7)
    table = pl.read_parquet("a.parquet")
    assert table.columns[:3] == ["word", "count", "x1"] and table["count"].is_sorted(descending=True)
    np.testing.assert_array_equal(table.select(pl.col("^x.*$")).to_numpy(), model.vectors_.vectors_)


def test_two_runs_on_two_threads_write_the_same_file(ask, lines, monkeypatch):
    monkeypatch.setattr("twofold.words.skip_gram._steps.TOKENS_PER_RUN", 256)
    monkeypatch.setattr(_steps, "MIN_GROUP_WORDS", 12)
    monkeypatch.setattr(_steps, "visit", None)  # a text this small would be gone through in order
    monkeypatch.setattr(_steps, "visit_at_once", None)
    for threads, name in ((2, "a"), (2, "b"), (1, "c")):
        with config(threads=threads):
            ask("embed", "lines.txt", "--seed", 0, "-o", f"{name}.txt", "--save", f"{name}.twofold")
    assert len({Path(f"{name}.txt").read_bytes() for name in "abc"}) == 1
    assert len({load(f"{name}.twofold").vectors_.vectors_.tobytes() for name in "abc"}) == 1


def test_questions_are_answered_by_the_vectors_written(twofold, ask, lines):
    Path("asked.txt").write_text(
        ": one\nrose tulip piston valve\nrose tulip piston nothing\n: two\nrose soil cello opera\n"
    )
    Path("pairs.txt").write_text("rose tulip 9\nrose piston 1\npiston valve 8\nrose cello 2\n")
    options = ["--method", "pmi", "-k", 8, "--analogies", "asked.txt", "--similarity", "pairs.txt", "-o", "v.txt"]
    found = ask("embed", "lines.txt", *options)
    vectors = WordVectors.load_word2vec("v.txt")
    own = found["analogies"]["vocabularies"]["all"]
    assert own["asked"] == 2 and own["skipped"] == 1
    assert own["accuracy"] == pytest.approx(vectors.evaluate_analogies("asked.txt", vocabulary=None).accuracy)
    assert found["similarity"][0]["spearman"] == pytest.approx(vectors.evaluate_similarity("pairs.txt").spearman)
    shown = twofold("embed", "lines.txt", *options, "--force").stdout
    assert "together, of all words" in shown and "Spearman" in shown


def test_settings_given_are_used(twofold, lines):
    result = twofold(
        "embed", "lines.txt", "-k", 7, "--min-count", 200, "--epochs", 2, "--window", 3, "--save", "m.twofold"
    )
    assert result.exit_code == 0 and "chosen" not in result.stderr, result.stderr
    model = load("m.twofold")
    assert model.n_components == 7 and model.window == 3 and model.n_iter_ == 2
    assert model.vocabulary_.counts_.min() >= 200 and model.vectors_.vectors_.shape[1] == 7
