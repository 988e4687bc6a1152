"""The deep autoencoder: a network that describes a row by a few numbers.

    minimize  mean ‖x − decode(encode(x))‖²        encode: d → hidden → k,  decode: k → hidden reversed → d

One epoch:  every batch  a step along the gradient; a denoising one gets rows with noise and returns them without
References: Hinton & Salakhutdinov 2006; Vincent et al. 2008 (denoising).
"""

from __future__ import annotations

import copy
import math
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from numbers import Real
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from twofold.core.checks import InputError
from twofold.core.heldout import SQUARED, split_columns
from twofold.core.params import Interval, StrOptions
from twofold.core.types import Table
from twofold.deep._network import (
    ImageLearner,
    build_dense,
    check_layer_sizes,
    find_pixel_range,
    find_varying,
    standardize_by,
)
from twofold.deep._rows import NetworkRows
from twofold.deep._train import Player

REDRAWS = 20  # of hidden numbers: while a fifth is hidden, their error shrinks quickly


class Coder(nn.Module):
    """Rows, centered and scaled by one number, to codes and back; a column that never varied keeps its value."""

    columns: Tensor
    center: Tensor
    scale: Tensor
    range: Tensor

    def __init__(self, d: int, columns: np.ndarray, model: Autoencoder):
        super().__init__()
        sizes = [len(columns), *check_layer_sizes("hidden_layer_sizes", model.hidden_layer_sizes), model.n_components]
        self.encoder = build_dense(sizes, model.activation)  # (n,c) -> (n,k)
        self.decoder = build_dense(sizes[::-1], model.activation)  # (n,k) -> (n,c)
        self.squash = model.output == "logistic"
        self.register_buffer("columns", torch.from_numpy(columns), persistent=False)
        self.register_buffer("center", torch.zeros(d))
        self.register_buffer("scale", torch.ones(()))
        self.register_buffer("range", torch.tensor([0.0, 1.0]))

    def learn(self, rows: NetworkRows) -> None:
        """One scale for all columns, so that errors count as they do in the rows' own units."""
        moments = rows.moments()
        spread = math.sqrt(moments.variance.mean())
        self.center.copy_(torch.from_numpy(moments.mean))
        self.scale.fill_(spread if spread > 0 else 1.0)
        self.range.copy_(torch.tensor(find_pixel_range(float(rows.low.min()), float(rows.high.max()), False)))

    def standardize(self, x: Tensor) -> Tensor:  # (n,d) -> (n,c), centered and scaled
        return ((x - self.center) / self.scale).index_select(1, self.columns)

    def raw(self, z: Tensor) -> Tensor:  # (n,k) -> (n,c), centered and scaled
        out = self.decoder(z)
        if not self.squash:
            return out
        low, high = ((end - self.center[self.columns]) / self.scale for end in self.range)
        return low + (high - low) * torch.sigmoid(out)

    def encode(self, x: Tensor) -> Tensor:  # (n,d) -> (n,k)
        return self.encoder(self.standardize(x))

    def decode(self, z: Tensor) -> Tensor:  # (n,k) -> (n,d)
        seen = self.raw(z) * self.scale + self.center[self.columns]
        if self.squash:
            seen = seen.clamp(*self.range)  # within it but for rounding
        return self.center.repeat(len(z), 1).index_copy(1, self.columns, seen)

    def forward(self, x: Tensor) -> Tensor:
        return self.decode(self.encode(x))


def redraw_error(module: Coder, x: Tensor, hidden: Tensor) -> Tensor:
    """The squared error of the hidden columns (h,) of rows (n,d), which a coder draws from the others, a row."""
    hidden, truth = hidden.to(x.device), x
    x = x.index_copy(1, hidden, module.center[hidden].expand(len(x), -1))
    for _ in range(REDRAWS):
        x[:, hidden] = module(x)[:, hidden]
    return (x - truth)[:, hidden].double().square().sum(dim=1)


@dataclass(eq=False, repr=False)
class Autoencoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ImageLearner):
    """A deep autoencoder: codes of `n_components` numbers from which rows, or images, are drawn again.

    With ``activation="identity"`` it finds PCA's subspace; with other hidden layers it keeps more in as many numbers.

    Parameters
    ----------
    n_components : int, default=2
        Numbers a code.
    hidden_layer_sizes : tuple of int, default=(512, 256)
        Units of the encoder's hidden layers; the decoder has them in reverse.
    activation : {"relu", "logistic", "tanh", "identity"}, default="relu"
    output : {"identity", "logistic"}, default="identity"
        Whether the output is free, or kept between the smallest and the largest number of the fit.
    noise : float, default=0.0
        Standard deviation of the noise that is added to a row before it is coded, in units of the data's: a denoising
        autoencoder.
    solver, alpha, learning_rate, learning_rate_init, batch_size, max_iter, device, random_state
        As in :class:`MLPClassifier`.

    Attributes
    ----------
    columns_ : ndarray
        The columns that are coded: those that varied in the fit. Others are given back as they were.
    weights_ : dict of str to ndarray
    module_ : torch.nn.Module
        With ``encode`` and ``decode``.
    history_, n_iter_, converged_
        The objective is the mean squared error of a row, summed over its numbers, while it was being trained.

    References
    ----------
    Hinton & Salakhutdinov (2006), *Science* 313, 504-507. Vincent et al. (2008), *ICML*.

    Examples
    --------
    >>> from twofold import Autoencoder, PCA, datasets
    >>> X = datasets.digits().data
    >>> model = Autoencoder(4, hidden_layer_sizes=(128,), learning_rate_init=3e-3, max_iter=15, random_state=0).fit(X)
    >>> linear = PCA(4).fit(X)
    >>> lost = np.sum((X - linear.inverse_transform(linear.transform(X))) ** 2) / len(X)
    >>> bool(-model.score(X) < 0.9 * lost)
    True
    """

    columns_: Annotated[np.ndarray, "., >= 0, < d"] = field(init=False, repr=False)
    _parameter_constraints: ClassVar[dict] = {
        "hidden_layer_sizes": ["array-like"],
        "output": [StrOptions({"identity", "logistic"})],
        "noise": [Interval(Real, 0, None, closed="left")],
    }
    _heldout_unit = SQUARED
    n_components: int = 2
    _: KW_ONLY
    hidden_layer_sizes: tuple[int, ...] = (512, 256)
    activation: str = "relu"
    output: str = "identity"
    noise: float = 0.0
    max_iter: int = 100

    def _build(self) -> Coder:
        return Coder(self.n_features_in_, self.columns_, self)

    def _read(self, X: Any, reset: bool = False) -> NetworkRows:
        """X as rows (n,d), in its own units."""
        return self._rows(self._flatten_images(X, reset), reset=reset)[0]

    def _prepare(self, module: Any, rows: NetworkRows, new: bool) -> NetworkRows:
        """Rows in units in which learning rates mean the same for all data."""
        if new:
            module.learn(rows)
        return rows.map(standardize_by(module, self.device))

    def _build_for(self, rows: NetworkRows, seed: int) -> Coder:
        self.columns_ = find_varying(rows)
        return self._build_with(seed)

    def _make_players(self, module: Any) -> list[Player]:
        square, d = module.scale.item() ** 2, self.n_features_in_

        def loss(x: Tensor, done: float) -> tuple[Tensor, dict[str, Tensor]]:
            seen = x + self.noise * torch.randn_like(x) if self.noise else x
            error = (module.raw(module.encoder(seen)) - x).square().sum(dim=1).mean()
            return error / d, {"objective": error.detach() * square}

        return [Player(list(module.parameters()), loss)]

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    def rescaled(self, scale: Any) -> Autoencoder:
        """For a model fitted on ``X / scale``: a copy that takes X itself, with the same codes; see :class:`PPCA`.

        The first and the last layer take the scale (d,) into themselves, which works for output="identity".
        """
        check_is_fitted(self)
        scale = np.asarray(scale, dtype=np.float64)
        if self.output != "identity" or scale.shape != (self.n_features_in_,) or not (scale > 0).all():
            raise InputError(
                f"scale has shape {scale.shape}, output={self.output!r}; {self.n_features_in_} numbers above 0 are "
                'needed, and output="identity".'
            )
        model, w = copy.copy(self), dict(self.weights_)
        last = max(int(name.split(".")[1]) for name in w if name.startswith("decoder."))
        seen = scale[self.columns_]
        w["center"] = w["center"] * scale
        w["encoder.0.weight"] = w["encoder.0.weight"] / seen
        w[f"decoder.{last}.weight"] = w[f"decoder.{last}.weight"] * seen[:, None]
        w[f"decoder.{last}.bias"] = w[f"decoder.{last}.bias"] * seen
        model.weights_ = {name: np.asarray(value, dtype=self.weights_[name].dtype) for name, value in w.items()}
        return model

    def transform(self, X: Table) -> np.ndarray:
        """Codes (n,k)."""
        rows = self._read(X)
        return self._through(lambda module, x: module.encode(x), rows).astype(rows.blocks.dtype)

    def inverse_transform(self, X: Table) -> np.ndarray:
        """Rows or images from codes (n,k)."""
        codes = self._check_codes(X)
        rows = self._through(lambda module, z: module.decode(z), codes.astype(np.float32)).astype(codes.dtype)
        return rows if self.flat_ else rows.reshape(len(rows), *self.image_shape_)

    def reconstruct(self, X: Table) -> np.ndarray:
        """Rows or images after a pass through their codes."""
        return self.inverse_transform(self.transform(X))

    def heldout_score(self, X: Table, y: Any = None) -> float:
        """Minus the mean squared error of a hidden number. Hidden numbers start at their mean and pass
        through the code repeatedly, until the known and the hidden numbers agree."""
        rows, total = self._read(X), 0.0
        for split in split_columns(rows.shape[1], False, "Autoencoder"):
            total += float(self._through(partial(redraw_error, hidden=torch.from_numpy(split.hidden)), rows).sum())
        return -total / math.prod(rows.shape)

    def score(self, X: Table, y: Any = None) -> float:
        """Minus the mean squared error of a row, summed over its numbers."""
        error = self._through(lambda module, x: (module(x) - x).square().sum(dim=1), self._read(X))
        return -float(error.mean(dtype=np.float64))
