"""What every verb shares: saying things, checking where results may go, writing them whole or not at all."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import rich
from rich.console import Console

from twofold.core.checks import InputError
from twofold.io.tables.table import Table, unique_names
from twofold.io.writable import check_writable

Writer = Callable[[Path], None]


def say(notes: Iterable[str], quiet: bool = False) -> None:
    """Choices made on the user's behalf: one line each, on stderr."""
    if not quiet:
        console = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)
        for note in notes:
            console.print(f"· {note}", style="dim")


def stdout() -> Console:
    """The console for results. Markup is off: column names may hold square brackets."""
    return Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else 100)


@contextmanager
def waiting(doing: str, quiet: bool) -> Iterator[None]:
    """A spinner on stderr while something without a bar goes on; nothing when nobody is looking."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(doing):
        yield


def bar(share: float, width: int) -> str:
    """A bar of text, exact to an eighth of a character."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    return "█" * (eighths // 8) + ("", *"▏▎▍▌▋▊▉")[eighths % 8]


def progress(quiet: bool) -> list[Any]:
    """A live progress bar on stderr as a callback for `fit`; none when nobody is looking."""
    if quiet or not sys.stderr.isatty():
        return []
    from twofold.core.callbacks import ProgressBar

    rich.reconfigure(stderr=True)  # the bar draws on rich's own console, which writes to stdout unless told
    return [ProgressBar()]


def print_json(value: Any) -> None:
    print(json.dumps(plain(value), ensure_ascii=False, indent=2))


def plain(value: Any) -> Any:
    """The value in types that JSON has; numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (str, int, bool, type(None))) else str(value)


def check_targets(paths: Sequence[Path], endings: Sequence[str], force: bool, inputs: Sequence[str] = ()) -> None:
    """Refuse, before anything is computed, every output that could not or should not be written."""
    for path in paths:
        if path.suffix.lower() not in endings:
            raise InputError(f"{path}: results are written as {', '.join(endings)}; end the name with one of these.")
        if paths.count(path) > 1:
            raise InputError(f"{path} is named twice. Give each output its own file.")
        check_target(path, force, inputs)


def check_target(path: Path, force: bool, inputs: Sequence[str] = ()) -> None:
    check_writable(path, force=force, inputs=inputs)


def check_save(save: Path, out: Sequence[Path], force: bool, inputs: Sequence[str]) -> None:
    if save in out:
        raise InputError(f"{save} is named twice. Give each output its own file.")
    if save.suffix != ".twofold":
        raise InputError(f"--save {save}: a model file ends in .twofold. Name it so, or use -o for results.")
    check_target(save, force, inputs)


def beside(table: Table, results: Mapping[str, np.ndarray]) -> pl.DataFrame:
    """Row names and the columns set aside, then the results."""
    kept = [*([table.ids] if table.ids is not None else []), *table.others.iter_columns()]
    names, _ = unique_names([c.name for c in kept] + list(results))
    parts = [*kept, *(pl.Series(values) for values in results.values())]
    return pl.DataFrame([part.alias(name) for part, name in zip(parts, names, strict=True)])


def table_writer(ending: str, frame: pl.DataFrame) -> Writer:
    """Writes the frame as the ending says."""
    if ending == ".parquet":
        return frame.write_parquet
    return lambda to: frame.write_csv(to, separator="\t" if ending == ".tsv" else ",")
