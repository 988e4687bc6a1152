"""`twofold inpaint`: the holes of a picture filled, every other pixel as it was."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from twofold.cli._console import waiting
from twofold.cli._pictures import (
    AsJson,
    Compare,
    Force,
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
from twofold.core.checks import InputError
from twofold.core.seeds import generator
from twofold.io.images import Picture, color_of, read_image

MASK = "A picture of the same size, white where pixels are missing."
COLOR = "The colour that marks missing pixels, such as '#ff00ff'."
TOLERANCE = "How far from --color, 0 to 255 in each of red, green and blue, still counts."
ASKED = "Give --mask mask.png (white: missing), --color '#ff00ff', or a picture with transparent pixels"
WINDOW = 160  # pixels on the side of what the check looks at: enough for a figure, and quick
MOST_HIDDEN = 0.05  # of its pixels


class Check(NamedTuple):
    """How well known pixels come back after they were hidden."""

    pixels: int
    psnr: float
    bilinear: float


def inpaint(
    source: Source,
    mask: Annotated[str | None, typer.Option(metavar="FILE", help=MASK)] = None,
    color: Annotated[str | None, typer.Option("--color", metavar="COLOUR", help=COLOR)] = None,
    tolerance: Annotated[int, typer.Option(min=0, max=255, metavar="N", help=TOLERANCE)] = 0,
    out: Out = None,
    compare: Compare = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    out = out or []
    if mask is not None and color is not None:
        raise InputError("--mask and --color both say what is missing. Give one of them.")
    check_outputs(out, compare, force, [source, *([mask] if mask else [])])
    with waiting("reading", quiet):
        picture = read_image(source)
        holes = find_holes(picture, mask, color, tolerance)
        whole = opaque(picture, holes)
        check_pictures(out, whole)
    whole, outcome = filled(picture, whole, holes, seed, quiet)
    if not (out or compare):
        outcome.notes.append(
            "nothing is written; add -o whole.png to keep the picture, --compare both.png to look at it"
        )
    writers = {path: picture_writer(path, whole) for path in out}
    if compare is not None:
        from twofold.plots.models.images import comparison_figure, paint_holes

        panels = [("before", paint_holes(picture.pixels, holes)), ("after", whole.pixels)]
        writers[compare] = figure_writer(compare, comparison_figure(panels, outcome.title), outcome)
    deliver(outcome, writers, as_json, quiet)


def find_holes(picture: Picture, mask: str | None, color: str | None, tolerance: int) -> np.ndarray:
    """Which pixels are missing (h,w), and a note on how that was told."""
    if mask is not None:
        holes = masked(picture, mask)
        said = f"{mask}: white marks what is missing"
    elif color is not None:
        holes = colored(picture, color, tolerance)
        said = f"pixels of colour {color} are missing"
    elif picture.alpha is not None and not picture.alpha.all():
        holes, said = picture.alpha == 0, "wholly transparent pixels are taken for missing"
    else:
        raise InputError(f"{picture.source}: nothing says which pixels are missing. {ASKED}.")
    share = holes.mean()
    if share == 1:
        raise InputError(f"{picture.source}: {said}, and that is every pixel. Nothing is left to learn from.")
    picture.notes.append(f"{said}: {holes.sum():,} pixels ({share:.1%})")
    if mask is not None and share > 0.9:
        picture.notes.append("if the mask is white where pixels are known, invert it")
    return holes


def masked(picture: Picture, mask: str) -> np.ndarray:
    given = read_image(mask)
    light = given.pixels if given.pixels.ndim == 2 else given.pixels.mean(axis=2)
    if light.shape != picture.pixels.shape[:2]:
        (h, w), (H, W) = light.shape, picture.pixels.shape[:2]
        raise InputError(f"{mask} has {w} × {h} pixels, {picture.source} {W} × {H}. A mask has the picture's size.")
    holes = light > given.peak / 2
    if not holes.any():
        raise InputError(f"{mask} has no white pixel, so nothing is missing. Paint white what is to be filled.")
    return holes


def colored(picture: Picture, color: str, tolerance: int) -> np.ndarray:
    want = np.array(color_of(color))
    pixels = picture.pixels.astype(np.float64) * (255 / picture.peak)
    if pixels.ndim == 2:
        if len(set(want.tolist())) > 1:
            raise InputError(f"--color {color}: {picture.source} is grey. Give a grey, such as '#ffffff', or a --mask.")
        pixels, want = pixels[..., None], want[:1]
    off = np.abs(pixels - want).max(axis=2)
    if off.min() > tolerance:
        raise InputError(
            f"--color {color}: no pixel of {picture.source} has it; the nearest is {off.min():.0f} off. "
            f"Use --tolerance {int(np.ceil(off.min()))} or more, or a --mask."
        )
    return off <= tolerance


def opaque(picture: Picture, holes: np.ndarray) -> Picture:
    """The picture as it will be: what is filled can be seen."""
    if picture.alpha is None:
        return picture
    alpha = np.where(holes, picture.peak, picture.alpha).astype(picture.alpha.dtype)
    return replace(picture, alpha=alpha if alpha.min() < picture.peak else None)


def filled(picture: Picture, whole: Picture, holes: np.ndarray, seed: int, quiet: bool) -> tuple[Picture, Outcome]:
    """The picture without holes, and what there is to say about it."""
    from twofold.signals.images.inpaint import inpaint_image  # takes seconds to import: bad input is told before

    start = time.perf_counter()
    with fraction_bar("inpainting", quiet) as progress:
        pixels = inpaint_image(picture.pixels, holes, random_state=seed, progress=progress)
    with fraction_bar("checking", quiet) as progress:
        check = checked(picture, holes, seed, lambda *args: inpaint_image(*args, random_state=seed, progress=progress))
    facts: dict[str, Any] = size_facts(picture) | {"missing": holes.sum(), "share": holes.mean(), "held_out": {}}
    rows, lines = [], ["held out: nothing, too few pixels are known"]
    if check is not None:
        facts["held_out"] = {"pixels": check.pixels, "psnr": check.psnr, "psnr_bilinear": check.bilinear}
        rows = [["dictionary of patches", decibels(check.psnr)], ["bilinear interpolation", decibels(check.bilinear)]]
        lines = [f"held out: {check.pixels:,} known pixels were hidden, in holes of the same shape, and filled in"]
        if check.bilinear > check.psnr:
            lines.append("straight lines do better here: holes larger than a patch (8 pixels) are mostly guessed")
    facts["seconds"] = round(time.perf_counter() - start, 3)
    title = f"{size_line(picture)} → {holes.sum():,} missing pixels ({holes.mean():.1%}) filled"
    head = ["filled by", "PSNR on hidden pixels"]
    return replace(whole, pixels=pixels), Outcome(title, head, rows, lines, facts, picture.notes)


def checked(picture: Picture, holes: np.ndarray, seed: int, fill: Any) -> Check | None:
    """Hide known pixels in the shape of the holes, moved elsewhere, and fill them again."""
    from twofold.metrics import psnr

    part, missing, hidden = to_hide(holes, seed)
    if not hidden.any() or (missing | hidden).all():
        return None
    pixels = picture.pixels[part]
    guesses = fill(pixels, missing | hidden)[hidden], bilinear(pixels, missing | hidden, hidden)
    scores = [psnr(pixels[hidden], guess, picture.peak) for guess in guesses]
    return Check(int(hidden.sum()), *scores)


def to_hide(holes: np.ndarray, seed: int) -> tuple[tuple[slice, slice], np.ndarray, np.ndarray]:
    """A part of the picture, what is missing there (h,w), and the known pixels to hide (h,w)."""
    rng = generator(seed, 1)
    h, w = holes.shape
    moved = np.roll(holes, (rng.integers(h), rng.integers(w)), axis=(0, 1)) & ~holes
    at = np.argwhere(moved)
    row, column = at[rng.integers(len(at))] if len(at) else (0, 0)
    top = int(np.clip(row - WINDOW // 2, 0, max(h - WINDOW, 0)))
    left = int(np.clip(column - WINDOW // 2, 0, max(w - WINDOW, 0)))
    part = slice(top, top + WINDOW), slice(left, left + WINDOW)
    hidden = np.zeros_like(holes[part])
    where = np.flatnonzero(moved[part])  # neighbours stay together, so holes keep their shape
    most = max(int(MOST_HIDDEN * hidden.size), 1)
    first = int(rng.integers(max(len(where) - most, 0) + 1))
    hidden.flat[where[first : first + most]] = True
    return part, holes[part], hidden


def bilinear(pixels: np.ndarray, missing: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """What straight lines along the row and the column give at the pixels wanted; the shorter one weighs more."""
    values = np.atleast_3d(pixels).astype(np.float64)
    guess, weight = np.zeros_like(values), np.zeros(missing.shape)
    for axis in (0, 1):  # views: what is added to them is added to all
        turned = [np.moveaxis(array, axis, 0) for array in (values, guess, weight, missing)]
        for line in range(missing.shape[1 - axis]):
            add_line(*(array[:, line] for array in turned))
    mean = values[~missing].mean(axis=0)  # for pixels without a known one in their row and column
    out = np.where(weight[..., None] > 0, guess / np.maximum(weight, 1e-12)[..., None], mean)[wanted]
    return out if pixels.ndim == 3 else out[:, 0]


def add_line(values: np.ndarray, guess: np.ndarray, weight: np.ndarray, missing: np.ndarray) -> None:
    """Add what one line (n,c) tells of its missing pixels, weighed by 1 / their distance to a known one."""
    known, holes = np.flatnonzero(~missing), np.flatnonzero(missing)
    if not len(known) or not len(holes):
        return
    after = np.searchsorted(known, holes)
    left, right = known[np.maximum(after - 1, 0)], known[np.minimum(after, len(known) - 1)]
    near = 1 / np.minimum(np.abs(holes - left), np.abs(right - holes))
    weight[holes] += near
    for c in range(values.shape[1]):
        guess[holes, c] += near * np.interp(holes, known, values[known, c])
