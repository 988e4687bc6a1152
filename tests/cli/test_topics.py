"""twofold topics on text as users have it."""

import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from twofold import load
from twofold.analyses.topics.models import mixtures_of_texts
from twofold.cli.app import app

SUBJECTS = {
    "garden": "rose tulip soil seed compost hedge bulb lawn petal root prune bloom",
    "engine": "piston valve petrol gear clutch torque diesel axle exhaust brake cylinder throttle",
    "music": "violin chord melody rhythm concert cello opera choir tempo sonata quartet tune",
}
GLUE = ["the", "of", "and", "to", "in", "is", "it", "that", "for", "was", "on", "with", "as", "are", "this"]
KLEISTER = ["der", "die", "und", "zu", "im", "ist", "es", "dass", "für", "war", "auf", "mit", "als", "sind", "dies"]


@pytest.fixture(scope="session")
def letters():
    """90 documents, a third about each subject, with a sentence of another; the truth beside them."""
    rng = np.random.default_rng(0)
    lists = [words.split() for words in SUBJECTS.values()]
    texts, truth = [], []
    for i in range(90):
        own, other = i % 3, (i + 1 + i // 3 % 2) % 3
        words = [*rng.choice(lists[own], 24), *rng.choice(lists[other], 4)]
        text = [w for word in words for w in (str(rng.choice(GLUE)), str(word))]
        texts.append(" ".join(text[:30]).capitalize() + ". " + " ".join(text[30:]).capitalize() + ".")
        truth.append(own)
    return texts, np.array(truth)


@pytest.fixture
def table(folder, letters):
    """letters.csv: a key, a title, a day and the text; garden in spring, engines in summer, music in autumn."""
    texts, truth = letters
    days = [f"2021-{3 + 3 * t + i % 2:02d}-{1 + i % 28:02d}" for i, t in enumerate(truth)]
    frame = pl.DataFrame(
        {
            "key": [f"L{i:03d}" for i in range(len(texts))],
            "title": [f"Letter {i}" for i in range(len(texts))],
            "sent_date": days,
            "body": texts,
        }
    )
    frame.write_csv("letters.csv")
    return frame


def run_json(twofold, *args):
    result = twofold("topics", *args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def subjects_of(found):
    """The subject of each topic, which must be one."""
    of = {word: name for name, words in SUBJECTS.items() for word in words.split()}
    out = []
    for topic in found["topics"]:
        names = {of[word] for word in list(topic["words"])[:8]}
        assert len(names) == 1, topic["words"]
        out.append(names.pop())
    return out


def test_no_options_are_needed_and_nothing_is_written(twofold, table, folder):
    result = twofold("topics", "letters.csv")
    assert result.exit_code == 0, result.stderr
    for text in ("90 documents", "topics by LDA", "share", "Letter ", "held out: 9 documents", "perplexity"):
        assert text in result.stdout
    for choice in ('documents in "body"', 'dates in "sent_date"', "the text is English", "topics: "):
        assert choice in result.stderr
    assert [p.name for p in folder.iterdir()] == ["letters.csv"]


def test_planted_subjects_are_found(twofold, table, letters):
    found = run_json(twofold, "letters.csv", "-k", 3, "--model", "plsa", "-o", "out.csv")
    names = subjects_of(found)
    assert sorted(names) == sorted(SUBJECTS)
    out = pl.read_csv("out.csv")
    assert out["key"].to_list() == table["key"].to_list()
    told = [list(SUBJECTS).index(names[c - 1]) for c in out["topic"].to_list()]
    assert np.mean(np.array(told) == letters[1]) > 0.95
    assert found["figures"]["perplexity"] < 0.6 * found["baseline"]["perplexity"]
    for c, topic in enumerate(found["topics"]):
        for document in topic["telling"]:
            row = out.filter(pl.col("key") == document["key"])
            assert row[f"topic_{c + 1}"][0] == pytest.approx(document["share"], abs=1e-4)
            assert row["topic"][0] == c + 1


def test_unigram_figure_is_that_of_word_frequencies_on_36_words(twofold, table):
    """All 36 words are about equally frequent, so guessing by frequency is about as hard as among 36."""
    found = run_json(twofold, "letters.csv", "-k", 3)
    assert found["words"] == 36
    assert found["baseline"]["perplexity"] == pytest.approx(36, rel=0.1)


def test_tables_hold_probabilities(twofold, table):
    found = run_json(twofold, "letters.csv", "-k", 4, "-o", "out.csv", "-o", "out.parquet")
    assert found["written"] == ["out.csv", "out_words.csv", "out.parquet", "out_words.parquet"]
    out, words = pl.read_csv("out.csv"), pl.read_parquet("out_words.parquet")
    shares = [f"topic_{c}" for c in range(1, 5)]
    assert out.columns == ["key", "title", "sent_date", "topic", *shares]
    np.testing.assert_allclose(out.select(shares).to_numpy().sum(axis=1), 1, atol=1e-4)
    np.testing.assert_allclose(words.select(shares).to_numpy().sum(axis=0), 1, rtol=1e-6)
    assert words.columns == ["word", "count", *shares] and words["count"].is_sorted(descending=True)
    total = [topic["share"] for topic in found["topics"]]
    assert sum(total) == pytest.approx(1) and total == sorted(total, reverse=True)
    assert words["count"].sum() == found["tokens"]


def test_every_way_to_give_documents_is_the_same(twofold, folder, letters, table):
    texts, _ = letters
    Path("lines.txt").write_text("\n".join(texts))
    Path("lines.txt.gz").write_bytes(gzip.compress("\n".join(texts).encode()))
    Path("pile/sub").mkdir(parents=True)
    for i, text in enumerate(texts):
        Path(f"pile/sub/{i:03d}.txt").write_text(text)
    Path("wrapped.txt").write_text("\n\n".join(text.replace(". ", ".\n") for text in texts))
    table.write_ndjson("letters.jsonl")
    table.write_parquet("letters.parquet")
    ways = {"lines.txt": "line", "lines.txt.gz": "line", "pile": "file", "pile/**/*.txt": "file"}
    ways |= {"wrapped.txt": "paragraph", "letters.jsonl": "key", "letters.parquet": "key", "letters.csv": "key"}
    found = {way: run_json(twofold, way, "-k", 3) for way in ways}
    for way, unit in ways.items():
        assert unit in found[way]["topics"][0]["telling"][0], way
        assert [t["words"] for t in found[way]["topics"]] == [t["words"] for t in found["letters.csv"]["topics"]], way
    first = found["pile"]["topics"][0]["telling"][0]["file"]
    assert first.startswith("sub/") and (Path("pile") / first).is_file()


@pytest.mark.parametrize("kind", ["lines", "csv", "jsonl"])
def test_standard_input(folder, letters, table, kind):
    text = {"lines": "\n".join(letters[0]), "csv": table.write_csv(), "jsonl": table.write_ndjson()}[kind]
    result = CliRunner().invoke(app, ["topics", "-", "-k", "3", "--json"], input=text)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["documents"] == 90 and sorted(subjects_of(found)) == sorted(SUBJECTS)
    assert ("line" if kind == "lines" else "key") in found["topics"][0]["telling"][0]


def test_prevalence_follows_the_calendar(twofold, table):
    found = run_json(twofold, "letters.csv", "-k", 3)
    names, time = subjects_of(found), found["over_time"]
    assert time["period"] == "week"  # spring to autumn of one year
    months = [int(day[5:7]) for day in time["start"]]
    shares = np.array(time["shares"], dtype=float)
    for name, season in zip(SUBJECTS, ((3, 4), (6, 7), (9, 10)), strict=True):
        own = [t for t, month in enumerate(months) if month in season and not np.isnan(shares[t]).any()]
        assert (shares[own].mean(axis=0).argmax() == names.index(name)) and len(own) >= 4


def test_no_smaller_number_tried_predicts_better(twofold, table):
    found = run_json(twofold, "letters.csv")
    tried = found["tried"]
    best = tried["ks"].index(tried["best"])
    assert found["n_topics"] == tried["best"] and len(tried["ks"]) > 1
    p = np.array(tried["perplexities"])
    assert (p[:best] > p[best]).all() and len(tried["coherences"]) == len(p)
    assert p[best] < found["baseline"]["perplexity"]


def test_pictures_reports_seeds_and_models(twofold, table):
    from PIL import Image

    for name in ("a", "b"):
        outs = [part for ending in ("png", "html", "csv") for part in ("-o", f"{name}.{ending}")]
        assert twofold("topics", "letters.csv", *outs, "--save", f"{name}.twofold", "--seed", 3).exit_code == 0
    for ending in ("png", "html", "csv"):
        assert Path(f"a.{ending}").read_bytes() == Path(f"b.{ending}").read_bytes()
    with Image.open("a.png") as image:
        assert min(image.size) > 600
        assert len(image.convert("RGB").resize((100, 100)).getcolors(10_000)) > 20
    page = Path("a.html").read_text()
    assert "data:image/png;base64," in page and "held out" in page.lower() and "http" not in page
    model = load("a.twofold")
    out = pl.read_csv("a.csv")
    shares = out.select([f"topic_{c + 1}" for c in range(len(model.components_))]).to_numpy()
    np.testing.assert_allclose(mixtures_of_texts(model, table["body"].to_list()), shares, atol=1e-4)


def test_other_languages_and_lists_of_stop_words(twofold, folder, letters):
    glue = dict(zip(GLUE, KLEISTER, strict=True))
    texts = [" ".join(glue.get(word, word) for word in text.lower().split()) for text in letters[0]]
    Path("briefe.txt").write_text("\n".join(texts))
    found = run_json(twofold, "briefe.txt", "-k", 3)
    assert any("few English stop words" in note for note in found["notes"])
    assert not set(KLEISTER) & {word for topic in found["topics"] for word in topic["words"]}
    Path("stop.txt").write_text("\n".join(glue.values()))
    found = run_json(twofold, "briefe.txt", "-k", 3, "--stop-words", "stop.txt")
    assert sorted(subjects_of(found)) == sorted(SUBJECTS) and found["words"] == 36


def test_blank_documents_get_the_mixture_of_all(twofold, table):
    table.with_columns(pl.when(pl.int_range(90) == 5).then(None).otherwise("body").alias("body")).write_csv("b.csv")
    found = run_json(twofold, "b.csv", "-k", 3, "-o", "out.parquet")
    assert any("1 document has none" in note for note in found["notes"])
    row = pl.read_parquet("out.parquet").row(5)[4:]
    assert sum(row) == pytest.approx(1, abs=1e-4) and max(row) < 0.6


def test_a_few_lines_are_enough(twofold, folder):
    Path("few.txt").write_text("the cat sat\nthe dog sat\na cat and a dog\nbirds fly\nbirds sing\n")
    result = twofold("topics", "few.txt")
    assert result.exit_code == 0, result.stderr
    assert "too few documents" in result.stderr and "held out: nothing" in result.stdout


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["-o", "letters.csv", "--force"], "input"),
        (["-o", "out.npy"], ".parquet"),
        (["--save", "m.pkl"], ".twofold"),
        (["-k", "0"], "-k"),
        (["-k", "5000"], "at most"),
        (["--model", "tfidf"], "plsa"),
        (["--text", "bdy"], '"body"'),
        (["--date", "title"], 'line 2, column "title": "Letter 0" is not a date'),
        (["--stop-words", "none.txt"], "none.txt"),
    ],
)
def test_what_cannot_be_done_is_refused_at_once(twofold, table, folder, args, word):
    result = twofold("topics", "letters.csv", *args)
    assert result.exit_code == 2 and word in result.stderr, result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""
    assert [p.name for p in folder.iterdir()] == ["letters.csv"]


def test_the_words_beside_are_not_overwritten(twofold, table):
    Path("out_words.csv").write_text("mine")
    result = twofold("topics", "letters.csv", "-k", 3, "-o", "out.csv")
    assert result.exit_code == 2 and "out_words.csv exists" in result.stderr
    assert Path("out_words.csv").read_text() == "mine" and not Path("out.csv").exists()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("bad.csv", b"id,text\n1,a b c\n2,d,e,f\n", ["line 3", "4 fields"]),
        ("bad.jsonl", b'{"text": "a"}\n{"text": \n', ["line 2", "not JSON"]),
        ("bad.txt", b"", ["empty"]),
        ("bad.txt", b"only one line\n", ["1 document", "each line"]),
        ("bad.txt", b"the of\nand to\nin is\nit that\nfor was\n", ["no word"]),
        ("bad.csv", b"a,b\n1,2\n3,4\n", ["no column of text"]),
        ("bad.npy", b"", ["bad.npy"]),
        ("bad.pdf", b"%PDF-1.4 some text\n" * 9, ["plain text"]),
        ("bad.txt", b"\x00\x01\x02\x03\x00\xff" * 50, ["not text"]),
    ],
)
def test_bad_input_leaves_nothing_behind(twofold, folder, name, content, words):
    Path(name).write_bytes(content)
    result = twofold("topics", name, "-o", "out.csv", "-o", "out.png", "--save", "m.twofold")
    assert result.exit_code == 2 and name in result.stderr, result.stderr
    assert all(word in result.stderr for word in words), result.stderr
    assert result.stdout == "" and len(result.stderr.splitlines()) == 1
    assert [p.name for p in folder.iterdir()] == [name]


def test_a_folder_without_text_is_refused(twofold, folder):
    Path("pics").mkdir()
    Path("pics/a.png").write_bytes(b"\x89PNG")
    result = twofold("topics", "pics")
    assert result.exit_code == 2 and "1 .png" in result.stderr
    assert twofold("topics", "nowhere").exit_code == 2


def test_directions_of_lsa_tell_subjects_apart(twofold, table, letters):
    found = run_json(twofold, "letters.csv", "--method", "lsa", "-k", 3, "-o", "at.csv", "--save", "m.twofold")
    assert found["model"] == "LSA" and len(found["directions"]) == found["n_directions"] == 3
    assert found["figures"]["kept"] > found["baseline"]["kept"] > 0
    at = pl.read_csv("at.csv")
    codes = at.select(f"direction_{c}" for c in (1, 2, 3)).to_numpy()
    unit = codes / np.linalg.norm(codes, axis=1, keepdims=True)
    same = letters[1][:, None] == letters[1]
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
