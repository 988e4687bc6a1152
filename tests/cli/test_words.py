"""twofold words: questions to vectors that are small enough to know the answers."""

import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from twofold import PCA, WordVectors, load

ROYAL, MALE, FEMALE, FRUIT = np.eye(4)
MEANING = {
    "king": ROYAL + MALE,
    "queen": ROYAL + FEMALE,
    "man": MALE,
    "woman": FEMALE,
    "prince": ROYAL + MALE + 0.3 * FRUIT,
    "apple": FRUIT,
    "apples": FRUIT + 0.2 * FEMALE,
}


@pytest.fixture
def court(folder):
    """court.twofold and court.txt, the same seven words."""
    made = WordVectors.of(list(MEANING), np.array(list(MEANING.values()), np.float32), np.arange(70, 0, -10))
    made.save("court.twofold")
    made.save_word2vec("court.txt")
    return made


def run_json(twofold, *args):
    result = twofold("words", *args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("file", ["court.twofold", "court.txt"])
def test_analogies_nearest_words_and_similarity(twofold, court, file):
    result = twofold("words", file, "analogy", "man", "king", "woman", "-n", 1)
    assert result.exit_code == 0 and "man is to king as woman is to" in result.stdout
    assert result.stdout.splitlines()[1].split()[0] == "queen"
    found = run_json(twofold, file, "analogy", "man", "king", "woman", "--method", "multiplicative", "-n", 2)
    assert next(iter(found["answers"])) == "queen" and not {"man", "king", "woman"} & set(found["answers"])
    near = run_json(twofold, file, "nearest", "king", "apple", "-n", 2)
    assert list(near["king"]) == ["prince", "man"] and next(iter(near["apple"])) == "apples"
    assert near["king"]["man"] == pytest.approx(np.sqrt(0.5), abs=1e-6)
    assert run_json(twofold, file, "similarity", "king", "queen")["cosine"] == pytest.approx(0.5)
    assert "cosine 0.500" in twofold("words", file, "similarity", "king", "queen").stdout


def test_a_model_is_asked_for_the_vectors_in_it(twofold, folder, court):
    lines = ["the king and the queen", "the man and the woman"] * 30
    Path("lines.txt").write_text("\n".join(lines))
    assert twofold("embed", "lines.txt", "--method", "pmi", "-k", 3, "--save", "m.twofold").exit_code == 0
    model = load("m.twofold")
    near = run_json(twofold, "m.twofold", "nearest", "king", "-n", 3)["king"]
    assert near == pytest.approx(dict(model.vectors_.nearest("king", 3)))


def test_capitals_are_forgiven_where_the_vectors_have_none(twofold, court):
    assert list(run_json(twofold, "court.twofold", "nearest", "King", "-n", 1)["King"]) == ["prince"]


@pytest.mark.parametrize("ending", ["txt", "vec", "bin", "twofold"])
def test_exported_vectors_are_the_same(twofold, court, ending):
    assert run_json(twofold, "court.twofold", "export", f"out.{ending}")["written"] == [f"out.{ending}"]
    back = load("out.twofold") if ending == "twofold" else WordVectors.load_word2vec(f"out.{ending}")
    assert list(back.words) == list(court.words)
    np.testing.assert_allclose(back.vectors_, court.vectors_, rtol=1e-6)
    if ending != "twofold":
        Path(f"out.{ending}.gz").write_bytes(gzip.compress(Path(f"out.{ending}").read_bytes()))
        assert list(run_json(twofold, f"out.{ending}.gz", "nearest", "king", "-n", 1)["king"]) == ["prince"]


def test_exported_tables_and_maps(twofold, court):
    from PIL import Image

    assert twofold("words", "court.twofold", "export", "out.csv", "out.parquet", "out.png").exit_code == 0
    table = pl.read_parquet("out.parquet")
    assert table.columns == ["word", "count", "x1", "x2", "x3", "x4"] == pl.read_csv("out.csv").columns
    np.testing.assert_array_equal(table.select("x1", "x2", "x3", "x4").to_numpy(), court.vectors_)
    with Image.open("out.png") as image:
        assert min(image.size) > 600


def test_files_of_questions_are_told_apart(twofold, court):
    Path("asked.txt").write_text(": family\nman king woman queen\nwoman queen man king\nman king woman emperor\n")
    Path("pairs.csv").write_text("word1,word2,score\nking,queen,6\nking,prince,9\nking,apple,1\nking,pear,2\n")
    found = run_json(twofold, "court.twofold", "evaluate", "asked.txt", "pairs.csv")
    asked = found["analogies"][0]
    assert asked["vocabularies"]["all"]["correct"] == 2 == asked["vocabularies"]["all"]["asked"]
    assert asked["vocabularies"]["all"]["skipped"] == 1 and asked["sections"][0]["section"] == "family"
    assert found["similarity"][0]["spearman"] == pytest.approx(1) and found["similarity"][0]["skipped"] == 1
    shown = twofold("words", "court.twofold", "evaluate", "asked.txt", "pairs.csv").stdout
    assert "family" in shown and "100.0%" in shown and "1.000" in shown


def test_without_a_question_it_says_what_can_be_asked(twofold, court):
    shown = twofold("words", "court.twofold")
    assert shown.exit_code == 0 and "7 words, 4 numbers each" in shown.stdout and "analogy" in shown.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["court.twofold", "nearest", "kimg"], ["'kimg'", "'king'"]),
        (["court.twofold", "analogy", "man", "king", "womann"], ["'womann'", "'woman'"]),
        (["court.twofold", "similarity", "king", "zzzz"], ["'zzzz'"]),
        (["court.twofold", "analogy", "man", "king"], ["MAN KING WOMAN"]),
        (["court.twofold", "nearest"], ["nearest takes WORD"]),
        (["court.twofold", "closest", "king"], ["closest", "nearest"]),
        (["court.twofold", "analogy", "man", "king", "woman", "--method", "magic"], ["multiplicative"]),
        (["court.twofold", "export", "out.npy"], [".parquet"]),
        (["court.twofold", "export", "court.txt"], ["court.txt exists", "--force"]),
        (["court.twofold", "export", "court.twofold", "--force"], ["input"]),
        (["court.twofold", "evaluate", "none.txt"], ["none.txt"]),
        (["curt.twofold", "nearest", "king"], ["curt.twofold does not exist", "court.twofold"]),
        (["pca.twofold", "nearest", "king"], ["holds a PCA", "twofold embed"]),
        (["broken.twofold", "nearest", "king"], ["broken.twofold"]),
        (["broken.txt", "nearest", "king"], ["broken.txt", "line 2"]),
        (["broken.bin", "nearest", "king"], ["broken.bin"]),
        (["court.npy", "nearest", "king"], ["court.npy", ".bin"]),
    ],
)
def test_what_cannot_be_answered_is_one_line(twofold, court, folder, args, words):
    PCA(1).fit(np.arange(12.0).reshape(4, 3) ** 2).save("pca.twofold")
    Path("broken.twofold").write_bytes(Path("court.twofold").read_bytes()[:-20])
    Path("broken.txt").write_text("2 3\nking 1 2 x\nqueen 1 2 3\n")
    Path("broken.bin").write_bytes(b"2 3\nking \x00\x00")
    Path("court.npy").write_bytes(b"")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = twofold("words", *args)
    assert result.exit_code == 2, result.output
    assert all(word in result.stderr for word in words), result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.fixture
def turned(folder):
    """a.txt and b.txt: 200 words, the same vectors but for a turn and a little noise; pairs.tsv names half of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 8)).astype(np.float32)
    turn = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    Y = (X @ turn + 0.01 * rng.standard_normal(X.shape)).astype(np.float32)
    WordVectors.of([f"word{i}" for i in range(200)], X).save_word2vec("a.txt")
    WordVectors.of([f"Wort{i}" for i in range(200)], Y).save_word2vec("b.txt")
    WordVectors.of([f"word{i}" if i % 2 else f"Wort{i}" for i in range(200)], Y).save_word2vec("half.txt")
    Path("pairs.tsv").write_text("\n".join(f"word{i}\tWort{i}" for i in range(0, 200, 2)))
    return X, Y


@pytest.mark.parametrize("args", [("b.txt", "--pairs", "pairs.tsv"), ("half.txt",)])
def test_vectors_are_turned_onto_others(twofold, turned, args):
    found = run_json(twofold, "a.txt", "align", *args, "-o", "out.txt")
    assert found["pairs"] == 100 and found["held_out"]["words"] == 20
    assert found["held_out"]["precision_1"] == 1.0
    X, Y = turned
    out = WordVectors.load_word2vec("out.txt")
    assert list(out.words) == [f"word{i}" for i in range(200)]
    assert np.linalg.norm(out.vectors_ - Y) < 0.05 * np.linalg.norm(Y)
    np.testing.assert_allclose(np.linalg.norm(out.vectors_, axis=1), np.linalg.norm(X, axis=1), rtol=1e-4)
    shown = twofold("words", "a.txt", "align", *args)
    assert shown.exit_code == 0 and "100.0% find their partner" in " ".join(shown.stdout.split())
    assert found["translations"] and all(scores for scores in found["translations"].values())


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("a.txt", "align"), "align takes OTHER"),
        (("a.txt", "align", "b.txt"), "no word in common"),
        (("a.txt", "align", "b.txt", "--pairs", "none.tsv"), "none.tsv"),
        (("a.txt", "align", "b.txt", "-o", "b.txt"), "b.txt"),
        (("a.txt", "nearest", "word1", "--pairs", "pairs.tsv"), "for align"),
    ],
)
def test_what_cannot_be_aligned_is_one_line(twofold, turned, args, says):
    result = twofold("words", *args)
    assert result.exit_code == 2 and says in result.stderr and "Traceback" not in result.stderr
