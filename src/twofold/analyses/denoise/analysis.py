"""The noise of an image or of signals removed, their edges and textures left.

Patches of the image are coded with few atoms of a dictionary that is learned from them; or wavelet coefficients that
are no larger than noise are dropped, which suits signals. The noise that is left is estimated; with noise that was
added first, as a test, the result is compared with what was given.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from twofold.analyses.common.answer import analysis
from twofold.analyses.common.images import source_in_code
from twofold.analyses.common.signals import as_image_or_signals, is_signal
from twofold.analyses.common.tables import Reading, in_call
from twofold.analyses.denoise.answer import Denoised, DenoisedSignals
from twofold.core.checks import InputError
from twofold.core.progress import Progress, doing


@analysis
def denoise(
    data: Any,
    *,
    sigma: float | None = None,
    method: str | None = None,
    add_noise: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    **reading: Unpack[Reading],
) -> Denoised | DenoisedSignals:
    """Take the noise out of an image, or out of signals.

    Parameters
    ----------
    data : path, array or frame
        An image: a file, or uint8 or uint16 of shape (h, w), (h, w, 3), or with transparency as one more channel.
        Signals: a .wav file, a table whose columns they are, a .npy file, an array (d,), or a frame.
    sigma : float or None
        Standard deviation of the noise, in the data's units. None: estimated, for each channel or signal.
    method : {"ksvd", "hard", "soft"} or None
        A dictionary learned from the image, or a threshold of wavelets. None: "ksvd" for images, "hard" for signals.
    add_noise : float or None
        First add noise of this standard deviation, and measure how much of the data comes back.
    seed, progress
        The seed of everything random; who is told what goes on.
    missing, drop, columns
        How a table of signals is read, as everywhere.

    Returns
    -------
    Denoised or DenoisedSignals
        ``image`` or ``signals`` holds the result.

    Examples
    --------
    >>> rows, columns = np.mgrid[:40, :40]
    >>> clean = (60 + 100 * (rows > columns)).astype(np.uint8)
    >>> answer = denoise(clean, add_noise=15)
    >>> answer.image.shape, bool(answer.figures["psnr"] > answer.baseline["psnr"] + 3)
    ((40, 40), True)
    """
    for name, value in (("sigma", sigma), ("add_noise", add_noise)):
        if value is not None and not 0 <= value < np.inf:
            raise InputError(f"{name} {value}: the standard deviation of noise is a number of at least 0.")
    signals = is_signal(data)
    if signals and method not in (None, "hard", "soft"):
        raise InputError(f"--method {method}: signals are cleaned by a threshold. Choose hard or soft.")
    if method not in (None, "ksvd", "hard", "soft"):
        raise InputError(f"--method {method}: choose ksvd, hard or soft.")
    with doing("reading"):
        original: Any = as_image_or_signals(data, reading)
        from twofold.signals import denoise_image, denoise_signal, estimate_sigma

    notes, field = original.notes, "signals" if signals else "pixels"
    noisy = replace(original, **{field: add_white_noise(getattr(original, field), add_noise, seed)})
    values = getattr(noisy, field)
    sigmas = [float(estimate_sigma(one)) if sigma is None else sigma for one in (values if signals else [values])]
    if sigma is None:
        where = "the finest wavelets" if signals else f"the image: standard deviation {sigmas[0]:.3g}"
        notes.append(f"noise estimated from {where} (--sigma sets it)")
    if add_noise:
        notes.append(f"noise of standard deviation {add_noise:g} was added to {original.source} first, as a test")
    with doing("denoising"):
        if signals:
            clean = denoise_signal(values, sigma, method=method or "hard")
        else:
            clean = denoise_image(values, sigma, method=method or "ksvd", random_state=seed)
    kind: Any = DenoisedSignals if signals else Denoised
    answer = kind(
        source=original.source,
        notes=notes,
        call={
            "verb": "denoise",
            "data": source_in_code(data),
            "sigma": sigma,
            "method": method,
            "add_noise": add_noise,
            "seed": seed,
            **in_call(reading),
        },
        before=noisy,
        after=replace(noisy, **{field: clean}),
        original=original,
        sigma=sigmas if signals else sigmas[0],
        sigma_given=sigma is not None,
        added=add_noise,
    )
    answer.measure()
    return answer


def add_white_noise(values: np.ndarray, sigma: float | None, seed: int) -> np.ndarray:
    """The values with noise, of the type they had."""
    from twofold.core.seeds import generator
    from twofold.signals.images.channels import cast_values

    return cast_values(values + generator(seed, 1).normal(0, sigma, values.shape), values.dtype) if sigma else values
