"""`twofold sense`: an image or signal measured fewer times than it has numbers, and recovered from that."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from twofold.analyses.common.images import as_image, check_formats
from twofold.analyses.sense import KINDS, SIGNALS, SensedImage, SensedSignals, Sensing, is_table
from twofold.analyses.sense import sense as analyze
from twofold.cli import _options as options
from twofold.cli._run import Output, run
from twofold.core.progress import doing
from twofold.io.images import READ

TAKES = f"An image ({READ}), or signals: a column each of CSV, TSV, Parquet; rows of .npy."
SHARE = "Measurements, as a share of the numbers there are."
KIND = f"What is measured: {', '.join(KINDS)}. Default: fourier for images, hadamard for signals."
RESULTS = f"What was recovered: an image, or signals as {' '.join(SIGNALS)}; or a report as .html. Repeatable."
HINT = "nothing is written; -o keeps what was recovered, --compare both.png shows it"


def sense(
    source: Annotated[str, typer.Argument(metavar="INPUT", help=TAKES)],
    fraction: Annotated[float, typer.Option(min=0, max=1, metavar="F", help=SHARE)] = 0.3,
    kind: Annotated[str | None, typer.Option(metavar="NAME", help=KIND)] = None,
    out: Annotated[list[Path] | None, typer.Option("-o", "--out", metavar="FILE", help=RESULTS)] = None,
    compare: options.Compare = None,
    safe_csv: options.SafeCsv = False,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    output = Output(out or [], None, as_json, force, quiet, compare, safe_csv)

    def analysis() -> Sensing:
        data: Any = source
        if not is_table(source):
            with doing("reading"):
                data = as_image(source)
                check_formats(output.out, data)
        return analyze(data, fraction=fraction, kind=kind, seed=seed)

    run(analysis, output, SensedSignals if is_table(source) else SensedImage, [source], HINT)
