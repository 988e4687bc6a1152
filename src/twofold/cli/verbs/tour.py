"""`twofold tour`: every family on bundled data, as one HTML page."""

from __future__ import annotations

import importlib
import sys
import time
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from twofold.analyses.common.targets import check_targets
from twofold.cli import options
from twofold.core.files.atomic import write_all
from twofold.tour import EXTRAS, STATIONS, Station


def tour(
    *,
    out: Annotated[Path, options.option("--out", "-o", text="Page to write (.html).", unit="FILE")] = Path("tour.html"),
    force: options.Force = False,
    open_it: Annotated[bool, options.option("--open", text="Show the page in the browser.")] = False,
    seed: options.Seed = 0,
) -> None:
    """See every family at work on bundled data, as one HTML page."""
    check_targets([out], [".html"], force)
    start = time.perf_counter()
    done = [_visit(i, name, seed) for i, name in enumerate(STATIONS, 1) if _is_possible(i, name)]
    from twofold.tour.page import page

    text = page(done)
    write_all({out: lambda draft: draft.write_text(text, encoding="utf-8")})
    print(f"tour: {len(done)} of {len(STATIONS)} in {time.perf_counter() - start:.1f} s", file=sys.stderr)
    print(out)
    if open_it:
        webbrowser.open(out.resolve().as_uri())


def _is_possible(i: int, name: str) -> bool:
    """Check that what a station needs is installed; if not, a line on stderr says what that is."""
    package, extra = EXTRAS.get(name, ("numpy", ""))
    if find_spec(package) is not None:
        return True
    reason = f"left out, it needs {package}: pip install 'twofold[{extra}]'"
    print(f"tour: {i} of {len(STATIONS)}  {name}: {reason}", file=sys.stderr)
    return False


def _visit(i: int, name: str, seed: int) -> tuple[str, Station, float]:
    """Return a station's name, what it found and the seconds it took, with a line on stderr."""
    begin = time.perf_counter()
    print(f"tour: {i} of {len(STATIONS)}  {name} ...", end="", file=sys.stderr, flush=True)
    try:
        station = importlib.import_module(f"twofold.tour.{STATIONS[name]}").station(seed)
    except BaseException:
        print(file=sys.stderr)  # what is said of it begins a line of its own
        raise
    seconds = time.perf_counter() - begin
    print(f" {seconds:.1f} s", file=sys.stderr)
    return name, station, seconds
