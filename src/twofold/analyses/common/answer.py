"""The answer of an analysis: what was found, how good it is, and how it came about.

Every verb of the command line is a function here, and each returns a kind of `Answer`:

    answer.table      the result, a polars frame
    answer.figures    how good it is, measured on data held out where that is possible
    answer.baseline   the same figures of a trivial method
    answer.notes      choices made on the user's behalf, a sentence each
    answer.model      the fitted estimator
    answer.code       the Python that gives the same answer
    answer.plot()     a matplotlib figure
    answer.save(...)  files, by their endings

A kind of answer says what it is (`heading`, `outcome`), what is shown (`grids`, `lines`) and what a program gets
(`facts`); this class turns that into text for a terminal, a page of HTML, and files.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from twofold import __version__
from twofold.analyses.common.analysis import write_argument
from twofold.analyses.common.tables import append_columns
from twofold.analyses.common.targets import Writer, check_targets
from twofold.core.declaration import REQUIRED, read_parameters
from twofold.core.files.atomic import write_all
from twofold.core.printable import plain, printable
from twofold.io.tables.formulas import escape_formulas
from twofold.io.tables.write import COMMAS, TEXTS, Dialect, write_frame, write_frames

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.segment import Segment
    from rich.table import Table as RichTable

FRAMES = (".csv", ".tsv", ".xlsx", ".parquet")
DRAWN = (".png", ".html")
ROWS_AT_ONCE = 100_000  # of a table that is too large for memory
WIDTH = 100  # characters of an answer that is printed elsewhere than on a terminal
BAR = 12  # characters


@dataclass
class Grid:
    """A small table to look at. Cells are text; a number from 0 to 1 is drawn as a bar."""

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    right: Sequence[int] = ()  # columns that are aligned to the right
    most: int = 20  # rows shown on a terminal
    rest: str = "rows"  # what the rows beyond are called


@dataclass(kw_only=True, repr=False, eq=False)
class Answer:
    """What every analysis returns.

    Parameters
    ----------
    source : str
        What the data is called: a file's name, or "the table".
    model : estimator or None
        The fitted model, which `save` writes and `twofold.load` reads.
    figures, baseline : dict
        Measurements of the result, and the same of a trivial method, by the same names.
    notes : list of str
        Choices made on the user's behalf.
    chosen : dict
        Values that the analysis used for parameters which the caller left open; None stands for a variable.
    seconds : float
        How long it took.
    safe_csv : bool
        Whether `save` puts an apostrophe before text in `.csv` and `.tsv` files that a spreadsheet would take for a
        formula.
    """

    source: str
    model: Any = None
    figures: dict[str, Any] = field(default_factory=dict)
    baseline: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    chosen: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    safe_csv: bool = False
    call: dict[str, Any] = field(default_factory=dict, init=False)  # "verb" and all arguments, as `analysis` saw them

    endings: ClassVar[tuple[str, ...]] = (*FRAMES, *DRAWN, ".twofold")
    compares: ClassVar[bool] = False  # whether `save` takes a file for a figure of before and after
    streams: ClassVar[bool] = False  # whether files are made block by block as they are written
    beside: ClassVar[tuple[str, ...]] = ()  # further frames by their names, written beside the table: NAME_words.csv

    # --- what a kind of answer says -------------------------------------------------------------------------

    @classmethod
    def fits(cls, data: Any) -> bool:
        """True if an analysis of this data gives this kind of answer, where it gives several."""
        return True

    @property
    def hint(self) -> str:
        """Say how to keep the answer, where no file is written. "" if it is complete on a terminal."""
        return ""

    @property
    def heading(self) -> str:
        """Name what was analyzed, in a few words."""
        return self.source

    @property
    def outcome(self) -> str:
        """Say what came of it, in a few words."""
        return ""

    @property
    def title(self) -> str:
        """Write both on one line."""
        return f"{self.heading} → {self.outcome}" if self.outcome else self.heading

    @cached_property
    def table(self) -> pl.DataFrame:
        """Return the result, as it is written to files."""
        return pl.DataFrame()

    def grids(self) -> list[Grid]:
        """Return the tables to look at."""
        return []

    def lines(self) -> list[str]:
        """Return sentences below the tables: first of all how good the result is."""
        return []

    def facts(self) -> dict[str, Any]:
        """Return the values for programs; figures, baseline, notes and seconds are added."""
        return {}

    def plot(self) -> Figure:
        """Draw the result as a matplotlib figure."""
        raise NotImplementedError(f"{type(self).__name__} has no figure")

    def writer(self, path: Path) -> Writer:
        """Return the function that writes this answer as the file's ending says."""
        ending = path.suffix.lower()
        if ending == ".twofold":
            return self.model.save
        if ending == ".png":
            picture = self.picture
            return lambda to: to.write_bytes(picture)
        if ending == ".html":
            text = self.to_html()
            return lambda to: to.write_text(text, encoding="utf-8")
        if ending in FRAMES and (frames := self.stream_frames()) is not None:
            return lambda to: write_frames(frames, to, self.dialect)
        return frame_writer(ending, self.table, self.safe_csv, self.dialect)

    @property
    def dialect(self) -> Dialect:
        """Return how the text of the input was written; results are written the same way."""
        return getattr(getattr(self, "data", None), "dialect", COMMAS)

    def stream_frames(self) -> Iterator[pl.DataFrame] | None:
        """Columns of an input that is too large for memory, and the results beside them, some rows at a time."""
        path = getattr(getattr(self, "data", None), "numbers", None)
        if not isinstance(path, Path) or path.suffix.lower() not in (".parquet", ".pq") or not path.is_file():
            return None
        return (
            append_columns(pl.scan_parquet(path).slice(start, ROWS_AT_ONCE).collect(), part.to_dict())
            for start in range(0, self.table.height, ROWS_AT_ONCE)
            for part in [self.table.slice(start, ROWS_AT_ONCE)]
        )

    # --- what follows from it -------------------------------------------------------------------------------

    @property
    def code(self) -> str:
        """Write the Python that gives the same answer, with every choice that was made."""
        from twofold import analyses

        call = dict(self.call)
        verb = call.pop("verb")
        parameters = read_parameters(getattr(analyses, verb))
        options = []
        for name, value in call.items():
            if parameters[name].default is REQUIRED:
                options.append(write_argument(name, value))
            elif value is not None and not (isinstance(value, (list, tuple, dict)) and not value):
                options.append(f"{name}={write_argument(name, value)}")
        line = f"answer = analyses.{verb}({', '.join(options)})"
        if len(line) > 100:
            line = f"answer = analyses.{verb}(\n    " + ",\n    ".join(options) + ",\n)"
        return f"from twofold import analyses\n\n{line}\nprint(answer)\n"

    @cached_property
    def picture(self) -> bytes:
        """Return the figure as the bytes of a PNG file."""
        from twofold.plots.style import as_png

        return as_png(self.plot())

    def save(self, *paths: str | os.PathLike, force: bool = False) -> None:
        """Write the answer to files by their endings: all of them, whole, or none.

        Parameters
        ----------
        *paths : path
            `.csv`, `.tsv`, `.xlsx` and `.parquet` hold the table, `.png` the figure, `.html` a report, `.twofold` the
            model.
        force : bool
            Whether files that exist are replaced.
        """
        files = [Path(path) for path in paths]
        check_targets(self.list_files(files), self.endings, force)
        writers = {file: self.writer(file) for file in files}
        for file in files:
            frames = zip(self.beside, self.list_files([file])[1:], strict=False)
            ending = file.suffix.lower()
            writers |= {path: frame_writer(ending, getattr(self, name), self.safe_csv) for name, path in frames}
        write_all(writers)

    @classmethod
    def list_files(cls, files: Sequence[Path]) -> list[Path]:
        """List every file that is written where these are asked for."""
        out = []
        for file in files:
            names = cls.beside if file.suffix.lower() in FRAMES else ()
            out += [file, *(file.with_name(f"{file.stem}_{name}{file.suffix}") for name in names)]
        return out

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the table and the model, in types that JSON has."""
        last = {"figures": self.figures, "baseline": self.baseline, "notes": self.notes}
        return plain({"input": self.source, **self.facts(), **last, "seconds": round(self.seconds, 3)})

    def to_html(self) -> str:
        """Write a page that needs no other file."""
        return self._render("report.html", base64.b64encode(self.picture).decode())

    def _repr_html_(self) -> str:
        return self._render("fragment.html")  # without the figure: a notebook draws it when asked

    def _render(self, name: str, picture: str = "") -> str:
        return template(name, "twofold.analyses.common").render(answer=self, picture=picture, version=__version__)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        yield Text(self.title, style="bold")
        for i, grid in enumerate(self.grids()):
            if i:
                yield Text("")
            yield rich_table(grid)
            if len(grid.rows) > grid.most:
                yield Text(f"... and {len(grid.rows) - grid.most:,} more {grid.rest}")
        for line in self.lines():
            yield Text(line)

    def __repr__(self) -> str:
        with StringIO() as text:
            console(file=text, width=WIDTH, color_system=None).print(self)
            return text.getvalue().rstrip()


def template(name: str, package: str) -> Any:
    """Load a template of a package, in which text is escaped."""
    from jinja2 import Environment, PackageLoader

    loader = PackageLoader(package, "templates")
    return Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True).get_template(name)


def console(**options: Any) -> Console:
    """Make a console that prints text as it is, but for control characters: names from files may hold any."""
    from rich.console import Console
    from rich.segment import Segment

    class Plain(Console):
        def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else printable(text), style, control)

    return Plain(markup=False, highlight=False, force_jupyter=False, **options)  # it would display text by itself


def rich_table(grid: Grid) -> RichTable:
    """Make the grid for a terminal. Cells are plain text: names may hold square brackets."""
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for j, name in enumerate(grid.head):
        numbers = j in grid.right
        table.add_column(Text(name), justify="right" if numbers else "left", no_wrap=numbers or j + 1 < len(grid.head))
    for row in grid.rows[: grid.most]:
        table.add_row(*(Text(bar(cell, BAR) if isinstance(cell, float) else cell) for cell in row))
    return table


def bar(share: float, width: int) -> str:
    """Draw a bar of text, exact to an eighth of a character."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    return "█" * (eighths // 8) + ("", *"▏▎▍▌▋▊▉")[eighths % 8]


def frame_writer(ending: str, frame: pl.DataFrame, safe: bool = False, dialect: Dialect = COMMAS) -> Writer:
    """Return the writer of a frame by its ending; `safe` keeps spreadsheets from taking text for formulas."""
    frame = escape_formulas(frame) if safe and ending in TEXTS else frame
    return lambda to: write_frame(frame, to, ending, dialect)


def count(number: int, thing: str) -> str:
    """Write "1 row", "1,200 rows"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def strongest(
    weights: np.ndarray, names: Sequence[str], limit: int = 4, minimum: float = 0.0
) -> list[tuple[str, float]]:
    """Return the names of the largest weights: at least half the largest, and at least `minimum`."""
    order = np.argsort(-np.abs(weights), kind="stable")[:limit]
    bound = max(minimum, abs(weights[order[0]]) / 2) if len(order) else 0.0
    return [(names[j], float(weights[j])) for j in order if abs(weights[j]) >= bound]
