"""A network or a generator, trained on nine tenths of the data and tested on the tenth that it has not seen."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
import polars as pl

import twofold
from twofold.analyses.common.analysis import OneFile, Seed, analysis
from twofold.analyses.common.answer import Answer, Grid
from twofold.analyses.common.tables import as_frame_or_none, as_table, warnings_as_notes
from twofold.core.checks import InputError
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing
from twofold.io.image_sets import read_pictures
from twofold.io.tables.table import quote_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure


GENERATORS = ("vae", "dlgm", "gan", "vaegan", "pixelcnn")
CODED = ("vae", "dlgm", "gan", "vaegan", "autoencoder")
RECONSTRUCTING = ("vae", "dlgm", "vaegan", "autoencoder")
PREDICTING = ("mlp", "cnn")
ARRAYS = (".npy", ".npz")
MAX_CLASSES = 20  # values of a column of whole numbers that holds classes
LIKELIHOOD_ROWS = 1000  # of which a likelihood by importance sampling is computed
MIN_ROWS = 20  # below, nothing can be set aside
MAX_HELD_OUT = 10_000


@dataclass
class Data:
    """Rows or images, and what is to be predicted, if anything."""

    X: np.ndarray
    y: np.ndarray | None
    source: str
    notes: list[str] = field(default_factory=list)
    columns: list[str] | None = None  # names of a table's columns
    target: str = ""  # name of the column to predict
    image_shape: tuple[int, ...] = ()  # of images that are seen as rows

    @property
    def has_classes(self) -> bool:
        """True if a class is predicted: text, or few whole numbers."""
        return self.y is None or self.y.dtype.kind not in "f"


def read_data(kind: str, data: Any, target: Any, size: int | None) -> Data:
    """Images, rows, or a table with the column to predict."""
    if isinstance(data, (str, os.PathLike)):
        path = Path(data)
        table = kind == "mlp" and path.is_file() and path.suffix not in ARRAYS and "idx" not in path.name
        if table or target is not None:
            return read_target_table(kind, data, target)
        found = read_pictures(path, size)
        out = Data(found.pixels, found.labels, found.source, found.notes)
    elif as_frame_or_none(data) is not None:
        return read_target_table(kind, data, target)
    else:
        if isinstance(target, str):
            raise InputError(f"target {target!r}: an array has no names of columns. Give the values, or a frame.")
        X = np.asarray(data)
        if X.ndim not in (2, 3, 4) or X.dtype.kind not in "fiub" or not X.size:
            raise InputError(
                f"the data has shape {X.shape} of {X.dtype}; images (n, h, w[, c]) or rows (n, d) are needed."
            )
        out = Data(X, None if target is None else as_target(np.asarray(target)), "the data")
    if kind in PREDICTING and out.y is None:
        raise InputError(
            f"{out.source} has no classes. Sort the images into folders by class, or give labels in an .npz."
        )
    if out.y is not None and len(out.y) != len(out.X):
        raise InputError(f"{len(out.X)} rows and {len(out.y)} targets: they must agree.")
    if kind == "mlp" and out.X.ndim > 2:
        out.image_shape = tuple(int(side) for side in out.X.shape[1:])
        out.X = out.X.reshape(len(out.X), -1)
    return out


def read_target_table(kind: str, data: Any, target: Any) -> Data:
    if kind != "mlp":
        raise InputError(f"⟨target={target}⟩: a table is learned by mlp, not by {kind}. Train an mlp on it.")
    table = as_table(data)
    source, numbers, others = table.source, list(table.columns), list(table.others.columns)
    if target is None:
        raise InputError(f"{source} is a table: name the column to predict with ⟨target⟩, such as {others or numbers}.")
    if not isinstance(table.numbers, np.ndarray):
        raise InputError(f"{source} is sparse, or too large for memory. Give a dense table that fits.")
    if target in others:
        y, keep = table.others[target].to_numpy(), list(range(len(numbers)))
    elif target in numbers:
        y = table.numbers[:, numbers.index(target)]
        keep = [j for j, name in enumerate(numbers) if name != target]
    else:
        raise InputError(f"{source} has no column {target!r}. It has {', '.join(numbers + others)}.")
    if not keep:
        raise InputError(f"{source} has no column of numbers beside {target!r} to predict it from.")
    notes = [note for note in table.notes if not note.startswith(f'"{target}" set aside')]
    X, columns = table.numbers[:, keep], [numbers[j] for j in keep]
    known = np.array([value is not None and value == value for value in y.tolist()])
    if not known.all():
        notes.append(f"{(~known).sum():,} rows are left out: {quote_names([target])} is blank in them")
        X, y = X[known], y[known]
    blank = np.isnan(X).sum(axis=0)
    if blank.any():
        worst = columns[int(blank.argmax())]
        raise InputError(
            f"{source}: {blank.sum():,} cells are blank, most in {quote_names([worst])}. Fill them: twofold complete."
        )
    return Data(X, as_target(y), source, notes, columns if table.named else None, target)


def as_target(y: np.ndarray) -> np.ndarray:
    """Classes as text or whole numbers, anything else as floats."""
    if y.dtype.kind not in "fiu":
        return y.astype(str) if y.dtype.kind == "O" else y
    whole = bool(np.all(y == np.round(y)))
    return y.astype(np.int64) if whole and len(np.unique(y)) <= MAX_CLASSES else y.astype(np.float64)


@dataclass
class Measurement:
    """Figures of the model on data it has not seen, those of a trivial method, and a table and a line of both."""

    figures: dict[str, Any]
    baseline: dict[str, Any]
    head: list[str]
    rows: list[list[str]]
    line: str


@dataclass(kw_only=True, repr=False, eq=False)
class Training(Answer):
    """A trained model."""

    kind: str
    data: Data
    held: np.ndarray  # rows that were not fitted
    measured: Measurement

    @property
    def hint(self) -> str:
        return "add ⟨save=model.twofold⟩ to keep the model, then: twofold apply model.twofold NEW"

    @property
    def title(self) -> str:
        shape = " × ".join(map(str, self.data.X.shape[1:]))
        name = type(self.model).__name__
        return f"{self.source}: {len(self.data.X):,} of {shape} → {name}, {self.model.n_iter_} epochs"

    @cached_property
    def table(self) -> pl.DataFrame:
        """The course of the training, a row each epoch."""
        n = self.model.n_iter_
        columns = {name: list(values) for name, values in self.model.history_.items() if len(values) == n}
        return pl.DataFrame({"epoch": list(range(1, n + 1)), **columns})

    def grids(self) -> list[Grid]:
        return [Grid(self.measured.head, self.measured.rows, right=(1,))]

    def lines(self) -> list[str]:
        return [self.measured.line]

    def facts(self) -> dict[str, Any]:
        target = {"target": self.data.target} if self.data.target else {}
        return {"rows": len(self.data.X), "model": type(self.model).__name__, "epochs": self.model.n_iter_, **target}

    def plot(self) -> Figure:
        """The course of the training, beside samples or reconstructions where there are images."""
        from twofold.plots.models.images import training_figure

        model, X, y, held = self.model, self.data.X, self.data.y, self.held
        rows: list[tuple[str, np.ndarray]] = []
        if self.kind in GENERATORS and X.ndim > 2:
            rows.append(("drawn by the model", model.sample(32, random_state=0)))
        if self.kind in RECONSTRUCTING and X.ndim > 2:
            rows += [("held out", X[held[:16]]), ("reconstructed", model.reconstruct(X[held[:16]]))]
        if self.kind == "cnn" and y is not None:
            wrong = held[model.predict(X[held]) != y[held]]
            rows += [(f"mistaken, {len(wrong):,} of {len(held):,} held out", X[wrong[:16]])] if len(wrong) else []
        objective = (KINDS[self.kind] if self.data.has_classes else REGRESSION).objective
        return training_figure(model.history_, rows, self.title, objective)


def measure_prediction(model: Any, data: Data, kept: np.ndarray, held: np.ndarray) -> Measurement:
    y = data.y
    assert y is not None
    seen, unseen = (float(model.score(data.X[part], y[part])) for part in (kept, held))
    if not data.has_classes:
        mean = y[kept].mean()
        off = np.square(y[held] - mean).mean()
        trivial = float(1 - off / y[held].var()) if y[held].var() > 0 else 0.0
        return Measurement(
            {"what": "R² on rows not fitted", "rows": len(held), "r2": unseen, "r2_in_fitted_rows": seen},
            {"method": "the mean of the column", "r2": trivial},
            ["", "R²"],
            [["seen", f"{seen:.4f}"], ["held out", f"{unseen:.4f}"], ["the mean of the column", f"{trivial:.4f}"]],
            "held out: R² is the share of the variance explained",
        )
    classes, counts = np.unique(y[kept], return_counts=True)
    commonest = float(np.mean(y[held] == classes[counts.argmax()]))
    return Measurement(
        {
            "what": "share of rows not fitted that are predicted right",
            "rows": len(held),
            "accuracy": unseen,
            "accuracy_in_fitted_rows": seen,
        },
        {"method": "always the commonest class", "accuracy": commonest},
        ["", "right"],
        [["seen", f"{seen:.2%}"], ["held out", f"{unseen:.2%}"], ["always the commonest class", f"{commonest:.2%}"]],
        f"held out: {unseen:.2%} right, {len(model.classes_)} classes",
    )


def measure_coding(model: Any, data: Data, kept: np.ndarray, held: np.ndarray) -> Measurement:
    flat = data.X.reshape(len(data.X), -1).astype(np.float64)
    linear = twofold.PCA(min(model.n_components, flat.shape[1], len(kept))).fit(flat[kept])
    lost = float(((flat[held] - linear.inverse_transform(linear.transform(flat[held]))) ** 2).sum(axis=1).mean())
    found = float(-model.score(data.X[held]))
    name = f"PCA with {linear.n_components_} numbers"
    if found > lost:
        longer = f"train longer, with ⟨epochs={4 * model.max_iter}⟩"
        data.notes.append(f"{name} loses less of the rows held out: {longer}, or use twofold reduce")
    return Measurement(
        {"what": "squared error a row, on rows not fitted", "rows": len(held), "error": found},
        {"method": name, "error": lost},
        ["", "squared error"],
        [["autoencoder", f"{found:,.4g}"], [name, f"{lost:,.4g}"]],
        f"held out: squared error a row, from codes of {model.n_components} numbers",
    )


def measure_likelihood(model: Any, data: Data, kept: np.ndarray, held: np.ndarray) -> Measurement:
    parts = held[:LIKELIHOOD_ROWS]
    exact = hasattr(model, "bits_per_pixel")
    nats, alone = float(model.score(data.X[held])), score_pixels_alone(model, data.X[kept], data.X[held])
    figures: dict[str, Any] = {"what": "log-likelihood in nats of images not fitted", "rows": len(held), "nats": nats}
    baseline: dict[str, Any] = {"method": "every pixel on its own", "nats": alone}
    rows = [["held out, exact" if exact else "held out, at least", f"{nats:.2f}"]]
    line = "held out: log-likelihood an image in nats, higher is better"
    if exact:
        figures["bits_per_pixel"] = float(np.mean(model.bits_per_pixel(data.X[parts])))
        baseline["bits_per_pixel"] = -alone / data.X[0].size / float(np.log(2))
        rows.append(["bits a pixel", f"{figures['bits_per_pixel']:.3f}"])
    else:
        figures["nats_importance"] = float(model.log_likelihood(data.X[parts]).mean())
        rows.append([f"by importance sampling ({len(parts):,} of them)", f"{figures['nats_importance']:.2f}"])
        line += "; gray values count as chances of white"
    return Measurement(figures, baseline, ["", "nats"], [*rows, [baseline["method"], f"{alone:.2f}"]], line)


def score_pixels_alone(model: Any, kept: np.ndarray, held: np.ndarray) -> float:
    """Mean log-likelihood of images whose pixels are drawn each on its own, with the frequencies of the fitted ones."""
    low, high = model.range_
    known, unknown = (np.clip((X.reshape(len(X), -1) - low) / (high - low), 0, 1) for X in (kept, held))
    levels = getattr(model, "levels_", 2)
    if not hasattr(model, "levels_"):
        white = (known.sum(axis=0) + 1) / (len(known) + 2)
        return float((unknown * np.log(white) + (1 - unknown) * np.log(1 - white)).sum(axis=1).mean())
    known, unknown = (np.rint(X * (levels - 1)).astype(np.int64) for X in (known, unknown))
    share = np.stack([((known == level).sum(axis=0) + 1) / (len(known) + levels) for level in range(levels)])
    return float(np.log(np.take_along_axis(share, unknown, axis=0)).sum(axis=1).mean())


def measure_samples(model: Any, data: Data, kept: np.ndarray, held: np.ndarray) -> Measurement:
    from twofold.core.seeds import generator
    from twofold.deep import frechet_distance

    real, known = (data.X[part].reshape(len(part), -1) for part in (held, kept))
    made = model.sample(len(held), random_state=0).reshape(len(held), -1)
    rng = generator(0, 1)
    alone = np.take_along_axis(known, rng.integers(len(known), size=real.shape), axis=0)
    found, trivial = frechet_distance(real, made), frechet_distance(real, alone)
    diversity = model.history_["diversity"][-1]
    return Measurement(
        {
            "what": "Fréchet distance of samples from images not fitted, in pixels",
            "rows": len(held),
            "frechet": found.distance,
            "floor": found.floor,
            "diversity": diversity,
        },
        {"method": "every pixel on its own", "frechet": trivial.distance},
        ["", "pixels"],
        [
            ["Fréchet distance", f"{found.distance:,.4g}"],
            ["every pixel on its own", f"{trivial.distance:,.4g}"],
            ["floor, between halves of the data", f"{found.floor:,.4g}"],
            ["variance, as a share of the data's", f"{diversity:.0%}"],
        ],
        "held out: distance of Gaussians fitted to the pixels; it compares models on the same data, nothing else",
    )


class Kind(NamedTuple):
    """What a kind trains, how it is measured, and what its objective is called."""

    model: str
    measure: Callable[[Any, Data, np.ndarray, np.ndarray], Measurement]
    objective: str


KINDS = {
    "vae": Kind("VAE", measure_likelihood, "what is minimized, nats an image"),
    "dlgm": Kind("DLGM", measure_likelihood, "what is minimized, nats an image"),
    "gan": Kind("GAN", measure_samples, "value of the game"),
    "vaegan": Kind("VAEGAN", measure_samples, "loss of the encoder"),
    "pixelcnn": Kind("PixelCNN", measure_likelihood, "−log p, nats an image"),
    "autoencoder": Kind("Autoencoder", measure_coding, "squared error a row"),
    "mlp": Kind("MLPClassifier", measure_prediction, "cross-entropy"),
    "cnn": Kind("CNNClassifier", measure_prediction, "cross-entropy"),
}
REGRESSION = Kind("MLPRegressor", measure_prediction, "half the squared error, of standardized numbers")


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
        chosen = KINDS[kind] if found.has_classes else REGRESSION
        try:
            model = getattr(twofold, chosen.model)(random_state=seed)
        except ImportError as error:
            raise InputError(f"training needs torch, which is not installed: {str(error).split(': ')[-1]}") from None
        from twofold.core.seeds import generator

    held, kept = np.split(generator(seed, 7).permutation(n), [min(max(n // 10, 2), MAX_HELD_OUT)])
    notes.append(f"{len(held):,} of {n:,} are set aside for the test, drawn by ⟨seed={seed}⟩")
    asked = {"max_iter": epochs, "n_components": n_components}
    model.set_params(**{name: value for name, value in asked.items() if value})
    if kind == "dlgm":
        notes.append(f"numbers in a code, from the top layer down: {', '.join(map(str, model.n_components))}")
    with warnings_as_notes(notes):
        model.fit(found.X[kept], *([found.y[kept]] if kind in PREDICTING and found.y is not None else []))
    with doing("measuring"):
        measured = chosen.measure(model, found, kept, held)
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
