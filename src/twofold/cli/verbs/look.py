"""`twofold FILE`, without a verb: what is in the file, and the commands that fit it."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

from twofold.analyses.common.answer import Grid, count, rich_table
from twofold.cli import options
from twofold.cli.deliver import print_json, say, stdout
from twofold.core.checks import InputError
from twofold.core.printable import plain

MAX_LEVELS_SHOWN = 4
MAX_COLUMNS_SHOWN = 40
MIN_ROWS = 2  # of a table in which rows are compared
KINDS = {
    "number": "number",
    "whole": "whole number",
    "flag": "yes or no",
    "category": "category",
    "ordered": "ordered category",
    "date": "date",
    "text": "text",
    "id": "identifier",
    "constant": "constant",
}
ABOUT = {
    "cluster": "find groups of rows",
    "reduce": "find the main directions",
    "complete": "fill the blanks",
    "recommend": "recommend items to users",
    "topics": "find topics",
    "embed": "learn vectors of words",
    "compress": "make it smaller",
    "denoise": "remove noise",
    "inpaint": "fill holes",
    "train": "train a network on the images",
}
VERBS = {
    "ratings": ("recommend",),
    "text": ("topics", "embed"),
    "picture": ("compress", "denoise", "inpaint", "cluster"),
    "pictures": ("reduce", "cluster"),
    "signal": ("compress", "denoise"),
}


def look(
    inputs: Annotated[list[str], Parameter(help="A file, several, or a folder.")],
    /,
    *,
    as_json: options.AsJson = False,
) -> None:
    """Say what is in a file, and which verbs fit it."""
    given = [options.restore_dash(one) for one in inputs]
    first = Path(str(given[0]))
    if first.suffix == ".twofold":
        from twofold.cli.verbs.inspect import inspect

        return inspect(str(first), as_json=as_json)
    facts = describe_folder(str(first)) if first.is_dir() else describe_file([str(one) for one in given])
    notes, columns = facts.pop("notes"), facts.get("columns", [])
    if as_json:
        commands = [{"command": command, "about": about} for command, about in facts.pop("commands")]
        print_json(plain({"input": given, **facts, "notes": notes, "commands": commands}))
        return None
    console = stdout()
    console.print(f"{facts['source']}: {facts['what']}", style="bold")
    if columns:
        rows = [[c["column"], KINDS[c["role"]], c["blanks"], c["values"]] for c in columns]
        console.print(rich_table(Grid(["column", "kind", "blanks", "values"], rows, (2,), MAX_COLUMNS_SHOWN)))
        if len(rows) > MAX_COLUMNS_SHOWN:
            console.print(f"... and {len(rows) - MAX_COLUMNS_SHOWN:,} more columns")
    say(notes)
    for command, about in facts["commands"]:
        console.print(f"{command}    {about}", soft_wrap=True)
    return None


def describe_folder(folder: str) -> dict[str, Any]:
    """Say what most of the files in a folder are."""
    from twofold.io.documents import PROSE
    from twofold.io.image_sets import SEEN
    from twofold.io.tables.read import IN_FOLDERS, kind

    files = [path for path in Path(folder).rglob("*") if path.is_file() and not path.name.startswith(".")]
    sorts = {"image": SEEN, "table": IN_FOLDERS, "text": PROSE}
    found = Counter(name for path in files for name, endings in sorts.items() if kind(str(path)) in endings)
    if not found:
        held = ", ".join(f"{n} {ending or 'unnamed'}" for ending, n in Counter(p.suffix for p in files).most_common(3))
        raise InputError(f"{folder} holds no tables, texts or images, but {held or 'nothing'}. Name a file of its own.")
    most = found.most_common(1)[0][0]
    if most == "table":
        return describe_file([folder])
    what = ", ".join(count(n, name) for name, n in found.most_common())
    quoted = shlex.quote(folder)
    verbs = ("train vae",) if most == "image" else VERBS["text"]
    commands = [(f"twofold {verb} {quoted}", ABOUT[verb.split()[0]]) for verb in verbs]
    return {"source": folder, "kind": most, "what": what, "commands": commands, "notes": []}


def describe_file(inputs: list[str]) -> dict[str, Any]:
    """Say what a file holds, or several that are read as one table."""
    from twofold.io.kinds import find_kind
    from twofold.io.tables.read import find_files

    files = [file for one in inputs for file in find_files(one)]
    kind = find_kind(files[0]) if len(files) == 1 and files[0] != "-" and "::" not in files[0] else "table"
    quoted = " ".join(map(shlex.quote, inputs))
    facts: dict[str, Any] = {"source": ", ".join(inputs), "kind": kind, "notes": []}
    facts["commands"] = [(f"twofold {verb} {quoted}", ABOUT[verb]) for verb in VERBS.get(kind, ())]
    if kind in ("table", "ratings") or (kind == "text" and is_table(files[0])):
        return facts | describe_table(inputs, facts["commands"], quoted)
    return facts | {"what": describe_content(files[0], kind)}


def is_table(file: str) -> bool:
    from twofold.io.documents import TABLES
    from twofold.io.tables.read import kind

    return kind(file) in TABLES


def describe_content(file: str, kind: str) -> str:
    """Say how much a file holds that is no table."""
    if kind in ("picture", "signal"):
        from twofold.io.images import read_image
        from twofold.io.recordings import read_signals

        said = (read_image(file) if kind == "picture" else read_signals(file)).describe()
        return said.partition(": ")[2]
    if kind == "pictures":
        from twofold.io.image_sets import read_pictures

        shape = read_pictures(Path(file)).pixels.shape
        return f"{count(shape[0], 'image')} of {' × '.join(map(str, shape[1:]))} pixels"
    from twofold.io.open import open_bytes

    with open_bytes(file) as text:
        lines = sum(bool(line.strip()) for line in text)
    return f"text, {count(lines, 'line')}"


def describe_table(inputs: list[str], commands: list[tuple[str, str]], quoted: str) -> dict[str, Any]:
    """Say what the columns are, how many cells are blank, and which verbs fit."""
    from twofold.io.tables.read import read_table
    from twofold.io.tables.roles import CODED
    from twofold.io.tables.table import say_roles

    table = read_table(inputs)
    columns: list[dict[str, Any]] = []
    blanks, what = 0, f"{count(len(table.columns), 'column')} of numbers"
    if table.frame is not None:
        columns = [describe_column(column, table.frame[column.name]) for column in table.schema]
        blanks = sum(table.frame[column.name].null_count() for column in table.schema if column.role != "constant")
        what = f"{count(table.frame.height, 'row')}, {count(table.frame.width, 'column')}, "
        what += count(blanks, "blank cell") if blanks else "no blank cell"
    rows = len(table.frame) if table.frame is not None else MIN_ROWS
    fits = ("cluster", "reduce") if rows >= MIN_ROWS and any(c.role in CODED for c in table.schema) else ()
    own = [(f"twofold {verb} {quoted}", ABOUT[verb]) for verb in fits]
    if blanks:
        own.append((f"twofold complete {quoted} -o filled.csv", ABOUT["complete"]))
    texts = [column.name for column in table.schema if column.role == "text"]
    if texts and not commands:
        own.append((f"twofold topics {quoted} --text {shlex.quote(texts[0])}", ABOUT["topics"]))
    roles = say_roles(table.schema, None if table.ids is None else table.ids.name)  # which the columns show
    said = [note for note in table.notes if note not in [*table.aside, *roles]]
    return {"what": what, "columns": columns, "commands": [*commands, *own], "notes": said}


def describe_column(column: Any, cells: pl.Series) -> dict[str, Any]:
    """Say what a column is, and which values it has."""
    blanks, known = cells.null_count(), cells.drop_nulls()
    if column.levels and not cells.dtype.is_numeric():
        more = len(column.levels) - MAX_LEVELS_SHOWN
        values = ", ".join(column.levels[:MAX_LEVELS_SHOWN]) + (f" and {more} more" if more > 0 else "")
    elif not len(known):
        values = ""
    elif cells.dtype.is_numeric() or cells.dtype.is_temporal():
        low, high = (f"{end:.6g}" if isinstance(end, float) else str(end) for end in (known.min(), known.max()))
        values = low if low == high else f"{low} to {high}"
    else:
        first = " ".join(str(known[0]).split())[:40]
        values = first if column.role == "constant" else f"{first}, ..."
    share = f"{blanks:,} ({blanks / len(cells):.0%})" if blanks else ""
    return {"column": column.name, "role": column.role, "blanks": share, "values": values}
