"""Safetensors files that carry a JSON header and a digest: the container under models and checkpoints.

    8 bytes   length of the table, little-endian
    table     JSON: name -> dtype, shape, offsets; "__metadata__" -> {"twofold": our header, "digest": ...}
    data      the arrays, one after the other

Whatever reads safetensors reads these. The table is read here rather than by that library, so that every length is
compared with the size of the file before anything of that length is allocated, and every complaint can say what is
wrong.
The digest covers our header and each array's name, dtype, shape and bytes: no damage goes unseen.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from twofold.core.checks import InputError, ModelFileError
from twofold.core.files.atomic import replacing
from twofold.core.types import PathLike

FORMAT = 1
MAX_TABLE = 32 * 2**20  # bytes of JSON; arrays and long lists are not in it, so real tables are far smaller
CHUNK = 2**20

FOREIGN = {  # the first bytes of files that are taken for models
    b"\x80\x02": "a pickle, which is never loaded because it can run code",
    b"\x80\x03": "a pickle, which is never loaded because it can run code",
    b"\x80\x04": "a pickle, as joblib writes it, which is never loaded because it can run code",
    b"\x80\x05": "a pickle, as joblib writes it, which is never loaded because it can run code",
    b"PK\x03\x04": "a zip archive, such as .npz and files of torch and skops",
    b"\x1f\x8b": "a gzip file",
    b"\x93NUMPY": "a .npy array",
    b"\x89HDF": "an HDF5 file",
}
DTYPES = {
    "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4",
    "U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8",
}  # fmt: skip
_NAMES = {np.dtype(code): name for name, code in DTYPES.items()}


class Span(NamedTuple):
    """Where one array lies in the data section, and how to read it."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class Table(NamedTuple):
    """Everything in a file but its arrays."""

    header: dict[str, Any]
    text: str  # the header as written, which the digest covers
    digest: str
    spans: dict[str, Span]
    start: int  # of the data section


def write_file(path: PathLike, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a header that JSON can hold, with ``format`` and ``version``, and arrays as one file: whole or not at all.

    Arrays are booleans, integers and floats up to 64 bits, in any memory layout and byte order.
    """
    ours = header | {"format": FORMAT, "version": importlib.import_module("twofold").__version__}
    try:
        text = json.dumps(ours)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"The header of {path} cannot be written as JSON: {error}.") from error
    flat = {name: _plain(name, array) for name, array in arrays.items()}
    # An entry's dtype, shape and offsets take under 300 bytes; the header is escaped again inside the table.
    if len(json.dumps(text)) + sum(len(json.dumps(name)) + 300 for name in flat) > MAX_TABLE:
        raise InputError(f"The header of {path} is over {MAX_TABLE} bytes; keep large values in arrays.")
    digest = _digest(text, ((n, _NAMES[a.dtype], a.shape, [_bytes(a)]) for n, a in sorted(flat.items())))
    with replacing(path) as draft:
        _write(draft, flat, {"twofold": text, "digest": digest})


def read_file(path: PathLike) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read header and arrays of `write_file`; any other file, also a damaged one, is a ModelFileError."""
    with _reading(path) as (file, table):
        arrays = {name: _read(file, table, name) for name in sorted(table.spans)}
        items = ((n, table.spans[n].dtype, a.shape, [_bytes(a)]) for n, a in arrays.items())
        _compare(path, table, _digest(table.text, items))
    return table.header, arrays


def read_table(path: PathLike) -> Table:
    """Check the whole file in a fixed amount of memory and return all but its arrays."""
    with _reading(path) as (file, table):
        items = ((n, s.dtype, s.shape, _chunks(file, table.start, s)) for n, s in sorted(table.spans.items()))
        _compare(path, table, _digest(table.text, items))
    return table


def _write(path: PathLike, arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """The bytes, to this very file: safetensors' own writer goes through a temporary one, which a kill would leave."""
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))  # so that every array is aligned
    table: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name in order:
        begin, end = end, end + arrays[name].nbytes
        table[name] = {"dtype": _NAMES[arrays[name].dtype], "shape": arrays[name].shape, "data_offsets": [begin, end]}
    head = json.dumps(table, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for name in order:
            file.write(_bytes(arrays[name]))


def _plain(name: str, array: np.ndarray) -> np.ndarray:
    """The same values, C-ordered and little-endian: the bytes are written as they lie in memory."""
    array = np.asarray(array)
    little = array.dtype.newbyteorder("<")
    if little not in _NAMES:
        raise InputError(f"Array {name!r} has dtype {array.dtype}; a file holds booleans, integers, floats to 64 bits.")
    # ascontiguousarray turns 0-d into 1-d, hence the reshape.
    return np.ascontiguousarray(array, dtype=little).reshape(array.shape)


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _digest(text: str, items: Any) -> str:
    """Of the header, then of each array by name, so that the layout in the file does not matter."""
    state = hashlib.blake2b(text.encode(), digest_size=16)
    for name, dtype, shape, pieces in items:
        state.update(json.dumps([name, dtype, list(shape)]).encode())
        for piece in pieces:
            state.update(piece)
    return state.hexdigest()


def _compare(path: PathLike, table: Table, digest: str) -> None:
    if digest != table.digest:
        raise ModelFileError(f"{path} is damaged: its contents do not match its checksum. Save the model again.")


@contextmanager
def _reading(path: PathLike) -> Iterator[tuple[BinaryIO, Table]]:
    """The open file and its checked table; what goes wrong meanwhile is a ModelFileError with its name."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for ever
            raise ModelFileError(f"{path} is not a regular file. Give the path of a .twofold file.")
        with open(path, "rb", buffering=0) as file:
            yield file, _table(file, os.fstat(file.fileno()).st_size)
    except FileNotFoundError as error:
        raise ModelFileError(f"{path} does not exist.") from error
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}.") from error
    except Wrong as error:
        raise ModelFileError(f"{path} {error}") from error


class Wrong(Exception):
    """What is wrong with a file, as the end of a sentence that starts with its name."""


def require(condition: bool, wrong: str) -> None:
    if not condition:
        raise Wrong(wrong)


def _table(file: BinaryIO, size: int) -> Table:
    require(size >= 8, f"is no twofold file: it is only {size} bytes long.")
    start = _exactly(file, 8)
    length = int.from_bytes(start, "little")
    if length > min(size - 8, MAX_TABLE):
        for magic, kind in FOREIGN.items():
            require(not start.startswith(magic), f"is no twofold file but {kind}. Save models with model.save(path).")
    foreign = "is no twofold file, or the start of one is damaged"
    require(length <= size - 8, f"{foreign}: its first bytes do not fit its size of {size} bytes.")
    require(length <= MAX_TABLE, f"{foreign}: its first bytes give its table {length} bytes.")
    table = _json(_exactly(file, length), f"{foreign}: its table is not JSON")
    ours = table.pop("__metadata__", None)
    known = isinstance(ours, dict) and ours.keys() == {"twofold", "digest"} and _all(ours.values(), str)
    require(known, "is a safetensors file, but not one that twofold wrote.")
    header = _json(ours["twofold"], "is damaged: its header is not JSON")
    number = header.get("format", 0)
    require(type(number) is int and number > 0, "is damaged: its header has no format number.")
    newer = f"has format {number}, written by twofold {header.get('version')}; this one reads up to {FORMAT}."
    require(number <= FORMAT, f"{newer} Upgrade twofold.")
    spans = {name: _span(name, entry) for name, entry in table.items()}
    reached = 0
    for name, span in sorted(spans.items(), key=lambda item: item[1][2:]):
        require(span.begin == reached, f"is damaged: array {name!r} does not start where the one before ends.")
        reached = span.end
    data = size - 8 - length
    require(reached <= data, f"is cut short: its arrays take {reached} bytes and {data} are there.")
    require(reached == data, f"is damaged: {data - reached} bytes at its end belong to no array.")
    return Table(header, ours["twofold"], ours["digest"], spans, 8 + length)


def _span(name: str, entry: Any) -> Span:
    """One entry of the table, with its dtype, shape and length in agreement."""
    wrong = f"is damaged: its entry for array {name!r} makes no sense."
    require(isinstance(entry, dict) and entry.keys() == {"dtype", "shape", "data_offsets"}, wrong)
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    require(isinstance(dtype, str) and dtype in DTYPES, wrong)
    require(isinstance(shape, list) and isinstance(offsets, list) and len(offsets) == 2, wrong)
    require(_all(shape + offsets, int) and min(shape + offsets) >= 0 and len(shape) <= 32, wrong)
    itemsize = np.dtype(DTYPES[dtype]).itemsize
    # An empty array may claim any other dimension; NumPy needs their product to fit an index.
    require(math.prod(max(n, 1) for n in shape) * itemsize < 2**63, wrong)
    require(offsets[0] + math.prod(shape) * itemsize == offsets[1], wrong)
    return Span(dtype, tuple(shape), offsets[0], offsets[1])


def _all(values: Any, kind: type) -> bool:
    return all(type(value) is kind for value in values)


def _json(text: str | bytes, wrong: str) -> dict[str, Any]:
    """A JSON object without repeated keys."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            raise ValueError("a key occurs twice")
        return entries

    try:
        value = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise Wrong(f"{wrong} ({reason}).") from error
    require(isinstance(value, dict), f"{wrong}.")
    return value


def _exactly(file: BinaryIO, count: int) -> bytes:
    return b"".join(_pieces(file, count))


def _pieces(file: BinaryIO, count: int) -> Iterator[bytes]:
    while count:
        piece = file.read(min(count, CHUNK))
        require(len(piece) > 0, "became shorter while it was read.")
        count -= len(piece)
        yield piece


def _chunks(file: BinaryIO, start: int, span: Span) -> Iterator[bytes]:
    file.seek(start + span.begin)
    return _pieces(file, span.end - span.begin)


def _read(file: BinaryIO, table: Table, name: str) -> np.ndarray:
    span = table.spans[name]
    file.seek(table.start + span.begin)
    # As bytes first: they were already compared with the file's size, and a boolean must be 0 or 1.
    raw = np.fromfile(file, np.uint8, span.end - span.begin)
    require(len(raw) == span.end - span.begin, "became shorter while it was read.")
    require(span.dtype != "BOOL" or not raw.size or raw.max() <= 1, f"is damaged: {name!r} is not boolean.")
    array = raw.view(DTYPES[span.dtype]).reshape(span.shape)
    return array.astype(array.dtype.newbyteorder("="), copy=False)
