"""The answer of `train`: a trained model, and its figures on data it has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from twofold.analyses.common.answer import Answer, Grid
from twofold.analyses.train.models import GENERATORS, RECONSTRUCTING
from twofold.analyses.train.read import Data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OBJECTIVES = {
    "VAE": "what is minimized, nats an image",
    "DLGM": "what is minimized, nats an image",
    "GAN": "value of the game",
    "VAEGAN": "loss of the encoder",
    "PixelCNN": "−log p, nats an image",
    "Autoencoder": "squared error a row",
    "MLPClassifier": "cross-entropy",
    "MLPRegressor": "half the squared error, of standardized numbers",
    "CNNClassifier": "cross-entropy",
}


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
        return {
            "rows": len(self.data.X),
            "model": type(self.model).__name__,
            "epochs": self.model.n_iter_,
            **target,
        }

    def plot(self) -> Figure:
        """The course of the training, beside samples or reconstructions where there are images."""
        from twofold.plots.models.deep import training_figure

        model, X, y, held = self.model, self.data.X, self.data.y, self.held
        rows: list[tuple[str, np.ndarray]] = []
        if self.kind in GENERATORS and X.ndim > 2:
            rows.append(("drawn by the model", model.sample(32, random_state=0)))
        if self.kind in RECONSTRUCTING and X.ndim > 2:
            rows += [("held out", X[held[:16]]), ("reconstructed", model.reconstruct(X[held[:16]]))]
        if self.kind == "cnn" and y is not None:
            wrong = held[model.predict(X[held]) != y[held]]
            rows += [(f"mistaken, {len(wrong):,} of {len(held):,} held out", X[wrong[:16]])] if len(wrong) else []
        return training_figure(model.history_, rows, self.title, OBJECTIVES[type(model).__name__])
