"""`twofold generate`: new images from a model that was trained to make them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twofold.analyses.generate import Samples
from twofold.analyses.generate import generate as analyze
from twofold.cli import _options as options
from twofold.cli._run import Output, run
from twofold.core.checks import InputError
from twofold.io.tables.read import missing_message

GRID = "A grid of the images (.png, .html), or their numbers (.npy). Repeatable."
HINT = "nothing is written; add -o grid.png to look at them, -o numbers.npy to keep them"


def generate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A .twofold file that twofold train wrote.")],
    count: Annotated[int, typer.Option("-n", "--count", min=1, metavar="N", help="How many to draw.")] = 64,
    out: Annotated[list[Path] | None, typer.Option("-o", "--out", metavar="FILE", help=GRID)] = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    if not Path(model).is_file():
        raise InputError(missing_message(model))
    run(
        lambda watch: analyze(model, count, seed=seed, progress=watch),
        Output(out or [], None, as_json, force, quiet),
        Samples,
        [model],
        HINT,
    )
