"""`twofold inpaint`: the holes of an image filled, every other pixel as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twofold.analyses._images import as_image, check_formats
from twofold.analyses.inpaint import Inpainted, find_holes, without_holes
from twofold.analyses.inpaint import inpaint as analyze
from twofold.analyses.progress import Progress
from twofold.cli import _images as images
from twofold.cli import _options as options
from twofold.cli._run import Output, run

MASK = "An image of the same size, white where pixels are missing. Default: transparent pixels are missing."
COLOR = "The color that marks missing pixels, such as '#ff00ff'."
TOLERANCE = "How far from --color, 0 to 255 in each of red, green and blue, still counts."
HINT = "nothing is written; add -o whole.png to keep the image, --compare both.png to look at it"


def inpaint(
    source: images.Source,
    mask: Annotated[str | None, typer.Option(metavar="FILE", help=MASK)] = None,
    color: Annotated[str | None, typer.Option("--color", metavar="COLOR", help=COLOR)] = None,
    tolerance: Annotated[int, typer.Option(min=0, max=255, metavar="N", help=TOLERANCE)] = 0,
    out: Annotated[list[Path] | None, options.out(Inpainted.endings, "Image")] = None,
    compare: images.Compare = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    output = Output(out or [], None, as_json, force, quiet, compare)

    def analysis(watch: Progress) -> Inpainted:
        with watch.doing("reading"):
            image = as_image(source)
            if output.out:
                holes, _ = find_holes(image, mask, color, tolerance)
                check_formats(output.out, without_holes(image, holes))
        return analyze(image, mask=mask, color=color, tolerance=tolerance, seed=seed, progress=watch)

    run(analysis, output, Inpainted, [source, *([mask] if mask else [])], HINT)
