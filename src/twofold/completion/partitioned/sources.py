"""Ratings as they come: files, in pieces that one task reads, and the columns that hold users, items and ratings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from twofold.completion.partitioned._layout import DAMAGED
from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.data.blocks import is_dask, is_path
from twofold.core.engine.tasks import Tasks
from twofold.core.files.headers import reads_headers
from twofold.io.open import ENDINGS
from twofold.io.ratings import OTHERS, ROLES, find_named_roles, find_roles, from_memory, parse_piece, read_piece
from twofold.io.tables.read import PARQUET, count_parquet_rows, find_files, kind, unreadable
from twofold.io.tables.table import Piece

PIECE = 2**16, 2**21  # rows of a Parquet file that are read at a time, as the budget allows,
ROW = 256  # where one takes so many bytes until it is written
TEXT = 2**20, 2**26  # bytes of a text file that are read at a time; they take some times that
TEXTS = (".csv", ".tsv", ".txt", ".dat")


class FilePiece(NamedTuple):
    """A file, or `rows` rows of it from `start` on; of text, the lines that begin in `rows` bytes from there on, and
    the header above them."""

    path: str
    start: int = 0
    rows: int | None = None
    header: bytes | None = None


def rows_of_piece() -> int:
    """Rows that are read at a time, as the budget allows."""
    return int(np.clip(config().memory // ROW, *PIECE))


def name_source(source: Any) -> str:
    if is_paths(source):
        return os.fspath(source[0]) if len(source) == 1 else f"{os.fspath(source[0])} and {len(source) - 1} more"
    return os.fspath(source) if is_path(source) else f"the {type(source).__name__}"


def is_paths(source: Any) -> bool:
    return isinstance(source, (list, tuple)) and bool(source) and all(is_path(one) for one in source)


def list_pieces(source: Any, wanted: dict[str, str | None], tasks: Tasks) -> tuple[list[Any], dict[str, str | None]]:
    """List the pieces that tasks of the first pass read, and find the columns of each role."""
    if is_dask(source):
        if not hasattr(source, "columns"):
            if source.ndim != 2 or source.shape[1] not in (2, 3):
                raise InputError(f"the dask array has shape {source.shape}; rows of (user, item, rating) are needed.")
            source = source.rechunk({1: -1})
        names = [str(name) for name in source.columns] if hasattr(source, "columns") else list(ROLES[: source.shape[1]])
        return tasks.frames(source), find_roles(names, wanted, "the dask frame")
    if is_path(source):
        source = [source]
    if not is_paths(source):
        raise InputError(
            f"the ratings are a {type(source).__name__}. Give a file, a folder or a pattern of files, or a dask frame; "
            "ratings in memory are for Recommender."
        )
    files = [file for one in source for file in find_files(os.path.abspath(one))]
    names = column_names(files[0])
    pieces: list[FilePiece] = []
    for file in files:
        if kind(file) in PARQUET:
            rows, step = count_parquet_rows(file), rows_of_piece()
            pieces += [FilePiece(file, a, min(step, rows - a)) for a in range(0, rows, step)]
        else:
            pieces += cut_text(file)
    return pieces, find_roles(names, wanted, files[0])


def measure_files(paths: Sequence[str], wanted: dict[str, str | None]) -> int:
    """Bytes that the ratings in files would take in memory, about; 0 if they are no files of rows user and item."""
    try:
        files = [file for one in paths for file in find_files(one)]
    except InputError:  # reported when they are read
        return 0
    if not all(kind(file) in PARQUET or (is_text(file) and kind(file) in TEXTS) for file in files):
        return 0
    size = sum(24 * count_parquet_rows(file) if kind(file) in PARQUET else os.path.getsize(file) for file in files)
    if size <= config().memory:
        return size
    names = column_names(files[0])
    named = find_named_roles(names, wanted)
    return size if len(names) <= 4 or None not in (named["user"], named["item"]) else 0


def is_text(file: str) -> bool:
    """Return True if the lines of a file can be read from any place on."""
    return kind(file) not in OTHERS and not file.endswith(ENDINGS)


def cut_text(file: str) -> list[FilePiece]:
    """A file, in pieces if it is long and plain text."""
    size, step = os.path.getsize(file), int(np.clip(config().memory // 16, *TEXT))
    if not is_text(file) or size <= 3 * step // 2:
        return [FilePiece(file)]
    header = read_head(file)
    if header is None:
        return [FilePiece(file)]
    return [FilePiece(file, a, min(step, size - a), header) for a in range(0, size, step)]


def read_head(file: str) -> bytes | None:
    """The first line if it is a header, b"" if it is a row; None if the file is not text of one byte a letter."""
    some = read_first_lines(file)
    if b"\0" in some or b"\n" not in some:
        return None
    headless = any("has no header" in note for note in parse_piece(some, file).notes)
    return b"" if headless else some[: some.index(b"\n") + 1]


def read_first_lines(file: str) -> bytes:
    with open(file, "rb") as opened:
        head = opened.read(2**16)
    return head[: head.rfind(b"\n") + 1] or head


def read_lines(piece: FilePiece) -> Piece:
    """The lines of a text file that begin within a piece, under the header."""
    with open(piece.path, "rb") as opened:
        if piece.start:
            opened.seek(piece.start - 1)
            opened.readline()
        first = opened.tell()
        data = opened.read(max(0, piece.start + (piece.rows or 0) - first))
        if data and not data.endswith(b"\n"):
            data += opened.readline()
    name = f"{piece.path} from byte {first:,}" if piece.start else piece.path
    if data.count(b'"') % 2:
        raise InputError(
            f"{name} has a line break between quotes, so it cannot be read in pieces. Write it as Parquet, or as "
            "several files."
        )
    above = (piece.header or b"") if piece.start else b""
    return parse_piece(above + data, name) if data.strip() else Piece(pl.DataFrame(), name)


def column_names(file: str) -> list[str]:
    """The names of a file's columns."""
    try:
        if kind(file) in PARQUET:
            return list(pl.read_parquet_schema(file))
        if kind(file) == ".npz":
            with np.load(file, allow_pickle=False) as arrays:
                return list(arrays)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, *DAMAGED) as why:
        raise unreadable(file, why) from None
    if is_text(file) and b"\0" not in (some := read_first_lines(file)):
        return parse_piece(some, file).frame.columns
    return read_piece(file).frame.columns


def holds_ratings(X: Any) -> bool:
    """Return True if X is a path or a dask frame with columns called user and item, or something like that."""
    if is_path(X):
        given = os.fspath(X)
        if kind(given) in (".npy", ".csr") or (not os.path.exists(given) and not any(mark in given for mark in "*?[")):
            return False
        files = find_files(given)
        if kind(files[0]) not in (*PARQUET, ".npz") and os.path.isfile(given):
            return False
        names = column_names(files[0])
    elif is_dask(X) and hasattr(X, "columns"):
        names = [str(name) for name in X.columns]
    else:
        return False
    found = find_named_roles(names)
    return found["user"] is not None and found["item"] is not None


@reads_headers
def read_rows(piece: Any, columns: list[str]) -> Piece:
    """Those columns of a piece."""
    if not isinstance(piece, FilePiece):
        return Piece(from_memory(piece).select(columns), "the dask frame")
    file = piece.path
    try:
        if kind(file) in PARQUET:
            rows = pl.scan_parquet(file).select(columns).slice(piece.start, piece.rows).collect()
            return Piece(rows, f"{file} from row {piece.start:,}" if piece.start else file)
        if kind(file) == ".npz":
            with np.load(file, allow_pickle=False) as arrays:
                return Piece(pl.DataFrame({name: arrays[name] for name in columns}), file)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, *DAMAGED) as why:
        raise unreadable(file, why) from None
    read = read_piece(file) if piece.header is None else read_lines(piece)
    if not read.frame.width:  # a piece in which no line begins
        return Piece(pl.DataFrame(schema=dict.fromkeys(columns, pl.String)), read.name)
    missing = [name for name in columns if name not in read.frame.columns]
    if missing:
        raise InputError(f'{file} has no column "{missing[0]}", which the first file has. Give files with one header.')
    return read
