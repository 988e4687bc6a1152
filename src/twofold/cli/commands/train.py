"""`twofold train`: a network or a generator, from pictures or a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from twofold.cli._console import check_save, check_targets, waiting
from twofold.cli._pictures import AsJson, Force, Quiet, Seed, deliver, figure_writer
from twofold.core.checks import InputError

KINDS = ("vae", "gan", "pixelcnn", "autoencoder", "mlp", "cnn")
KIND = f"{', '.join(KINDS)}."
TAKES = "A folder of pictures (subfolders are classes), .npy, .npz, idx files; a table for mlp."
TARGET = "For mlp on a table: the column to predict."
NUMBERS = "Numbers in a code (vae, gan, autoencoder)."
SIZE = "Scale the pictures of a folder to squares of this side."
SHOWN = "A look at the result: .png or .html."
DRAWN = (".png", ".html")


def train(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=KIND)],
    source: Annotated[str, typer.Argument(metavar="INPUT", help=TAKES)],
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help=TARGET)] = None,
    components: Annotated[int | None, typer.Option("-k", "--components", min=1, metavar="N", help=NUMBERS)] = None,
    epochs: Annotated[int | None, typer.Option(min=1, metavar="N", help="Passes over the data.")] = None,
    size: Annotated[int | None, typer.Option(min=2, metavar="PIXELS", help=SIZE)] = None,
    out: Annotated[list[Path] | None, typer.Option("-o", "--out", metavar="FILE", help=SHOWN)] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the model (.twofold).")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    out = out or []
    if kind not in KINDS:
        raise InputError(f"{kind} cannot be trained here. Choose {', '.join(KINDS)}.")
    if components is not None and kind in ("pixelcnn", "mlp", "cnn"):
        raise InputError(f"--components {components}: a {kind} has no code. Leave it out.")
    check_targets(out, DRAWN, force, [source])
    if save is not None:
        check_save(save, out, force, [source])
    with waiting("reading", quiet):
        from twofold.analyses.train import analyse, read  # torch takes seconds to import: the above is told before

        data = read(kind, source, target, size)
    model, outcome, figure = analyse(kind, data, components, epochs, seed, quiet, drawn=bool(out))
    if save is None:
        then = ", then: twofold generate model.twofold" if kind in ("vae", "gan", "pixelcnn") else ""
        outcome.notes.append(f"the model is not kept; add --save model.twofold{then}")
    writers: dict[Path, Any] = {path: figure_writer(path, figure, outcome) for path in out}
    deliver(outcome, writers | ({save: model.save} if save else {}), as_json, quiet)
