"""`twofold inpaint`: the holes of an image filled, every other pixel as it was."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from twofold.analyses.common.images import as_image, check_formats
from twofold.analyses.inpaint import Inpainted, find_holes, without_holes
from twofold.analyses.inpaint import inpaint as analyze
from twofold.cli import _options as options
from twofold.cli._run import command
from twofold.core.progress import doing

MASK = "An image of the same size, white where pixels are missing. Default: transparent pixels are missing."
COLOR = "The color that marks missing pixels, such as '#ff00ff'."
TOLERANCE = "How far from --color, 0 to 255 in each of red, green and blue, still counts."
HINT = "nothing is written; add -o whole.png to keep the image, --compare both.png to look at it"


@command(Inpainted, "Image", HINT)
def inpaint(
    source: options.Image,
    mask: Annotated[str | None, typer.Option(metavar="FILE", help=MASK)] = None,
    color: Annotated[str | None, typer.Option("--color", metavar="COLOR", help=COLOR)] = None,
    tolerance: Annotated[int, typer.Option(min=0, max=255, metavar="N", help=TOLERANCE)] = 0,
    seed: options.Seed = 0,
    out: Sequence[Path] = (),
) -> Inpainted:
    with doing("reading"):
        image = as_image(source)
        if out:
            holes, _ = find_holes(image, mask, color, tolerance)
            check_formats(out, without_holes(image, holes))
    return analyze(image, mask=mask, color=color, tolerance=tolerance, seed=seed)
