"""New images or rows from a trained model."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from twofold.analyses.common.answer import analysis
from twofold.analyses.common.tables import data_in_code
from twofold.analyses.generate.answer import Samples
from twofold.core.checks import InputError
from twofold.core.progress import Progress, doing


@analysis
def generate(model: Any, count: int = 64, *, seed: int = 0, progress: Progress | None = None) -> Samples:
    """Draw from a model that can be drawn from.

    Parameters
    ----------
    model : path or fitted model
        A `.twofold` file, or the model itself: VAE, DLGM, GAN, VAEGAN, PixelCNN, GaussianMixture, ...
    count : int
        How many.
    seed, progress
        The seed of everything random; who is told what goes on.

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
        call={"verb": "generate", "data": data_in_code(model), "count": count, "seed": seed},
        drawn=np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn),
    )
