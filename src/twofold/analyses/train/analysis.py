"""A network or a generator, trained on nine tenths of the data and tested on the tenth that it has not seen."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from twofold.analyses.common.answer import analysis
from twofold.analyses.common.images import Variable
from twofold.analyses.common.tables import data_in_code, warnings_as_notes
from twofold.analyses.train.answer import Training
from twofold.analyses.train.heldout import MEASURES
from twofold.analyses.train.models import CODED, KINDS, MODELS, PREDICTING, find_class
from twofold.analyses.train.read import Data, read_data
from twofold.core.checks import InputError
from twofold.core.progress import Progress, doing

REMEDIES = {  # advice of the library -> advice that a user of the verb can follow
    r"\(posterior collapse\)\. .*": "(posterior collapse). Ask for fewer with -k, or for more --epochs.",
    r"\(collapse\)\. .*": "(collapse). Try another --seed, or fewer --epochs.",
}
MIN_ROWS = 20  # below, nothing can be set aside
MAX_HELD_OUT = 10_000


@analysis
def train(
    kind: str,
    data: Any,
    *,
    target: Any = None,
    n_components: int | tuple[int, ...] | None = None,
    epochs: int | None = None,
    size: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Training:
    """Train a network or a generator.

    Parameters
    ----------
    kind : {"vae", "dlgm", "gan", "vaegan", "pixelcnn", "autoencoder", "mlp", "cnn"}
        mlp and cnn predict; the others learn what the data is like.
    data : path, frame or array
        Images: a folder, whose subfolders are classes, `.npy`, `.npz` or idx files, or an array (n, h, w) or
        (n, h, w, c). Rows: an array (n, d). For mlp also a table: a file or a frame.
    target : str, array or None
        The column of the table to predict; or, beside an array, the n classes or numbers to predict.
    n_components : int, tuple of int or None
        Numbers in a code, of vae, dlgm, gan, vaegan and autoencoder; for dlgm in each layer from the top, where one
        number is that of the top of two, the other having twice as many. None: as the model has it.
    epochs : int or None
        Passes over the data. None: as the model has it.
    size : int or None
        Scale the images of a folder to squares of this side.
    seed, progress
        The seed of everything random; who is told what goes on.

    Returns
    -------
    Training
        ``model`` keeps the names of a table's columns; ``table`` is the course of the training.
    """
    if kind not in KINDS:
        raise InputError(f"{kind} cannot be trained here. Choose {', '.join(KINDS)}.")
    if n_components is not None and kind not in CODED:
        raise InputError(f"--components {n_components}: a {kind} has no code. Leave it out.")
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
    notes.append(f"{len(held):,} of {n:,} are set aside for the test, drawn by --seed {seed}")
    model.set_params(
        **({"max_iter": epochs} if epochs else {}), **({"n_components": n_components} if n_components else {})
    )
    if kind == "dlgm":
        notes.append(f"numbers in a code, from the top layer down: {', '.join(map(str, model.n_components))}")
    said: list[str] = []
    with warnings_as_notes(said):
        model.fit(found.X[kept], *([found.y[kept]] if kind in PREDICTING and found.y is not None else []))
    notes += map(rewrite_advice, said)
    with doing("measuring"):
        measured = MEASURES[kind](model, found, kept, held)
    remember(model, found)
    named = target is None or isinstance(target, str)
    return Training(
        source=found.source,
        model=model,
        figures=measured.figures,
        baseline=measured.baseline,
        notes=notes,
        call={
            "verb": "train",
            "first": kind,
            "data": data_in_code(data),
            "target": target if named else Variable("target"),
            "n_components": model.n_components if kind in CODED else None,
            "epochs": model.max_iter,
            "size": size,
            "seed": seed,
        },
        kind=kind,
        data=found,
        held=held,
        measured=measured,
    )


def rewrite_advice(note: str) -> str:
    """Advice that a user of the verb can follow."""
    for pattern, words in REMEDIES.items():
        note = re.sub(pattern, words, note)
    return note


def remember(model: Any, data: Data) -> None:
    """What new rows must look like, kept in the model's file."""
    if data.columns is not None:
        model.feature_names_in_ = np.array(data.columns, dtype=object)
        model.target_name_ = data.target
    if data.image_shape:
        model.image_shape_, model.flat_ = data.image_shape, True
