"""The noise of an image taken away, its edges and textures left.

Patches of the image are coded with few atoms of a dictionary that they teach. How much noise is left is estimated; with
noise that was added first, as a test, the result is compared with the image itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from twofold.analyses._images import ImageAnswer, as_image, decibels, image_in_code, size_line
from twofold.analyses.answer import Grid, analysis
from twofold.analyses.progress import SILENT, Progress
from twofold.core.checks import InputError
from twofold.io.images import Picture

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
            gain = own["psnr"] - self.baseline["psnr"]
            lines.append(f"held out: against the image without the added noise, PSNR rises by {gain:.2f} dB")
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


@analysis
def denoise(
    image: Any,
    *,
    sigma: float | None = None,
    add_noise: float | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Denoised:
    """Take the noise out of an image.

    Parameters
    ----------
    image : path or array
        A file, or uint8 or uint16 of shape (h, w), (h, w, 3), or with transparency as one more channel.
    sigma : float or None
        Standard deviation of the noise, in the image's units. None: estimated, for each channel.
    add_noise : float or None
        First add noise of this standard deviation, and measure how much of the image comes back.
    seed, progress
        The seed of everything random; who is told what goes on.

    Returns
    -------
    Denoised
        ``image`` holds the result.

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
    with progress.doing("reading"):
        original = as_image(image)
        from twofold.signals import denoise_image, estimate_sigma

    notes = original.notes
    noisy = with_noise(original, add_noise, seed)
    before = float(estimate_sigma(noisy.pixels))
    if sigma is None:
        notes.append(f"noise estimated from the image: standard deviation {before:.3g} (--sigma sets it)")
    if add_noise:
        notes.append(f"noise of standard deviation {add_noise:g} was added to {original.source} first, as a test")
    with progress.share("denoising") as tell:
        pixels = denoise_image(noisy.pixels, sigma, random_state=seed, progress=tell)
    figures, baseline = judge(original, noisy, pixels, before, add_noise)
    return Denoised(
        source=original.source,
        figures=figures,
        baseline=baseline,
        notes=notes,
        call={
            "verb": "denoise",
            "data": image_in_code(image),
            "sigma": sigma,
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
    gone = np.subtract(given, clean, dtype=np.float32)  # large images: one copy and no more
    gone -= gone.mean(dtype=np.float64)

    def together(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.einsum("hw...,hw...->...", a, b, dtype=np.float64).mean()) / max(a.shape[0] * a.shape[1], 1)

    power = together(gone, gone)
    if power == 0:
        return 0.0, 0.0
    beside = [together(gone[1:], gone[:-1]), together(gone[:, 1:], gone[:, :-1])]
    return power**0.5, float(np.mean(beside)) / power


def removed_line(taken: float, alike: float, level: float) -> str:
    if taken == 0:
        return "check: nothing was taken away"
    judged = "as noise should be" if abs(alike) < PURE else "so some of the image went with the noise"
    return (
        f"check: what was taken away has standard deviation {taken:.2f} (noise: {level:.2f}), and its neighboring "
        f"pixels correlate by {alike:+.2f}, {judged}"
    ).replace("-", "−")
