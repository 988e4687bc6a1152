"""A network or a generator, trained on nine tenths of the data and tested on the tenth that it has not seen."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np

from twofold.analyses.common.analysis import OneFile, Seed, analysis
from twofold.analyses.common.tables import warnings_as_notes
from twofold.analyses.train.answer import Training
from twofold.analyses.train.heldout import MEASURES
from twofold.analyses.train.models import CODED, MODELS, PREDICTING, find_class
from twofold.analyses.train.read import Data, read_data
from twofold.core.checks import InputError
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing

MIN_ROWS = 20  # below, nothing can be set aside
MAX_HELD_OUT = 10_000


@analysis()
def train(
    kind: Literal["vae", "dlgm", "gan", "vaegan", "pixelcnn", "autoencoder", "mlp", "cnn"],
    data: OneFile,
    *,
    target: Annotated[Any, Flag(unit="COLUMN")] = None,
    n_components: Annotated[int | tuple[int, ...] | None, Flag("-k", "--components", min=1, unit="N")] = None,
    epochs: Annotated[int | None, Flag(min=1, unit="N", sets="max_iter")] = None,
    size: Annotated[int | None, Flag(min=2, unit="PIXELS")] = None,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> Training:
    """Train a network or a generator on images: vae, gan, pixelcnn, cnn, ...

    Parameters
    ----------
    kind
        What to train: mlp and cnn predict; the others learn what the data is like.
    data : path, frame or array
        Images: a folder, whose subfolders are classes, `.npy`, `.npz` or idx files, or an array (n, h, w) or
        (n, h, w, c). Rows: an array (n, d). For mlp also a table: a file or a frame.
    target : str, array or None
        The column of the table to predict; or, beside an array, the n classes or numbers to predict.
    n_components : int, tuple of int or None
        Numbers in a code, of vae, dlgm, gan, vaegan and autoencoder; for dlgm in each layer from the top, where one
        number is that of the top of two, the other having twice as many. None: as the model has it.
    epochs
        Passes over the data. Default: as the model has it.
    size
        Scale the images of a folder to squares of this side.

    Returns
    -------
    Training
        ``model`` keeps the names of a table's columns; ``table`` is the course of the training.
    """
    if n_components is not None and kind not in CODED:
        raise InputError(f"⟨n_components={n_components}⟩: a {kind} has no code. Leave it out.")
    if kind == "dlgm" and isinstance(n_components, int):
        n_components = (n_components, 2 * n_components)
    with doing("reading"):
        found = read_data(kind, data, target, size)
    n, notes = len(found.X), found.notes
    if n < MIN_ROWS:
        raise InputError(f"{found.source} has {n} rows; {MIN_ROWS} are needed to learn from some and test on others.")
    with doing("loading torch"):
        model = find_class("MLPRegressor" if kind == "mlp" and not found.has_classes else MODELS[kind])(
            random_state=seed
        )
        from twofold.core.seeds import generator

    held, kept = np.split(generator(seed, 7).permutation(n), [min(max(n // 10, 2), MAX_HELD_OUT)])
    notes.append(f"{len(held):,} of {n:,} are set aside for the test, drawn by ⟨seed={seed}⟩")
    model.set_params(
        **({"max_iter": epochs} if epochs else {}), **({"n_components": n_components} if n_components else {})
    )
    if kind == "dlgm":
        notes.append(f"numbers in a code, from the top layer down: {', '.join(map(str, model.n_components))}")
    with warnings_as_notes(notes):
        model.fit(found.X[kept], *([found.y[kept]] if kind in PREDICTING and found.y is not None else []))
    with doing("measuring"):
        measured = MEASURES[kind](model, found, kept, held)
    remember(model, found)
    return Training(
        source=found.source,
        model=model,
        figures=measured.figures,
        baseline=measured.baseline,
        notes=notes,
        chosen={"n_components": model.n_components if kind in CODED else None, "epochs": model.max_iter},
        kind=kind,
        data=found,
        held=held,
        measured=measured,
    )


def remember(model: Any, data: Data) -> None:
    """Keep the names of columns and the shape of images in the model, for new rows."""
    if data.columns is not None:
        model.feature_names_in_ = np.array(data.columns, dtype=object)
        model.target_name_ = data.target
    if data.image_shape:
        model.image_shape_, model.flat_ = data.image_shape, True
