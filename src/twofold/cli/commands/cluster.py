"""`twofold cluster`: which rows belong together, and what sets each group apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table as Grid

from twofold.analyses._html_report import page
from twofold.cli._console import (
    bar,
    beside,
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
from twofold.io.tables.read import read_table

if TYPE_CHECKING:
    from twofold.analyses.cluster import Clustering

ENDINGS = (".csv", ".tsv", ".parquet", ".png", ".html")
METHODS = ("kmeans", "mixture")
TAKES = "CSV, TSV, Parquet, JSONL, .npy, .npz, .mtx, file.db::table, a folder, a glob, or - for stdin."
COUNT = "Clusters. Default: 1 to 10, by BIC."
METHOD = "kmeans or mixture (of Gaussians). Default: kmeans; mixture if cells are blank."
RESULTS = "Results, by ending: .csv .tsv .parquet .png .html; repeatable."
SCALE = "Standardise columns or not. Default: if named columns differ 10-fold in spread."
MOST_SHOWN = 20  # clusters in the printed table


def cluster(
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT", help=TAKES)],
    clusters: Annotated[int | None, typer.Option("-k", "--clusters", min=1, metavar="N", help=COUNT)] = None,
    method: Annotated[str | None, typer.Option(metavar="NAME", help=METHOD)] = None,
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
    if method not in (None, *METHODS):
        raise InputError(f"--method {method}: choose {' or '.join(METHODS)}.")
    check_targets(out or [], ENDINGS, force, inputs)
    if save is not None:
        check_save(save, out or [], force, inputs)
    with waiting("reading", quiet):
        table = read_table(inputs, na or (), drop or ())
        from twofold.analyses.cluster import analyse  # takes seconds to import: bad input is told before
    found = analyse(table, clusters, method, scale, seed, quiet)
    if save and found.scale is not None and not found.soft:
        found.notes.append(
            "the model is saved as a GaussianMixture with fixed covariances, whose likeliest component is the nearest "
            "standardised centre: it takes rows in their own units"
        )
    say(found.notes, quiet)
    with waiting("writing", quiet or not (out or save)):
        write_all({path: writer(path, found, seed) for path in out or []} | ({save: found.model.save} if save else {}))
    written = [str(path) for path in [*(out or []), *([save] if save else [])]]
    if as_json:
        print_json(summary(found) | {"written": written})
    else:
        show(found)
        say([f"wrote {', '.join(written)}"] if written else [], quiet)


def writer(path: Path, found: Clustering, seed: int) -> Any:
    """The function that writes the result as the file's ending says."""
    ending = path.suffix.lower()
    if ending in (".png", ".html"):
        from twofold.plots.style import as_png

        picture = as_png(figure(found, seed))
        return (lambda to: to.write_bytes(picture)) if ending == ".png" else (lambda to: report(to, found, picture))
    second = "confidence" if found.soft else "distance"
    return table_writer(ending, beside(found.table, {"cluster": found.labels, second: found.sure}))


def figure(found: Clustering, seed: int) -> Any:
    from twofold.plots.reports.cluster import clustering_figure, plane

    centres = found.model.components_ if found.scale is None else found.model.components_ / found.scale
    at, where, shares = plane(found.sample, centres, seed)
    return clustering_figure(
        at,
        found.labels[found.drawn],
        where,
        found.profiles,
        found.table.columns,
        found.sizes,
        shares=shares,
        choice=None if found.choice is None else found.choice.rows(named=True),
        title=title(found),
    )


def title(found: Clustering) -> str:
    return f"{found.table.source}: {len(found.labels):,} rows, {len(found.table.columns):,} columns of numbers"


def by_model(found: Clustering) -> str:
    kind = f"a mixture of Gaussians ({found.model.covariance_type})" if found.soft else "k-means"
    return f"{found.k} cluster{'s' if found.k > 1 else ''} by {kind}"


def quality_line(found: Clustering) -> str:
    """The figures as a sentence."""
    parts = []
    if "silhouette" in found.quality:
        parts.append(f"silhouette {found.quality['silhouette']:.2f} (1 well apart, 0 touching)")
    if "stability" in found.quality:
        parts.append(f"fits to two halves of the rows agree to {found.quality['stability']:.2f} (1 fully, 0 by chance)")
    if not parts:
        return (
            "quality: one cluster is not told apart from anything" if found.k == 1 else "quality: too few rows to say"
        )
    return f"quality: {'; '.join(parts)}"


def words(found: Clustering, c: int) -> str:
    """What sets a cluster apart, as '+1.8 sd income'."""
    parts = [f"{name} {'+' if z > 0 else '−'}{abs(z):.1f} sd" for name, z in found.strongest(c)]
    return ", ".join(parts) or "like all rows"


def show(found: Clustering) -> None:
    """The short table on stdout."""
    grid = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name, side in [("cluster", "left"), ("rows", "right"), ("share", "right"), ("", "left")]:
        grid.add_column(name, justify=side, no_wrap=True)  # type: ignore[arg-type]
    grid.add_column("differs from all rows in")
    n, sizes = len(found.labels), found.sizes
    for c in range(min(found.k, MOST_SHOWN)):
        strip = bar(sizes[c] / sizes[0], 12)
        grid.add_row(str(c), f"{sizes[c]:,}", f"{sizes[c] / n:.0%}", strip, words(found, c))
    console = stdout()
    console.print(f"{title(found)} → {by_model(found)}", style="bold")
    console.print(grid)
    if found.k > MOST_SHOWN:
        console.print(f"... and {found.k - MOST_SHOWN} more, {sizes[MOST_SHOWN:].sum() / n:.0%} of the rows")
    console.print(quality_line(found), soft_wrap=True)


def summary(found: Clustering) -> dict[str, Any]:
    """What --json prints."""
    n, sizes = len(found.labels), found.sizes
    parts = [
        {
            "cluster": c,
            "rows": sizes[c],
            "share": sizes[c] / n,
            "centre": dict(zip(found.table.columns, found.model.components_[c], strict=True)),
            "differs": dict(found.strongest(c)),
        }
        for c in range(found.k)
    ]
    tried = [] if found.choice is None else found.choice.select("n_components", "covariance_type", "bic").to_dicts()
    return {
        "input": found.table.source,
        "rows": n,
        "columns": len(found.table.columns),
        "blank_cells": found.blanks,
        "method": "mixture" if found.soft else "kmeans",
        "model": type(found.model).__name__,
        "n_clusters": found.k,
        "standardised": found.scale is not None,
        "clusters": parts,
        "quality": found.quality,
        "tried": tried,
        "notes": found.notes,
        "seconds": round(found.seconds, 3),
    }


def report(to: Path, found: Clustering, picture: bytes) -> None:
    """A page that needs no other file."""
    n = len(found.labels)
    head = ["cluster", "rows", "share", "differs from all rows in"]
    rows = [[str(c), f"{size:,}", f"{size / n:.0%}", words(found, c)] for c, size in enumerate(found.sizes)]
    lead = f"{by_model(found)}. {quality_line(found).capitalize()}."
    to.write_text(page(title(found), lead, picture, head, rows, found.notes), encoding="utf-8")
