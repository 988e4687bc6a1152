"""Tables as files: in the dialect of another file, and some rows at a time where not all of them are in memory."""

from __future__ import annotations

import importlib.util
import io
import itertools
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import polars as pl
from numpy.lib import format as npy

from twofold.core.checks import InputError
from twofold.core.files.atomic import replacing

TEXTS = (".csv", ".tsv")
MAX_SHEET_ROWS, MAX_SHEET_COLUMNS = 1_048_575, 16_384  # of a workbook, the header apart


class Dialect(NamedTuple):
    """How a delimited text is written."""

    delimiter: str = ","
    decimal_comma: bool = False
    dates: Mapping[str, str] = {}  # columns of dates that are not written as year-month-day, and how

    def for_ending(self, ending: str) -> Dialect:
        """The dialect of a file with this ending: a .tsv file has tabs, and a .csv file has none."""
        if ending == ".tsv":
            return self._replace(delimiter="\t")
        return self._replace(delimiter=";" if self.decimal_comma else ",") if self.delimiter == "\t" else self

    def write(self, frame: pl.DataFrame, file: IO[bytes] | Path, header: bool = True) -> None:
        """Write a frame as text."""
        forms = {name: form for name, form in self.dates.items() if name in frame.columns}
        dates = [pl.col(name).dt.strftime(form) for name, form in forms.items() if frame[name].dtype.is_temporal()]
        frame = frame.with_columns(dates)
        frame.write_csv(file, include_header=header, separator=self.delimiter, decimal_comma=self.decimal_comma)


COMMAS = Dialect()


def write_frame(frame: pl.DataFrame, file: Path, ending: str, dialect: Dialect = COMMAS) -> None:
    """Write a frame as the ending says, which that of `file` need not be."""
    if ending == ".xlsx":
        write_workbook(frame, file)
    elif ending in TEXTS:
        dialect.for_ending(ending).write(frame, file)
    else:
        frame.write_parquet(file)


def check_workbook_writer(path: Path) -> None:
    """Refuse a workbook where the library that writes it is not installed."""
    if path.suffix.lower() == ".xlsx" and importlib.util.find_spec("xlsxwriter") is None:
        raise InputError(f'{path}: workbooks need xlsxwriter. Install it: pip install "twofold[excel]".')


def write_workbook(frame: pl.DataFrame, file: Path) -> None:
    """Write a frame as the only sheet of a workbook; text that begins like a formula stays text."""
    if frame.height > MAX_SHEET_ROWS or frame.width > MAX_SHEET_COLUMNS:
        raise InputError(
            f"a workbook holds {MAX_SHEET_ROWS:,} rows and {MAX_SHEET_COLUMNS:,} columns, and the result has "
            f"{frame.height:,} and {frame.width:,}. Write .csv or .parquet."
        )
    buffer = io.BytesIO()
    frame.write_excel(buffer)
    file.write_bytes(buffer.getvalue())


def write_frames(frames: Iterable[pl.DataFrame], path: str | os.PathLike, dialect: Dialect = COMMAS) -> None:
    """Frames one after the other into a CSV, TSV, Excel or Parquet file, which appears when it is complete."""
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in (*TEXTS, ".xlsx", ".parquet", ".pq"):
        raise InputError(f"{path} ends in {ending!r}; tables are written to .csv, .tsv, .xlsx or .parquet.")
    check_workbook_writer(path)
    with replacing(path) as whole:
        if ending == ".xlsx":
            write_workbook(pl.concat(frames), whole)
        elif ending in TEXTS:
            with open(whole, "wb") as file:
                for i, frame in enumerate(frames):
                    dialect.for_ending(ending).write(frame, file, header=i == 0)
        else:
            write_parquet_parts(frames, whole)


def write_parquet_parts(frames: Iterable[pl.DataFrame], path: Path) -> None:
    """Write frames as files, and stream these into one: a Parquet file cannot grow."""
    with tempfile.TemporaryDirectory(prefix=".twofold-", dir=path.parent) as folder:
        parts = []
        for i, frame in enumerate(frames):
            parts.append(Path(folder) / f"{i}.parquet")
            frame.write_parquet(parts[-1])
        pl.scan_parquet(parts).sink_parquet(path)


def write_rows(blocks: Iterable[np.ndarray], path: str | os.PathLike, shape: tuple[int, int], dtype: np.dtype) -> None:
    """Blocks of rows one below the other into a .npy file of this shape, which appears when it is complete."""
    head = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with replacing(path) as whole, open(whole, "wb") as file:
        npy.write_array_header_1_0(file, head)
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype).data)


def write_codes(parts: Iterable[np.ndarray], path: str | os.PathLike, names: Sequence[str], n: int) -> Path:
    """Codes (n,k) that come block by block into a table with these columns, or a .npy file."""
    path = Path(path)
    parts = (np.asarray(part.toarray() if hasattr(part, "toarray") else part) for part in parts)
    if path.suffix.lower() == ".npy":
        first = next(iter(parts))
        write_rows(itertools.chain([first], parts), path, (n, len(names)), first.dtype)
    else:
        write_frames((pl.DataFrame(part, schema=list(names)) for part in parts), path)
    return path
