"""twofold words: questions to vectors that are small enough to know the answers."""

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.worlds import write_court, write_rotated
from twofold import WordVectors, load


@pytest.fixture
def court(folder):
    return write_court()


@pytest.fixture
def rotation(folder):
    return write_rotated()


@pytest.mark.parametrize("file", ["court.twofold", "court.txt"])
def test_analogies_nearest_words_and_similarity(twofold, ask, court, file):
    result = twofold("words", file, "analogy", "man", "king", "woman", "-n", 1)
    assert result.exit_code == 0 and "man is to king as woman is to" in result.stdout
    assert result.stdout.splitlines()[1].split()[0] == "queen"
    found = ask("words", file, "analogy", "man", "king", "woman", "--method", "multiplicative", "-n", 2)
    assert next(iter(found["answers"])) == "queen" and not {"man", "king", "woman"} & set(found["answers"])
    near = ask("words", file, "nearest", "king", "apple", "-n", 2)
    assert list(near["king"]) == ["prince", "man"] and next(iter(near["apple"])) == "apples"
    assert near["king"]["man"] == pytest.approx(np.sqrt(0.5), abs=1e-6)
    assert ask("words", file, "similarity", "king", "queen")["cosine"] == pytest.approx(0.5)
    assert "cosine 0.500" in twofold("words", file, "similarity", "king", "queen").stdout


def test_a_model_is_asked_for_the_vectors_in_it(twofold, ask, folder, court):
    lines = ["the king and the queen", "the man and the woman"] * 30
    Path("lines.txt").write_text("\n".join(lines))
    assert twofold("embed", "lines.txt", "--method", "pmi", "-k", 3, "--save", "m.twofold").exit_code == 0
    model = load("m.twofold")
    near = ask("words", "m.twofold", "nearest", "king", "-n", 3)["king"]
    assert near == pytest.approx(dict(model.vectors_.nearest("king", 3)))


def test_capitals_are_forgiven_where_the_vectors_have_none(ask, court):
    assert list(ask("words", "court.twofold", "nearest", "King", "-n", 1)["King"]) == ["prince"]


@pytest.mark.parametrize("ending", ["txt", "vec", "bin", "twofold"])
def test_exported_vectors_are_the_same(ask, court, ending):
    assert ask("words", "court.twofold", "export", f"out.{ending}")["written"] == [f"out.{ending}"]
    back = load("out.twofold") if ending == "twofold" else WordVectors.load_word2vec(f"out.{ending}")
    assert list(back.words) == list(court.words)
    np.testing.assert_allclose(back.vectors_, court.vectors_, rtol=1e-6)
    if ending != "twofold":
        Path(f"out.{ending}.gz").write_bytes(gzip.compress(Path(f"out.{ending}").read_bytes()))
        assert list(ask("words", f"out.{ending}.gz", "nearest", "king", "-n", 1)["king"]) == ["prince"]


def test_exported_tables_and_maps(twofold, court):
    from PIL import Image

    assert twofold("words", "court.twofold", "export", "out.csv", "out.parquet", "out.png").exit_code == 0
    table = pl.read_parquet("out.parquet")
    assert table.columns == ["word", "count", "x1", "x2", "x3", "x4"] == pl.read_csv("out.csv").columns
    np.testing.assert_array_equal(table.select("x1", "x2", "x3", "x4").to_numpy(), court.vectors_)
    with Image.open("out.png") as image:
        assert min(image.size) > 600


def test_files_of_questions_are_told_apart(twofold, ask, court):
    Path("asked.txt").write_text(": family\nman king woman queen\nwoman queen man king\nman king woman emperor\n")
    Path("pairs.csv").write_text("word1,word2,score\nking,queen,6\nking,prince,9\nking,apple,1\nking,pear,2\n")
    found = ask("words", "court.twofold", "evaluate", "asked.txt", "pairs.csv")
    asked = found["analogies"][0]
    assert asked["vocabularies"]["all"]["correct"] == 2 == asked["vocabularies"]["all"]["asked"]
    assert asked["vocabularies"]["all"]["skipped"] == 1 and asked["sections"][0]["section"] == "family"
    assert found["similarity"][0]["spearman"] == pytest.approx(1) and found["similarity"][0]["skipped"] == 1
    shown = twofold("words", "court.twofold", "evaluate", "asked.txt", "pairs.csv").stdout
    assert "family" in shown and "100.0%" in shown and "1.000" in shown


@pytest.mark.parametrize("args", [("b.txt", "--pairs", "pairs.tsv"), ("half.txt",)])
def test_vectors_are_turned_onto_others(twofold, ask, rotation, args):
    found = ask("words", "a.txt", "align", *args, "-o", "out.txt")
    assert found["pairs"] == 100 and found["held_out"]["words"] == 20
    assert found["held_out"]["precision_1"] == 1.0
    X, Y = rotation
    out = WordVectors.load_word2vec("out.txt")
    assert list(out.words) == [f"word{i}" for i in range(200)]
    assert np.linalg.norm(out.vectors_ - Y) < 0.05 * np.linalg.norm(Y)
    np.testing.assert_allclose(np.linalg.norm(out.vectors_, axis=1), np.linalg.norm(X, axis=1), rtol=1e-4)
    shown = twofold("words", "a.txt", "align", *args)
    assert shown.exit_code == 0 and "100.0% find their partner" in " ".join(shown.stdout.split())
    assert found["translations"] and all(scores for scores in found["translations"].values())
