"""twofold complete: blanks are filled, and not a byte else is touched."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.worlds import COLUMNS, make_numbers, write_blanks, write_table
from twofold import load
from twofold.io.tables.columns import Written
from twofold.io.tables.csv_fill import Style, as_text, read_source
from twofold.io.tables.roles import Column

# --- every byte outside the blanks is unchanged --------------------------------------------------------------

TEXTS = st.text(
    st.characters(codec="cp1252", exclude_characters="\r\n\x00\x1a", exclude_categories=["Cc", "Zs"]), max_size=8
)
BLANKS = st.sampled_from(["", " ", "NA", " n/a ", "null", "?", '""', '" NA"', '"-"'])


@pytest.fixture
def people(folder):
    return write_blanks()


@st.composite
def files(draw):
    """A file in pieces: (what stands there, whether it is a blank of a numeric column, its decimals, its column)."""
    delimiter = draw(st.sampled_from([",", ";", "\t", "|"]))
    comma = delimiter == ";" and draw(st.booleans())
    newline = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]))
    decimals = [draw(st.integers(0, 3)) for _ in range(3)]
    rows = []
    for i in range(draw(st.integers(6, 9))):
        row = []
        for d in decimals:
            if i > 3 and draw(st.booleans()):
                row.append((draw(BLANKS), True))
                continue
            number = f"{draw(st.integers(-999, 999)) / 7:.{d}f}"
            number = number.replace(".", ",") if comma else number
            row.append((draw(st.sampled_from([number, f" {number}", f'"{number}"'])), False))
        inside = draw(TEXTS) + draw(st.sampled_from(["", delimiter, '"']))
        row.append(('"t' + inside.replace('"', '""') + '"', False))
        rows.append(row)
    return delimiter, comma, newline, encoding, decimals, rows, draw(st.booleans())


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(files())
def test_only_blanks_change(tmp_path_factory, drawn):
    delimiter, comma, newline, encoding, decimals, rows, ends = drawn
    header = delimiter.join(["aé", '"b b"', "c", "text"])

    def whole(cells):
        body = newline.join([header, *(delimiter.join(row) for row in cells)]) + (newline if ends else "")
        return body.encode(encoding)

    path = tmp_path_factory.mktemp("laws") / "t.csv"
    path.write_bytes(whole([[cell for cell, _ in row] for row in rows]))
    source = read_source([str(path)])
    X = source.table.array()
    blank = np.array([[gap for _, gap in row[:3]] for row in rows])
    np.testing.assert_array_equal(np.isnan(X), blank)
    value = -12.3456
    numbers = [Column(name, "number") for name in source.table.columns]
    got = as_text(source, numbers, np.where(blank, value, X), blank, None, ())

    def fill(cell, j):
        text = f"{value:.{decimals[j]}f}"
        text = text.replace(".", ",") if comma else text
        bare = cell.strip('"').strip()
        return cell.replace(bare, text) if bare else f'"{text}"' if cell == '""' else cell + text

    want = [[fill(cell, j) if gap else cell for j, (cell, gap) in enumerate(row)] for row in rows]
    assert got == whole(want)


def test_nothing_but_blanks_changes_end_to_end(ask, people):
    X, holes = people
    found = ask("complete", "people.csv", "-o", "filled.csv")
    old, new = Path("people.csv").read_bytes(), Path("filled.csv").read_bytes()
    pattern = re.escape(old).replace(rb",,", rb",(-?[\d.]+),").replace(rb",,", rb",(-?[\d.]+),")
    match = re.fullmatch(pattern, new)
    assert match is not None and len(match.groups()) == holes.sum() == found["blank_cells"]
    guesses = np.array([float(g) for g in match.groups()])
    scale = np.broadcast_to(X.std(axis=0), X.shape)[holes]
    means = np.broadcast_to(np.nanmean(np.where(holes, np.nan, X), axis=0), X.shape)[holes]
    assert np.mean(((guesses - X[holes]) / scale) ** 2) < 0.2 * np.mean(((means - X[holes]) / scale) ** 2)
    assert found["figures"]["rmse"] < 0.5 * found["baseline"]["rmse"]


def test_a_column_is_written_as_it_was(twofold, people):
    twofold("complete", "people.csv", "-o", "filled.csv")
    for row in Path("filled.csv").read_text().splitlines()[1:]:
        cells = row.split(",")[1:6]
        assert [len(cell.partition(".")[2]) for cell in cells] == [1, 2, 0, 0, 3]


def test_uncertainty_is_a_column_for_each_filled_one(ask, people):
    X, holes = people
    found = ask("complete", "people.csv", "-o", "plain.csv", "-o", "sd.csv", "-o", "sd.parquet", "--uncertainty")
    ask("complete", "people.csv", "-o", "plain2.csv")
    lines, plain = Path("sd.csv").read_bytes().split(b"\r\n"), Path("plain2.csv").read_bytes().split(b"\r\n")
    assert all(a.startswith(b) for a, b in zip(lines, plain, strict=True))
    table = pl.read_csv("sd.csv")
    assert table.columns[-5:] == [f"{name}_sd" for name in COLUMNS]
    assert pl.read_parquet("sd.parquet").columns == table.columns
    sd = table.select(table.columns[-5:]).to_numpy().astype(float)
    np.testing.assert_array_equal(~np.isnan(sd), holes)
    guess = table.select(COLUMNS).to_numpy()
    assert (np.abs(guess - X) <= 3 * sd + 1)[holes].mean() > 0.9
    assert 0.7 < found["figures"]["within_two_sd"] <= 1


def test_the_saved_model_fills_the_same(ask, people):
    _, holes = people
    ask("complete", "people.csv", "-o", "filled.npy", "--save", "m.twofold")
    seen = pl.read_csv("people.csv").select(COLUMNS)
    model = load("m.twofold")
    low, high = seen.min().to_numpy()[0], seen.max().to_numpy()[0]
    again = np.clip(model.impute(seen), low, high)
    np.testing.assert_allclose(np.load("filled.npy"), again, rtol=1e-6)
    np.testing.assert_array_equal(np.load("filled.npy")[~holes], seen.to_numpy()[~holes])


def test_typed_columns_keep_their_types(twofold, people):
    X, holes = people
    full = {name: pl.Series(X[:, j]).round(2) for j, name in enumerate(COLUMNS)}
    frame = pl.DataFrame(full).with_columns(
        pl.col("age").cast(pl.Int32), pl.col("score").cast(pl.Float32), (pl.col("weight") > 0).alias("heavy")
    )
    gaps = pl.DataFrame(holes, schema=COLUMNS)
    frame = frame.with_columns(
        pl.when(~gaps[c]).then(frame[c]).alias(c) for c in COLUMNS if c != "height"
    ).with_columns(pl.when(~gaps["height"]).then(frame["heavy"]).alias("heavy"), text=pl.lit("é,\n"))
    frame.write_parquet("a.parquet")
    twofold("complete", "a.parquet", "-o", "b.parquet")
    new = pl.read_parquet("b.parquet")
    assert new.schema == frame.schema and new.select(COLUMNS).null_count().sum_horizontal().item() == 0
    for name in frame.columns:
        known = frame[name].is_not_null()
        assert new[name].filter(known).equals(frame[name].filter(known))


@pytest.mark.parametrize("blank", ["NA", "-999", " "])
def test_what_stands_for_a_blank(ask, folder, blank):
    X = make_numbers(n=60)
    holes = np.random.default_rng(1).random(X.shape) < 0.1
    write_table(X, holes, blank=blank)
    found = ask("complete", "people.csv", "-o", "filled.csv", *(["--na", "-999"] if blank == "-999" else []))
    assert found["blank_cells"] == holes.sum()
    assert "999" not in Path("filled.csv").read_text() and "NA" not in Path("filled.csv").read_text()


def test_columns_that_are_not_measured_stay(ask, folder):
    X = make_numbers(n=60)
    frame = pl.DataFrame(X, schema=COLUMNS).with_columns(
        pl.Series("customer_id", [None, *range(1000, 1059)]), nothing=pl.lit(None), kept=pl.lit(1.5)
    )
    frame = frame.with_columns(pl.when(pl.int_range(60) > 2).then("kept").alias("kept"))
    frame.with_columns(pl.when(pl.int_range(60) != 7).then("age").alias("age")).write_csv("a.csv")
    found = ask("complete", "a.csv", "--drop", "kept", "-o", "b.csv")
    new = pl.read_csv("b.csv")
    assert new["customer_id"].null_count() == 1 and new["nothing"].null_count() == 60
    assert new["kept"].null_count() == 3 and new["age"].null_count() == 0
    assert [part["column"] for part in found["filled"]] == ["age"]


def test_columns_that_know_nothing_of_each_other_get_their_means(ask, folder):
    X = np.random.default_rng(0).standard_normal((300, 4))
    holes = np.random.default_rng(1).random(X.shape) < 0.1
    pl.DataFrame(np.where(holes, np.nan, X), schema=list("abcd")).fill_nan(None).write_csv("a.csv")
    found = ask("complete", "a.csv")
    assert found["figures"]["rmse"] == pytest.approx(found["baseline"]["rmse"], rel=0.05)
    small = "a,b\n1,2\n2,\n3,6\n"
    Path("small.csv").write_text(small)
    assert ask("complete", "small.csv", "-o", "c.csv")["method"] == "means"
    assert Path("c.csv").read_text() == small.replace("2,\n", "2,4\n")


def test_a_full_table_is_copied(ask, folder):
    Path("full.csv").write_bytes(b"a;b\r\n1,5;2\r\n2,5;3\r\n")
    assert ask("complete", "full.csv", "-o", "copy.csv")["blank_cells"] == 0
    assert Path("copy.csv").read_bytes() == Path("full.csv").read_bytes()


def test_other_delimiters_are_written_anew_and_said(twofold, people):
    result = twofold("complete", "people.csv", "-o", "filled.tsv", "-o", "filled.csv")
    assert "written anew" in result.stderr
    kinds = {"remark": pl.String, "name": pl.String}
    left = pl.read_csv("filled.tsv", separator="\t", schema_overrides=kinds)
    assert left.equals(pl.read_csv("filled.csv", schema_overrides=kinds))


@pytest.mark.parametrize("method", ["means", "factors", "gaussian", "als", "svd", "svp", "soft", "svt"])
def test_a_method_can_be_chosen(ask, people, method):
    assert ask("complete", "people.csv", "--method", method)["method"] == method


def test_one_file_at_a_time(twofold, people):
    Path("other.csv").write_bytes(Path("people.csv").read_bytes())
    result = twofold("complete", "*.csv")
    assert result.exit_code == 2 and "2 files" in result.stderr


def test_a_folder_of_typed_files_is_one_table(ask, people, folder):
    (folder / "parts").mkdir()
    seen = pl.read_csv("people.csv")
    for i in range(3):
        seen[40 * i : 40 * (i + 1)].write_parquet(f"parts/{i}.parquet")
    ask("complete", "parts", "-o", "filled.parquet")
    seen.write_parquet("one.parquet")
    ask("complete", "one.parquet", "-o", "same.parquet")
    assert pl.read_parquet("filled.parquet").equals(pl.read_parquet("same.parquet"))


def test_numbers_are_written_like_their_neighbours():
    assert Style(2).write(-0.001) == "0.00" and Style(0).write(3.6) == "4"
    assert Style(1, Written(",")).write(2.25) == "2,2" and Style(0, levels=("No", "Yes")).write(1.0) == "Yes"
    assert Style(3, exponent=True).write(1.5e-7) == "1.5e-07"
    for sd in (0.00123, 0.4, 12.3, 4567.8):
        assert float(Style(1).write_sd(sd)) == pytest.approx(sd, rel=0.05)
