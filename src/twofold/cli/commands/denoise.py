"""`twofold denoise`: the noise of an image or of signals taken away, their edges and textures left."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from twofold.analyses.common.answer import Answer
from twofold.analyses.common.images import as_image, check_formats
from twofold.analyses.common.signals import as_signals, check_sound, is_signal
from twofold.analyses.common.tables import Reading
from twofold.analyses.denoise import Denoised, DenoisedSignals
from twofold.analyses.denoise import denoise as analyze
from twofold.cli import _options as options
from twofold.cli._run import Output, run
from twofold.core.progress import doing
from twofold.io.images import READ

TAKES = f"An image ({READ}; - for stdin), or signals: .wav, or the columns of a table (CSV, Parquet, .npy, ...)."
SIGMA = "Standard deviation of the noise, in the input's units (images: 0 to 255). Default: estimated."
METHOD = "ksvd (learns a dictionary; images only), hard or soft (thresholds). Default: ksvd; hard for signals."
TRY = "First add noise of this standard deviation, and report how much comes back: a test of the method."
RESULTS = "Result, by its ending: an image; of signals .wav .npy .csv .tsv .parquet; .html for a report. Repeatable."


def denoise(
    source: Annotated[str, typer.Argument(metavar="INPUT", help=TAKES)],
    sigma: Annotated[float | None, typer.Option(min=0, metavar="S", help=SIGMA)] = None,
    method: Annotated[str | None, typer.Option(metavar="NAME", help=METHOD)] = None,
    add_noise: Annotated[float | None, typer.Option(min=0, metavar="S", help=TRY)] = None,
    columns: options.Columns = None,
    drop: options.Drop = None,
    missing: options.Missing = None,
    seed: options.Seed = 0,
    out: Annotated[list[Path] | None, typer.Option("-o", "--out", metavar="FILE", help=RESULTS)] = None,
    compare: options.Compare = None,
    safe_csv: options.SafeCsv = False,
    as_json: options.AsJson = False,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    signals, best = is_signal(source), "clean.wav" if source.lower().endswith(".wav") else "clean.csv"
    reading: Reading = {"columns": columns or (), "drop": drop or (), "missing": missing or ()}
    kept = f"-o {best} to keep the signal" if signals else "-o clean.png to keep the image"

    def analysis() -> Answer:
        data: Any
        with doing("reading"):
            if signals:
                data = as_signals(source, **reading)
                check_sound(out or [], data.rate, source)
            else:
                data = as_image(source)
                check_formats(out or [], data)
        return analyze(data, sigma=sigma, method=method, add_noise=add_noise, seed=seed, **reading)

    run(
        analysis,
        Output(out or [], None, as_json, force, quiet, compare, safe_csv),
        DenoisedSignals if signals else Denoised,
        [source],
        f"nothing is written; add {kept}, --compare both.png to look at it",
    )
