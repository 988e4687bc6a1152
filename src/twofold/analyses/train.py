"""What `twofold train` finds: a model of nine tenths of the data, and how it does on the tenth that it never saw."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from twofold.analyses._tables import warnings_as_notes
from twofold.cli._console import progress
from twofold.cli._pictures import Outcome
from twofold.core.checks import InputError
from twofold.core.seeds import generator
from twofold.io.image_sets import read_pictures
from twofold.io.tables.read import read_table

try:
    from twofold import deep
except ImportError as error:
    raise InputError(f"training needs torch, which is not installed: {str(error).split(': ')[-1]}") from None

MODELS = {
    "vae": deep.VAE,
    "gan": deep.GAN,
    "pixelcnn": deep.PixelCNN,
    "autoencoder": deep.Autoencoder,
    "mlp": deep.MLPClassifier,
    "cnn": deep.CNNClassifier,
}
OBJECTIVES = {
    "VAE": "what is minimised, nats a picture",
    "GAN": "value of the game",
    "PixelCNN": "−log p, nats a picture",
    "Autoencoder": "squared error a row",
    "MLPClassifier": "cross-entropy",
    "MLPRegressor": "half the squared error, of standardised numbers",
    "CNNClassifier": "cross-entropy",
}
LEAST = 20  # rows, below which nothing can be set aside
MOST_HELD = 10_000
FEW = 20  # values, up to which a column of whole numbers is a column of classes
PICTURED = (".npy", ".npz")
LIKELIHOOD_ROWS = 1000  # of which a likelihood by importance sampling is computed


@dataclass
class Data:
    """Rows or pictures, and what is to be predicted, if anything."""

    X: np.ndarray
    y: np.ndarray | None
    source: str
    notes: list[str] = field(default_factory=list)
    classes: bool = True


def read(kind: str, source: str, target: str | None, size: int | None) -> Data:
    """Pictures, or a table with the column to predict."""
    path = Path(source)
    table = kind == "mlp" and path.is_file() and path.suffix not in PICTURED and "idx" not in path.name
    if table or target is not None:
        return from_table(source, target)
    found = read_pictures(source, size)
    if kind in ("mlp", "cnn") and found.labels is None:
        raise InputError(
            f"{source} has no classes. Sort the pictures into subfolders, one a class, or give labels in a .npz file."
        )
    pixels = found.pixels.reshape(len(found.pixels), -1) if kind == "mlp" else found.pixels
    return Data(pixels, found.labels, found.source, found.notes)


def from_table(source: str, target: str | None) -> Data:
    table = read_table(source)
    numbers, others = list(table.columns), list(table.others.columns)
    if target is None:
        raise InputError(f"{source} is a table: name the column to predict with --target, such as {others or numbers}.")
    if not isinstance(table.numbers, np.ndarray):
        raise InputError(f"{source} is sparse, or too large for memory. Give a dense table that fits.")
    if target in others:
        y, keep = table.others[target].to_numpy(), list(range(len(numbers)))
    elif target in numbers:
        j = numbers.index(target)
        y, keep = table.numbers[:, j], [i for i in range(len(numbers)) if i != j]
    else:
        raise InputError(f"{source} has no column {target!r}. It has {', '.join(numbers + others)}.")
    X = table.numbers[:, keep]
    whole = y.dtype.kind not in "f" or bool(np.all(y == np.round(y)))
    notes = [note for note in table.notes if not note.startswith(f'"{target}" set aside')]
    return Data(X, y, table.source, notes, y.dtype.kind not in "fiu" or (whole and len(np.unique(y)) <= FEW))


def analyse(
    kind: str, data: Data, components: int | None, epochs: int | None, seed: int, quiet: bool, drawn: bool
) -> tuple[Any, Outcome, Any]:
    """The model, what to say of it, and a figure if one is wanted."""
    n, start = len(data.X), time.perf_counter()
    if n < LEAST:
        raise InputError(f"{data.source} has {n} rows; {LEAST} are needed to learn from some and test on others.")
    order = generator(seed, 7).permutation(n)
    held, kept = np.split(order, [min(max(n // 10, 2), MOST_HELD)])
    notes = [*data.notes, f"{len(held):,} of {n:,} are set aside for the test, drawn by --seed {seed}"]
    options = {"random_state": seed} | ({"max_iter": epochs} if epochs else {})
    options |= {"n_components": components} if components else {}
    cls = deep.MLPRegressor if kind == "mlp" and not data.classes else MODELS[kind]
    model = cls(**options).set_callbacks(*progress(quiet))
    with warnings_as_notes(notes):
        model.fit(*((data.X[kept],) if data.y is None or kind not in ("mlp", "cnn") else (data.X[kept], data.y[kept])))
    head, rows, lines, facts = JUDGES[kind](model, data, kept, held)
    shape = " × ".join(map(str, data.X.shape[1:]))
    title = f"{data.source}: {n:,} of {shape} → {type(model).__name__}, {model.n_iter_} epochs"
    facts = {"input": data.source, "rows": n, "model": type(model).__name__, "epochs": model.n_iter_, **facts}
    facts["seconds"] = round(time.perf_counter() - start, 3)
    outcome = Outcome(title, head, rows, lines, facts, notes)
    return model.set_callbacks(), outcome, figure(kind, model, data, held, outcome) if drawn else None


Judgement = tuple[list[str], list[list[str]], list[str], dict[str, Any]]


def judge_prediction(model: Any, data: Data, kept: np.ndarray, held: np.ndarray) -> Judgement:
    y = data.y
    assert y is not None
    scores = [float(model.score(data.X[part], y[part])) for part in (kept, held)]
    if not data.classes:
        rows = [["seen", f"{scores[0]:.4f}"], ["held out", f"{scores[1]:.4f}"]]
        return ["", "R²"], rows, ["held out: R² is the share of the variance explained"], {"r2_held_out": scores[1]}
    most = float(np.unique(y[held], return_counts=True)[1].max() / len(held))
    rows = [
        ["seen", f"{scores[0]:.2%}"],
        ["held out", f"{scores[1]:.2%}"],
        ["always the commonest class", f"{most:.2%}"],
    ]
    lines = [f"held out: {scores[1]:.2%} right, {len(model.classes_)} classes"]
    return ["", "right"], rows, lines, {"accuracy_seen": scores[0], "accuracy_held_out": scores[1], "commonest": most}


def judge_coding(model: Any, data: Data, kept: np.ndarray, held: np.ndarray) -> Judgement:
    from twofold import PCA

    flat = data.X.reshape(len(data.X), -1).astype(np.float64)
    linear = PCA(min(model.n_components, flat.shape[1], len(kept))).fit(flat[kept])
    lost = float(((flat[held] - linear.inverse_transform(linear.transform(flat[held]))) ** 2).sum(axis=1).mean())
    found = -model.score(data.X[held])
    rows = [["autoencoder", f"{found:,.4g}"], [f"PCA with {linear.n_components_} numbers", f"{lost:,.4g}"]]
    lines = [f"held out: squared error a row, from codes of {model.n_components} numbers"]
    return ["", "squared error"], rows, lines, {"error_held_out": found, "error_pca": lost}


def judge_likelihood(model: Any, data: Data, kept: np.ndarray, held: np.ndarray) -> Judgement:
    parts = held[:LIKELIHOOD_ROWS]
    exact = hasattr(model, "bits_per_pixel")
    bound = float(model.score(data.X[held]))
    rows = [["held out, exact" if exact else "held out, at least", f"{bound:.2f}"]]
    facts = {"nats_held_out": bound}
    if not exact:
        better = float(model.log_likelihood(data.X[parts]).mean())
        rows.append([f"by importance sampling ({len(parts):,} of them)", f"{better:.2f}"])
        facts["nats_importance"] = better
    else:
        facts["bits_per_pixel"] = float(np.mean(model.bits_per_pixel(data.X[parts])))
        rows.append(["bits a pixel", f"{facts['bits_per_pixel']:.3f}"])
    lines = ["held out: log-likelihood a picture in nats, higher is better; grey values count as chances of white"]
    return ["", "nats"], rows, lines if not exact else [lines[0].split(";")[0]], facts


def judge_samples(model: Any, data: Data, kept: np.ndarray, held: np.ndarray) -> Judgement:
    real = data.X[held].reshape(len(held), -1)
    made = model.sample(len(held), random_state=0).reshape(len(held), -1)
    found = deep.frechet_distance(real, made)
    rows = [
        ["Fréchet distance", f"{found.distance:,.4g}"],
        ["floor, between halves of the data", f"{found.floor:,.4g}"],
    ]
    lines = ["held out: distance of Gaussians fitted to the pixels; it compares models on the same data, nothing else"]
    diversity = model.history_["diversity"][-1]
    rows.append(["variance, as a share of the data's", f"{diversity:.0%}"])
    return ["", "pixels"], rows, lines, {"frechet": found.distance, "floor": found.floor, "diversity": diversity}


JUDGES = {
    "vae": judge_likelihood,
    "pixelcnn": judge_likelihood,
    "autoencoder": judge_coding,
    "gan": judge_samples,
    "mlp": judge_prediction,
    "cnn": judge_prediction,
}


def figure(kind: str, model: Any, data: Data, held: np.ndarray, outcome: Outcome) -> Any:
    """The course of the training, beside samples or reconstructions where there are pictures."""
    from twofold.plots.models.deep import training_figure

    rows: list[tuple[str, np.ndarray]] = []
    pictured = data.X.ndim > 2
    if kind in ("vae", "gan", "pixelcnn") and pictured:
        rows.append(("drawn by the model", model.sample(32, random_state=0)))
    if kind in ("vae", "autoencoder") and pictured:
        rows += [("held out", data.X[held[:16]]), ("said again", model.reconstruct(data.X[held[:16]]))]
    if kind == "cnn" and data.y is not None:
        wrong = held[model.predict(data.X[held]) != data.y[held]]
        rows += [(f"mistaken, {len(wrong):,} of {len(held):,} held out", data.X[wrong[:16]])] if len(wrong) else []
    return training_figure(model.history_, rows, outcome.title, OBJECTIVES[type(model).__name__])
