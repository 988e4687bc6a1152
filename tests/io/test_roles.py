"""What a column is follows from its cells and its name, not from the order of rows or the format of the file."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.analyses.common.tables import as_table
from twofold.core.checks import InputError
from twofold.io.tables.read import read_table
from twofold.io.tables.roles import Column, codes_of, decode, is_numbered, of_numbers, of_text
from twofold.io.tables.write import Dialect, write_frame

RNG = np.random.default_rng(0)
N = 60
COLUMNS = {
    "weight": (RNG.normal(70, 9, N).round(2), "number"),
    "year": (RNG.integers(2000, 2010, N), "whole"),
    "smoker": (RNG.choice(["yes", "no"], N), "flag"),
    "sex": (RNG.choice([1, 2], N), "flag"),
    "dose": (RNG.choice([0.5, 2.5], N), "flag"),
    "member": (RNG.choice([True, False], N), "flag"),
    "island": (RNG.choice(["Biscoe", "Dream", "Torgersen"], N), "category"),
    "size": (RNG.choice(["small", "medium", "large"], N), "ordered"),
    "seen": (pl.Series(RNG.integers(15_000, 19_000, N)).cast(pl.Date), "date"),
    "remark": ([f"the bird was seen {i} times near the shore" for i in RNG.permutation(N)], "text"),
    "number of the bird": (RNG.permutation(N) + 17, "id"),
    "Kundennr": (RNG.choice(10**7, N, replace=False), "id"),
    "ring": ([f"X{i:05d}" for i in RNG.choice(10**5, N, replace=False)], "id"),
    "customer_id": (RNG.integers(0, 20, N), "id"),
    "zip": ([f"{i:05d}" for i in RNG.integers(1, 99, N)], "id"),
    "planet": (["Earth"] * N, "constant"),
    "empty": ([None] * N, "constant"),
}
FRAME = pl.DataFrame({name: values for name, (values, _) in COLUMNS.items()})
ROLES = {name: role for name, (_, role) in COLUMNS.items()}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def roles_of(table):
    return {column.name: column.role for column in table.schema}


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".jsonl"])
def test_every_role_is_found_in_every_format(folder, ending):
    if ending == ".jsonl":
        FRAME.with_columns(pl.col("seen").cast(pl.String)).write_ndjson("t.jsonl")
    else:
        write_frame(FRAME, folder / f"t{ending}", ending)
    table = read_table(f"t{ending}")
    assert roles_of(table) == ROLES
    assert table.frame.columns == FRAME.columns and table.frame.height == N
    assert [name for name, role in ROLES.items() if role == "id" and name in table.columns] == []
    assert table.ids.name == "number of the bird"


def test_roles_do_not_depend_on_the_order_of_rows_and_columns():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        mixed = FRAME[rng.permutation(N)].select(rng.permutation(FRAME.columns).tolist())
        assert roles_of(as_table(mixed)) == ROLES


def test_coded_columns_decode_to_the_cells():
    table = as_table(FRAME)
    X, columns = table.coded()
    assert [column.name for column in columns] == [
        n for n, role in ROLES.items() if role not in ("id", "text", "constant")
    ]
    for j, column in enumerate(columns):
        cells = table.frame[column.name]
        back = decode(column, X[:, j], cells.dtype)
        assert back.equals(cells), column
        if column.levels:
            np.testing.assert_array_equal(
                X[:, j],
                [
                    column.levels.index(str(c).lower() if c in (True, False) and cells.dtype == pl.Boolean else str(c))
                    for c in cells
                ],
            )


def test_ordered_levels_are_in_their_order_and_yes_follows_no():
    levels = {column.name: column.levels for column in as_table(FRAME).schema}
    assert levels["size"] == ("small", "medium", "large") and levels["smoker"] == ("no", "yes")
    assert levels["member"] == ("false", "true") and levels["sex"] == ("1", "2")
    kind = pl.Enum(["late", "early", "never"])
    table = as_table(FRAME.with_columns(pl.Series("when", ["early", "late"] * (N // 2), dtype=kind)))
    assert table.schema[-1] == Column("when", "ordered", ("late", "early", "never"))


@given(st.integers(20, 2000), st.integers(-(10**6), 10**6), st.integers(1, 1000), st.randoms())
def test_a_running_number_is_found_whatever_its_order_start_and_step(n, start, step, random):
    numbers = [start + step * i for i in range(n)]
    random.shuffle(numbers)
    assert is_numbered("x", np.array(numbers, float), 3)


@given(st.integers(20, 300), st.integers(0, 2**32))
def test_measured_whole_numbers_of_a_wide_range_are_no_running_number(n, seed):
    values = np.random.default_rng(seed).choice(100 * n * n, n, replace=False).astype(float)
    if np.gcd.reduce(np.diff(np.sort(values)).astype(int)) == 1:
        assert not is_numbered("x", values, 3)


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("rooms", np.tile([1, 2, 3, 4], 10), "whole"),
        ("customerId", np.tile([11, 12], 10), "id"),
        ("plz", np.tile([10115, 80331, 20095], 7), "id"),
        ("idx", np.tile([1, 2, 3], 7), "whole"),
        ("Kunden-Nr.", np.arange(20) * 37_000 % 1_000_003, "id"),
        ("width", np.tile([1, 2, 3], 7), "whole"),
        ("humid", np.tile([1, 2, 3], 7), "whole"),
        ("x", np.r_[np.zeros(10), np.ones(10)], "flag"),
        ("x", np.full(20, 5.0), "constant"),
        ("x", np.full(20, np.nan), "constant"),
    ],
)
def test_names_of_number_columns_say_identifiers(name, values, role):
    assert of_numbers(name, values.astype(float), 3).role == role


@pytest.mark.parametrize(
    ("cells", "role"),
    [
        (["a", "b", "a", "b"], "category"),
        (["low", "high", "medium", "low", "high"], "ordered"),
        (["a", None, "b", "c", "d"], "id"),
        (["Y", "N", "Y", "N"], "flag"),
        (["no answer was given to this question", "the customer called twice about it"], "text"),
    ],
)
def test_roles_of_text(cells, role):
    assert of_text("x", pl.Series(cells)).role == role


def test_the_user_has_the_last_word(folder):
    FRAME.write_csv("t.csv")
    found = read_table("t.csv", id=["ring"], category=["year", "sex", "zip"], number=["Kundennr", "number of the bird"])
    roles = roles_of(found)
    assert found.ids.name == "ring" and roles["ring"] == "id"
    assert roles["year"] == roles["sex"] == roles["zip"] == "category"
    assert roles["Kundennr"] == roles["number of the bird"] == "whole" and "Kundennr" in found.columns
    levels = {column.name: column.levels for column in found.schema}
    assert levels["year"] == tuple(str(year) for year in range(2000, 2010)) and "00005" not in found.columns
    with pytest.raises(InputError, match='no column "rng"'):
        read_table("t.csv", id=["rng"])
    with pytest.raises(InputError, match="exclude each other"):
        read_table("t.csv", id=["ring"], drop=["ring"])
    with pytest.raises(InputError, match=r'column "island".* is not a number'):
        read_table("t.csv", number=["island"])


def test_dropped_columns_stay_in_the_frame_and_are_not_used(folder):
    FRAME.write_csv("t.csv")
    table = read_table("t.csv", drop=["weight", "island"])
    assert table.frame.columns == FRAME.columns
    assert not {"weight", "island"} & {column.name for column in table.schema}
    few = read_table("t.csv", columns=["weight", "island"])
    assert [column.name for column in few.schema] == ["weight", "island", "number of the bird"]
    assert few.frame.columns == FRAME.columns and few.ids.name == "number of the bird"


def test_a_table_is_read_as_another_one_was(folder):
    FRAME.write_csv("t.csv")
    table = read_table("t.csv")
    part = FRAME[:7]
    again = as_table(part, table.schema)
    assert roles_of(again) == ROLES and again.schema == table.schema
    X, columns = table.coded()
    np.testing.assert_array_equal(again.coded()[0], X[:7])
    column = next(column for column in columns if column.name == "island")
    assert np.isnan(codes_of(column, pl.Series(["Atlantis"]))).all()


def test_numbers_without_any_other_column_are_not_taken_for_names():
    assert as_table(pl.DataFrame({"id": [3, 1, 2]})).columns == ["id"]


def test_a_note_says_all_roles_in_one_line():
    notes = [note for note in as_table(FRAME).notes if "names the rows" in note]
    assert len(notes) == 1
    for part in ('numbers: "weight"', 'whole numbers: "year"', 'dates: "seen"', 'text: "remark"', "identifiers:"):
        assert part in notes[0]


@pytest.mark.parametrize("dialect", [Dialect(), Dialect(";", True), Dialect("|"), Dialect(",", True)])
def test_what_is_written_in_a_dialect_is_read_as_the_same_table(folder, dialect):
    dialect = dialect._replace(dates={"seen": "%d.%m.%Y"})
    write_frame(FRAME, folder / "t.csv", ".csv", dialect)
    table = read_table("t.csv")
    first = table.frame
    assert table.dialect == dialect and roles_of(table) == ROLES
    write_frame(first, folder / "u.csv", ".csv", table.dialect)
    assert (folder / "u.csv").read_bytes() == (folder / "t.csv").read_bytes()
