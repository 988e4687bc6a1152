"""`twofold denoise`: the noise of a picture taken away, its edges and textures left."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import typer

from twofold.cli._console import waiting
from twofold.cli._pictures import (
    AsJson,
    Compare,
    Force,
    Fraction,
    Out,
    Outcome,
    Quiet,
    Seed,
    Source,
    check_outputs,
    check_pictures,
    decibels,
    deliver,
    figure_writer,
    fraction_bar,
    picture_writer,
    size_facts,
    size_line,
)
from twofold.core.seeds import generator
from twofold.io.images import Picture, read_image

SIGMA = "Standard deviation of the noise, in the picture's units (0 to 255). Default: estimated."
TRY = "First add noise of this standard deviation, and report how much comes back: a test of the method."


def denoise(
    source: Source,
    sigma: Annotated[float | None, typer.Option(min=0, metavar="S", help=SIGMA)] = None,
    add_noise: Annotated[float | None, typer.Option(min=0, metavar="S", help=TRY)] = None,
    out: Out = None,
    compare: Compare = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    out = out or []
    check_outputs(out, compare, force, [source])
    with waiting("reading", quiet):
        picture = read_image(source)
        check_pictures(out, picture)
        given = with_noise(picture, add_noise, seed)
    with fraction_bar("denoising", quiet) as progress:
        clean, outcome = cleaned(picture, given, sigma, add_noise, seed, progress)
    if not (out or compare):
        outcome.notes.append(
            "nothing is written; add -o clean.png to keep the picture, --compare both.png to look at it"
        )
    writers = {path: picture_writer(path, clean) for path in out}
    if compare is not None:
        writers[compare] = figure_writer(compare, figure(picture, given, clean, add_noise, outcome), outcome)
    deliver(outcome, writers, as_json, quiet)


def with_noise(picture: Picture, add_noise: float | None, seed: int) -> Picture:
    """The picture as it is to be cleaned."""
    if not add_noise:
        return picture
    noise = generator(seed, 1).normal(0, add_noise, picture.pixels.shape)
    noisy = np.clip(np.rint(picture.pixels + noise), 0, picture.peak).astype(picture.pixels.dtype)
    return replace(picture, pixels=noisy)


def cleaned(
    picture: Picture, given: Picture, sigma: float | None, add_noise: float | None, seed: int, progress: Fraction | None
) -> tuple[Picture, Outcome]:
    """The picture without its noise, and what there is to say about it."""
    from twofold.metrics import psnr
    from twofold.signals.images.denoise import denoise_image, estimate_sigma  # seconds: bad input is told before

    start = time.perf_counter()
    notes = list(picture.notes)
    before = float(estimate_sigma(given.pixels))
    if sigma is None:
        notes.append(f"noise estimated from the picture: standard deviation {before:.3g} (--sigma sets it)")
    level = before if sigma is None else sigma
    pixels = denoise_image(given.pixels, sigma, random_state=seed, progress=progress)
    clean = replace(given, pixels=pixels)
    taken, alike = removed(given.pixels, pixels)
    after = float(estimate_sigma(pixels))
    facts: dict[str, Any] = size_facts(picture) | {"sigma": level, "sigma_given": sigma is not None}
    facts |= {"noise_before": before, "noise_after": after, "removed_sd": taken, "removed_correlation": alike}
    rows = [["before", f"{before:.2f}"], ["after", f"{after:.2f}"]]
    head, lines = ["", "noise"], [removed_line(taken, alike, level)]
    if add_noise:
        notes.append(f"noise of standard deviation {add_noise:g} was added to {picture.source} first, as a test")
        scores = [psnr(picture.pixels, one, picture.peak) for one in (given.pixels, pixels)]
        head, rows = [*head, "PSNR"], [[*row, decibels(score)] for row, score in zip(rows, scores, strict=True)]
        lines.append(
            f"held out: against the picture without the added noise, PSNR rises by {scores[1] - scores[0]:.2f} dB"
        )
        facts |= {"added_noise": add_noise, "psnr_before": scores[0], "psnr_after": scores[1]}
    facts["seconds"] = round(time.perf_counter() - start, 3)
    return clean, Outcome(f"{size_line(picture)} → noise {level:.3g} taken away", head, rows, lines, facts, notes)


def removed(given: np.ndarray, clean: np.ndarray) -> tuple[float, float]:
    """How much was taken away, and how alike neighbours in it are: pure noise has none, lost edges and textures do."""
    gone = np.subtract(given, clean, dtype=np.float32)  # large pictures: one copy and no more
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
    judged = "as noise should be" if abs(alike) < 0.1 else "so some of the picture went with the noise"
    return (
        f"check: what was taken away has standard deviation {taken:.2f} (noise: {level:.2f}), and its neighbouring "
        f"pixels correlate by {alike:+.2f}, {judged}"
    ).replace("-", "−")


def figure(picture: Picture, given: Picture, clean: Picture, add_noise: float | None, outcome: Outcome) -> Any:
    from twofold.plots.models.images import comparison_figure

    facts = outcome.facts
    if not add_noise:
        panels = [("before", given.pixels), ("after", clean.pixels)]
    else:
        panels = [
            ("original", picture.pixels),
            (f"with noise, {decibels(facts['psnr_before'])}", given.pixels),
            (f"cleaned, {decibels(facts['psnr_after'])}", clean.pixels),
        ]
    return comparison_figure(panels, title=outcome.title)
