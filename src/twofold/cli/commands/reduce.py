"""`twofold reduce`: the main directions of a table, and every row's place along them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl
import typer
from rich.table import Table as Grid

from twofold.analyses._html_report import page
from twofold.cli._console import (
    bar,
    beside,
    check_save,
    check_targets,
    print_json,
    progress,
    say,
    stdout,
    table_writer,
    waiting,
    write_all,
)
from twofold.core.checks import InputError
from twofold.io.tables.read import read_table

if TYPE_CHECKING:
    from twofold.analyses.reduce import Reduction

RULES = ("knee", "mle", "gavish-donoho", "parallel")
ENDINGS = (".csv", ".tsv", ".parquet", ".npy", ".png", ".html")
TAKES = "CSV, TSV, Parquet, JSONL, .npy, .npz, .mtx, file.db::table, a folder, a glob, or - for stdin."
COUNT = f"Components: a count, a share of the variance (0.95), or {', '.join(RULES)}."
RESULTS = "Results, by ending: .csv .tsv .parquet .npy .png .html; repeatable."
SCALE = "Standardise columns or not. Default: if named columns differ 10-fold in spread."
MOST_SHOWN = 20  # components in the printed table


def reduce(
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT", help=TAKES)],
    components: Annotated[str | None, typer.Option("-k", "--components", metavar="K", help=COUNT)] = None,
    out: Annotated[list[Path] | None, typer.Option("-o", "--out", metavar="FILE", help=RESULTS)] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the model (.twofold).")] = None,
    scale: Annotated[bool | None, typer.Option("--scale/--no-scale", help=SCALE)] = None,
    na: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="A text for blanks; repeatable.")] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Leave it out; repeatable.")] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of everything random.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print results only.")] = False,
) -> None:
    k = parse_k(components)
    check_targets(out or [], ENDINGS, force, inputs)
    if save is not None:
        check_save(save, out or [], force, inputs)
    with waiting("reading", quiet):
        table = read_table(inputs, na or (), drop or ())
        from twofold.analyses.reduce import analyse  # takes seconds to import: bad input is told before
    found = analyse(table, k, scale, seed, progress(quiet))
    say(found.notes, quiet)
    with waiting("writing", quiet or not (out or save)):
        write_all({path: writer(path, found, seed) for path in out or []} | ({save: found.model.save} if save else {}))
    written = [str(path) for path in [*(out or []), *([save] if save else [])]]
    if as_json:
        print_json(summary(found) | {"written": written})
    else:
        show(found)
        say([f"wrote {', '.join(written)}"] if written else [], quiet)


def parse_k(text: str | None) -> int | float | str | None:
    """What -k says: a count, a share of the variance, or a rule."""
    if text is None or text in RULES:
        return text
    try:
        number = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if number >= 1 and number == int(number) and not text.endswith("%"):
        return int(number)
    if 0 < number < 1:
        return number
    raise InputError(f"-k {text}: give a count (3), a share of the variance (0.95), or a rule: {', '.join(RULES)}.")


def writer(path: Path, found: Reduction, seed: int) -> Any:
    """The function that writes the result as the file's ending says."""
    ending = path.suffix.lower()
    if ending in (".png", ".html"):
        from twofold.plots.style import as_png

        picture = as_png(figure(found, seed))
        return (lambda to: to.write_bytes(picture)) if ending == ".png" else (lambda to: report(to, found, picture))
    if ending == ".npy":
        return lambda to: np.save(to, found.scores)
    return table_writer(ending, beside(found.table, {f"PC{c + 1}": found.scores[:, c] for c in range(found.k)}))


def title(found: Reduction) -> str:
    return f"{found.table.source}: {len(found.scores):,} rows, {len(found.table.columns):,} columns of numbers"


def by_model(found: Reduction) -> str:
    return f"{found.k} component{'s' if found.k > 1 else ''} by {type(found.model).__name__}"


def figure(found: Reduction, seed: int) -> Any:
    from twofold.plots.reports.reduce import reduction_figure

    group = next(
        (c for c in found.table.others.iter_columns() if c.dtype == pl.String and 2 <= c.n_unique() <= 8),
        None,
    )
    return reduction_figure(
        found.ratios,
        found.k,
        found.scores,
        found.model.components_,
        found.table.columns,
        title=title(found),
        groups=None if group is None else group.fill_null("blank").to_list(),
        group_name="" if group is None else group.name,
        seed=seed,
    )


def held_out_line(found: Reduction) -> str:
    """The held-out figure as a sentence."""
    held = found.held_out
    if "rmse" in held:
        unit = " (standardised units)" if found.standardised else ""
        return (
            f"held out: {held['cells']:,} known cells were hidden and filled in; "
            f"error {held['rmse']:.3g}{unit}, column means give {held['rmse_column_means']:.3g}"
        )
    if "kept" in held:
        return (
            f"held out: of the variance in {held['rows']:,} rows not fitted, {held['kept']:.1%} is kept "
            f"({held['kept_in_fitted_rows']:.1%} in the fitted ones)"
        )
    return "held out: nothing, the table is too small"


def weights_line(found: Reduction, c: int) -> str:
    return "  ".join(f"{'+' if weight > 0 else '−'}{name}" for name, weight in found.strongest(c))


def show(found: Reduction) -> None:
    """The short table on stdout."""
    grid = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name, side in [("component", "left"), ("variance", "right"), ("", "left"), ("total", "right")]:
        grid.add_column(name, justify=side, no_wrap=True)  # type: ignore[arg-type]
    grid.add_column("columns that weigh most")
    total = np.cumsum(found.ratios)
    for c in range(min(found.k, MOST_SHOWN)):
        share = float(found.ratios[c])
        strip = bar(share / float(found.ratios[0]), 12)
        grid.add_row(f"PC{c + 1}", f"{share:.1%}", strip, f"{total[c]:.1%}", weights_line(found, c))
    console = stdout()
    console.print(f"{title(found)} → {by_model(found)}", style="bold")
    console.print(grid)
    if found.k > MOST_SHOWN:
        console.print(f"... and {found.k - MOST_SHOWN} more, {total[found.k - 1]:.1%} in all")
    console.print(held_out_line(found), soft_wrap=True)


def summary(found: Reduction) -> dict[str, Any]:
    """What --json prints."""
    total = np.cumsum(found.ratios)
    parts = [
        {
            "name": f"PC{c + 1}",
            "variance": found.ratios[c],
            "total": total[c],
            "weights": dict(found.strongest(c)),
        }
        for c in range(found.k)
    ]
    return {
        "input": found.table.source,
        "rows": len(found.scores),
        "columns": len(found.table.columns),
        "blank_cells": found.blanks,
        "model": type(found.model).__name__,
        "n_components": found.k,
        "standardised": found.standardised,
        "components": parts,
        "held_out": found.held_out,
        "notes": found.notes,
        "seconds": round(found.seconds, 3),
    }


def report(to: Path, found: Reduction, picture: bytes) -> None:
    """A page that needs no other file."""
    total = np.cumsum(found.ratios)
    rows = [[f"PC{c + 1}", f"{found.ratios[c]:.1%}", f"{total[c]:.1%}", weights_line(found, c)] for c in range(found.k)]
    head = ["component", "variance", "total", "columns that weigh most"]
    lead = f"{by_model(found)}. {held_out_line(found).capitalize()}."
    to.write_text(page(title(found), lead, picture, head, rows, found.notes), encoding="utf-8")
