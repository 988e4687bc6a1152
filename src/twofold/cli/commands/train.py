"""`twofold train`: a network or a generator, from images or a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twofold.analyses.progress import Progress
from twofold.analyses.train import GENERATORS, KINDS, Training
from twofold.analyses.train import train as analyze
from twofold.cli import _options as options
from twofold.cli._run import Output, run

KIND = f"What to train: {', '.join(KINDS)}."
TAKES = "Images: a folder (subfolders are classes), .npy, .npz, idx files. For mlp also a table."
TARGET = "For mlp on a table: the column to predict."
NUMBERS = "Numbers in a code (vae, gan, autoencoder)."
SIZE = "Scale the images of a folder to squares of this side."


def train(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=KIND)],
    source: Annotated[str, typer.Argument(metavar="INPUT", help=TAKES)],
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help=TARGET)] = None,
    components: Annotated[int | None, typer.Option("-k", "--components", min=1, metavar="N", help=NUMBERS)] = None,
    epochs: Annotated[int | None, typer.Option(min=1, metavar="N", help="Passes over the data.")] = None,
    size: Annotated[int | None, typer.Option(min=2, metavar="PIXELS", help=SIZE)] = None,
    out: Annotated[list[Path] | None, options.out(Training.endings, "Course of the training")] = None,
    save: options.Save = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    then = "generate model.twofold" if kind in GENERATORS else "apply model.twofold NEW"

    def analysis(watch: Progress) -> Training:
        answer = analyze(
            kind,
            source,
            target=target,
            n_components=components,
            epochs=epochs,
            size=size,
            seed=seed,
            progress=watch,
        )
        if save is None:
            answer.notes.append(f"the model is not kept; add --save model.twofold, then: twofold {then}")
        return answer

    run(analysis, Output(out or [], save, as_json, force, quiet), Training, [source])
