"""Arrays from files: .npy, .npz and Matrix Market. Their columns have only numbers for names."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.lib import format as npy

from twofold.core.checks import DAMAGED_ARRAY, InputError, check_sparse, reason_of
from twofold.io.open import check_budget
from twofold.io.tables.roles import Column
from twofold.io.tables.table import Piece, Table, assemble, check_names

ENDINGS = (".npy", ".npz", ".mtx")
LINE = 64  # bytes that a row or a column takes beside its numbers, about


def read_array(path: str, part: str, ending: str, streaming: bool) -> Piece | Table:
    """.npy, .npz or Matrix Market; a plain numeric .npy is left on disk when it may be."""
    try:
        if ending == ".mtx":
            from scipy.io import mmread

            check_matrix(path)
            array = mmread(path)
        elif ending == ".npy":
            array = np.load(path, mmap_mode="r")
        else:
            array = pick_from_npz(path, part)
    except DAMAGED_ARRAY as error:
        if isinstance(error, InputError):
            raise
        if "Object arrays" in str(error) or "Python objects" in str(error):
            raise InputError(f"{path} holds Python objects, not numbers. Save it with a numeric dtype.") from None
        reason = "it starts otherwise" if "pickle" in str(error) else reason_of(error)
        raise InputError(f"{path} is not a readable {ending} file ({reason}). Save it again.") from None
    if not sp.issparse(array) and array.dtype.names:
        return Piece(pl.DataFrame({name: array[name] for name in array.dtype.names}), path)
    if array.dtype.kind not in "bifu":
        raise InputError(f"{path} holds {array.dtype}, not real numbers. Save it with a numeric dtype.")
    if 0 in array.shape:
        what = "columns" if array.shape[0] else "rows"
        raise InputError(f"{path} of shape {array.shape} has no {what}. Give a table with at least two rows.")
    notes = []
    if array.ndim != 2:
        shape = array.shape
        array = np.asarray(array).reshape(shape[0] if shape else 1, -1)
        notes.append(f"{path} of shape {shape} is read as {array.shape[0]} rows of {array.shape[1]} numbers")
    check_budget(LINE * sum(array.shape), f"{path} of shape {array.shape}")
    columns = [f"column_{i + 1}" for i in range(array.shape[1])]
    if streaming and ending == ".npy" and not notes:
        return Table(Path(path), columns, source=path)
    check_budget(8 * (array.nnz if sp.issparse(array) else array.size), path)
    numbers = sp.csr_array(array, dtype=np.float64) if sp.issparse(array) else np.array(array, dtype=np.float64)
    return Table(numbers, columns, notes=notes, source=path)


def check_matrix(path: str) -> None:
    """Refuse a Matrix Market file that says to hold more than the budget allows, before it is read."""
    from scipy.io import mminfo

    rows, columns, entries, layout, *_ = mminfo(path)
    check_budget(16 * entries if layout == "coordinate" else 8 * rows * columns, path)


def check_npz(path: str) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays in an archive, by name; together they must fit the memory budget."""
    shapes, total = {}, 0
    with zipfile.ZipFile(path) as archive:
        for part in archive.namelist():
            with archive.open(part) as file:
                version = npy.read_magic(file)
                head = npy.read_array_header_1_0(file) if version == (1, 0) else npy.read_array_header_2_0(file)
            shapes[part.removesuffix(".npy")] = head[0]
            total += math.prod(head[0]) * head[2].itemsize
            check_budget(total, path)
    return shapes


def pick_from_npz(path: str, part: str) -> Any:
    """The array meant in an archive: the one named, a sparse matrix, or the only one that has rows."""
    shapes = check_npz(path)
    names = list(shapes)
    if {"format", "shape", "data"} <= set(names) and not part:
        found = sp.load_npz(path)
        check_sparse(found, path)
        return found
    tables = [name for name in names if len(shapes[name]) >= 2] if not part else [part]
    if len(tables) != 1 or tables[0] not in names:
        lead = f'{path} has no array "{part}"' if part else f"{path} holds {len(tables)} tables"
        raise InputError(f"{lead}. Name one as {path}::NAME, of: {', '.join(names) or 'none'}.")
    with np.load(path) as archive:
        return archive[tables[0]]


def stack_arrays(
    parts: list[Table],
    source: str,
    missing: Sequence[Any] = (),
    drop: Sequence[str] = (),
    columns: Sequence[str] = (),
    known: Sequence[Column] = (),
    **roles: Sequence[str],
) -> Table:
    """Arrays under each other; columns have only numbers for names."""
    first = parts[0]
    for part in parts[1:]:
        if len(part.columns) != len(first.columns):
            sizes = f"{len(part.columns)} columns where {first.source} has {len(first.columns)}"
            raise InputError(f"{part.source} has {sizes}. Files read together need the same columns.")
    if any(roles.values()) or any(column.levels for column in known):
        pieces = [Piece(as_frame(part), part.source, notes=part.notes) for part in parts]
        return assemble(pieces, source, missing, drop, columns, known=known, **roles)
    if len(parts) == 1 and not missing and not drop and not columns:
        return Table(first.numbers, first.columns, notes=first.notes, source=source)
    check_names("drop", drop, first.columns, source)
    check_names("columns", columns, first.columns, source)
    keep = [i for i, name in enumerate(first.columns) if name not in drop and (not columns or name in columns)]
    arrays = [part.array() for part in parts]
    sparse = any(sp.issparse(a) for a in arrays)
    numbers = sp.csr_array(sp.vstack(arrays))[:, keep] if sparse else np.vstack(arrays)[:, keep]
    for code in missing if not sparse else ():
        numbers[numbers == as_number(code)] = np.nan
    notes = [note for part in parts for note in part.notes]
    return Table(numbers, [first.columns[i] for i in keep], notes=notes, source=source)


def as_frame(table: Table) -> pl.DataFrame:
    """An array as a frame, null where a cell is blank."""
    numbers = table.array()
    if sp.issparse(numbers):
        raise InputError(f"{table.source} is sparse: all its columns are numbers. Leave out what their roles are.")
    return pl.DataFrame(numbers, schema=table.columns, orient="row").fill_nan(None)


def as_number(code: Any) -> float:
    try:
        return float(code)
    except ValueError:
        raise InputError(f"⟨missing={code}⟩: the table holds only numbers, so a blank must be a number too.") from None
