"""Delimited text larger than the memory budget: its numbers go, piece by piece, to a temporary .npy file.

The first piece decides what every column is, as if it were the whole table; a cell further down that does not fit is
refused with its line. The file of numbers is deleted when the process ends.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib import format as npy

from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.data.blocks import Blocks, as_blocks
from twofold.core.data.sources import ColumnsOf
from twofold.core.data.temporary import TemporaryFolder
from twofold.core.types import PathLike
from twofold.io.encoding import NOT_TEXT, find_encoding
from twofold.io.open import open_bytes
from twofold.io.tables.delimited import read_delimited
from twofold.io.tables.table import Piece, Table, assemble, quote_names

PIECE_SHARE = 16  # 1 / PIECE_SHARE of the memory budget is read at once: as text cells it takes several times as much
MAX_PIECE, MIN_PIECE = 2**24, 2**18  # bytes
HEADER = 128  # bytes before the numbers in a .npy file of two axes
_folders: list[TemporaryFolder] = []  # deleted when the process ends


def stream_delimited(path: str, **options: Any) -> Table:
    """A table whose numbers are in a temporary file; `options` are those of `read_table`."""
    _folders.append(TemporaryFolder())
    target, table, rows = _folders[-1].path / "numbers.npy", None, 0
    try:
        with open(target, "wb") as out:
            out.write(b"\0" * HEADER)
            for piece in read_pieces(path):
                known = options.pop("known", ()) if table is None else table.schema
                found = assemble([piece], path, known=known, **options)
                table = table or found
                numbers = pick_numbers(found, table, piece)
                out.write(numbers.tobytes())
                rows += len(numbers)
            assert table is not None
            out.seek(0)
            shape = (rows, len(table.columns))
            npy.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": shape})
            assert out.tell() == HEADER
    except OSError as error:
        raise InputError(
            f"{path} exceeds the memory budget, and the folder {target.parent} has no room for its numbers "
            f"({error.strerror}). Set TMPDIR to another folder, or raise the budget with ⟨memory⟩."
        ) from None
    left = [column.name for column in table.schema if column.name not in table.columns]
    notes = [f"{path} is larger than the memory budget: its numbers are read in blocks ({rows:,} rows)"]
    notes += [f"{quote_names(left)} set aside: only numbers are read in blocks"] if left else []
    return replace(table, numbers=target, ids=None, others=table.others.clear(), frame=None, notes=notes, aside=[])


def read_pieces(path: str) -> Iterator[Piece]:
    """The table in pieces of whole records, each under the header of the first."""
    size = max(MIN_PIECE, min(MAX_PIECE, config().memory // PIECE_SHARE))
    with open_bytes(path) as file:
        data, head, line = file.read(size), b"", 0
        if b"\0" in data and not find_encoding(data).is_wide:
            raise InputError(f"{path} {NOT_TEXT}")
        if find_encoding(data).is_wide:
            raise InputError(f"{path} is larger than the memory budget, and not UTF-8. Convert it: iconv -t UTF-8.")
        while data:
            more = file.read(size)
            end = find_record_end(data) if more else len(data)
            if end == 0:
                data += more
                if len(data) > config().memory // 2:
                    raise InputError(f"{path}, line {line + 1} and on: no record ends. Close the quotation mark.")
                continue
            if not data[:end].strip():
                line, data = line + data.count(b"\n", 0, end), data[end:] + more
                continue
            piece = read_delimited(head + data[:end], path)
            assert piece.lines is not None
            if line == 0:
                head = b"".join(data.splitlines(keepends=True)[: int(piece.lines[0]) - 1])
                yield piece
            else:
                yield replace(piece, lines=piece.lines + line - head.count(b"\n"))
            line += data.count(b"\n", 0, end)
            data = data[end:] + more


def find_record_end(data: bytes) -> int:
    """Find where the last whole record ends: at a newline with an even number of quotation marks before it."""
    end, marks = len(data), data.count(b'"')
    while (newline := data.rfind(b"\n", 0, end)) >= 0:
        marks -= data.count(b'"', newline, end)
        if marks % 2 == 0:
            return newline + 1
        end = newline
    return 0


def pick_numbers(table: Table, first: Table, piece: Piece) -> np.ndarray:
    """The numbers of a piece in the columns of the first one."""
    assert piece.lines is not None
    where = f"{piece.name}, line {piece.lines[0]} to {piece.lines[-1]}"
    for name in first.columns:
        if name not in table.columns:
            raise InputError(f'{where}: column "{name}" holds no numbers there. Use ⟨drop={name}⟩, or mend the cells.')
        if table.forms.get(name) != first.forms.get(name):
            raise InputError(
                f'{where}: the numbers of column "{name}" are written in another way than above. Write them in one way.'
            )
    X = np.asarray(table.numbers, dtype=np.float64)
    return np.ascontiguousarray(X[:, [table.columns.index(name) for name in first.columns]])


def open_table(path: PathLike, columns: Sequence[str] | None) -> Blocks:
    """A table for a model: blocks of its numbers, with their names. Columns that were not asked for and hold none are
    left out with a warning."""
    from twofold.core.loop import outside
    from twofold.io.tables.read import read_table

    table = read_table(os.fspath(path), columns=columns or ())
    source = as_blocks(table.numbers).source
    wanted = columns or table.columns
    if missing := [name for name in wanted if name not in table.columns]:
        raise InputError(f"{table.source}: {quote_names(missing)} holds no numbers. Give columns of numbers.")
    if wanted != table.columns:
        source = ColumnsOf(source, np.array([table.columns.index(name) for name in wanted]))
    source.columns = list(wanted)
    said = dict.fromkeys(note for note in table.notes if "set aside" in note)
    if said and not columns:
        why = "; ".join(said).replace(", only carried into the output", "")
        warnings.warn(f"{table.source}: {why}", stacklevel=outside())
    return Blocks(source)
