"""New images or rows from a trained model."""

from __future__ import annotations

import os
from typing import Annotated, Any

import numpy as np

from twofold.analyses.common.analysis import Seed, analysis
from twofold.analyses.generate.answer import Samples
from twofold.core.checks import InputError
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing


@analysis()
def generate(
    model: Annotated[Any, Flag(unit="MODEL")],
    count: Annotated[int, Flag("-n", "--count", min=1, unit="N")] = 64,
    *,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> Samples:
    """Draw new images from a model that was trained to make them.

    Parameters
    ----------
    model : path or fitted model
        A .twofold file that train wrote, or any model that draws samples: VAE, DLGM, GAN, VAEGAN, PixelCNN,
        GaussianMixture, ...
    count
        How many to draw.

    Returns
    -------
    Samples
        ``drawn`` holds them.

    Examples
    --------
    >>> from twofold import GaussianMixture
    >>> generate(GaussianMixture(1, random_state=0).fit([[0.0, 1.0], [2.0, 3.0], [1.0, 5.0]]), 5).drawn.shape
    (5, 2)
    """
    source, found = "the model", model
    if isinstance(model, (str, os.PathLike)):
        from twofold.core.files.model_file import load
        from twofold.io.tables.read import missing_message

        if not os.path.isfile(model):
            raise InputError(missing_message(os.fspath(model)))
        with doing("reading"):
            source = os.fspath(model)
            found = load(source)
    if not hasattr(found, "sample"):
        raise InputError(f"{source} holds a {type(found).__name__}, which draws nothing. Train one that does: a vae.")
    if type(found).__name__ == "PixelCNN":  # pixel by pixel: long enough for a bar
        with doing("drawing"):
            drawn = found.sample(count, random_state=seed)
    else:
        with doing("drawing"):
            drawn = found.sample(count, random_state=seed)
    return Samples(
        source=source,
        model=found,
        drawn=np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn),
    )
