"""`twofold denoise`: the noise of an image taken away, its edges and textures left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from twofold.analyses._images import as_image, check_formats
from twofold.analyses.denoise import Denoised
from twofold.analyses.denoise import denoise as analyze
from twofold.analyses.progress import SILENT, Progress
from twofold.cli import _options as options
from twofold.cli._run import command

SIGMA = "Standard deviation of the noise, in the image's units (0 to 255). Default: estimated."
TRY = "First add noise of this standard deviation, and report how much comes back: a test of the method."
HINT = "nothing is written; add -o clean.png to keep the image, --compare both.png to look at it"


@command(Denoised, "Image", HINT)
def denoise(
    source: options.Image,
    sigma: Annotated[float | None, typer.Option(min=0, metavar="S", help=SIGMA)] = None,
    add_noise: Annotated[float | None, typer.Option(min=0, metavar="S", help=TRY)] = None,
    seed: options.Seed = 0,
    out: Sequence[Path] = (),
    progress: Progress = SILENT,
) -> Denoised:
    with progress.doing("reading"):
        image = as_image(source)
        check_formats(out, image)
    return analyze(image, sigma=sigma, add_noise=add_noise, seed=seed, progress=progress)
