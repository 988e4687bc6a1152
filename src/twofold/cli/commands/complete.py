"""`twofold complete`: the blanks of a table filled, everything else as it was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table as Grid

from twofold.analyses._html_report import page
from twofold.cli._console import (
    check_save,
    check_targets,
    print_json,
    say,
    stdout,
    table_writer,
    waiting,
    write_all,
)
from twofold.core.checks import InputError
from twofold.io.tables.csv_fill import Source, as_frame, as_text, read_source, style_of

if TYPE_CHECKING:
    from twofold.analyses.complete import Filling

ENDINGS = (".csv", ".tsv", ".parquet", ".npy", ".png", ".html")
METHODS = ("means", "ppca", "factors", "gaussian")
TAKES = "CSV, TSV, Parquet, JSONL, .npy, .npz, file.db::table, or - for stdin."
METHOD = "means, ppca, factors (factor analysis) or gaussian. Default: the best on hidden cells."
RESULTS = "The filled table, by ending: .csv .tsv .parquet .npy; or .png .html; repeatable."
UNCERTAINTY = "Add a column NAME_sd, the standard deviation of each guess, for every filled column."
KEEP = "Leave a column as it is, and out of the model; repeatable."
MOST_SHOWN = 20  # columns in the printed table


def complete(
    source: Annotated[str, typer.Argument(metavar="INPUT", help=TAKES)],
    out: Annotated[list[Path] | None, typer.Option("-o", "--out", metavar="FILE", help=RESULTS)] = None,
    uncertainty: Annotated[bool, typer.Option("--uncertainty", help=UNCERTAINTY)] = False,
    method: Annotated[str | None, typer.Option(metavar="NAME", help=METHOD)] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the model (.twofold).")] = None,
    na: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="A text for blanks; repeatable.")] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help=KEEP)] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of everything random.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print results only.")] = False,
) -> None:
    if method not in (None, *METHODS):
        raise InputError(f"--method {method}: choose {', '.join(METHODS[:-1])} or {METHODS[-1]}.")
    check_targets(out or [], ENDINGS, force, [source])
    if save is not None:
        check_save(save, out or [], force, [source])
    with waiting("reading", quiet):
        read = read_source(source, na or (), drop or ())
        from twofold.analyses.complete import analyse  # takes seconds to import: bad input is told before
    found = analyse(read.table, method, seed, quiet)
    targets: dict[Path, Any] = {path: writer(path, found, read, uncertainty, na or []) for path in out or []}
    say(found.notes, quiet)
    with waiting("writing", quiet or not (out or save)):
        write_all(targets | ({save: found.model.save} if save else {}))
    written = [str(path) for path in [*targets, *([save] if save else [])]]
    if as_json:
        print_json(summary(found) | {"written": written})
    else:
        show(found, read)
        say([f"wrote {', '.join(written)}"] if written else [], quiet)


def writer(path: Path, found: Filling, read: Source, uncertainty: bool, na: list[str]) -> Any:
    """The function that writes the result as the file's ending says."""
    ending = path.suffix.lower()
    if ending in (".png", ".html"):
        from twofold.plots.style import as_png

        picture = as_png(figure(found))
        return (
            (lambda to: to.write_bytes(picture)) if ending == ".png" else (lambda to: report(to, found, read, picture))
        )
    if ending == ".npy":
        return lambda to: np.save(to, found.filled)
    std = found.std if uncertainty else None
    if read.text is not None and ending in (".csv", ".tsv"):
        if (ending == ".tsv") == (read.text.delimiter == "\t"):
            data = as_text(read, found.filled, found.blank, std, na)
            return lambda to: to.write_bytes(data)
        found.notes.append(f"{path} is written anew: {read.table.source} has other delimiters")
    return table_writer(ending, as_frame(read, found.filled, found.blank, std))


def figure(found: Filling) -> Any:
    from twofold.plots.reports.complete import filling_figure

    return filling_figure(found.filled, found.blank, found.table.columns, found.tried, found.chosen.label, title(found))


def title(found: Filling) -> str:
    n, d = found.filled.shape
    return f"{found.table.source}: {n:,} rows, {d:,} column{'s' if d > 1 else ''} of numbers"


def by_model(found: Filling) -> str:
    count = int(found.blank.sum())
    if not count:
        return "no blank to fill"
    share = count / found.blank.size
    return f"{count:,} blank{'s' if count > 1 else ''} ({share:.1%} of the cells) filled by {found.chosen.label}"


def held_out_line(found: Filling, uncertainty: bool = True) -> str:
    """The held-out figure as a sentence."""
    held = found.held_out
    if not held:
        return "held out: nothing, the table is too small"
    line = (
        f"held out: {held['cells']:,} known cells were hidden and filled in; error {held['rmse']:.2f} standard "
        f"deviations of their columns, column means give {held['rmse_column_means']:.2f}"
    )
    return line + (f"; {held['within_two_sd']:.0%} lie within two of the stated sd" if uncertainty else "")


def rows_of(found: Filling, read: Source) -> list[list[str]]:
    """One row for each column that had blanks: how many, what they became, how good that is."""
    order = sorted(np.flatnonzero(found.blank.any(axis=0)), key=lambda j: -found.blank[:, j].sum())
    out = []
    for j in order:
        name, holes = found.table.columns[j], found.blank[:, j]
        guess = found.filled[holes, j]
        text = read.piece is not None and str(read.piece.frame[name].dtype) == "String"
        style = style_of(read.piece.frame[name], ~holes) if text and read.piece is not None else None
        low, high = ((f"{v:.4g}" if style is None else style.write(v)) for v in (guess.min(), guess.max()))
        error = found.errors[j]
        out.append(
            [
                name,
                f"{holes.sum():,}",
                f"{holes.mean():.0%}",
                low if low == high else f"{low} to {high}",
                "" if np.isnan(error) else f"{error:.2f} sd",
            ]
        )
    return out


HEAD = ["column", "blanks", "share", "filled with", "error"]


def show(found: Filling, read: Source) -> None:
    """The short table on stdout."""
    console = stdout()
    console.print(f"{title(found)} → {by_model(found)}", style="bold")
    rows = rows_of(found, read)
    if rows:
        grid = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for name, side in zip(HEAD, ("left", "right", "right", "left", "right"), strict=True):
            grid.add_column(name, justify=side, no_wrap=name != "column")  # type: ignore[arg-type]
        for row in rows[:MOST_SHOWN]:
            grid.add_row(*row)
        console.print(grid)
        if len(rows) > MOST_SHOWN:
            console.print(f"... and {len(rows) - MOST_SHOWN} more columns")
        console.print(held_out_line(found), soft_wrap=True)


def summary(found: Filling) -> dict[str, Any]:
    """What --json prints."""
    n, d = found.filled.shape
    columns = [
        {
            "column": found.table.columns[j],
            "blanks": found.blank[:, j].sum(),
            "error": found.errors[j],
        }
        for j in np.flatnonzero(found.blank.any(axis=0))
    ]
    return {
        "input": found.table.source,
        "rows": n,
        "columns": d,
        "blank_cells": found.blank.sum(),
        "method": found.chosen.method,
        "model": type(found.model).__name__,
        "filled": columns,
        "tried": found.tried,
        "held_out": found.held_out,
        "notes": found.notes,
        "seconds": round(found.seconds, 3),
    }


def report(to: Path, found: Filling, read: Source, picture: bytes) -> None:
    """A page that needs no other file."""
    lead = f"{by_model(found)}. {held_out_line(found).capitalize()}."
    to.write_text(page(title(found), lead, picture, HEAD, rows_of(found, read), found.notes), encoding="utf-8")
