"""A delimited text as it stands in its file: some cells get new content, every other byte stays.

    text → records → fields, each with the place where it begins and ends

The quotes and the spaces around a cell stay; so do line endings, byte order mark and encoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from twofold.io.encoding import decode, find_encoding
from twofold.io.tables.delimited import find_delimiter

ASCII_LIKE = ("utf-8", "cp1252", "latin-1")  # a byte below 128 is never part of another letter


class Text(NamedTuple):
    """The bytes of a delimited file, and what is needed to find its cells."""

    data: bytes  # without the byte order mark, in an encoding that keeps ASCII
    delimiter: str  # " " means runs of spaces
    code: str  # the encoding of the data
    wide: str  # the encoding of the file, if not the same
    mark: bytes

    def encode_text(self, data: bytes) -> bytes:
        """Return the file as it would be written."""
        return self.mark + (data.decode().encode(self.wide) if self.wide else data)


class Record(NamedTuple):
    line: int  # on which it starts, from 1
    fields: list[tuple[int, int]]
    end: int  # where its line ending begins


def open_text(data: bytes, name: str) -> Text:
    """The text that `read_delimited` saw, without its changes."""
    plain, _ = decode(data, name)
    stripped = plain.rstrip(b"\n")
    parsed, delimiter = find_delimiter(stripped)
    delimiter = delimiter if parsed == stripped else " "
    mark, code = find_encoding(data)
    body = data[len(mark) :]
    if code not in ASCII_LIKE:
        return Text(body.decode(code).encode(), delimiter, "utf-8", code, mark)
    return Text(body, delimiter, code, "", mark)


def records(text: Text) -> Iterator[Record]:
    """Every record with the places of its fields, as Python's csv module would cut them."""
    spaced = text.delimiter == " "
    mark = re.escape(text.delimiter).encode()
    bare = rb"[^" + mark + rb"\r\n]*"
    field = bare if spaced else rb'(?:"[^"]*(?:""[^"]*)*"' + bare + rb"|" + bare + rb")"
    between = mark + rb"+" if spaced else mark
    pattern = re.compile(rb"(" + field + rb")(" + between + rb"|\r\n?|\n|\Z)")
    at, line, first = 0, 1, 1
    fields: list[tuple[int, int]] = []
    while at <= len(text.data):
        found = pattern.match(text.data, at)
        if found is None:  # a quote that is never closed, which the reader refuses
            return
        a, b = found.span(1)
        if b > a or not spaced:
            fields.append((a, b))
        if text.data[a : a + 1] == b'"':
            line += len(re.findall(rb"\r\n?|\n", found[1]))
        if found[2][:1] not in (b"\r", b"\n", b""):
            at = found.end()
            continue
        yield Record(first, fields, b)
        line += 1
        at, first, fields = found.end(), line, []
        if found.end() == found.start(2):  # the end of the text
            return


def content(text: Text, span: tuple[int, int]) -> tuple[int, int]:
    """Find where the content of a field begins and ends, inside its quotes and spaces."""
    a, b = span
    if b - a >= 2 and text.data[a : a + 1] == b'"' and text.delimiter != " ":
        a, b = a + 1, text.data.rindex(b'"', a + 1, b)
    inside = text.data[a:b]
    if not inside.strip():
        return b, b
    return a + len(inside) - len(inside.lstrip()), b - (len(inside) - len(inside.rstrip()))


def edit_cells(text: Text, cells: Mapping[int, Mapping[int, str]], tails: Mapping[int, str]) -> Iterator[bytes]:
    """The text in pieces, with new content in some cells and something added to the end of some records.

    Parameters
    ----------
    text : Text
    cells : mapping from line to {field: content}
        Records are known by the line they start on; a blank content (such as NA) is replaced, not kept beside it.
    tails : mapping from line to str
    """
    done = 0
    for record in records(text):
        for j, new in sorted(cells.get(record.line, {}).items()):
            a, b = content(text, record.fields[j])
            if any(mark in new for mark in (text.delimiter, '"', "\n", "\r")):
                new = new.replace('"', '""')
                new = new if text.data[a - 1 : a] == b'"' else f'"{new}"'
            yield text.data[done:a]
            yield new.encode(text.code, "replace")
            done = b
        if record.line in tails:
            end = record.fields[-1][1] if text.delimiter == " " and record.fields else record.end
            yield text.data[done:end]
            yield tails[record.line].encode(text.code, "replace")
            done = end
    yield text.data[done:]
