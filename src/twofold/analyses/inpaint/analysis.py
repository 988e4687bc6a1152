"""The holes of an image filled, every other pixel as it was.

What is missing is marked by a mask, by a color, or by transparency. Patches of the image are coded with few atoms of
a dictionary that is learned from what is known; compared with bilinear interpolation, on known pixels that were hidden.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from twofold.analyses.common.analysis import OneFile, Seed, analysis, list_planned_files
from twofold.analyses.common.images import as_image, check_formats
from twofold.analyses.inpaint.answer import Inpainted
from twofold.analyses.inpaint.heldout import measure_on_hidden
from twofold.analyses.inpaint.holes import find_holes, without_holes
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing


@analysis()
def inpaint(
    image: OneFile,
    *,
    mask: Annotated[Any, Flag(unit="FILE")] = None,
    color: Annotated[str | None, Flag(unit="COLOR")] = None,
    tolerance: Annotated[int, Flag(min=0, max=255, unit="N")] = 0,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> Inpainted:
    """Fill the holes of an image: painted over, transparent, or under a mask.

    Parameters
    ----------
    image : path or array
        A file, or uint8 or uint16 of shape (h, w), (h, w, 3), or with transparency as one more channel. With neither
        mask nor color, wholly transparent pixels are missing.
    mask : path, array or None
        An image of the same size, white where pixels are missing; or booleans (h, w), True there.
    color
        The color that marks missing pixels, such as "#ff00ff".
    tolerance
        How far from `color`, 0 to 255 in each of red, green and blue, still counts.

    Returns
    -------
    Inpainted
        ``image`` holds the result.

    Examples
    --------
    >>> rows, columns = np.mgrid[:32, :32]
    >>> stripes = np.rint(128 + 80 * np.sin((rows + columns) / 3)).astype(np.uint8)
    >>> holes = np.random.default_rng(0).random((32, 32)) < 0.2
    >>> answer = inpaint(np.where(holes, 0, stripes).astype(np.uint8), mask=holes)
    >>> bool((answer.image[~holes] == stripes[~holes]).all())
    True
    """
    with doing("reading"):
        before = as_image(image)
        holes, said = find_holes(before, mask, color, tolerance)
        check_formats(list_planned_files(), without_holes(before, holes))
        from twofold.signals.images.inpaint import inpaint_image  # takes seconds: bad input is told before

    with doing("inpainting"):
        pixels = inpaint_image(before.pixels, holes, random_state=seed)
    with doing("checking"):
        fill = partial(inpaint_image, random_state=seed)
        figures, baseline = measure_on_hidden(before, holes, seed, fill)
    return Inpainted(
        source=before.source,
        figures=figures,
        baseline=baseline,
        notes=before.notes + said,
        before=before,
        after=replace(without_holes(before, holes), pixels=pixels),
        holes=holes,
    )
