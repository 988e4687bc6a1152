"""Options that verbs share beside those of their analysis: where results go, and which cluster reads."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def spell_option(name: str, value: str | None) -> str:
    """A parameter as the command line writes it.

    >>> spell_option("missing", "99"), spell_option("names_id", None), spell_option("scale", "False")
    ('--missing 99', '--names-id', '--no-scale')
    """
    option = f"--{name.replace('_', '-')}"
    if value in ("True", "False"):
        return option if value == "True" else f"--no-{option[2:]}"
    return option if value is None else f"{option} {shlex.quote(value)}"


DASH = "\0-"  # stands for the argument "-", standard input, which the parser takes for an option


def protect_dash(token: str) -> str:
    return DASH if token == "-" else token


def restore_dash(value: str | list[str]) -> str | list[str]:
    """The argument or arguments with "-" in its place."""
    return [one.replace(DASH, "-") for one in value] if isinstance(value, list) else value.replace(DASH, "-")


def option(*names: str, text: str, unit: str = "") -> Parameter:
    """An option with its help line; flags have no --no-... form."""
    return Parameter(name=names, help=text, negative=(), allow_leading_hyphen=bool(unit), show_default=False)


Save = Annotated[Path | None, option("--save", text="Save the fitted model (.twofold).", unit="FILE")]
Compare = Annotated[
    Path | None, option("--compare", text="Show before and after side by side: .png or .html.", unit="FILE")
]
SafeCsv = Annotated[
    bool, option("--safe-csv", text="In .csv and .tsv, put ' before text that a spreadsheet would take for a formula.")
]
AsJson = Annotated[bool, option("--json", text="Print the results as JSON.")]
Force = Annotated[bool, option("--force", text="Replace files that exist.")]
Quiet = Annotated[bool, option("--quiet", "-q", text="Print results only, no notes and no progress.")]
Cluster = Annotated[
    str | None,
    option("--cluster", text="Dask scheduler whose workers read files that are streamed.", unit="ADDRESS"),
]
Workers = Annotated[
    int | None, option("--workers", text="Start N worker processes, which read files that are streamed.", unit="N")
]
Seed = Annotated[int, option("--seed", text="Seed of all random numbers.", unit="N")]


def out(endings: tuple[str, ...]) -> Parameter:
    """The option -o of a verb, whose help names the endings it can write."""
    kinds = " ".join(dict.fromkeys(ending for ending in endings if ending != ".twofold"))
    return option("--out", "-o", text=f"Result file, written by its ending: {kinds}; repeatable.", unit="FILE")
