"""What the verbs for pictures share: their options, reading, progress, and how results are told and written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as Grid

from twofold.analyses._html_report import page
from twofold.cli._console import Writer, check_target, check_targets, print_json, say, stdout, waiting, write_all
from twofold.core.checks import InputError
from twofold.io.images import ENDINGS, READ, Picture, check_holds, encode_image

TAKES = f"A picture: {READ}; or - for stdin."
COMPARE = "Before and after in one picture (.png) or page (.html)."
DRAWN = (".png", ".html")

Source = Annotated[str, typer.Argument(metavar="INPUT", help=TAKES)]
Out = Annotated[list[Path] | None, typer.Option("-o", "--out", metavar="FILE", help="The picture; repeatable.")]
Compare = Annotated[Path | None, typer.Option(metavar="FILE", help=COMPARE)]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seed of everything random.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only.")]

Fraction = Callable[[float], None]


@dataclass
class Outcome:
    """What a verb found: a heading, a table, closing lines, the same for machines, and choices made on the way."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    lines: Sequence[str]
    facts: dict[str, Any]
    notes: list[str] = field(default_factory=list)


def check_outputs(
    out: Sequence[Path], compare: Path | None, force: bool, inputs: Sequence[str], endings: Sequence[str] = ENDINGS
) -> None:
    """Refuse at once what could not be written."""
    check_targets(out, endings, force, inputs)
    if compare is None:
        return
    if compare in out:
        raise InputError(f"{compare} is named twice. Give each output its own file.")
    if compare.suffix.lower() not in DRAWN:
        raise InputError(
            f"--compare {compare}: a comparison is drawn as .png or .html; end the name with one of these."
        )
    check_target(compare, force, inputs)


def check_pictures(out: Sequence[Path], picture: Picture) -> None:
    """Refuse, before anything is computed, a format that cannot hold what this picture has."""
    for path in out:
        try:
            check_holds(path.suffix.lower(), picture.pixels, picture.alpha)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def picture_writer(path: Path, picture: Picture) -> Writer:
    data = encode_image(path.suffix, picture.pixels, picture.alpha, picture.info.get("icc_profile"))
    return lambda to: void(to.write_bytes(data))


def figure_writer(path: Path, figure: Any, outcome: Outcome) -> Writer:
    """A figure as a picture, or with the table as a page that needs no other file."""
    from twofold.plots.style import as_png

    drawn = as_png(figure)
    if path.suffix.lower() == ".png":
        return lambda to: void(to.write_bytes(drawn))
    lead = " ".join(f"{line[:1].upper()}{line[1:]}." for line in outcome.lines)
    text = page(outcome.title, lead, drawn, outcome.head, outcome.rows, outcome.notes)
    return lambda to: void(to.write_text(text, encoding="utf-8"))


def void(_: Any) -> None:
    """For writers, which return nothing."""


def deliver(outcome: Outcome, writers: dict[Path, Writer], as_json: bool, quiet: bool) -> None:
    """Write all files or none, then tell the results."""
    say(outcome.notes, quiet)
    with waiting("writing", quiet or not writers):
        write_all(writers)
    written = [str(path) for path in writers]
    if as_json:
        print_json(outcome.facts | {"notes": outcome.notes, "written": written})
        return
    console = stdout()
    console.print(outcome.title, style="bold")
    grid = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for i, name in enumerate(outcome.head):
        grid.add_column(name, justify="right" if i else "left", no_wrap=True)
    for row in outcome.rows:
        grid.add_row(*row)
    console.print(grid)
    for line in outcome.lines:
        console.print(line, soft_wrap=True)
    say([f"wrote {', '.join(written)}"] if written else [], quiet)


def size_line(picture: Picture) -> str:
    """What the picture is, in a few words."""
    h, w = picture.pixels.shape[:2]
    kind = "colour" if picture.pixels.ndim == 3 else "grey"
    deep = ", 16 bits" if picture.peak > 255 else ""
    return f"{picture.source}: {w:,} × {h:,} pixels, {kind}{deep}{', with transparency' if has_alpha(picture) else ''}"


def has_alpha(picture: Picture) -> bool:
    return picture.alpha is not None and bool(picture.alpha.min() < picture.peak)


def size_facts(picture: Picture) -> dict[str, Any]:
    h, w = picture.pixels.shape[:2]
    return {
        "input": picture.source,
        "width": w,
        "height": h,
        "channels": 3 if picture.pixels.ndim == 3 else 1,
        "bits": 8 * picture.pixels.dtype.itemsize,
        "transparency": has_alpha(picture),
    }


def decibels(value: float) -> str:
    return f"{value:.2f} dB" if np.isfinite(value) else "exact"


@contextmanager
def fraction_bar(doing: str, quiet: bool) -> Iterator[Fraction | None]:
    """A live bar on stderr, moved by calling it with the share that is done; None when nobody is looking."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=1.0)
        yield lambda share: bar.update(task, completed=share)
