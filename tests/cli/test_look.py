"""`twofold FILE`, without a verb, says what is in the file and which commands fit it."""

import json
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands_of(text):
    return [line.split("    ")[0] for line in text.splitlines() if line.startswith("twofold ")]


def test_a_table_is_described_by_its_columns_and_the_commands_run(twofold, folder):
    rng = np.random.default_rng(0)
    n = 120
    frame = pl.DataFrame(
        {
            "customer": rng.permutation(n) + 500,
            "spent": np.where(np.arange(n) < 5, -999, rng.uniform(10, 90, n).round(2)),
            "town": rng.choice(["Bonn", "Köln"], n),
            "age": pl.Series(rng.integers(18, 80, n)).set(pl.Series(np.arange(n) % 10 == 0), None),
        }
    )
    frame.write_csv("my customers.csv")
    result = twofold("my customers.csv")
    assert result.exit_code == 0, result.stderr
    first, *lines = result.stdout.splitlines()
    assert first == "my customers.csv: 120 rows, 4 columns, 12 blank cells"
    rows = {line.split()[0]: line for line in lines}
    for name, words in {
        "customer": "identifier",
        "spent": "number",
        "town": "category",
        "age": "whole number",
    }.items():
        assert words in rows[name]
    assert "12 (10%)" in rows["age"] and "Bonn, Köln" in rows["town"]
    assert "-999 stands in" in result.stderr and "--missing -999" in result.stderr
    commands = commands_of(result.stdout)
    assert [command.split()[1] for command in commands] == ["cluster", "reduce", "complete"]
    for command in commands:
        again = twofold(*shlex.split(command)[1:], "-q")
        assert again.exit_code == 0, again.stderr
    assert pl.read_csv("filled.csv")["age"].null_count() == 0


def test_programs_get_the_same_as_json(twofold, folder):
    pl.DataFrame({"x": np.arange(30) ** 2 / 7, "kind": ["a", "b", "c"] * 10}).write_csv("t.csv")
    found = json.loads(twofold("t.csv", "--json").stdout)
    assert found["kind"] == "table" and [column["role"] for column in found["columns"]] == ["number", "category"]
    assert [one["command"] for one in found["commands"]] == ["twofold cluster t.csv", "twofold reduce t.csv"]
    with open("t.csv") as file:
        assert json.loads(twofold("-", "--json", stdin=file.read()).stdout)["columns"] == found["columns"]


def write_ratings():
    rows = (f"u{i % 9},i{i % 7},{1 + i % 5}\n" for i in range(60))
    Path("r.csv").write_text("user,item,rating\n" + "".join(rows))
    return "r.csv"


def write_text():
    Path("t.txt").write_text("the bank of the river\n\nthe bank gives money\n")
    return "t.txt"


def write_image():
    Image.fromarray(np.zeros((20, 30, 3), np.uint8)).save("p.png")
    return "p.png"


def write_images():
    Path("pics").mkdir()
    for i in range(3):
        Image.fromarray(np.zeros((20, 30), np.uint8)).save(f"pics/{i}.png")
    return "pics"


def write_texts():
    Path("texts").mkdir()
    for i in range(3):
        Path(f"texts/{i}.txt").write_text("the bank of the river")
    return "texts"


def write_tables():
    Path("tables").mkdir()
    for i in range(2):
        pl.DataFrame({"x": np.arange(9.0) ** 1.5, "y": np.cos(np.arange(9.0))}).write_csv(f"tables/{i}.csv")
    return "tables"


@pytest.mark.parametrize(
    ("write", "words", "verbs"),
    [
        (write_ratings, "60 rows, 3 columns", ["recommend", "cluster", "reduce"]),
        (write_text, "text, 2 lines", ["topics", "embed"]),
        (write_image, "30 × 20 pixels", ["compress", "denoise", "inpaint", "cluster"]),
        (write_images, "3 images", ["train"]),
        (write_texts, "3 texts", ["topics", "embed"]),
        (write_tables, "18 rows, 2 columns", ["cluster", "reduce"]),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_what_is_no_table_is_told_in_a_few_lines(twofold, folder, write, words, verbs):
    name = write()
    result = twofold(name)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"{name}: ") and words in result.stdout.splitlines()[0]
    assert [command.split()[1] for command in commands_of(result.stdout)] == verbs
    assert all(command.split()[-1] == name for command in commands_of(result.stdout))


def test_a_model_file_is_inspected(twofold, folder):
    assert twofold("reduce", write_tables(), "--save", "m.twofold").exit_code == 0
    assert twofold("m.twofold").stdout == twofold("inspect", "m.twofold").stdout


@pytest.mark.parametrize(("word", "message"), [("nosuch.csv", "does not exist"), ("clustr", "cluster")])
def test_a_file_that_is_not_there_is_no_verb(twofold, folder, word, message):
    result = twofold(word)
    assert result.exit_code == 2 and message in result.stderr and result.stderr.count("\n") == 1


def test_a_table_with_one_row_a_user_is_for_other_verbs(twofold, folder):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {"customer": np.arange(40) + 9, "visits": rng.integers(0, 9, 40), "age": rng.integers(0, 80, 40)}
    )
    frame.write_csv("whole.csv")
    frame.with_columns(visits=pl.col("visits") / 7).write_csv("parts.csv")
    for file in ("whole.csv", "parts.csv"):
        result = twofold("recommend", file)
        assert result.exit_code == 2 and "twofold cluster, reduce or complete" in result.stderr


@pytest.mark.parametrize(
    ("text", "code", "said", "unsaid"),
    [
        ("a,b\n1,x\n", 0, "1 row, 2 columns", "twofold reduce"),
        ("a,b\n" + ",\n" * 9, 2, "every cell is blank", "only"),
        ("r\n" + "".join(f"the bird number {i} came near\n" for i in range(9)), 2, "for the verb topics", "blank"),
        ("a,b\n" + 'z,"one\ncell"\n' * 5 + 'y,"one\ncell"\n', 0, "one cell", "one cell, ..."),
        ("n,v\n" + "".join(f"{2**60 + i},{i % 7}\n" for i in range(50)), 0, "identifier", "e+18"),
        ("v,w\n" + "".join(f"{i % 5 + 0.5},{i % 3}\n" for i in range(60)), 0, "60 rows", "copies"),
        ("x,raucher\n" + "".join(f"{i % 7},{'JN'[i % 2]}\n" for i in range(50)), 0, "yes or no", "category"),
    ],
)
def test_odd_tables_are_told_as_they_are(twofold, folder, text, code, said, unsaid):
    Path("t.csv").write_text(text)
    result = twofold("t.csv")
    assert result.exit_code == code and said in result.stdout + result.stderr
    assert unsaid not in result.stdout + result.stderr
