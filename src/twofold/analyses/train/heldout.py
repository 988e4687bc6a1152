"""Figures of a trained model on the tenth of the data that it has not seen, and those of a trivial method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import twofold
from twofold.analyses.train.answer import Measurement
from twofold.analyses.train.read import Data

LIKELIHOOD_ROWS = 1000  # of which a likelihood by importance sampling is computed


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


MEASURES: dict[str, Callable[[Any, Data, np.ndarray, np.ndarray], Measurement]] = {
    "vae": measure_likelihood,
    "dlgm": measure_likelihood,
    "pixelcnn": measure_likelihood,
    "autoencoder": measure_coding,
    "gan": measure_samples,
    "vaegan": measure_samples,
    "mlp": measure_prediction,
    "cnn": measure_prediction,
}
