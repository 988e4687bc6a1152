"""A sparse table on disk: a folder `name.csr` of three plain arrays and a note of its shape.

    data.npy      (nnz,) the stored values, of any number type      indptr.npy  (n+1,) where each row begins
    indices.npy   (nnz,) their columns, ascending within a row      meta.json   {"format": "csr", "shape": [n, d]}

Rows lie together, so a run of rows is three short reads. Writing is streamed, and the folder appears whole or not
at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy
from scipy import sparse

from twofold.core.checks import DAMAGED_ARRAY, InputError, check_sparse, reason_of
from twofold.core.files.atomic import replacing_folder
from twofold.core.types import Block, PathLike

ENDING = ".csr"


class Stored(NamedTuple):
    """One array of the folder: where its numbers are."""

    path: str
    dtype: np.dtype
    length: int
    offset: int

    def read(self, start: int, stop: int) -> np.ndarray:
        """Numbers start..stop, read rather than mapped, so that resident memory stays within the budget."""
        with open(self.path, "rb", buffering=0) as file:
            cells = np.fromfile(file, self.dtype, stop - start, offset=self.offset + start * self.dtype.itemsize)
        if len(cells) < stop - start:
            raise InputError(f"{self.path} is truncated: it ends before its last value. Write the folder again.")
        return cells


def open_csr(path: PathLike) -> tuple[tuple[int, int], Stored, Stored, np.ndarray]:
    """Shape, data, indices and (n+1,) row pointers of a folder that `write_csr` wrote, each file checked."""
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder. BagOfWords().fit_transform(texts, to=...) writes one.")
    try:
        meta = json.loads((folder / "meta.json").read_text("utf-8"))
        n, d = (int(size) for size in meta["shape"])
        if meta["format"] != "csr" or n < 0 or d < 0:
            raise ValueError("it describes no sparse table")
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as why:
        raise InputError(f"{folder / 'meta.json'} cannot be read ({why}). Write the folder again.") from None
    data, indices, starts = (open_array(folder / f"{name}.npy") for name in ("data", "indices", "indptr"))
    for array, kinds in ((data, "fiub"), (indices, "iu"), (starts, "iu")):
        if array.dtype.kind not in kinds:
            raise InputError(f"{array.path} holds {array.dtype}, which a sparse table cannot use. Write it again.")
    indptr = starts.read(0, starts.length)
    if len(indptr) != n + 1 or indptr[0] != 0 or np.any(np.diff(indptr) < 0):
        raise InputError(f"{starts.path} is damaged: it must be {n + 1} numbers that start at 0 and never fall.")
    for array in (data, indices):
        if array.length != indptr[-1]:
            raise InputError(f"{array.path} has {array.length} values where indptr.npy says {indptr[-1]}: damaged.")
    return (n, d), data, indices, indptr


def open_array(path: Path) -> Stored:
    """Read the head of a .npy file and compare it with the size of the file."""
    try:
        with open(path, "rb") as file:
            version = npy.read_magic(file)
            head = npy.read_array_header_1_0(file) if version == (1, 0) else npy.read_array_header_2_0(file)
            offset = file.tell()
        (length,), _, dtype = head
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; the folder is not complete. Write it again.") from None
    except DAMAGED_ARRAY as why:
        raise InputError(f"{path} is not a readable .npy file ({reason_of(why)}). Write the folder again.") from None
    if os.path.getsize(path) < offset + length * dtype.itemsize:
        raise InputError(f"{path} is truncated: it ends before its last value. Write the folder again.")
    return Stored(os.fspath(path), dtype, length, offset)


# ---- writing ---------------------------------------------------------------------------------------------------


class _Growing:
    """A .npy file whose length is known only when it is closed; NumPy leaves room in the head for that."""

    def __init__(self, path: Path, dtype: Any):
        self.dtype, self.length = np.dtype(dtype), 0
        self.file: BinaryIO = open(path, "wb")  # noqa: SIM115  (closed by `close`)
        self._head()

    def _head(self) -> None:
        head = {"descr": npy.dtype_to_descr(self.dtype), "fortran_order": False, "shape": (self.length,)}
        npy.write_array_header_1_0(self.file, head)

    def append(self, cells: np.ndarray) -> None:
        self.file.write(np.ascontiguousarray(cells, self.dtype).data)
        self.length += len(cells)

    def close(self) -> None:
        self.file.seek(0)
        self._head()
        self.file.close()


def write_csr(path: PathLike, row_blocks: Iterable[Block]) -> str:
    """Write blocks of rows, one below the other, as the folder `path`, and return that path.

    Blocks may come from a generator: only one is in memory at a time. A folder of that name is replaced if it is
    a sparse table, else refused.

    Parameters
    ----------
    path : str or path
        Must end in ".csr".
    row_blocks : iterable of sparse arrays
        All with the same number of columns and the same dtype.

    Examples
    --------
    >>> import os, tempfile
    >>> from twofold import PCA
    >>> X = sparse.random_array((300, 20), density=0.2, rng=0, format="csr")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_csr(os.path.join(folder, "x.csr"), [X[:100], X[100:]])
    ...     streamed = PCA(2).fit(path)
    >>> bool(np.array_equal(streamed.components_, PCA(2).fit(X).components_))
    True
    """
    goal = Path(path)
    if goal.suffix.lower() != ENDING:
        raise InputError(f'{goal}: the folder of a sparse table must end in "{ENDING}".')
    if goal.exists() and not (goal / "meta.json").exists():
        raise InputError(f"{goal} exists and is no sparse table. Choose another name, or move it away.")
    with replacing_folder(goal) as made:
        _write_into(made, row_blocks)
    return os.fspath(path)


def _write_into(folder: Path, row_blocks: Iterable[Block]) -> None:
    files: list[_Growing] = []
    starts, stored, shape = [np.zeros(1, np.int64)], 0, (0, 0)
    try:
        for block in row_blocks:
            X = _canonical(block)
            if not files:
                shape = (0, X.shape[1])
                index = np.int32 if X.shape[1] < 2**31 else np.int64
                files += [_Growing(folder / "data.npy", X.dtype), _Growing(folder / "indices.npy", index)]
            if X.shape[1] != shape[1] or X.dtype != files[0].dtype:
                raise InputError(f"a block of {X.dtype} {X.shape} follows {files[0].dtype} with {shape[1]} columns.")
            files[0].append(X.data)
            files[1].append(X.indices)
            starts.append(X.indptr[1:].astype(np.int64) + stored)
            shape, stored = (shape[0] + X.shape[0], shape[1]), stored + X.nnz
        if not files:
            raise InputError("there are no blocks to write: a sparse table needs at least one.")
    finally:
        for file in files:
            file.close()
    np.save(folder / "indptr.npy", np.concatenate(starts))
    (folder / "meta.json").write_text(json.dumps({"format": "csr", "shape": list(shape)}), "utf-8")


def _canonical(block: Block) -> Block:
    """Rows with ascending columns and no repeats; the caller's array stays as it is."""
    if sparse.issparse(block):
        check_sparse(block)
    X = sparse.csr_array(block)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
