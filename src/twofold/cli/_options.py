"""Options that several verbs share: one name, one meaning, one help line."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

TABLES = "CSV, TSV, Parquet, JSONL, Excel, .npy, .npz, .mtx, file.db::table, a folder, a pattern, or - (stdin)."

Image = Annotated[
    str, typer.Argument(metavar="INPUT", help="An image: PNG, JPEG, TIFF, WebP, BMP, GIF, PGM; or - for stdin.")
]
Tables = Annotated[list[str], typer.Argument(metavar="INPUT", help=TABLES)]
Save = Annotated[Path | None, typer.Option(metavar="FILE", help="Save the fitted model (.twofold).")]
Scale = Annotated[
    bool | None,
    typer.Option(
        "--scale/--no-scale",
        help="Divide columns by their standard deviations. Default: if named columns differ tenfold in spread.",
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option("--missing", "--na", metavar="VALUE", help="Text or number that means a missing value; repeatable."),
]
Drop = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Column to leave out; repeatable.")]
Columns = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Column to use, and no other but those named so; repeatable.")
]
Cluster = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler whose workers read files that are streamed.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Start N worker processes, which read files that are streamed.")
]
READING = {"missing": Missing, "drop": Drop, "columns": Columns}  # how a table is read
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seed for everything random.")]
Compare = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Show before and after side by side: .png or .html.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
SafeCsv = Annotated[
    bool,
    typer.Option("--safe-csv", help="In .csv and .tsv, put ' before text that a spreadsheet would take for a formula."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only, no notes and no progress.")]


def out(endings: tuple[str, ...], what: str = "Result file") -> typer.models.OptionInfo:
    """The option -o of a verb, whose help names the endings it can write."""
    kinds = " ".join(ending for ending in endings if ending != ".twofold")
    return typer.Option("-o", "--out", metavar="FILE", help=f"{what}, written by its ending: {kinds}. Repeatable.")


def spell_option(name: str, value: str | None) -> str:
    """A parameter as the command line writes it.

    >>> spell_option("missing", "99"), spell_option("names_id", None), spell_option("force", "True")
    ('--missing 99', '--names-id', '--force')
    """
    option = f"--{name.replace('_', '-')}"
    return option if value in (None, "True") else f"{option} {shlex.quote(value)}"
