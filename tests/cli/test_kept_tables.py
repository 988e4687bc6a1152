"""Results keep the table of the user: every column in its order, in the dialect of the file, also as a workbook."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

N = 90


@pytest.fixture
def birds(tmp_path, monkeypatch):
    """Three kinds of birds, as a spreadsheet of a German exports them, with a shuffled running number."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 3, N)
    frame = pl.DataFrame(
        {
            "Kundennr": rng.permutation(N) + 10_001,
            "Gewicht": (4000 + 900 * kind + rng.normal(0, 60, N)).round(1),
            "Art": np.array(["Amsel", "Star", "Fink"])[kind],
            "Länge": (180 + 20 * (kind == 1) + rng.normal(0, 1.5, N)).round(1),
            "Tag": pl.Series(rng.integers(15_000, 19_000, N)).cast(pl.Date),
            "Bemerkung": [f"am Ufer gesehen, es war der Tag {i} im Jahr" for i in range(N)],
        }
    )
    frame.write_csv("birds.csv", separator=";", decimal_comma=True, date_format="%d.%m.%Y")
    return frame


@pytest.mark.parametrize(("verb", "new"), [("cluster", ["cluster"]), ("reduce", ["PC1"])])
def test_every_column_stays_in_its_order_and_dialect(twofold, birds, verb, new):
    result = twofold(verb, "birds.csv", "-o", "out.csv", "-o", "out.parquet", "--save", "m.twofold")
    assert result.exit_code == 0, result.stderr
    old, lines = Path("birds.csv").read_text().splitlines(), Path("out.csv").read_text().splitlines()
    assert [line[: len(own)] for line, own in zip(lines, old, strict=True)] == old
    assert pl.read_parquet("out.parquet").columns[: birds.width] == birds.columns
    assert set(new) <= set(lines[0].split(";"))
    again = twofold("apply", "m.twofold", "birds.csv", "-o", "again.csv")
    assert again.exit_code == 0, again.stderr
    applied = Path("again.csv").read_text().splitlines()
    assert [line[: len(own)] for line, own in zip(applied, old, strict=True)] == old
    assert applied[0] == lines[0]


def test_an_identifier_is_never_fitted_and_names_the_rows(ask, birds):
    own = ask("cluster", "birds.csv", "-o", "a.csv", "-q")
    birds.with_columns(pl.col("Kundennr").reverse()).write_csv("other.csv")
    other = ask("cluster", "other.csv", "-o", "b.csv", "-q")
    birds.drop("Kundennr").write_csv("without.csv")
    without = ask("cluster", "without.csv", "-o", "c.csv", "-q")
    assert own["clusters"] == other["clusters"] == without["clusters"]
    assert not any("Kundennr" in cluster["differs"] for cluster in own["clusters"])


def test_a_result_is_written_as_a_workbook(twofold, birds):
    pytest.importorskip("xlsxwriter")
    result = twofold("cluster", "birds.csv", "-o", "out.xlsx", "-o", "out.parquet")
    assert result.exit_code == 0, result.stderr
    book, want = pl.read_excel("out.xlsx"), pl.read_parquet("out.parquet")
    assert book.columns == want.columns
    assert book["Art"].equals(want["Art"]) and book["cluster"].equals(want["cluster"])
    assert twofold("cluster", "out.xlsx", "-q").exit_code == 0


def test_a_workbook_without_its_writer_is_refused_before_the_fit(twofold, birds, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = twofold("cluster", "birds.csv", "-o", "out.xlsx")
    assert result.exit_code == 2 and 'pip install "twofold[excel]"' in result.stderr


def test_roles_can_be_said_on_the_command_line(ask, twofold, birds):
    found = ask("cluster", "birds.csv", "--number", "Kundennr", "-k", "2", "-q")
    assert "Kundennr" in found["clusters"][0]["center"]
    text = twofold("cluster", "birds.csv", "-k", "2", "--id", "Tag").stderr
    assert '"Tag" names the rows' in text
    for verb in ("cluster", "reduce", "complete", "apply"):
        text = " ".join(twofold(verb, "--help").stdout.split())
        assert all(option in text for option in ("--id", "--category", "--number")), verb


def test_a_workbook_is_completed_from_its_first_sheet_with_rows(twofold, birds):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    holes = birds.drop("Tag").with_columns(pl.when(pl.arange(N) % 9 > 0).then("Gewicht").alias("Gewicht"))
    with xlsxwriter.Workbook("birds.xlsx") as book:
        book.add_worksheet("notes").write(0, 0, "see the other sheet")
        holes.write_excel(book, "birds")
    result = twofold("complete", "birds.xlsx", "-o", "full.csv")
    assert result.exit_code == 0 and 'first sheet with rows, "birds"' in result.stderr, result.stderr
    full = pl.read_csv("full.csv")
    assert full.columns == holes.columns and full["Gewicht"].null_count() == 0
    assert twofold("complete", "birds.xlsx::birds").exit_code == 0


def test_new_rows_are_filled_where_a_word_stands_for_missing(twofold, birds):
    words = pl.Series(np.where(np.arange(N) % 10 == 0, "unbekannt", birds["Art"].to_numpy()))
    birds.with_columns(words.alias("Art")).write_csv("w.csv", separator=";", decimal_comma=True)
    assert twofold("complete", "w.csv", "--save", "m.twofold", "-o", "full.csv").exit_code == 0
    result = twofold("apply", "m.twofold", "w.csv", "-o", "again.csv")
    assert result.exit_code == 0 and "set aside: not numbers" not in result.stderr, result.stderr
    assert Path("again.csv").read_text() == Path("full.csv").read_text()
    assert "unbekannt" not in Path("again.csv").read_text()


def test_guesses_for_new_rows_have_the_decimals_of_their_column(twofold, birds):
    holes = birds.with_columns(pl.when(pl.arange(N) % 9 > 0).then("Gewicht").alias("Gewicht"))
    holes.write_csv("h.csv", separator=";", decimal_comma=True)
    assert twofold("complete", "h.csv", "--save", "m.twofold").exit_code == 0
    assert twofold("apply", "m.twofold", "h.csv", "-o", "again.csv").exit_code == 0
    cells = [line.split(";")[1] for line in Path("again.csv").read_text().splitlines()[1:]]
    assert all(len(cell.partition(",")[2]) == 1 for cell in cells)
