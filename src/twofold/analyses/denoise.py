"""The noise of an image or of signals removed, their edges and textures left.

Patches of the image are coded with few atoms of a dictionary that is learned from them; or wavelet coefficients that
are no larger than noise are dropped, which suits signals. The noise that is left is estimated; with noise that was
added first, as a test, the result is compared with what was given.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Unpack

import numpy as np
import polars as pl

from twofold.analyses.common.analysis import OneFile, Reading, Seed, analysis
from twofold.analyses.common.answer import Grid
from twofold.analyses.common.images import ComparedAnswer, ImageAnswer, decibels
from twofold.analyses.common.signals import SignalAnswer, as_image_or_signals, check_planned, compute_snr, is_signal
from twofold.core.checks import InputError
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing
from twofold.io.images import Picture
from twofold.io.recordings import Recording

MAX_NOISE_CORRELATION = 0.1  # of neighbors in what was removed, if that is nothing but noise
Deviation = Annotated[float | None, Flag(min=0, max=sys.float_info.max, unit="S")]


@dataclass(kw_only=True, repr=False, eq=False)
class DenoisedAnswer(ComparedAnswer):
    """The base of `Denoised` and `DenoisedSignals`: `before` was cleaned, `original` is what the caller gave."""

    original: Any
    sigma: Any  # of the noise: a number, or one for each signal
    sigma_given: bool
    added: float | None  # standard deviation of the noise that was added as a test

    whole: ClassVar[str]
    ratio: ClassVar[str]  # "psnr" or "snr"
    parts: ClassVar[str]

    @property
    def outcome(self) -> str:
        removed, sigmas = (
            ", ".join(f"{one:.3g}" for one in found[:2]) for found in (self.list_removed(), np.atleast_1d(self.sigma))
        )
        return f"{removed} taken away, of noise {sigmas}"

    def facts(self) -> dict[str, Any]:
        added = {"added_noise": self.added} if self.added else {}
        return super().facts() | {"sigma": self.sigma, "sigma_given": self.sigma_given} | added

    def measure(self) -> None:
        """Fill `figures` and `baseline`: noise left, what was removed, and, if noise was added, the error."""
        raise NotImplementedError

    def most_correlated(self) -> tuple[float, float, float]:
        """Standard deviation and correlation of what was removed, and the noise there was."""
        raise NotImplementedError

    def list_removed(self) -> list[float]:
        """Standard deviation of what was removed, in the units of the data, for each signal or the image."""
        raise NotImplementedError

    def lines(self) -> list[str]:
        removed, correlation, sigma = self.most_correlated()
        meaning = "as noise should be"
        if abs(correlation) >= MAX_NOISE_CORRELATION:
            meaning = f"so some of the {self.whole} went with the noise"
        line = (
            f"check: what was taken away has standard deviation {removed:.3g} (noise: {sigma:.3g}), and its "
            f"neighboring {self.parts} correlate by {correlation:+.2f}, {meaning}"
        )
        lines = [line if removed else "check: nothing was taken away"]
        if self.added:
            gain = self.figures[self.ratio] - self.baseline[self.ratio]
            change = f"{'rises' if gain >= 0 else 'falls'} by {abs(gain):.2f} dB"
            reason = "" if gain >= 0 else f": the {self.whole} has noise of its own, which went too"
            whole = f"against the {self.whole} without the added noise"
            lines.append(f"held out: {whole}, {self.ratio.upper()} {change}{reason}")
        return lines


@dataclass(kw_only=True, repr=False, eq=False)
class Denoised(DenoisedAnswer, ImageAnswer):
    """A cleaned image."""

    original: Picture

    whole, ratio, parts = "image", "psnr", "pixels"

    @property
    def hint(self) -> str:
        return "add ⟨out=clean.png⟩ to keep the image, ⟨compare=both.png⟩ to look at it"

    def measure(self) -> None:
        from twofold.metrics import psnr
        from twofold.signals import estimate_sigma

        before, after = self.before.pixels, self.after.pixels
        removed, correlation = measure_removed(before, after)
        self.figures = {
            "what": "estimated standard deviation of the noise that is left",
            "noise": float(estimate_sigma(after)),
            "removed_sd": removed,
            "removed_correlation": correlation,
        }
        noise = float(estimate_sigma(before)) if self.sigma_given else self.sigma
        self.baseline = {"method": "the image as it was", "noise": noise}
        if self.added:
            self.figures |= {"what": "PSNR in dB, against the image without the added noise"}
            for figures, pixels in ((self.figures, after), (self.baseline, before)):
                figures["psnr"] = psnr(self.original.pixels, pixels, self.original.peak)

    @cached_property
    def table(self) -> pl.DataFrame:
        names = ["noise", *(["psnr"] if self.added else [])]
        columns = {name: [self.baseline[name], self.figures[name]] for name in names}
        return pl.DataFrame({"image": ["before", "after"], **columns})

    def grids(self) -> list[Grid]:
        rows = [[image, f"{noise:.2f}", *map(decibels, psnr)] for image, noise, *psnr in self.table.iter_rows()]
        return [Grid(["", "noise", *(["PSNR"] if self.added else [])], rows, right=(1, 2))]

    def most_correlated(self) -> tuple[float, float, float]:
        return self.figures["removed_sd"], self.figures["removed_correlation"], self.sigma

    def list_removed(self) -> list[float]:
        return [self.figures["removed_sd"]]

    def panels(self) -> list[tuple[str, np.ndarray]]:
        if not self.added:
            return super().panels()
        return [
            ("original", self.original.pixels),
            (f"with noise, {decibels(self.baseline['psnr'])}", self.before.pixels),
            (f"cleaned, {decibels(self.figures['psnr'])}", self.after.pixels),
        ]


@dataclass(kw_only=True, repr=False, eq=False)
class DenoisedSignals(DenoisedAnswer, SignalAnswer):
    """Cleaned signals."""

    original: Recording

    whole, ratio, parts = "signal", "snr", "numbers"

    @property
    def hint(self) -> str:
        ending = ".csv" if self.after.rate is None else ".wav"
        return f"add ⟨out=clean{ending}⟩ to keep the signal, ⟨compare=both.png⟩ to look at it"

    @cached_property
    def table(self) -> pl.DataFrame:
        from twofold.signals import estimate_sigma

        rows = []
        for i, (given, clean) in enumerate(zip(self.before.signals, self.after.signals, strict=True)):
            row = [self.before.names[i], self.sigma[i], float(estimate_sigma(clean)), *measure_removed(given, clean)]
            truth = self.original.signals[i]
            rows.append([*row, *([compute_snr(truth, given), compute_snr(truth, clean)] if self.added else [])])
        head = ["signal", "noise", "left", "removed_sd", "removed_correlation"]
        return pl.DataFrame(rows, [*head, *(["snr_before", "snr"] if self.added else [])], orient="row")

    def measure(self) -> None:
        """Means over the signals, which may have different units, of figures without a unit."""
        noise, left, correlation = (self.table[name].to_numpy() for name in ("noise", "left", "removed_correlation"))
        self.figures = {
            "what": "estimated noise that is left, of what there was",
            "noise": float(np.mean(left / np.where(noise > 0, noise, 1))),
            "removed_correlation": float(np.abs(correlation).mean()),
        }
        self.baseline = {"method": "the signals as they were", "noise": 1.0}
        if self.added:
            self.figures |= {"what": "SNR in dB, against the signals without the added noise"}
            self.figures["snr"], self.baseline["snr"] = self.table.select("snr", "snr_before").mean().row(0)

    def grids(self) -> list[Grid]:
        head = ["", "noise", "taken away", "left", *(["SNR before", "SNR"] if self.added else [])]
        rows = [
            [name, f"{noise:.3g}", f"{removed:.3g}", f"{left:.2g}", *map(decibels, snr)]
            for name, noise, left, removed, _, *snr in self.table.iter_rows()
        ]
        return [Grid(head, rows, right=(1, 2, 3, 4, 5), rest="signals")]

    def list_removed(self) -> list[float]:
        return self.table["removed_sd"].to_list()

    def most_correlated(self) -> tuple[float, float, float]:
        worst = self.table.row(int(self.table["removed_correlation"].abs().arg_max() or 0), named=True)
        return worst["removed_sd"], worst["removed_correlation"], worst["noise"]


def measure_removed(noisy: np.ndarray, clean: np.ndarray) -> tuple[float, float]:
    """Standard deviation of what was removed, and the correlation of its neighbors: 0 for noise, more for edges."""
    dtype = np.float32 if noisy.itemsize <= 4 else np.float64  # one copy of a large image, no more
    removed = np.subtract(noisy, clean, dtype=dtype)
    removed -= removed.mean(dtype=np.float64)

    def mean_product(a: np.ndarray, b: np.ndarray) -> float:
        places = "hw"[: min(a.ndim, 2)]
        total = np.einsum(f"{places}...,{places}...->...", a, b, dtype=np.float64).mean()
        return float(total) / max(int(np.prod(a.shape[:2])), 1)

    power = mean_product(removed, removed)
    if power == 0:
        return 0.0, 0.0
    products = [mean_product(removed[1:], removed[:-1])]
    if removed.ndim > 1:
        products.append(mean_product(removed[:, 1:], removed[:, :-1]))
    return power**0.5, float(np.mean(products)) / power


@analysis()
def denoise(
    data: OneFile,
    *,
    sigma: Deviation = None,
    method: Literal["pca", "ksvd", "hard", "soft"] | None = None,
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
        Groups of similar patches in their principal directions (pca), a dictionary learned from the image (ksvd), or a
        threshold of wavelets. Default: pca; hard for signals.
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
            clean = denoise_image(values, sigma, method=method or "pca", random_state=seed)
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
