"""`twofold train`: a network or a generator, from images or a table."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from twofold.analyses.train import KINDS, Training
from twofold.analyses.train import train as analyze
from twofold.cli import _options as options
from twofold.cli._run import command

KIND = f"What to train: {', '.join(KINDS)}."
TAKES = "Images: a folder (subfolders are classes), .npy, .npz, idx files. For mlp also a table."
TARGET = "For mlp on a table: the column to predict."
NUMBERS = "Numbers in a code (vae, gan, vaegan, autoencoder), or in the top layer (dlgm, the next has twice as many)."
HINT = "nothing is kept; add --save model.twofold, then: twofold apply model.twofold NEW"
SIZE = "Scale the images of a folder to squares of this side."


@command(Training, "Course of the training", HINT)
def train(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=KIND)],
    source: Annotated[str, typer.Argument(metavar="INPUT", help=TAKES)],
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help=TARGET)] = None,
    components: Annotated[int | None, typer.Option("-k", "--components", min=1, metavar="N", help=NUMBERS)] = None,
    epochs: Annotated[int | None, typer.Option(min=1, metavar="N", help="Passes over the data.")] = None,
    size: Annotated[int | None, typer.Option(min=2, metavar="PIXELS", help=SIZE)] = None,
    seed: options.Seed = 0,
) -> Training:
    wishes: dict[str, Any] = {"target": target, "n_components": components, "epochs": epochs, "size": size}
    return analyze(kind, source, **wishes, seed=seed)
