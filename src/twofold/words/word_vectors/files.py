"""Word vectors in the files of word2vec and GloVe.

    text     "V k" in the first line (GloVe: no such line), then a line a word:  word x1 x2 ... xk
    binary   "V k" in the first line, then for each word:  word, a space, k little-endian float32, perhaps a line end

Both may be packed. The first bytes of a file decide its format, not its name. Memory grows with the words read, not
with the number in the first line, and a file that ends early or late is refused.
"""

from __future__ import annotations

import gzip
import itertools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from numbers import Integral
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import polars as pl

from twofold.core.checks import InputError, first_bad
from twofold.core.files.atomic import replacing
from twofold.io.open import DAMAGED, open_bytes

CHUNK_BYTES = 4 * 2**20  # of a file that are read together
SPACES = b" \t\n\r\x0b\x0c"
MAX_WORD_BYTES = 10_000  # a file with a longer word has no word vectors


class Header(NamedTuple):
    """The content of the first line."""

    words: int | None  # None without such a line
    width: int
    binary: bool


# ---- writing ---------------------------------------------------------------------------------------------------


def write_word2vec(words: np.ndarray, W: np.ndarray, path: str | os.PathLike, binary: bool | None) -> None:
    """Write words and vectors (V,k) to one file, which appears complete or not at all."""
    name = os.fspath(path).lower()
    if binary is None:
        binary = name.removesuffix(".gz").endswith(".bin")
    for at, word in enumerate(words):
        if any(chr(space) in word for space in SPACES):
            raise InputError(
                f"words[{at}] is {word!r}; a word2vec file has spaces between a word and its numbers, so it cannot "
                'hold spaces within one. Write "_" in their place, or use save(path).'
            )
    with replacing(path) as temporary, open(temporary, "wb") as raw, _packing(raw, name) as file:
        file.write(f"{len(words)} {W.shape[1]}\n".encode())
        step = max(1, CHUNK_BYTES // (16 * W.shape[1]))
        for a in range(0, len(words), step):
            file.write((_as_bytes if binary else _as_text)(words[a : a + step], W[a : a + step]))


@contextmanager
def _packing(raw: BinaryIO, name: str) -> Iterator[Any]:
    """Pack a file by gzip if its name ends so; without a time stamp, so that equal vectors give equal files."""
    if not name.endswith(".gz"):
        yield raw
        return
    with gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0, compresslevel=4) as file:
        yield file


def _as_bytes(words: np.ndarray, W: np.ndarray) -> bytes:
    rows = W.astype("<f4")
    return b"".join(_encode(word) + b" " + row.tobytes() + b"\n" for word, row in zip(words, rows, strict=True))


def _as_text(words: np.ndarray, W: np.ndarray) -> bytes:
    """Lines with the shortest decimals that give the same float32."""
    frame = pl.DataFrame(np.asarray(W, dtype=np.float32), orient="row")
    numbers = frame.write_csv(include_header=False, separator=" ").encode().split(b"\n")
    return b"".join(_encode(word) + b" " + line + b"\n" for word, line in zip(words, numbers[: len(W)], strict=True))


def _encode(word: str) -> bytes:
    return word.encode("utf-8", "surrogatepass")


# ---- reading ---------------------------------------------------------------------------------------------------


def read_word2vec(path: str | os.PathLike, binary: bool | None, limit: int | None) -> tuple[list[str], np.ndarray]:
    """Words and float32 vectors (V,k) of a text, binary or GloVe file."""
    if limit is not None and (not isinstance(limit, Integral) or limit < 1):
        raise InputError(f"limit={limit!r} must be a whole number of at least 1, or None for all words.")
    name, table = os.fspath(path), Table()
    try:
        with open_bytes(name, CHUNK_BYTES) as file:
            header = _header(file, name, binary)
            total = min(n for n in (header.words, limit, sys.maxsize) if n is not None)
            for words, rows in (_binary if header.binary else _text)(file, name, header, total):
                table.add(words, rows, name)
    except DAMAGED as why:
        raise InputError(f"{name} cannot be read beyond word {len(table.words)} ({why}).") from None
    return list(table.words), table.rows()


class Table:
    """The words read so far; its capacity doubles when it is full."""

    def __init__(self) -> None:
        self.words: dict[str, None] = {}
        self.vectors = np.empty((0, 0), np.float32)

    def add(self, words: list[bytes], rows: np.ndarray, name: str) -> None:
        at = len(self.words)
        bad = first_bad(rows, allow_nan=False)
        if bad is not None:
            raise InputError(f"{name}: number {bad[1] + 1} of word {at + bad[0] + 1} is {bad[2]}. The file is damaged.")
        for i, word in enumerate(words, at + 1):
            text = word.decode("utf-8", "backslashreplace")  # shows bytes that are no UTF-8 as \xNN
            if text in self.words:
                first = list(self.words).index(text) + 1
                raise InputError(f"{name}: word {i} is {text!r}, and so is word {first}. Remove one of them.")
            self.words[text] = None
        if len(self.words) > len(self.vectors):
            self.vectors.resize((max(len(self.words), 2 * at), rows.shape[1]), refcheck=False)
        self.vectors[at : at + len(rows)] = rows

    def rows(self) -> np.ndarray:
        self.vectors.resize((len(self.words), self.vectors.shape[1]), refcheck=False)
        return self.vectors


def _header(file: Any, name: str, binary: bool | None) -> Header:
    """Read the sizes in the first line; the file is then at the first word."""
    line, _, after = file.peek(CHUNK_BYTES).partition(b"\n")
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields):
        words, width = (int(field[:12]) for field in fields)
        if not words or not width or max(map(len, fields)) > 11:
            raise InputError(
                f"{name}, line 1 announces {line[:40].decode()!r}, words and numbers a word: not possible."
            )
        file.read(len(line) + 1)
        return Header(words, width, _is_binary(after, width) if binary is None else binary)
    width = _width(fields)
    if binary or not width:
        shown = line[:40].decode("utf-8", "replace").strip()
        raise InputError(
            f"{name}, line 1 is {shown!r}. A file of word vectors starts with two sizes, such as 5000 100 (words, "
            "numbers a word), or with a word and its numbers."
        )
    return Header(None, width, False)


def _width(fields: list[bytes]) -> int:
    """Count the numbers at the end of a line; its first field is always a word."""
    return len(list(itertools.takewhile(_is_number, fields[:0:-1])))


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _is_binary(after: bytes, width: int) -> bool:
    """Return whether the bytes after the first line are no text."""
    if any(byte < 32 and byte not in SPACES for byte in after[:4096]):
        return True
    try:
        after[:4096].decode("utf-8")
    except UnicodeDecodeError:
        return _width(after.partition(b"\n")[0].split()) != width  # text in another encoding still has its numbers
    return False


def _text(file: Any, name: str, header: Header, total: int) -> Iterator[tuple[list[bytes], np.ndarray]]:
    """Read words and numbers, some thousand lines at a time."""
    first, count, empty = (1 if header.words is None else 2), 0, 0
    limit = MAX_WORD_BYTES + 100 * header.width  # bytes of a line; a longer line is cut, and then refused
    read = iter(lambda: file.readline(limit), b"")
    while lines := list(itertools.islice(read, max(1, min(total - count, CHUNK_BYTES // (8 * header.width))))):
        at = first + count
        kept = lines[: 1 + max((i for i, line in enumerate(lines) if line.strip()), default=-1)]
        if kept and empty:
            raise InputError(f"{name}, line {at} is empty, but not the last. Remove it.")
        if kept and count == total:
            if header.words != total:
                return
            raise InputError(f"{name}, line {at} goes on after the {total:,} words that line 1 announces.")
        if kept:
            yield _parse(kept, header.width, name, at)
        count, empty = count + len(kept), len(lines) - len(kept)
    if header.words == total and count < total:
        raise InputError(
            f"{name} ends after line {first + count - 1}, short of the {total:,} words that line 1 announces."
        )


def _parse(lines: list[bytes], width: int, name: str, first: int) -> tuple[list[bytes], np.ndarray]:
    """Parse lines into words and their numbers (n,k)."""
    parts = [line.split(None, 1) for line in lines]
    if all(len(part) == 2 for part in parts):
        with suppress(ValueError):
            rows = np.loadtxt([part[1] for part in parts], np.float32, comments=None, ndmin=2, encoding="latin1")
            if rows.shape == (len(lines), width):
                return [part[0] for part in parts], rows
    both = [_line(line, width, f"{name}, line {i}") for i, line in enumerate(lines, first)]
    return [word for word, _ in both], np.array([numbers for _, numbers in both], np.float32)


def _line(line: bytes, width: int, where: str) -> tuple[bytes, list[float]]:
    """Parse one line whose word may contain spaces, but no number after a space."""
    fields = line.rsplit(None, width)
    word = fields[0].strip() if len(fields) == width + 1 else b""
    if not word or _width(word.split()) or not all(map(_is_number, fields[1:])):
        shown = line[:40].decode("utf-8", "replace").strip()
        raise InputError(f"{where} is not a word and {width} numbers: {shown!r}. It is damaged, or line 1 is wrong.")
    return word, [float(field) for field in fields[1:]]


def _binary(file: Any, name: str, header: Header, total: int) -> Iterator[tuple[list[bytes], np.ndarray]]:
    """Read words and numbers, some megabytes at a time."""
    size, buffer, count = 4 * header.width, b"", 0
    while count < total:
        more = file.read(CHUNK_BYTES)
        buffer += more
        words, rows, used = _unpack(buffer, size, total - count)
        whole = words.index(b"") if b"" in words else len(words)
        if whole < len(words) or not (words or more) or (not words and len(buffer) > size + MAX_WORD_BYTES):
            raise InputError(
                f"{name}: word {count + whole + 1} is incomplete. Line 1 announces {header.words:,} words "
                f"of {header.width} numbers; the file is cut short or damaged."
            )
        count, buffer = count + len(words), buffer[used:]
        if words:
            yield words, np.frombuffer(b"".join(rows), "<f4").reshape(-1, header.width)
    if header.words == total and (buffer + file.read(1)).strip(b"\n"):
        raise InputError(f"{name} goes on after the {total:,} words that line 1 announces. It is damaged.")


def _unpack(buffer: bytes, size: int, limit: int) -> tuple[list[bytes], list[bytes], int]:
    """The first complete words, the bytes of their numbers, and the bytes that both take."""
    words: list[bytes] = []
    rows: list[bytes] = []
    at = 0
    while len(words) < limit:
        space = buffer.find(b" ", at, at + MAX_WORD_BYTES)
        if space < 0 or space + 1 + size > len(buffer):
            break
        words.append(buffer[at:space].lstrip(b"\n"))
        at = space + 1 + size
        rows.append(buffer[space + 1 : at])
    return words, rows, at
