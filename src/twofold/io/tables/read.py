"""The user's own tables, whatever the format: `read_table("file")`. Errors say where, and what to do."""

from __future__ import annotations

import glob
import io
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from twofold.core.checks import InputError, reason_of
from twofold.core.config import config
from twofold.core.data.addresses import fetch_address
from twofold.core.data.blocks import as_blocks
from twofold.core.spelling import close_names
from twofold.io.open import DAMAGED, ENDINGS, check_archive, check_budget, read_bytes, strip_packing
from twofold.io.tables import arrays
from twofold.io.tables.delimited import read_delimited, tabulate
from twofold.io.tables.roles import Column
from twofold.io.tables.stream import stream_delimited
from twofold.io.tables.table import Piece, Table, assemble

TEXT = (".csv", ".tsv", ".tab", ".psv", ".txt", ".dat")
SQLITE = (".db", ".sqlite", ".sqlite3")
EXCEL = (".xlsx", ".xlsm", ".xls", ".xlsb", ".ods")
ZIPPED = (".xlsx", ".xlsm", ".xlsb", ".ods")  # those of them that are zip archives
PARQUET = (".parquet", ".pq")
JSONL = (".jsonl", ".ndjson")
IN_FOLDERS = (".csv", ".tsv", ".tab", ".psv", *PARQUET, *JSONL, *EXCEL, *arrays.ENDINGS)
ELSEWHERE = {
    ".json": "Give one object a line, as .jsonl.",
    ".pkl": "Pickles can run code and are not opened. Save the table as Parquet and give that.",
}
CELL_BYTES = 40  # bytes of a number as an object, about
PART_EXAMPLES = "file.db::table, file.xlsx::sheet, file.zip::file and file.npz::array"


def read_table(
    inputs: str | Path | Sequence[str | Path],
    missing: Sequence[Any] = (),
    drop: Sequence[str] = (),
    columns: Sequence[str] = (),
    id: Sequence[str] = (),
    category: Sequence[str] = (),
    number: Sequence[str] = (),
    known: Sequence[Column] = (),
) -> Table:
    """Read one table from a file, several files, a folder, a pattern, `file.db::table`, or `-` (standard input).

    Parameters
    ----------
    inputs : str, Path or sequence of them
        What to read. Several files are stacked and need the same columns.
    missing : sequence
        Texts or numbers that mean a missing value, such as 99 or "unknown", beside empty cells, NA and the like.
    drop : sequence of str
        Columns that are not used.
    columns : sequence of str
        Columns to use, all if none is named; a column that names the rows stays.
    id, category, number : sequence of str
        Columns that hold identifiers, categories or numbers; what the others hold follows from names and cells.
    known : sequence of Column
        Columns as another table has them: those of the same names are read so.

    Returns
    -------
    Table
        Numbers, column names, row ids, the columns that are not numbers, what every column is, and notes on every
        choice made.
    """
    given = [fetch_address(one) for one in ([inputs] if isinstance(inputs, (str, Path)) else inputs)]
    reading = {"missing": missing, "drop": drop, "columns": columns, "id": id, "category": category, "number": number}
    options: dict[str, Any] = {k: [v] if isinstance(v, (str, float, int)) else v for k, v in reading.items()}
    plain = not any(len(value) for value in options.values())
    options["known"] = known
    files = [file for one in given for file in find_files(str(one))]
    source = str(given[0]) if len(given) == 1 else f"{given[0]} and {len(given) - 1} more"
    source = "standard input" if source == "-" else source
    if len(files) > 1 and plain:
        streamed = stream_files([str(one) for one in given], files)
        if streamed is not None:
            return streamed
    if len(files) == 1 and is_large_text(files[0]):
        return stream_delimited(files[0], **options)
    parts = [read_one(file, streaming=plain and len(files) == 1) for file in files]
    pieces = [part for part in parts if isinstance(part, Piece)]
    bare = [part for part in parts if isinstance(part, Table)]
    if pieces and bare:
        raise InputError(f"{source} mixes arrays ({bare[0].source}) and tables ({pieces[0].name}).")
    if pieces:
        table = assemble(pieces, source, **options)
    else:
        table = arrays.stack_arrays(bare, source, **options)
    if len(files) > 1:
        table.notes.insert(0, f"{len(files)} files read as one table")
    return table


def is_large_text(file: str) -> bool:
    """Tell whether a file is delimited text, not packed, that is larger than the memory budget."""
    others = (*SQLITE, *EXCEL, *PARQUET, *JSONL, *arrays.ENDINGS, *ELSEWHERE, *ENDINGS)
    if file == "-" or "::" in file or Path(file).suffix.lower() in others:
        return False
    return os.path.getsize(file) > config().memory


def stream_files(given: Sequence[str], files: Sequence[str]) -> Table | None:
    """A folder or pattern of arrays, or of Parquet files of numbers, that is larger than the memory budget."""
    large = sum(os.path.getsize(file) for file in files) > config().memory // 4  # numbers are packed in Parquet
    if not large or len({kind(file) for file in files}) > 1 or kind(files[0]) not in (".npy", *PARQUET):
        return None
    text = find_text(files[0]) if kind(files[0]) in PARQUET else ""
    if text or len(given) > 1:
        shapes = [count_cells(file) for file in files]
        if sum(shapes) * 8 <= config().memory:
            return None
        why = "Give the folder they are in, or their pattern in quotes"
        if text:
            why = f"{files[0]}, {text}, not numbers. Write the files without it"
        raise InputError(
            f"{given[0]}{f' and {len(given) - 1} more' if len(given) > 1 else ''}: larger than the memory budget, so "
            f"read in blocks of numbers. {why}, or raise the budget with ⟨memory⟩."
        )
    blocks = as_blocks(given[0])
    n, d = blocks.shape
    if n * d * 8 <= config().memory:
        return None
    columns = blocks.source.columns or [f"column_{i + 1}" for i in range(d)]
    notes = [f"{len(files)} files are read in blocks as one table"]
    return Table(Path(given[0]), columns, source=given[0], notes=notes)


def find_text(file: str) -> str:
    """The first column of a Parquet file that does not hold numbers, in words; nothing if all do."""
    try:
        schema = pl.read_parquet_schema(file)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as why:
        raise unreadable(file, why) from None
    others = (f'column "{name}" is {t}' for name, t in schema.items() if not (t.is_numeric() or t == pl.Boolean))
    return next(others, "")


def count_cells(file: str) -> int:
    """Cells of an array or a Parquet file."""
    if kind(file) in PARQUET:
        return count_parquet_rows(file) * len(pl.read_parquet_schema(file))
    n, d = as_blocks(file).shape
    return n * d


def find_files(given: str) -> list[str]:
    """The files meant by one argument, in a fixed order."""
    if given == "-" or Path(given.split("::")[0]).is_file():
        return [given]
    path = Path(given)
    if path.is_dir():
        found = sorted(
            str(p) for p in path.iterdir() if p.is_file() and kind(str(p)) in IN_FOLDERS and p.name[0] != "."
        )
        if not found:
            inside = Counter(p.suffix or "unnamed" for p in path.iterdir() if p.is_file())
            holds = ", ".join(f"{n} {suffix}" for suffix, n in inside.most_common(3)) or "nothing"
            raise InputError(f"{given} holds no tables ({', '.join(IN_FOLDERS)}, also packed) but {holds}.")
        return found
    if any(mark in given for mark in "*?["):
        found = sorted(file for file in glob.glob(given, recursive=True) if Path(file).is_file())
        if not found:
            raise InputError(f"{given} matches no file. Check the folder and the pattern.")
        return found
    raise InputError(missing_message(given))


def missing_message(given: str) -> str:
    path = Path(given.split("::")[0])
    folder = path.parent
    if path.is_symlink() and not path.exists():
        return f"{given} is a link to {os.readlink(path)}, which does not exist. Mend the link, or name the file."
    if path.exists() and not path.is_dir():
        return f"{given} is a pipe or a device, not a file. Pass its data as standard input: twofold VERB - < {given}"
    if not folder.is_dir():
        return f"{given} does not exist, nor does the folder {folder}. Check the path."
    near = close_names(path.name, (p.name for p in folder.iterdir()), 1, 0.5)
    hint = f"Did you mean {folder / near[0]}?" if near else "Check the name and the folder."
    return f"{given} does not exist. {hint}"


def kind(name: str) -> str:
    """The ending that says how to read a file, that of its packing looked through."""
    return Path(strip_packing(name)).suffix.lower()


def read_one(file: str, streaming: bool = False) -> Piece | Table:
    """One file by its ending; what has no known ending is delimited text; with `streaming` arrays may stay on disk."""
    if file == "-":
        return read_delimited(read_bytes("-"), "standard input")
    path, _, part = file.partition("::")
    ending = kind(file)
    if ending in (*SQLITE, *EXCEL, *PARQUET, *arrays.ENDINGS) and path.lower().endswith(ENDINGS) and ending != ".mtx":
        raise InputError(f"{file}: {ending} files are read as they are, not packed. Unpack it and give that.")
    if ending in SQLITE:
        return read_sqlite(path, part)
    if ending in EXCEL:
        return read_excel(path, part)
    if part and ending != ".npz" and not path.lower().endswith(".zip"):
        raise InputError(f"{file}: only {PART_EXAMPLES} have named parts.")
    if ending in ELSEWHERE:
        raise InputError(f"{file}: {ending} files are not read. {ELSEWHERE[ending]}")
    if Path(path).stat().st_size == 0:
        raise InputError(f"{file} is empty (0 bytes). Was it written completely?")
    if ending in arrays.ENDINGS:
        return arrays.read_array(path, part, ending, streaming)
    if ending in PARQUET:
        return read_parquet(path, streaming)
    data = read_bytes(file)
    return read_jsonl(data, file) if ending in JSONL else read_delimited(data, file)


def read_parquet(path: str, streaming: bool) -> Piece | Table:
    try:
        schema = pl.read_parquet_schema(path)
        size = pl.scan_parquet(path).select(pl.len()).collect().item() * len(schema) * 8
        if streaming and size > config().memory and all(t.is_numeric() for t in schema.values()):
            return Table(Path(path), list(schema), source=path, notes=[f"{path} is read in blocks"])
        check_budget(size, path, remedy="A table of numbers alone is read in blocks. ")
        return Piece(pl.read_parquet(path), path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = reason_of(error)
        raise InputError(f"{path} is not a readable Parquet file ({reason}). Was it written completely?") from None


def read_jsonl(data: bytes, name: str) -> Piece:
    """One JSON object a line; keys are columns, a missing key is a blank."""
    text = data.decode("utf-8-sig", errors="replace").splitlines()
    lines = np.array([i for i, line in enumerate(text, 1) if line.strip()])
    if not len(lines):
        raise InputError(f"{name} is empty. Give one JSON object a line.")
    try:
        whole = "\n".join(text[i - 1] for i in lines).encode()
        return Piece(pl.read_ndjson(io.BytesIO(whole), infer_schema_length=None), name, lines)
    except pl.exceptions.PolarsError:
        pass  # find the line at fault, or the types that do not go together
    records = []
    for i in lines:
        try:
            record = json.loads(text[i - 1])
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
            raise InputError(f"{name}, line {i}: not JSON ({reason}). Each line is one object.") from None
        if not isinstance(record, dict):
            raise InputError(f'{name}, line {i}: not an object. Write each line as {{"column": value, ...}}.')
        records.append(record)
    keys = list(dict.fromkeys(key for record in records for key in record))
    return Piece(pl.DataFrame({key: make_column([record.get(key) for record in records]) for key in keys}), name, lines)


def make_column(values: Sequence[Any]) -> pl.Series:
    """A column from loose values: numbers if all are, else text."""
    if all(value is None or isinstance(value, (bool, int, float)) for value in values):
        return pl.Series([None if value is None else float(value) for value in values], dtype=pl.Float64)
    texts = [None if v is None else v if isinstance(v, str) else json.dumps(v, default=str) for v in values]
    return pl.Series(texts, dtype=pl.String)


def read_excel(path: str, sheet: str) -> Piece:
    """One sheet of a workbook, the first unless one is named; cells are read as they would stand in a CSV file."""
    try:
        import fastexcel
    except ImportError:
        raise InputError(f'{path}: workbooks need fastexcel. Install it: pip install "twofold[excel]".') from None
    try:
        if path.lower().endswith(ZIPPED):
            check_archive(path)
        book = fastexcel.read_excel(path)
        if sheet and sheet not in book.sheet_names:
            raise InputError(
                f'{path} has no sheet "{sheet}". Name one as {path}::SHEET, of: {", ".join(book.sheet_names)}.'
            )
        for name in [sheet] if sheet else [*book.sheet_names, book.sheet_names[0]]:
            frame = book.load_sheet(name, header_row=None, dtypes="string").to_polars()
            full = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series().to_numpy()
            if full.sum() > 1:
                break
    except InputError:
        raise
    except (fastexcel.FastExcelError, *DAMAGED) as error:
        reason = reason_of(error)
        raise InputError(f"{path} is not a readable workbook ({reason}). Save it again.") from None
    notes = []
    if not sheet and len(book.sheet_names) > 1:
        others = ", ".join([other for other in book.sheet_names if other != name][:3])
        first = "first sheet" if name == book.sheet_names[0] else "first sheet with rows"
        notes.append(f'{path}: read its {first}, "{name}"; {path}::SHEET names another ({others})')
    if not full.any():
        raise InputError(f'{path}: sheet "{name}" is empty. Give a table with at least two rows of numbers.')
    lines = np.flatnonzero(full) + 1
    return tabulate(frame.filter(full), lines, np.full(len(lines), frame.width), f"{path}::{name}", ",", notes)


def read_sqlite(path: str, table: str) -> Piece:
    """One table of a database, opened for reading only; the name may be left out when there is but one."""
    notes = []
    try:
        base = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(config().memory, 10**9))  # of a cell, which a view may make up
        found = base.execute(
            "select name from sqlite_master where type in ('table', 'view') and name not like 'sqlite_%'"
        )
        tables = [name for (name,) in found]
        if not table and len(tables) == 1:
            table = tables[0]
            notes.append(f'{path}: read its only table, "{table}"')
        if table not in tables:
            lead = f'{path} has no table "{table}"' if table else f"{path} holds {len(tables)} tables"
            raise InputError(f"{lead}. Name one as {path}::NAME, of: {', '.join(tables) or 'none'}.")
        cursor = base.execute('select * from "{}"'.format(table.replace('"', '""')))
        names = [entry[0] for entry in cursor.description]
        rows, taken = [], 0
        while some := cursor.fetchmany(1000):
            rows += some
            taken += CELL_BYTES * len(some) * len(names)
            taken += sum(len(cell) for row in some for cell in row if isinstance(cell, (str, bytes)))
            check_budget(taken, f'{path}, table "{table}",', at_least=True)
        base.close()
    except sqlite3.Error as error:
        raise InputError(f"{path} is not a readable SQLite database ({error}).") from None
    if not rows:
        raise InputError(f'{path}: table "{table}" has no rows.')
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return Piece(pl.DataFrame({name: make_column(values) for name, values in columns}), f"{path}::{table}", notes=notes)


def count_parquet_rows(path: str) -> int:
    """Rows of a Parquet file, which its footer says."""
    try:
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as why:
        raise unreadable(path, why) from None


def unreadable(path: str, why: BaseException) -> InputError:
    return InputError(f"{path} is not a readable file ({reason_of(why)}). Was it written completely?")
