"""An image or signals measured fewer times than they have numbers, and recovered from that.

The measurements are random; of all signals that explain them the one with the least sum of coefficients in a basis is
taken. It is compared with least squares, the shortest signal that explains them, which knows nothing of a basis.
"""

from __future__ import annotations

import warnings
from typing import Annotated, Any, Literal

from twofold.analyses.common.analysis import OneFile, Seed, analysis, list_planned_files
from twofold.analyses.common.images import check_formats
from twofold.analyses.sense.answer import SensedImage, SensedSignals, Trial
from twofold.analyses.sense.models import (
    FAST,
    draw_measurements,
    find_sparser_basis,
    measure_error,
    recover,
    solve_least_squares,
)
from twofold.analyses.sense.read import holds_signals, read_channels, read_signals
from twofold.core.checks import InputError
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing, part
from twofold.io.images import Picture

FRACTIONS = (0.1, 0.2, 0.3, 0.5)  # tried beside the one asked for
MAX_NUMBERS_TO_COMPARE = 100_000  # of data on which other fractions are tried; by matrices a hundredth of that


@analysis()
def sense(
    data: OneFile,
    *,
    fraction: Annotated[float, Flag(min=0, max=1, unit="F")] = 0.3,
    kind: Literal["fourier", "hadamard", "gaussian", "rademacher"] | None = None,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> SensedSignals | SensedImage:
    """Recover an image or signal from fewer random measurements than it has numbers.

    Parameters
    ----------
    data : path, frame or array
        An image: a file, or uint8 or uint16 of shape (h, w) or (h, w, 3). Or signals: the columns of a table or frame,
        where one that rises evenly first is time; the rows of an array of floats, or one signal (d,).
    fraction
        Measurements, as a share of the numbers there are.
    kind
        What is measured. Default: fourier for images, hadamard for signals.

    Returns
    -------
    SensedImage or SensedSignals
        ``image`` holds a recovered image, ``table`` recovered signals, ``model`` the measurements that were drawn.

    Examples
    --------
    >>> time = np.arange(128)
    >>> answer = sense(np.cos(0.3 * time) + np.cos(0.9 * time), fraction=0.5)
    >>> bool(answer.figures["psnr"] > answer.baseline["psnr"])
    True
    """
    if fraction == 0:
        raise InputError(f"⟨fraction={fraction:g}⟩: measurements are a share above 0 and up to 1, such as 0.3.")
    with doing("reading"):
        given = read_signals(data) if holds_signals(data) else read_channels(data)
        if isinstance(given.before, Picture):
            check_formats(list_planned_files(), given.before)
        sparsity = find_sparser_basis(given)
    notes, is_image = given.before.notes, isinstance(given.before, Picture)
    if kind is None:
        kind, how = ("fourier", "waves, mostly long ones") if is_image else ("hadamard", "random sums of all numbers")
        notes.append(f"measured by {how}: ⟨kind={kind}⟩")
    fast = is_image and kind in FAST
    basis = None if fast else sparsity.basis  # images have a better way back than any one basis
    notes.append(f"recovered as few {'wavelets at every shift' if fast else sparsity.atoms}")
    few = given.X.size <= MAX_NUMBERS_TO_COMPARE // (1 if kind in FAST else 100)
    fractions = sorted({fraction, *(FRACTIONS if few else ())})
    trials: list[Trial] = []
    with doing("measuring and recovering"), warnings.catch_warnings(record=True) as caught:
        for i, share in enumerate(fractions):
            model = draw_measurements(given, share, kind, basis, seed)
            with part(i, i + 1, len(fractions)):
                recovered = recover(given, model)
            trials.append(measure_error(given, share, model, recovered))
            if share == fraction:
                best, chosen, result = trials[-1], model, recovered
    if caught:
        notes.append(
            "some recoveries stopped before they had settled: figures may be a little low (hadamard settles fast)"
        )
    squares = measure_error(given, fraction, chosen, solve_least_squares(given, chosen))
    answer: Any = SensedImage if is_image else SensedSignals
    return answer(
        source=given.before.source,
        model=chosen,
        figures={
            "what": "error of what was recovered, against what was measured; PSNR in dB",
            "relative_error": best.relative_error,
            "psnr": best.psnr,
        },
        baseline={"method": "least squares", "relative_error": squares.relative_error, "psnr": squares.psnr},
        notes=notes,
        chosen={"kind": kind},
        before=given.before,
        after=given.restore(result),
        kind=kind,
        size=given.size,
        sparsity=sparsity,
        best=best,
        trials=trials,
    )
