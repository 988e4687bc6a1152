"""`twofold generate`: new pictures from a model that was trained to make them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from twofold.cli._console import check_targets, waiting
from twofold.cli._pictures import AsJson, Force, Outcome, Quiet, Seed, deliver, fraction_bar, void
from twofold.core.checks import InputError
from twofold.core.files.model_file import load
from twofold.io.tables.read import missing_message

ENDINGS = (".png", ".npy")
GRID = "A grid of the pictures (.png), or their numbers (.npy); repeatable."


def generate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A .twofold file that twofold train wrote.")],
    count: Annotated[int, typer.Option("-n", "--count", min=1, metavar="N", help="How many.")] = 64,
    out: Annotated[list[Path] | None, typer.Option("-o", "--out", metavar="FILE", help=GRID)] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    out = out or []
    check_targets(out, ENDINGS, force, [model])
    if not Path(model).is_file():
        raise InputError(missing_message(model))
    with waiting("reading", quiet):
        found = load(model)
    drawn = samples(found, model, count, seed, quiet)
    shape = " × ".join(map(str, drawn.shape[1:]))
    rows = [["least", f"{drawn.min():.4g}"], ["mean", f"{drawn.mean():.4g}"], ["largest", f"{drawn.max():.4g}"]]
    name = type(found).__name__
    facts = {"model": name, "count": count, "shape": list(drawn.shape[1:]), "mean": float(drawn.mean())}
    notes = [] if out else ["nothing is written; add -o grid.png to look at them, -o numbers.npy to keep them"]
    outcome = Outcome(f"{model}: {count:,} of {shape}, drawn by a {name}", ["", "value"], rows, [], facts, notes)
    deliver(outcome, {path: writer(path, found, drawn) for path in out}, as_json, quiet)


def samples(found: Any, model: str, count: int, seed: int, quiet: bool) -> np.ndarray:
    if not hasattr(found, "sample"):
        raise InputError(f"{model} holds a {type(found).__name__}, which draws nothing. Train a vae, gan or pixelcnn.")
    if type(found).__name__ == "PixelCNN":  # pixel by pixel: long enough for a bar
        with fraction_bar("drawing", quiet) as progress:
            return found.sample(count, random_state=seed, progress=progress)
    with waiting("drawing", quiet):
        drawn = found.sample(count, random_state=seed)
    return np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn)


def writer(path: Path, found: Any, drawn: np.ndarray) -> Any:
    if path.suffix.lower() == ".npy":
        return lambda to: np.save(to, drawn)
    if drawn.ndim == 2 and len(getattr(found, "image_shape_", (1, 1))) >= 2 and found.image_shape_[0] > 1:
        drawn = drawn.reshape(len(drawn), *found.image_shape_)
    if drawn.ndim == 2:
        raise InputError(f"{path}: rows of numbers are no pictures. Write them as .npy.")
    from twofold.plots.models.deep import grid_png

    data = grid_png(drawn, getattr(found, "range_", None))
    return lambda to: void(to.write_bytes(data))
