"""`twofold generate`: new images from a model that was trained to make them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twofold.analyses.generate import Samples
from twofold.analyses.generate import generate as analyze
from twofold.cli import _options as options
from twofold.cli._run import command
from twofold.core.checks import InputError
from twofold.io.tables.read import missing_message

HINT = "nothing is written; add -o grid.png to look at them, -o numbers.npy to keep them"


@command(Samples, "Grid of the images, or their numbers", HINT)
def generate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A .twofold file that twofold train wrote.")],
    count: Annotated[int, typer.Option("-n", "--count", min=1, metavar="N", help="How many to draw.")] = 64,
    seed: options.Seed = 0,
) -> Samples:
    if not Path(model).is_file():
        raise InputError(missing_message(model))
    return analyze(model, count, seed=seed)
