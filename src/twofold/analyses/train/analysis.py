"""A network or a generator, trained, and judged by what it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
import polars as pl

import twofold
from twofold.analyses.common.analysis import OneFile, Seed, analysis
from twofold.analyses.common.answer import Answer, Grid
from twofold.analyses.common.encoding import Encoding
from twofold.analyses.common.tables import warnings_as_notes
from twofold.analyses.train.data import Data, read_data
from twofold.core.checks import InputError
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from twofold.analyses.train.prediction import Comparison, Score


GENERATORS = ("vae", "dlgm", "gan", "vaegan", "pixelcnn", "flow")
CODED = ("vae", "dlgm", "gan", "vaegan", "autoencoder")
RECONSTRUCTING = ("vae", "dlgm", "vaegan", "autoencoder")
LIKELIHOOD_ROWS = 1000  # of which a likelihood by importance sampling is computed
MIN_ROWS = 20  # below, nothing can be set aside
MAX_HELD_OUT = 10_000


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


def measure_prediction(comparison: Comparison, data: Data, network: str) -> Measurement:
    """The network beside its peers; a note says if one of these is clearly better."""
    (_, mine), *others = comparison.scores.items()
    trivial_name, trivial = others[-1]
    figure, classes = ("accuracy", True) if data.has_classes else ("r2", False)
    how = f"{comparison.folds} parts, each predicted from the others" if comparison.folds > 1 else "rows not fitted"
    figures = {
        "what": f"share of rows that are predicted right, {how}" if classes else f"R², {how}",
        "rows": comparison.rows,
        figure: mine.mean,
        f"{figure}_spread": mine.spread,
        f"{figure}_in_fitted_rows": comparison.seen,
    }
    figures |= {f"{figure}_of_{name.replace(' ', '_')}": score.mean for name, score in others[:-1]}
    best, score = max(others, key=lambda other: other[1].mean)
    if score.mean > mine.mean + mine.spread:
        longer = "it is the better model of this data" if best != trivial_name else "there may be nothing to learn"
        data.notes.append(f"{best} predicts better than the network, {show(score, classes)}: {longer}")
    elif score.mean > mine.mean:
        data.notes.append(f"{best} predicts as well as the network, within what parts differ by")
    names = {network: mine, **dict(others)}
    rows = [[name, show(score, classes)] for name, score in names.items()]
    spread = "standard deviation over the parts" if comparison.folds > 1 else "standard error"
    return Measurement(
        figures,
        {"method": trivial_name, figure: trivial.mean},
        ["not seen in the fit", "right" if classes else "R²"],
        rows,
        f"held out: {how}; ± {spread}; on the rows of the fit the network has {show_value(comparison.seen, classes)}",
    )


def show(score: Score, classes: bool) -> str:
    return f"{show_value(score.mean, classes)} ± {show_value(score.spread, classes)}"


def show_value(value: float, classes: bool) -> str:
    return f"{value:.1%}" if classes else f"{value:.3f}"


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


def measure_density(model: Any, data: Data, kept: np.ndarray, held: np.ndarray) -> Measurement:
    from scipy.stats import multivariate_normal
    from sklearn.covariance import LedoitWolf

    flat = data.X.reshape(len(data.X), -1).astype(np.float64)
    shrunk = LedoitWolf().fit(flat[kept])  # also where columns depend on each other, or there are few rows
    gaussian = multivariate_normal(shrunk.location_, shrunk.covariance_, allow_singular=True)
    scores, others = model.score_samples(data.X[held]), gaussian.logpdf(flat[held])
    error = float((scores - others).std() / np.sqrt(len(held)))
    found, trivial = float(scores.mean()), float(others.mean())
    return Measurement(
        {"what": "log-density in nats of rows not fitted", "rows": len(held), "nats": found, "nats_spread": error},
        {"method": "one Gaussian", "nats": trivial},
        ["", "nats"],
        [["held out, exact", f"{found:.2f}"], ["one Gaussian", f"{trivial:.2f} (difference ± {error:.2f})"]],
        "held out: log-density of a row in nats, higher is better",
    )


class Kind(NamedTuple):
    """What a kind trains, how it is measured, and what its objective is called."""

    model: str
    measure: Callable[[Any, Data, np.ndarray, np.ndarray], Measurement] | None  # None: beside models that predict
    objective: str


KINDS = {
    "vae": Kind("VAE", measure_likelihood, "what is minimized, nats an image"),
    "dlgm": Kind("DLGM", measure_likelihood, "what is minimized, nats an image"),
    "gan": Kind("GAN", measure_samples, "value of the game"),
    "vaegan": Kind("VAEGAN", measure_samples, "loss of the encoder"),
    "pixelcnn": Kind("PixelCNN", measure_likelihood, "−log p, nats an image"),
    "autoencoder": Kind("Autoencoder", measure_coding, "squared error a row"),
    "flow": Kind("NormalizingFlow", measure_density, "−log p, nats a row"),
    "mlp": Kind("MLPClassifier", None, "cross-entropy"),
    "cnn": Kind("CNNClassifier", None, "cross-entropy"),
}
REGRESSION = Kind("MLPRegressor", None, "half the squared error")


@analysis()
def train(
    kind: Literal["vae", "dlgm", "gan", "vaegan", "pixelcnn", "flow", "autoencoder", "mlp", "cnn"],
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
        What to train: mlp and cnn predict; the others learn what the data is like, flow with an exact density of rows.
    data : path, frame or array
        Images: a folder, whose subfolders are classes, `.npy`, `.npz` or idx files, or an array (n, h, w) or
        (n, h, w, c). Rows: an array (n, d). For mlp also a table: a file or a frame, whose numbers, categories, flags
        and dates are used; for flow the numbers of one.
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

    asked = {"max_iter": epochs, "n_components": n_components}
    model.set_params(**{name: value for name, value in asked.items() if value})
    if kind == "dlgm":
        notes.append(f"numbers in a code, from the top layer down: {', '.join(map(str, model.n_components))}")
    if chosen.measure is None:
        held, measured = fit_predicting(model, found, seed)
    else:
        held, kept = np.split(generator(seed, 7).permutation(n), [min(max(n // 10, 2), MAX_HELD_OUT)])
        notes.append(f"{len(held):,} of {n:,} are set aside for the test, drawn by ⟨seed={seed}⟩")
        with warnings_as_notes(notes):
            model.fit(found.X[kept])
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


def fit_predicting(model: Any, data: Data, seed: int) -> tuple[np.ndarray, Measurement]:
    """Compare the network with others on rows held out, then fit it: to all rows, or to those that are not set aside.

    Images need some that the model has not seen, to show which it mistakes.
    """
    from sklearn.base import clone

    from twofold.analyses.train.prediction import compare, cut_folds

    everything = np.arange(len(data.X))
    folds = cut_folds(data, seed)
    held = folds[0][1] if len(folds) == 1 or data.columns is None else np.zeros(0, np.int64)
    kept = np.setdiff1d(everything, held)
    with warnings_as_notes(data.notes):
        comparison = compare(lambda: clone(model), data, seed)
        encoding = data.find_encoding(kept)
        model.fit(data.encode(encoding, kept), data.y[kept])  # type: ignore[index]
    if encoding is not None:
        model.encoding_ = encoding.as_lists()
    many = f"{comparison.folds} fits to parts; the model is fitted to {len(kept):,} rows"
    data.notes.append(f"figures are those of {many if len(folds) > 1 else f'{len(held):,} rows set aside'}")
    return held, measure_prediction(comparison, data, type(model).__name__)


def remember(model: Any, data: Data) -> None:
    """Keep the names of columns and the shape of images in the model, for new rows."""
    if data.columns is not None and data.named:
        lists = vars(model).get("encoding_")
        names = [column.name for column in data.columns] if lists is None else Encoding.from_lists(lists).names
        model.feature_names_in_ = np.array(names, dtype=object)
        if data.target:
            model.target_name_ = data.target
    if data.image_shape:
        model.image_shape_, model.flat_ = data.image_shape, True
