"""Reading tables: what is in the file arrives, nothing is lost in silence, and errors say where."""

import gzip
import io
import sqlite3
import sys
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from twofold.analyses.common.tables import as_table
from twofold.core.checks import InputError
from twofold.io.tables.columns import BLANKS, to_numbers
from twofold.io.tables.delimited import read_delimited
from twofold.io.tables.read import read_table

CSV = "city,x,y\nBonn,1,2.5\nKöln,3,\nAarau,5,-6e1\n"
WANT = np.array([[1, 2.5], [3, np.nan], [5, -60]])


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Write a file in an empty working folder."""
    monkeypatch.chdir(tmp_path)

    def write(name, content):
        data = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return name

    return write


def refusal(*args, **options):
    with pytest.raises(InputError) as caught:
        read_table(*args, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_delimiter_encoding_and_newline_do_not_matter(put, delimiter, encoding, newline):
    text = CSV.replace(",", delimiter).replace("\n", newline)
    table = read_table(put("t.csv", text.encode(encoding)))
    np.testing.assert_array_equal(table.numbers, WANT)
    assert table.columns == ["x", "y"]
    assert table.ids.to_list() == ["Bonn", "Köln", "Aarau"]
    assert any("Latin-1" in note for note in table.notes) == (encoding == "latin-1")


def test_every_format_gives_the_same_table(put, tmp_path, monkeypatch):
    frame = pl.DataFrame({"city": ["Bonn", "Köln", "Aarau"], "x": [1, 3, 5], "y": [2.5, None, -60.0]})
    put("t.csv.gz", gzip.compress(CSV.encode()))
    frame.write_parquet("t.parquet")
    frame.write_ndjson("t.jsonl")
    with sqlite3.connect("t.db") as base:
        base.execute("create table cities (city text, x int, y real)")
        base.executemany("insert into cities values (?, ?, ?)", frame.rows())
    base.close()
    put("t.csv", CSV)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CSV.encode())))
    for source in ["t.csv", "t.csv.gz", "t.parquet", "t.jsonl", "t.db::cities", "t.db", "-"]:
        table = read_table(source)
        np.testing.assert_array_equal(table.numbers, WANT, err_msg=source)
        assert table.columns == ["x", "y"] and table.ids.to_list() == frame["city"].to_list(), source


def test_arrays_in_every_format_give_the_same_numbers(put):
    X = np.array([[1.5, 0, 2], [0, 0, 3], [4, 5, 0]])
    np.save("a.npy", X)
    np.savez("a.npz", table=X, weights=np.ones(3))
    sp.save_npz("s.npz", sp.csr_array(X))
    scipy.io.mmwrite("a.mtx", sp.coo_array(X))
    put("a.mtx.gz", gzip.compress(Path("a.mtx").read_bytes()))
    np.savetxt("a.txt", X)
    for source in ["a.npy", "a.npz", "a.npz::table", "s.npz", "a.mtx", "a.mtx.gz", "a.txt"]:
        found = read_table(source).array()
        assert sp.issparse(found) == (source in ("s.npz", "a.mtx", "a.mtx.gz")), source
        np.testing.assert_array_equal(found.toarray() if sp.issparse(found) else found, X, err_msg=source)


def test_a_plain_npy_file_is_not_read(put, tmp_path):
    np.save("a.npy", np.eye(3))
    assert str(read_table("a.npy").numbers) == "a.npy"
    assert read_table("a.npy", drop=["column_2"]).numbers.tolist() == [[1, 0], [0, 0], [0, 1]]


def test_images_become_rows(put):
    X = np.arange(24.0).reshape(2, 3, 4)
    np.save("images.npy", X)
    table = read_table("images.npy")
    np.testing.assert_array_equal(table.numbers, X.reshape(2, 12))
    assert any("2 rows of 12" in note for note in table.notes)


@given(
    cells=st.lists(
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=6), min_size=2, max_size=2),
        min_size=1,
        max_size=6,
    )
)
def test_what_a_writer_quotes_comes_back(cells):
    frame = pl.DataFrame([["head", "line"], *cells], schema=["a", "b"], orient="row")
    data = frame.write_csv(include_header=False, quote_style="always").encode()
    piece = read_delimited(data, "t.csv")
    back = [[cell or "" for cell in row] for row in piece.frame.rows()]
    assert back == cells


def test_folders_and_globs_are_stacked_by_name(put):
    put("parts/1.csv", "a,b\n1.5,2\n3,4\n")
    put("parts/2.csv", "b,a\n20,10\n")
    put("parts/notes.md", "not a table")
    want = [[1.5, 2], [3, 4], [10, 20]]
    for source in ["parts", "parts/*.csv", ["parts/1.csv", "parts/2.csv"]]:
        table = read_table(source)
        assert table.numbers.tolist() == want
        assert table.notes[0].startswith("2 files")


def test_the_file_and_line_at_fault_are_named_in_a_stack(put):
    put("parts/1.csv", "a,b\n1,2\n3,4\n")
    put("parts/2.csv", "a,b\n5,6\n\n7,oops\n")
    assert refusal("parts").startswith('parts/2.csv, line 4, column "b": "oops" is not a number.')


def test_a_cell_that_is_no_number_is_placed_and_remedied(put):
    rows = "".join(f"p{i},{i * 1.5}\n" for i in range(10))
    put("table.csv", f"name,age\n{rows}x,n/a?\n{rows.replace('p', 'q')}")
    message = refusal("table.csv")
    assert message == (
        'table.csv, line 12, column "age": "n/a?" is not a number. '
        "Use missing='n/a?' to treat it as a blank, or drop the column with drop='age'."
    )
    assert np.isnan(read_table("table.csv", missing=["n/a?"]).numbers[10, 0])


def test_lines_are_counted_through_quoted_newlines(put):
    put("q.csv", 'a,b\n"one\ntwo",1\n"x, y",2\n"z",oops\n"w",3\n')
    assert "line 5" in refusal("q.csv")


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("a,b,c\n1,2,3\n4,5\n6,7,8\n", ["t.csv, line 3: 2 fields where the header has 3", "blank"]),
        ("a,b\n1,2\n3,4,5\n", ["t.csv, line 3: 3 fields where the header has 2", "quotes"]),
        ("1,2\n3\n", ["t.csv, line 2: 1 field where the first line has 2"]),
        ('a,b\n1,2\n"3,4\n5,6\n', ["t.csv, line 3", "never closed"]),
        ("", ["t.csv is empty"]),
        ("\n \n", ["t.csv is empty"]),
        ("a,b\n", ["no rows"]),
        ("a,b\nx,y\nx,z\n", ["no column of numbers", '"a", "b"']),
        ("a,b\n1,2\n3,inf\n", ['line 3, column "b": inf is not a finite number', "missing="]),
        (bytes(range(256)) * 8, ["t.csv is not text"]),
        (b"\x1f\x8b\x08broken", ["t.csv is a damaged gzip file"]),
    ],
)
def test_bad_delimited_text_is_refused(put, content, parts):
    put("t.csv", content)
    message = refusal("t.csv")
    for part in parts:
        assert part in message


def test_bad_files_of_other_formats_are_refused(put):
    put("zero.parquet", "")
    put("text.parquet", "a,b\n1,2\n")
    put("bad.jsonl", '{"a": 1}\n\n{"a": tru}\n')
    put("list.jsonl", "[1, 2]\n")
    put("text.npy", "1 2 3")
    np.save("objects.npy", np.array([{}, []], dtype=object))
    np.savez("two.npz", a=np.eye(2), b=np.eye(3))
    put("text.mtx", "hello")
    put("text.db", "hello " * 50)
    put("sheet.xlsx", "PK")
    assert "0 bytes" in refusal("zero.parquet")
    assert "not a readable Parquet" in refusal("text.parquet")
    assert refusal("bad.jsonl").startswith("bad.jsonl, line 3: not JSON")
    assert refusal("list.jsonl").startswith("list.jsonl, line 1: not an object")
    assert "not a readable .npy" in refusal("text.npy")
    assert "Python objects" in refusal("objects.npy")
    assert "two.npz::NAME, of: a, b" in refusal("two.npz")
    assert "not a readable .mtx" in refusal("text.mtx")
    assert "not a readable SQLite" in refusal("text.db")
    assert "not a readable workbook" in refusal("sheet.xlsx")


def test_what_is_not_there_is_named_with_what_is(put):
    put("ratings.csv", CSV)
    put("empty/photo.jpg", "x")
    with sqlite3.connect("t.db") as base:
        base.execute("create table films (a)")
        base.execute("create table users (a)")
    base.close()
    assert "Did you mean ratings.csv?" in refusal("ratngs.csv")
    assert "nor does the folder" in refusal("nowhere/ratings.csv")
    assert "1 .jpg" in refusal("empty")
    assert "matches no file" in refusal("*.tsv")
    assert "films, users" in refusal("t.db")
    assert 'no table "film"' in refusal("t.db::film")
    assert 'Did you mean "x"?' in refusal("ratings.csv", drop=["xx"])


def test_without_a_header_columns_are_numbered(put):
    table = read_table(put("t.csv", "5,6.5\n7,8\n"))
    assert table.columns == ["column_1", "column_2"]
    assert table.numbers.tolist() == [[5, 6.5], [7, 8]]
    assert not table.named


def test_names_are_made_distinct_and_it_is_said(put):
    table = read_table(put("t.csv", "x,x,,y\n5,6,7,8\n9,10,11,13\n"))
    assert table.columns == ["x", "x_2", "column_3", "y"]
    assert sum('"x_2"' in note or '"column_3"' in note for note in table.notes) == 2


def test_row_names_written_by_r_get_a_column(put):
    table = read_table(put("t.csv", "a,b\nr1,1.5,2\nr2,3,4\n"))
    assert table.ids.to_list() == ["r1", "r2"] and table.columns == ["a", "b"]


@pytest.mark.parametrize(
    ("header", "values", "taken"),
    [
        ("id", [7, 3, 9], True),
        ("customerId", [7, 3, 9], True),
        ("first", [1, 2, 3], True),
        ("first", [0, 1, 2], True),
        ("first", [7, 3, 9], False),
        ("id", [7.5, 3, 9], False),
    ],
)
def test_whole_numbers_that_name_rows_are_not_measurements(put, header, values, taken):
    rows = "".join(f"{v},{i * 2.5}\n" for i, v in enumerate(values))
    table = read_table(put("t.csv", f"{header},y\n{rows}"))
    assert (table.ids is not None) == taken
    assert (header in table.columns) != taken
    assert any(f'"{header}" names the rows' in note for note in table.notes) == taken


def test_other_columns_are_carried_and_said(put):
    text = "day,kind,x,ok,empty\n2024-01-31,a,1.5,true,\n2024-01-31,b,2,FALSE,\n2024-02-01,a,4,true,NA\n"
    table = read_table(put("t.csv", text))
    assert table.columns == ["x", "ok"]
    assert table.numbers[:, 1].tolist() == [1, 0, 1]
    assert table.others.columns == ["day", "kind", "empty"]
    assert table.others["kind"].to_list() == ["a", "b", "a"]
    said = " ".join(table.notes)
    for name in ("day", "kind", "empty"):
        assert f'"{name}"' in said
    assert "dates" in said and "blank in every row" in said


@pytest.mark.parametrize("blank", ["", "NA", "N/A", "nan", "NaN", "null", "-", "?", " "])
def test_common_blanks(put, blank):
    table = read_table(put("t.csv", f"x,y\n1.5,2\n{blank},4\n5,7\n"))
    np.testing.assert_array_equal(table.numbers[:, 0], [1.5, np.nan, 5])


@pytest.mark.parametrize("source", ["t.csv", "t.npy", "t.parquet"])
def test_a_number_can_stand_for_a_blank(put, source):
    X = np.array([[1.5, -999], [-999, 4], [5, 7]])
    frame = pl.DataFrame(X, schema=["x", "y"])
    frame.write_csv("t.csv")
    frame.write_parquet("t.parquet")
    np.save("t.npy", X)
    np.testing.assert_array_equal(read_table(source, missing=["-999"]).numbers, np.where(X == -999, np.nan, X))


def test_decimal_commas_in_files_with_semicolons(put):
    table = read_table(put("t.csv", "x;y\n1,5;2\n-3,25;4\n"))
    assert table.numbers.tolist() == [[1.5, 2], [-3.25, 4]]
    assert any("decimal commas" in note for note in table.notes)


def test_columns_that_differ_are_named(put):
    put("parts/1.csv", "a,b\n1,2\n")
    put("parts/2.csv", "a,c\n1,2\n")
    message = refusal("parts")
    assert message.startswith("parts/2.csv") and 'lacks "b"' in message and 'adds "c"' in message


# ---- numbers as people write them -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "want", "words"),
    [
        ("x;y\n278.000,50;1\n1,5;2\n-3,25;4\n", [278000.5, 1.5, -3.25], ["points between thousands", "decimal commas"]),
        ('x,y\n"278,000.50",1\n"1,500",2\n7.25,4\n', [278000.5, 1500, 7.25], ["commas between thousands"]),
        ("x\ty\n1.234.567\t1\n2\t2\n1.000\t3\n", [1234567, 2, 1000], ["points between thousands"]),
        ("x\ty\n1,5\t1\n2,25\t2\n3\t3\n", [1.5, 2.25, 3], ["decimal commas"]),
        ("x;z\n278.000;1,5\n1.250;2,5\n", [278000, 1250], ["points between thousands", "decimal commas"]),
        ("x,y\n$5,1\n-$6.5,2\n$7,4\n", [5, -6.5, 7], ["$ left out"]),
        ('x,y\n"1.200,50 €",1\n2 €,2\n"3,5 €",4\n', [1200.5, 2, 3.5], ["€ left out", "decimal commas"]),
        ("x,y\n5 %,1\n12.5 %,2\n,4\n", [5, 12.5, np.nan], ["per cents", "12 % is read as 12"]),
    ],
)
def test_thousands_currencies_and_per_cents_are_read_and_said(put, text, want, words):
    table = read_table(put("t.csv", text))
    np.testing.assert_array_equal(table.numbers[:, table.columns.index("x")], want)
    assert all(any(word in note and '"x"' in note for note in table.notes) for word in words[:1]), table.notes
    assert all(any(word in note for note in table.notes) for word in words), table.notes


@given(
    st.lists(st.floats(-1e7, 1e7).map(lambda x: round(x, 2)), min_size=3, max_size=20).filter(
        lambda xs: any(abs(x) >= 1000 for x in xs)
    )
)
def test_a_number_is_read_as_it_was_written(xs):
    english = pl.Series([f"{x:,.2f}" for x in xs])
    german = pl.Series([f"{x:,.2f}".translate({ord(","): ".", ord("."): ","}) for x in xs])
    for text in (english, german, "$" + english, german + " €"):
        np.testing.assert_allclose(to_numbers(text, BLANKS, False).values, xs, rtol=1e-12)


@pytest.mark.parametrize("column", [["192.168.0.1", "10.0.0.1"], ["01.02.2024", "03.04.2024"], ["1,2,3", "4,5,6"]])
def test_what_only_looks_like_numbers_is_none(column):
    assert to_numbers(pl.Series(column), BLANKS, False).kind in ("text", "date")


def test_an_empty_field_at_the_end_of_every_line_is_left_out(put):
    for text in ("a,b,\n1,2,\n3,4,\n", "a,b\n1,2,\n3,4,\n", "9,8,\n1,2,\n3,4,\n"):
        table = read_table(put("t.csv", text))
        assert table.numbers[-2:].tolist() == [[1, 2], [3, 4]] and table.ids is None
        assert any("empty field at the end" in note for note in table.notes)
    assert "3 fields where the header has 2" in refusal(put("t.csv", "a,b\n1,2\n3,4,\n5,6\n"))


def test_codes_for_missing_values_are_said_and_taken_only_when_asked(put):
    rng = np.random.default_rng(0)
    X = rng.normal(3, 1, (200, 3)).round(2)
    holes = rng.random((200, 3)) < 0.05
    holes[:, 2] = False
    for code in (99.0, -999.0):
        pl.DataFrame(np.where(holes, code, X), schema=["a", "b", "c"]).write_csv("t.csv")
        table = read_table("t.csv")
        note = next(note for note in table.notes if "missing=" in note)
        assert f"{code:g} stands in" in note and '"a", "b"' in note and '"c"' not in note
        np.testing.assert_array_equal(table.numbers, np.where(holes, code, X))
        for missing in ([code], [int(code)], [f"{code:g}"]):
            clean = read_table("t.csv", missing=missing)
            np.testing.assert_array_equal(clean.numbers, np.where(holes, np.nan, X))
            assert not any("missing=" in note for note in clean.notes)
    pl.DataFrame({"age": rng.integers(1, 100, 200), "score": rng.integers(0, 100, 200)}).write_csv("t.csv")
    assert not any("missing=" in note for note in read_table("t.csv").notes)


def test_columns_can_be_chosen_and_rows_keep_their_names(put):
    put("t.csv", "name,x,y,z,note\na,1,2,3,u\nb,4,5,6,v\nc,7,8,9,u\n")
    table = read_table("t.csv", columns=["z", "x"])
    assert table.columns == ["x", "z"] and table.ids.to_list() == ["a", "b", "c"] and table.others.width == 0
    assert 'Did you mean "x"?' in refusal("t.csv", columns=["xx"])
    np.save("a.npy", np.arange(6.0).reshape(2, 3))
    assert read_table("a.npy", columns=["column_2"]).numbers.tolist() == [[1], [4]]


def workbook(path, **sheets):
    """A workbook of inline strings and numbers."""

    def cell(value):
        if value is None:
            return "<c/>"
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
        return f"<c><v>{value}</v></c>"

    with zipfile.ZipFile(path, "w") as archive:
        main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
        rel = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
        package = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
        names = enumerate(sheets, 1)
        listed = "".join(f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"/>' for i, name in names)
        archive.writestr("xl/workbook.xml", f'<workbook {main} xmlns:r="{rel}"><sheets>{listed}</sheets></workbook>')
        links = "".join(
            f'<Relationship Id="r{i}" Type="{rel}/worksheet" Target="worksheets/s{i}.xml"/>'
            for i in range(1, len(sheets) + 1)
        )
        archive.writestr("xl/_rels/workbook.xml.rels", f"<Relationships {package}>{links}</Relationships>")
        top = f'<Relationship Id="r1" Type="{rel}/officeDocument" Target="xl/workbook.xml"/>'
        archive.writestr("_rels/.rels", f"<Relationships {package}>{top}</Relationships>")
        for i, rows in enumerate(sheets.values(), 1):
            body = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
            sheet = f"<worksheet {main}><sheetData>{body}</sheetData></worksheet>"
            archive.writestr(f"xl/worksheets/s{i}.xml", sheet)


def test_workbooks_are_read_like_the_csv_of_their_sheet(folder):
    rows = [["city", "x", "y"], ["Bonn", 1, 2.5], ["Köln", 3, None], ["Aarau", 5, -60]]
    workbook("t.xlsx", first=rows, other=[[1, 2], [3, 4]])
    table = read_table("t.xlsx")
    np.testing.assert_array_equal(table.numbers, WANT)
    assert table.ids.to_list() == ["Bonn", "Köln", "Aarau"]
    assert any('first sheet, "first"' in note and "other" in note for note in table.notes)
    assert read_table("t.xlsx::other").numbers.tolist() == [[1, 2], [3, 4]]
    assert "of: first, other" in refusal("t.xlsx::third")
    workbook("bad.xlsx", first=[["a", "b"], [1, 2], [3, "x"], [5, 6]])
    assert 'bad.xlsx::first, line 3, column "b": "x" is not a number' in refusal("bad.xlsx")


def test_a_missing_reader_of_workbooks_is_named(folder, monkeypatch):
    workbook("t.xlsx", first=[[1, 2], [3, 4]])
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    assert 'pip install "twofold[excel]"' in refusal("t.xlsx")


# ---- what is odd ------------------------------------------------------------------------------------------------


def test_a_word_among_few_whole_numbers_makes_a_category(put):
    cylinders = ["3", "4", "6", "8"] * 8 + ["rotary"]
    put("t.csv", "x,cylinders\n" + "".join(f"{i * 1.5},{c}\n" for i, c in enumerate(cylinders)))
    table = read_table("t.csv")
    column = table.schema[1]
    assert column.role == "category" and set(column.levels) == set(cylinders)
    assert any('"cylinders" holds categories: "rotary"' in note for note in table.notes)


def test_words_for_missing_values_are_taken_as_such_and_all_are_listed(put):
    rows = [[f"{i * 1.5}", f"{i * i}", "ab"[i % 2]] for i in range(400)]
    rows[7][0], rows[9][1], rows[11][1], rows[5][2] = "unknown", "?", "-", "n/a"
    put("t.csv", "x,y,kind\n" + "".join(",".join(row) + "\n" for row in rows))
    table = read_table("t.csv")
    assert np.argwhere(np.isnan(table.numbers)).tolist() == [[7, 0], [9, 1], [11, 1]]
    assert table.frame["kind"].null_count() == 1
    note = next(note for note in table.notes if note.startswith("taken as missing"))
    assert all(
        f'"{word}" in "{name}"' in note for word, name in [("unknown", "x"), ("?", "y"), ("-", "y"), ("n/a", "kind")]
    )
    assert set(read_table("t.csv", category=["kind"]).schema[2].levels) == {"a", "b", "n/a"}


def test_every_cell_that_is_no_number_is_listed(put):
    rows = [f"{i * 1.5}" for i in range(100)]
    rows[3], rows[50], rows[70] = "about 4", "5 or 6", "about 4"
    put("t.csv", "x,y\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(rows)))
    message = refusal("t.csv")
    assert message.startswith('t.csv, line 5, column "x": "about 4" is not a number, nor are "5 or 6".')


def odd(frame):
    """The notes on a table in memory."""
    return as_table(frame).notes


def measured(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return pl.DataFrame({"x": rng.normal(size=n), "y": rng.normal(50, 9, n), "kind": rng.choice(list("abc"), n)})


def test_an_ordinary_table_is_not_odd():
    notes = odd(measured())
    assert len(notes) == 2 and notes[0].startswith("numbers:") and "set aside" in notes[1]


@pytest.mark.parametrize(("code", "share"), [(-999.0, 0.02), (9999.0, 0.02), (-99.0, 0.01), (0.0, 0.05)])
def test_a_code_in_one_column_is_said(code, share):
    frame = measured()
    holes = np.arange(300) < max(2, share * 300)
    found = frame.with_columns(y=np.where(holes, code, frame["y"]))
    assert any(f"{code:g} stands in" in note and '"y"' in note for note in odd(found))
    assert not any("stands in" in note for note in odd(frame.with_columns(y=pl.col("y") - 40)))


def test_copied_rows_are_counted_where_chance_does_not_make_them():
    frame = measured()
    assert "7 rows are copies of others" in odd(pl.concat([frame, frame[:7]]))
    assert "1 row is a copy of another one" in odd(pl.concat([frame, frame[:1]]))
    few = pl.DataFrame({"a": [1, 2, 3] * 20, "b": list("xy") * 30})
    assert not any("cop" in note for note in odd(few))


def test_columns_that_tell_the_same_as_another_are_said():
    frame = measured().with_columns(
        fahrenheit=pl.col("x") * 1.8 + 32,
        copy=pl.col("y"),
        name=pl.col("kind").replace_strict({"a": "gamma", "b": "beta", "c": "alpha"}),
        turned=-pl.col("y"),
        near=pl.col("x") + pl.int_range(300) * 1e-5,
    )
    note = next(note for note in odd(frame) if "same as" in note)
    for words in ('"fahrenheit" says the same as "x"', '"copy" is a copy of "y"', '"name" says the same as "kind"'):
        assert words in note
    assert '"turned" says the same as "y"' in note and '"near"' not in note


def test_columns_of_few_values_that_dominate_are_said():
    rng = np.random.default_rng(1)
    flags = {f"q{i}": rng.integers(0, 2, 300) for i in range(6)}
    assert "6 of 8 columns hold a few values only, and outweigh the numbers" in odd(
        measured().drop("kind").with_columns(**{name: pl.Series(values) for name, values in flags.items()})
    )


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_lines_above_the_header_are_left_out_and_said(put, delimiter):
    body = "name,x,y\nu,1.5,2\nv,3,4\nw,4,6\n"
    for title in ("Report 2024\n", "Report 2024,,\n", "Report 2024\n\nby: the office\n"):
        table = read_table(put("t.csv", (title + body).replace(",", delimiter)))
        assert table.columns == ["x", "y"] and table.numbers.tolist() == [[1.5, 2], [3, 4], [4, 6]]
        assert any("above the header" in note and "Report 2024" in note for note in table.notes)
    message = refusal(put("t.csv", ("Report\n" + body + "z,oops\n").replace(",", delimiter)))
    assert "t.csv, line 6" in message


def test_empty_columns_at_the_end_are_left_out_as_spreadsheets_write_them(put):
    for text in ("a;b;;;\n1;2;;;\n3;4;;;\n", "a\tb\t\n1\t2\n3\t4\n", "a\tb\t\n1\t2\t\n3\t4\t"):
        table = read_table(put("t.csv", text))
        assert table.columns == ["a", "b"] and table.numbers.tolist() == [[1, 2], [3, 4]]
        assert sum("empty field at the end" in note for note in table.notes) == 1


def test_title_rows_of_workbooks_are_left_out(folder):
    rows = [["Sales 2024", None, None], [None, None, None], ["city", "x", "y"], ["Bonn", 1, 2.5], ["Ulm", 3, 4.5]]
    workbook("t.xlsx", first=[*rows, ["Aarau", 5, -60]])
    table = read_table("t.xlsx")
    assert table.columns == ["x", "y"] and table.ids.to_list() == ["Bonn", "Ulm", "Aarau"]
    assert any('above the header is left out: "Sales 2024"' in note for note in table.notes)
