"""The noise of an image or of signals taken away, their edges and textures left.

Patches of the image are coded with few atoms of a dictionary that they teach; or coefficients in wavelets that are no
larger than noise are dropped, which suits signals. How much noise is left is estimated; with noise that was added
first, as a test, the result is compared with what was given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import polars as pl

from twofold.analyses._tables import Reading, in_call
from twofold.analyses.answer import Grid, analysis
from twofold.analyses.common.images import ImageAnswer, as_image, decibels, image_in_code, size_line
from twofold.analyses.common.signals import (
    SignalAnswer,
    as_signals,
    compute_snr,
    is_signal,
    refuse_reading,
    signals_in_code,
)
from twofold.analyses.progress import SILENT, Progress
from twofold.core.checks import InputError
from twofold.io.images import Picture
from twofold.io.recordings import Recording

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PURE = 0.1  # correlation of neighboring pixels in what was taken away, up to which it passes for noise


@dataclass(kw_only=True, repr=False, eq=False)
class Denoised(ImageAnswer):
    """A cleaned image: `before` is what was cleaned, `original` what the caller gave."""

    original: Picture
    sigma: float
    sigma_given: bool
    added: float | None

    @property
    def heading(self) -> str:
        return size_line(self.original)

    @property
    def outcome(self) -> str:
        return f"noise {self.sigma:.3g} taken away"

    @cached_property
    def table(self) -> pl.DataFrame:
        rows = {"image": ["before", "after"], "noise": [self.baseline["noise"], self.figures["noise"]]}
        return pl.DataFrame(rows | ({"psnr": [self.baseline["psnr"], self.figures["psnr"]]} if self.added else {}))

    def grids(self) -> list[Grid]:
        rows = [[image, f"{noise:.2f}", *map(decibels, psnr)] for image, noise, *psnr in self.table.iter_rows()]
        return [Grid(["", "noise", *(["PSNR"] if self.added else [])], rows, right=(1, 2))]

    def lines(self) -> list[str]:
        own = self.figures
        lines = [removed_line(own["removed_sd"], own["removed_correlation"], self.sigma)]
        if self.added:
            lines.append(held_out_line("image", "PSNR", own["psnr"] - self.baseline["psnr"]))
        return lines

    def facts(self) -> dict[str, Any]:
        added = {"added_noise": self.added} if self.added else {}
        return super().facts() | {"sigma": self.sigma, "sigma_given": self.sigma_given} | added

    def plot(self) -> Figure:
        from twofold.plots.models.images import comparison_figure

        panels = [("before", self.before.pixels), ("after", self.after.pixels)]
        if self.added:
            panels = [
                ("original", self.original.pixels),
                (f"with noise, {decibels(self.baseline['psnr'])}", self.before.pixels),
                (f"cleaned, {decibels(self.figures['psnr'])}", self.after.pixels),
            ]
        return comparison_figure(panels, title=self.title)


@dataclass(kw_only=True, repr=False, eq=False)
class DenoisedSignals(SignalAnswer):
    """Cleaned signals: `before` is what was cleaned, `original` what the caller gave."""

    original: Recording
    sigmas: list[float]
    sigma_given: bool
    added: float | None

    @property
    def outcome(self) -> str:
        return f"noise {', '.join(f'{sigma:.3g}' for sigma in self.sigmas[:4])} taken away"

    @cached_property
    def table(self) -> pl.DataFrame:
        from twofold.signals import estimate_sigma

        rows = []
        for i, (given, clean) in enumerate(zip(self.before.signals, self.after.signals, strict=True)):
            taken, alike = removed(given, clean)
            row = [self.before.names[i], self.sigmas[i], float(estimate_sigma(clean)), taken, alike]
            if self.added:
                truth = self.original.signals[i]
                row += [compute_snr(truth, given), compute_snr(truth, clean)]
            rows.append(row)
        head = ["signal", "noise", "left", "removed_sd", "removed_correlation"]
        return pl.DataFrame(rows, [*head, *(["snr_before", "snr"] if self.added else [])], orient="row")

    def grids(self) -> list[Grid]:
        head = ["", "noise", "left", *(["SNR before", "SNR"] if self.added else [])]
        rows = [
            [name, f"{noise:.3g}", f"{left:.2g}", *map(decibels, snr)]
            for name, noise, left, _, _, *snr in self.table.iter_rows()
        ]
        return [Grid(head, rows, right=(1, 2, 3, 4), rest="signals")]

    def lines(self) -> list[str]:
        own, most = self.figures, int(self.table["removed_correlation"].abs().arg_max() or 0)
        worst = self.table.row(most, named=True)
        lines = [removed_line(worst["removed_sd"], worst["removed_correlation"], worst["noise"], "numbers", "signal")]
        if self.added:
            lines.append(held_out_line("signal", "SNR", own["snr"] - self.baseline["snr"]))
        return lines

    def facts(self) -> dict[str, Any]:
        added = {"added_noise": self.added} if self.added else {}
        return super().facts() | {"sigma": self.sigmas, "sigma_given": self.sigma_given} | added

    def plot(self) -> Figure:
        from twofold.plots.models.signals import compare_signals_figure

        names, rate = self.before.names, self.before.rate
        return compare_signals_figure(self.before.signals, self.after.signals, names, rate, self.title)


@analysis
def denoise(
    data: Any,
    *,
    sigma: float | None = None,
    method: str | None = None,
    add_noise: float | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
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
    if is_signal(data):
        return denoise_signals(data, sigma, method or "hard", add_noise, seed, progress, reading)
    refuse_reading(reading)
    if method not in (None, "ksvd", "hard", "soft"):
        raise InputError(f"--method {method}: choose ksvd, hard or soft.")
    with progress.doing("reading"):
        original = as_image(data)
        from twofold.signals import denoise_image, estimate_sigma

    notes = original.notes
    noisy = with_noise(original, add_noise, seed)
    before = float(estimate_sigma(noisy.pixels))
    if sigma is None:
        notes.append(f"noise estimated from the image: standard deviation {before:.3g} (--sigma sets it)")
    if add_noise:
        notes.append(f"noise of standard deviation {add_noise:g} was added to {original.source} first, as a test")
    with progress.share("denoising") as tell:
        pixels = denoise_image(noisy.pixels, sigma, method=method or "ksvd", random_state=seed, progress=tell)
    figures, baseline = judge(original, noisy, pixels, before, add_noise)
    return Denoised(
        source=original.source,
        figures=figures,
        baseline=baseline,
        notes=notes,
        call={
            "verb": "denoise",
            "data": image_in_code(data),
            "sigma": sigma,
            "method": method,
            "add_noise": add_noise,
            "seed": seed,
        },
        before=noisy,
        after=replace(noisy, pixels=pixels),
        original=original,
        sigma=before if sigma is None else sigma,
        sigma_given=sigma is not None,
        added=add_noise,
    )


def denoise_signals(
    data: Any,
    sigma: float | None,
    method: str,
    add_noise: float | None,
    seed: int,
    progress: Progress,
    reading: Reading,
) -> DenoisedSignals:
    """Signals without their noise, each for itself."""
    if method not in ("hard", "soft"):
        raise InputError(f"--method {method}: signals are cleaned by a threshold. Choose hard or soft.")
    with progress.doing("reading"):
        original = as_signals(data, **reading)
        from twofold.signals import denoise_signal, estimate_sigma

    notes, noisy = original.notes, add_to_signals(original, add_noise, seed)
    sigmas = [float(estimate_sigma(one)) if sigma is None else sigma for one in noisy.signals]
    if sigma is None:
        notes.append("noise estimated from the finest wavelets (--sigma sets its standard deviation)")
    if add_noise:
        notes.append(f"noise of standard deviation {add_noise:g} was added to {original.source} first, as a test")
    with progress.share("denoising") as tell:
        signals = denoise_signal(noisy.signals, sigma, method=method, progress=tell)
    answer = DenoisedSignals(
        source=original.source,
        notes=notes,
        call={
            "verb": "denoise",
            "data": signals_in_code(data),
            "sigma": sigma,
            "method": method,
            "add_noise": add_noise,
            "seed": seed,
            **in_call(reading),
        },
        before=noisy,
        after=replace(noisy, signals=signals),
        original=original,
        sigmas=sigmas,
        sigma_given=sigma is not None,
        added=add_noise,
    )
    judge_signals(answer)
    return answer


def add_to_signals(recording: Recording, add_noise: float | None, seed: int) -> Recording:
    """The signals as they are to be cleaned."""
    from twofold.core.seeds import generator
    from twofold.signals.images._channels import cast_values

    if not add_noise:
        return recording
    noisy = recording.signals + generator(seed, 1).normal(0, add_noise, recording.signals.shape)
    return replace(recording, signals=cast_values(noisy, recording.signals.dtype))


def judge_signals(answer: DenoisedSignals) -> None:
    """Figures of all signals, which may have different units: means of what has none."""
    table = answer.table
    noise, left, alike = (table[name].to_numpy() for name in ("noise", "left", "removed_correlation"))
    answer.figures = {
        "what": "estimated noise that is left, of what there was",
        "noise": float(np.mean(left / np.where(noise > 0, noise, 1))),
        "removed_correlation": float(np.abs(alike).mean()),
    }
    answer.baseline = {"method": "the signals as they were", "noise": 1.0}
    if answer.added:
        answer.figures |= {"what": "SNR in dB, against the signals without the added noise"}
        answer.figures["snr"], answer.baseline["snr"] = table.select("snr", "snr_before").mean().row(0)


def with_noise(image: Picture, add_noise: float | None, seed: int) -> Picture:
    """The image as it is to be cleaned."""
    from twofold.core.seeds import generator

    if not add_noise:
        return image
    noise = generator(seed, 1).normal(0, add_noise, image.pixels.shape)
    noisy = np.clip(np.rint(image.pixels + noise), 0, image.peak).astype(image.pixels.dtype)
    return replace(image, pixels=noisy)


def judge(
    original: Picture, noisy: Picture, clean: np.ndarray, before: float, add_noise: float | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """How much noise is left, what was taken away, and, where the truth is known, how near the result is to it."""
    from twofold.metrics import psnr
    from twofold.signals import estimate_sigma

    taken, alike = removed(noisy.pixels, clean)
    figures = {
        "what": "estimated standard deviation of the noise that is left",
        "noise": float(estimate_sigma(clean)),
        "removed_sd": taken,
        "removed_correlation": alike,
    }
    baseline = {"method": "the image as it was", "noise": before}
    if add_noise:
        figures |= {"what": "PSNR in dB, against the image without the added noise"}
        figures["psnr"] = psnr(original.pixels, clean, original.peak)
        baseline["psnr"] = psnr(original.pixels, noisy.pixels, original.peak)
    return figures, baseline


def removed(given: np.ndarray, clean: np.ndarray) -> tuple[float, float]:
    """How much was taken away, and how alike neighbors in it are: pure noise has none, lost edges and textures do."""
    gone = np.subtract(
        given, clean, dtype=np.float32 if given.itemsize <= 4 else np.float64
    )  # large: one copy, no more
    gone -= gone.mean(dtype=np.float64)

    def together(a: np.ndarray, b: np.ndarray) -> float:
        places = "hw"[: min(a.ndim, 2)]
        total = np.einsum(f"{places}...,{places}...->...", a, b, dtype=np.float64).mean()
        return float(total) / max(int(np.prod(a.shape[:2])), 1)

    power = together(gone, gone)
    if power == 0:
        return 0.0, 0.0
    beside = [together(gone[1:], gone[:-1])]
    if gone.ndim > 1:
        beside.append(together(gone[:, 1:], gone[:, :-1]))
    return power**0.5, float(np.mean(beside)) / power


def held_out_line(whole: str, measure: str, gain: float) -> str:
    said = f"rises by {gain:.2f}" if gain >= 0 else f"falls by {-gain:.2f}"
    own = "" if gain >= 0 else f": the {whole} has noise of its own, which went too"
    return f"held out: against the {whole} without the added noise, {measure} {said} dB{own}"


def removed_line(taken: float, alike: float, level: float, dots: str = "pixels", whole: str = "image") -> str:
    if taken == 0:
        return "check: nothing was taken away"
    judged = "as noise should be" if abs(alike) < PURE else f"so some of the {whole} went with the noise"
    return (
        f"check: what was taken away has standard deviation {taken:.3g} (noise: {level:.3g}), and its neighboring "
        f"{dots} correlate by {alike:+.2f}, {judged}"
    ).replace("-", "−")
