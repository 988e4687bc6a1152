"""twofold embed on text as users have it."""

import gzip
import json
import textwrap
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from twofold import WordVectors, config, load
from twofold.analyses.common.corpus import HeldOut, read_corpus
from twofold.cli.app import app
from twofold.words.skip_gram import _steps

SUBJECTS = {
    "garden": "rose tulip soil seed compost hedge bulb lawn petal root prune bloom",
    "engine": "piston valve petrol gear clutch torque diesel axle exhaust brake cylinder throttle",
    "music": "violin chord melody rhythm concert cello opera choir tempo sonata quartet tune",
}
OF = {word: name for name, words in SUBJECTS.items() for word in words.split()}
GLUE = "the of and to in is it that for was on with as are this".split()  # noqa: SIM905


@pytest.fixture(scope="session")
def sentences():
    """Sentences of one subject each, content words with grammar between."""
    rng = np.random.default_rng(0)
    lists = [words.split() for words in SUBJECTS.values()]
    return [
        " ".join(f"{rng.choice(GLUE)} {word}" for word in rng.choice(lists[i % 3], 12)).capitalize() + "."
        for i in range(300)
    ]


@pytest.fixture
def lines(folder, sentences):
    Path("lines.txt").write_text("\n".join(sentences))
    return sentences


def run_json(twofold, *args):
    result = twofold("embed", *args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_no_options_are_needed_and_nothing_is_written(twofold, lines, folder):
    result = twofold("embed", "lines.txt")
    assert result.exit_code == 0, result.stderr
    for text in ("7,200 words", "51 different", "by skip-gram", "nearest", "held out:"):
        assert text in result.stdout
    for choice in ("numbers a word", "epochs", "each line is a text"):
        assert choice in result.stderr
    assert [p.name for p in folder.iterdir()] == ["lines.txt"]


@pytest.mark.parametrize("method", ["skipgram", "glove", "pmi"])
def test_words_of_a_subject_are_neighbours(twofold, lines, method):
    """By chance, 22% would be of the same subject. (GloVe wants more text than this.)"""
    found = run_json(twofold, "lines.txt", "--method", method, "-k", 10)
    assert len(found["nearest"]) >= 3 and not set(found["nearest"]) & set(GLUE)
    own = [OF[word] == OF.get(other) for word, near in found["nearest"].items() for other in near]
    assert np.mean(own) > (0.9 if method != "glove" else 0.4), found["nearest"]
    assert found["figures"]["right"] > 0.58
    assert found["tokens"] == 7200 and found["words"] == 51 and found["n_components"] == 10


def test_words_that_go_with_nothing_are_not_told_apart(twofold, folder):
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(30)]
    Path("noise.txt").write_text("\n".join(" ".join(rng.choice(words, 12)) for _ in range(600)))
    found = run_json(twofold, "noise.txt", "--method", "pmi", "-k", 5)
    assert found["figures"]["right"] == pytest.approx(0.5, abs=0.06)


def test_every_way_to_give_text_is_the_same(twofold, lines, folder):
    Path("lines.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    Path("pile/sub").mkdir(parents=True)
    for i, text in enumerate(lines):
        Path(f"pile/sub/{i:03d}.txt").write_text(text)
    Path("wrapped.txt").write_text("\n\n".join(textwrap.fill(text, 40) for text in lines))
    frame = pl.DataFrame({"id": np.arange(len(lines)), "body": lines})
    frame.write_csv("table.csv"), frame.write_ndjson("table.jsonl"), frame.write_parquet("table.parquet")
    Path("wide.txt").write_text("\n".join(lines), encoding="utf-16")
    ways = ["lines.txt", "lines.txt.gz", "pile", "pile/**/*.txt", "wrapped.txt", "wide.txt"]
    ways += ["table.csv", "table.jsonl", "table.parquet"]
    found = {way: run_json(twofold, way, "--method", "pmi", "-k", 8) for way in ways}
    for way in ways:
        assert found[way]["nearest"] == found["lines.txt"]["nearest"], way
        assert found[way]["figures"] == found["lines.txt"]["figures"], way
    result = CliRunner().invoke(app, ["embed", "-", "--method", "pmi", "-k", "8", "--json"], input="\n".join(lines))
    assert json.loads(result.stdout)["nearest"] == found["lines.txt"]["nearest"]


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


def test_results_can_be_read_by_others(twofold, lines):
    from PIL import Image

    outs = [part for ending in ("txt", "bin", "csv", "parquet", "png", "html") for part in ("-o", f"a.{ending}")]
    found = run_json(twofold, "lines.txt", "--method", "pmi", "-k", 6, *outs, "--save", "a.twofold", "--seed", 3)
    assert found["written"] == [*outs[1::2], "a.twofold"]
    model = load("a.twofold")
    for file in ("a.txt", "a.bin"):
        back = WordVectors.load_word2vec(file)
        assert list(back.words) == list(model.vectors_.words)
        np.testing.assert_allclose(back.vectors_, model.vectors_.vectors_, rtol=1e-5, atol=1e-7)
    table = pl.read_parquet("a.parquet")
    assert table.columns[:3] == ["word", "count", "x1"] and table["count"].is_sorted(descending=True)
    np.testing.assert_array_equal(table.select(pl.col("^x.*$")).to_numpy(), model.vectors_.vectors_)
    with Image.open("a.png") as image:
        assert min(image.size) > 600
        assert len(image.convert("RGB").resize((100, 100)).getcolors(10_000)) > 20
    page = Path("a.html").read_text()
    assert "data:image/png;base64," in page and "held out" in page.lower() and "http" not in page
    assert run_json(twofold, "lines.txt", "--method", "pmi", "-k", 6, "--seed", 3)["nearest"] == found["nearest"]


def test_two_runs_on_two_threads_write_the_same_file(twofold, lines, monkeypatch):
    monkeypatch.setattr("twofold.words.skip_gram.skip_gram.RUN", 256)
    monkeypatch.setattr(_steps, "WORDS", 12)
    monkeypatch.setattr(_steps, "visit", None)  # a text this small would be gone through in order
    monkeypatch.setattr(_steps, "visit_at_once", None)
    for threads, name in ((2, "a"), (2, "b"), (1, "c")):
        with config(threads=threads):
            run_json(twofold, "lines.txt", "--seed", 0, "-o", f"{name}.txt", "--save", f"{name}.twofold")
    assert len({Path(f"{name}.txt").read_bytes() for name in "abc"}) == 1
    assert len({load(f"{name}.twofold").vectors_.vectors_.tobytes() for name in "abc"}) == 1


def test_questions_are_answered_by_the_vectors_written(twofold, lines):
    Path("asked.txt").write_text(
        ": one\nrose tulip piston valve\nrose tulip piston nothing\n: two\nrose soil cello opera\n"
    )
    Path("pairs.txt").write_text("rose tulip 9\nrose piston 1\npiston valve 8\nrose cello 2\n")
    options = ["--method", "pmi", "-k", 8, "--analogies", "asked.txt", "--similarity", "pairs.txt", "-o", "v.txt"]
    found = run_json(twofold, "lines.txt", *options)
    vectors = WordVectors.load_word2vec("v.txt")
    own = found["analogies"]["vocabularies"]["all"]
    assert own["asked"] == 2 and own["skipped"] == 1
    assert own["accuracy"] == pytest.approx(vectors.evaluate_analogies("asked.txt", vocabulary=None).accuracy)
    assert found["similarity"][0]["spearman"] == pytest.approx(vectors.evaluate_similarity("pairs.txt").spearman)
    shown = twofold("embed", "lines.txt", *options, "--force").stdout
    assert "together, of all words" in shown and "Spearman" in shown


def test_little_text_is_enough(twofold, folder):
    Path("few.txt").write_text("the cat sat\nthe dog sat\na cat and a dog\nthe bird and the cat\n")
    result = twofold("embed", "few.txt")
    assert result.exit_code == 0, result.stderr
    assert "too little text" in result.stderr and "held out: nothing" in result.stdout


def test_settings_given_are_used(twofold, lines):
    result = twofold(
        "embed", "lines.txt", "-k", 7, "--min-count", 200, "--epochs", 2, "--window", 3, "--save", "m.twofold"
    )
    assert result.exit_code == 0 and "chosen" not in result.stderr, result.stderr
    model = load("m.twofold")
    assert model.n_components == 7 and model.window == 3 and model.n_iter_ == 2
    assert model.vocabulary_.counts_.min() >= 200 and model.vectors_.vectors_.shape[1] == 7


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["-o", "lines.txt", "--force"], "input"),
        (["-o", "out.npy"], ".parquet"),
        (["--save", "m.pkl"], ".twofold"),
        (["-k", "0"], "-k"),
        (["-k", "5000"], "at most 51"),
        (["--min-count", "100000"], "too few"),
        (["--method", "cbow"], "skipgram"),
        (["--method", "pmi", "--epochs", "3"], "--epochs"),
        (["--text", "bdy"], "bdy"),
        (["--analogies", "none.txt"], "none.txt"),
        (["--similarity", "none.txt"], "none.txt"),
        (["--analogies", "lines.txt"], "lines.txt, line 1"),
    ],
)
def test_what_cannot_be_done_is_refused(twofold, lines, folder, args, word):
    result = twofold("embed", "lines.txt", *args)
    assert result.exit_code == 2 and word in result.stderr, result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""
    assert [p.name for p in folder.iterdir()] == ["lines.txt"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("bad.csv", b"id,text\n1,a b c\n2,d,e,f\n", ["line 3", "4 fields"]),
        ("bad.jsonl", b'{"text": "a"}\n{"text": \n', ["line 2", "not JSON"]),
        ("bad.txt", b"", ["empty"]),
        ("bad.txt", b"one two\n", ["too few"]),
        ("bad.txt", b"... ,,, !!!\n" * 5, ["no word"]),
        ("bad.txt.gz", b"\x1f\x8b\x08\x00garbage", ["gzip"]),
        ("bad.csv", b"a,b\n1,2\n3,4\n", ["no column of text"]),
        ("bad.pdf", b"%PDF-1.4 some text\n" * 9, ["plain text"]),
        ("bad.txt", b"\x00\x01\x02\x03\x00\xff" * 50, ["not text"]),
    ],
)
def test_bad_input_leaves_nothing_behind(twofold, folder, name, content, words):
    Path(name).write_bytes(content)
    result = twofold("embed", name, "-o", "out.csv", "-o", "out.png", "--save", "m.twofold")
    assert result.exit_code == 2 and name in result.stderr, result.output
    assert all(word in result.stderr for word in words), result.stderr
    assert result.stdout == "" and len(result.stderr.splitlines()) == 1
    assert [p.name for p in folder.iterdir()] == [name]
