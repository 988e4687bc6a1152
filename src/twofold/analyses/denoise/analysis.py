"""The noise of an image or of signals removed, their edges and textures left.

Patches of the image are coded with few atoms of a dictionary that is learned from them; or wavelet coefficients that
are no larger than noise are dropped, which suits signals. The noise that is left is estimated; with noise that was
added first, as a test, the result is compared with what was given.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated, Any, Literal, Unpack

import numpy as np

from twofold.analyses.common.analysis import OneFile, Reading, Seed, analysis
from twofold.analyses.common.signals import as_image_or_signals, check_planned, is_signal
from twofold.analyses.denoise.answer import Denoised, DenoisedSignals
from twofold.core.checks import InputError
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing

Deviation = Annotated[float | None, Flag(min=0, max=sys.float_info.max, unit="S")]


@analysis()
def denoise(
    data: OneFile,
    *,
    sigma: Deviation = None,
    method: Literal["ksvd", "hard", "soft"] | None = None,
    add_noise: Deviation = None,
    seed: Seed = 0,
    progress: Progress | None = None,
    **reading: Unpack[Reading],
) -> DenoisedSignals | Denoised:
    """Take the noise out of an image, by patches learned from itself, or out of signals.

    Parameters
    ----------
    data : path, array or frame
        An image: a file, or uint8 or uint16 of shape (h, w), (h, w, 3), or with transparency as one more channel.
        Signals: a .wav file, a table whose columns they are, a .npy file, an array (d,), or a frame.
    sigma
        Standard deviation of the noise, in the data's units (images: 0 to 255). Default: estimated.
    method
        A dictionary learned from the image (ksvd), or a threshold of wavelets. Default: ksvd; hard for signals.
    add_noise
        First add noise of this standard deviation, and report how much comes back: a test of the method.

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
    signals = is_signal(data)
    if signals and method not in (None, "hard", "soft"):
        raise InputError(f"⟨method={method}⟩: signals are cleaned by a threshold. Choose hard or soft.")
    with doing("reading"):
        original: Any = as_image_or_signals(data, reading)
        check_planned(original)
        from twofold.signals import denoise_image, denoise_signal, estimate_sigma

    notes, field = original.notes, "signals" if signals else "pixels"
    noisy = replace(original, **{field: add_white_noise(getattr(original, field), add_noise, seed)})
    values = getattr(noisy, field)
    sigmas = [float(estimate_sigma(one)) if sigma is None else sigma for one in (values if signals else [values])]
    if sigma is None:
        where = "the finest wavelets" if signals else f"the image: standard deviation {sigmas[0]:.3g}"
        notes.append(f"noise estimated from {where} (⟨sigma⟩ sets it)")
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
