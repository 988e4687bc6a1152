"""Files as bytes, packed or not: plain, gzip, bzip2, Zstandard, and zip archives of one file.

How a file is packed shows in its first bytes, not in its name. What is damaged is refused by name.
"""

from __future__ import annotations

import bz2
import gzip
import io
import math
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.io.encoding import Recoded

ENDINGS = (".gz", ".bz2", ".zst", ".zip")  # that say how a file is packed, not what it holds
ZIP = b"PK\x03\x04"
PACKED: dict[bytes, tuple[str, Callable[[Any], Any]]] = {
    b"\x1f\x8b": ("gzip", lambda file: gzip.GzipFile(fileobj=file)),
    b"BZh": ("bzip2", bz2.BZ2File),
    b"\x28\xb5\x2f\xfd": ("Zstandard", lambda file: io.BufferedReader(Recoded(file, unpack_frames(), "", SIP))),
}
BUFFER = 2**18  # bytes that are unpacked at once
SIP = 2**12  # bytes of a Zstandard file that are unpacked at once: each can become 32 kB, and the library has no limit
DAMAGED = (OSError, EOFError, zlib.error, zstandard.ZstdError, zipfile.BadZipFile, NotImplementedError, RuntimeError)


@contextmanager
def open_bytes(path: str | os.PathLike, buffer: int = BUFFER) -> Iterator[BinaryIO]:
    """A file unpacked as it is read, `buffer` bytes at once; ``archive.zip::name`` chooses one of several.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt.gz").write_bytes(gzip.compress(b"two words"))
    ...     with open_bytes(Path(folder, "a.txt.gz")) as file:
    ...         file.read()
    b'two words'
    """
    name, _, part = os.fspath(path).partition("::")
    with open(name, "rb", buffering=buffer) as raw:
        if part and not is_zip(raw):
            raise InputError(f"{os.fspath(path)}: {name} is no zip archive, so it has no part of that name.")
        with open_unpacked(raw, name, part, buffer) as file:
            yield file


@contextmanager
def open_unpacked(raw: BinaryIO, name: str, part: str = "", buffer: int = BUFFER) -> Iterator[BinaryIO]:
    """An open file through whatever packed it."""
    if is_zip(raw):
        try:
            with zipfile.ZipFile(raw) as archive, archive.open(member(archive, name, part)) as file:
                yield io.BufferedReader(file, buffer)  # type: ignore[type-var]
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:  # RuntimeError: it has a password
            raise InputError(describe_damage("zip archive", name, error)) from None
        return
    head = raw.peek(4)[:4]  # type: ignore[attr-defined]
    how, unpack = next((found for mark, found in PACKED.items() if head.startswith(mark)), ("", None))
    if unpack is None:
        yield raw
        return
    with unpack(raw) as file:
        yield io.BufferedReader(Named(file, how, name), buffer)


def unpack_frames() -> Callable[[bytes], bytes]:
    """A function that unpacks Zstandard bytes as they come, and refuses an end before its time."""
    frame: Any = None

    def change(raw: bytes) -> bytes:
        nonlocal frame
        if not raw and frame is not None and not frame.eof:
            raise EOFError("it ends too early")
        out = b""
        while raw:
            if frame is None or frame.eof:
                frame = zstandard.ZstdDecompressor().decompressobj()
            out += frame.decompress(raw)
            raw = frame.unused_data if frame.eof else b""
        return out

    return change


class Named(io.RawIOBase):
    """A packed file whose faults are told by name."""

    def __init__(self, file: Any, packing: str, name: str):
        self.file, self.packing, self.called = file, packing, name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self.file.read(len(buffer))
        except DAMAGED as error:
            raise InputError(describe_damage(f"{self.packing} file", self.called, error)) from None
        buffer[: len(data)] = data
        return len(data)


def describe_damage(kind: str, name: str, error: BaseException) -> str:
    return f"{name} is a damaged {kind} ({error}). Fetch or compress it again."


def is_zip(raw: BinaryIO) -> bool:
    return raw.peek(4)[:4] == ZIP  # type: ignore[attr-defined]


def member(archive: zipfile.ZipFile, name: str, part: str) -> str:
    """The file meant in an archive: the one named, or the only one; what systems add of their own does not count."""
    files = [one for one in archive.namelist() if not one.endswith("/")]
    files = [one for one in files if not one.startswith("__MACOSX/") and Path(one).name[:1] != "."]
    if part in files:
        return part
    if part or len(files) != 1:
        lead = f'{name} holds no file "{part}"' if part else f"{name} holds {len(files)} files"
        shown = ", ".join(files[:6]) + (", ..." if len(files) > 6 else "")
        raise InputError(f"{lead}. Name one as {name}::FILE, of: {shown or 'none'}; or unpack it.")
    return files[0]


def read_bytes(path: str | os.PathLike) -> bytes:
    """All of a file, or of standard input (``-``), unpacked."""
    if os.fspath(path) == "-":
        return unpack(read_bounded(sys.stdin.buffer, "standard input"), "standard input")
    with open_bytes(path) as file:
        return read_bounded(file, os.fspath(path))


def unpack(data: bytes, name: str) -> bytes:
    """Bytes without their packing."""
    if not data.startswith((ZIP, *PACKED)):
        return data
    with open_unpacked(io.BufferedReader(io.BytesIO(data)), name) as file:
        return read_bounded(file, name)


def read_bounded(file: BinaryIO, name: str) -> bytes:
    """All of an open file, if the memory budget allows; at most that is ever held."""
    with io.BytesIO() as whole:
        while part := file.read(BUFFER):
            check_budget(whole.tell() + len(part), name, at_least=True)
            whole.write(part)
        return whole.getvalue()


def check_budget(size: float, name: str, *, at_least: bool = False, remedy: str = "") -> None:
    """Refuse what takes more bytes at once than the memory budget; `at_least` if it may be yet more."""
    most = config().memory
    if size <= most:
        return
    wanted = max(2 * size if at_least else size, 2e6)
    unit, of = ("GB", 1e9) if wanted >= 1e9 else ("MB", 1e6)
    more = f"{math.ceil(wanted / of)}{unit}"
    size_said = f"{'more than ' if at_least else ''}{size / 1e6:,.0f} MB"
    raise InputError(
        f"{name} takes {size_said} at once, and the memory budget is {most / 1e6:,.0f} MB. {remedy}If this machine has "
        f"more, raise it: ⟨memory={more}⟩, in twofold.config or before the verb."
    )


def check_archive(path: str | os.PathLike) -> None:
    """Refuse a zip archive whose files together unpack to more than the memory budget, whatever they claim."""
    name, total = os.fspath(path), 0
    with zipfile.ZipFile(name) as archive:
        for part in archive.infolist():
            with archive.open(part) as file:
                while data := file.read(BUFFER):
                    total += len(data)
                    check_budget(total, name, at_least=True)


def strip_packing(path: str | os.PathLike) -> str:
    """Return a file's name without its packing: the name in a zip archive, else without its last ending.

    >>> strip_packing("data/a.csv.gz"), strip_packing("a.csv")
    ('data/a.csv', 'a.csv')
    """
    name, _, part = os.fspath(path).partition("::")
    ending = Path(name).suffix.lower()
    if ending == ".zip" and os.path.isfile(name):
        try:
            with zipfile.ZipFile(name) as archive:
                return member(archive, name, part)
        except zipfile.BadZipFile as error:
            raise InputError(describe_damage("zip archive", name, error)) from None
    return name[: -len(ending)] if ending in ENDINGS else name
