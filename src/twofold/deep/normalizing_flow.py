"""The normalizing flow: rows as Gaussian noise that an invertible network has bent.

    x = f⁻¹(z),  z ~ N(0, I):        log p(x) = log N(f(x); 0, I) + log |det ∂f/∂x|           change of variables
    one coupling keeps the columns a and moves the others b by what a says:
        z_a = x_a,   z_b = x_b ⊙ exp(s(x_a)) + t(x_a),   log |det| = Σ s(x_a)
        x_a = z_a,   x_b = (z_b − t(z_a)) ⊙ exp(−s(z_a))                  the inverse, without inverting s or t
    minimize  − mean log p(x)

One epoch:  every batch  a step along the gradient
The columns that are kept differ from coupling to coupling: in coupling l those whose number has, or has not, a one as
its binary digit ⌊l/2⌋, counted around. So any two columns move each other after a few couplings.
References: Dinh, Sohl-Dickstein & Bengio 2017 (RealNVP); Rezende & Mohamed 2015 (flows).
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, DensityMixin, TransformerMixin
from torch import Tensor, nn

from twofold.core.checks import InputError
from twofold.core.params import Interval
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table
from twofold.deep._network import (
    ImageLearner,
    Standard,
    build_dense,
    check_count,
    check_layer_sizes,
    init_weights,
    standardize_by,
)
from twofold.deep._rows import NetworkRows
from twofold.deep._train import Player

LOG_2PI = math.log(2 * math.pi)
MAX_LOG_SCALE = 2.0  # of one coupling: a column is stretched or shrunk by at most e²


class Coupling(nn.Module):
    """Some columns are kept; the others are stretched and moved by what a network makes of those."""

    kept: Tensor
    moved: Tensor

    def __init__(self, kept: np.ndarray, hidden: list[int], activation: str):
        super().__init__()
        self.register_buffer("kept", torch.from_numpy(np.flatnonzero(kept)), persistent=False)
        self.register_buffer("moved", torch.from_numpy(np.flatnonzero(~kept)), persistent=False)
        self.network = build_dense([int(kept.sum()), *hidden, 2 * int((~kept).sum())], activation)
        init_weights(self.network[-1], "identity")
        with torch.no_grad():  # at first every row stays where it is
            for p in self.network[-1].parameters():
                p.zero_()

    def _numbers(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The logarithms s of the stretches, and the moves t (n,b)."""
        s, t = self.network(x.index_select(1, self.kept)).chunk(2, dim=1)
        return MAX_LOG_SCALE * torch.tanh(s / MAX_LOG_SCALE), t

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # (n,d) -> (n,d), (n,)
        s, t = self._numbers(x)
        moved = x.index_select(1, self.moved) * s.exp() + t
        return x.index_copy(1, self.moved, moved), s.sum(dim=1)

    def back(self, z: Tensor) -> Tensor:  # (n,d) -> (n,d)
        s, t = self._numbers(z)
        return z.index_copy(1, self.moved, (z.index_select(1, self.moved) - t) * (-s).exp())


class Flow(nn.Module):
    """Standardized columns, then couplings."""

    def __init__(self, d: int, model: NormalizingFlow):
        super().__init__()
        self.inputs = Standard(d)
        hidden = check_layer_sizes("hidden_layer_sizes", model.hidden_layer_sizes)
        masks = [choose_kept(layer, d) for layer in range(model.n_layers)]
        self.couplings = nn.ModuleList([Coupling(kept, hidden, model.activation) for kept in masks])

    def standardize(self, x: Tensor) -> Tensor:  # (n,d) -> (n,d)
        return self.inputs(x)

    def raw(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Noise (n,d) of standardized rows, and the log-determinants (n,)."""
        total = x.new_zeros(len(x))
        for coupling in self.couplings:
            x, log_det = coupling(x)
            total = total + log_det
        return x, total

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # (n,d) -> (n,d), (n,)
        z, log_det = self.raw(self.standardize(x))
        return z, log_det - self.inputs.scale.log().sum()

    def back(self, z: Tensor) -> Tensor:  # (n,d) -> (n,d)
        coupling: Any
        for coupling in reversed(self.couplings):
            z = coupling.back(z)
        return self.inputs.back(z)

    def log_density(self, x: Tensor) -> Tensor:
        """log p(x) of each row (n,)."""
        z, log_det = self(x)
        return gaussian_log_density(z) + log_det


def gaussian_log_density(z: Tensor) -> Tensor:
    """log N(z; 0, I) of each row (n,)."""
    return -0.5 * (z.square().sum(dim=1) + z.shape[1] * LOG_2PI)


def choose_kept(layer: int, d: int) -> np.ndarray:
    """The columns (d,) that a coupling keeps: by a binary digit of their numbers, and in the next one the others."""
    digits = max(1, (d - 1).bit_length())
    return ((np.arange(d) >> (layer // 2 % digits)) & 1).astype(bool) == bool(layer % 2)


@dataclass(eq=False, repr=False)
class NormalizingFlow(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, ImageLearner):
    """An invertible network that turns rows into Gaussian noise: exact densities, exact codes, quick draws.

        log p(x) = log N(f(x); 0, I) + log |det ∂f/∂x|

    f is a chain of couplings: each keeps about half of the columns and stretches and moves the others by amounts that
    a network computes from those, so that the determinant is a product and the inverse needs no solving. Densities are
    in nats, of the columns in their own units. A column of few values has no density, and its likelihood could grow
    without end: `noise` gives it one.

    Parameters
    ----------
    n_layers : int, default=8
        Couplings. Two of them move every column once.
    hidden_layer_sizes : int or tuple of int, default=(64, 64)
        Units of the hidden layers in the network of each coupling.
    activation : {"relu", "logistic", "tanh", "identity"}, default="relu"
    noise : float, default=0.0
        Standard deviation, in units of a column's own, of Gaussian noise added to every row in training.
    solver, alpha, learning_rate, learning_rate_init, batch_size, max_iter, device, random_state
        As in :class:`MLPClassifier`.

    Attributes
    ----------
    weights_, module_
        Weights by name; the torch module, which gives noise (n,d) and log-determinants (n,) of rows (n,d).
    history_, n_iter_, converged_
        The objective is the mean −log p of a row, in nats, while it was being trained.

    References
    ----------
    Dinh, Sohl-Dickstein & Bengio (2017), *ICLR*. Rezende & Mohamed (2015), *ICML* 37, 1530-1538.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from twofold import GaussianMixture, NormalizingFlow
    >>> X, _ = make_moons(2000, noise=0.05, random_state=0)
    >>> flow = NormalizingFlow(max_iter=30, learning_rate_init=3e-3, random_state=0).fit(X[:1500])
    >>> gaussian = GaussianMixture(1, random_state=0).fit(X[:1500])
    >>> bool(flow.score(X[1500:]) > gaussian.score(X[1500:]) + 0.5)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_layers": [Interval(Integral, 1, None, closed="left")],
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "noise": [Interval(Real, 0, None, closed="left")],
    }
    n_layers: int = 8
    _: KW_ONLY
    hidden_layer_sizes: int | tuple[int, ...] = (64, 64)
    activation: str = "relu"
    noise: float = 0.0
    batch_size: int | str = 100
    max_iter: int = 100

    def _build(self) -> Flow:
        return Flow(self.n_features_in_, self)

    def _read(self, X: Any, reset: bool = False) -> NetworkRows:
        rows = self._rows(self._flatten_images(X, reset), reset=reset)[0]
        if rows.shape[1] < 2:
            raise InputError("X has n_features = 1, and a coupling moves some columns by others. Use GaussianMixture.")
        return rows

    def _prepare(self, module: Any, rows: NetworkRows, new: bool) -> NetworkRows:
        if new:
            moments = rows.moments()
            module.inputs.learn(moments.mean, moments.variance, still=1.0)
        return rows.map(standardize_by(module, self.device))

    def _make_players(self, module: Any) -> list[Player]:
        units, d = float(module.inputs.scale.log().sum()), self.n_features_in_

        def loss(x: Tensor, done: float) -> tuple[Tensor, dict[str, Tensor]]:
            seen = x + self.noise * torch.randn_like(x) if self.noise else x
            z, log_det = module.raw(seen)
            nats = -(gaussian_log_density(z) + log_det).mean()
            return nats / d, {"objective": nats.detach() + units}

        return [Player(list(module.parameters()), loss)]

    @property
    def _n_features_out(self) -> int:
        return self.n_features_in_

    def score_samples(self, X: Table) -> np.ndarray:
        """log p of each row (n,), in nats."""
        return self._through(lambda module, x: module.log_density(x).double(), self._read(X))

    def score(self, X: Table, y: Any = None) -> float:
        """The mean log p of a row, in nats."""
        return float(self.score_samples(X).mean())

    def transform(self, X: Table) -> np.ndarray:
        """The noise f(x) that each row is made of (n,d)."""
        rows = self._read(X)
        return self._through(lambda module, x: module(x)[0], rows).astype(rows.blocks.dtype)

    def inverse_transform(self, X: Table) -> np.ndarray:
        """Rows or images of noise (n,d)."""
        codes = self._check_codes(X)
        rows = self._through(lambda module, z: module.back(z), codes.astype(np.float32)).astype(codes.dtype)
        return rows if self.flat_ else rows.reshape(len(rows), *self.image_shape_)

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> np.ndarray:
        """New rows or images: f⁻¹ of standard Gaussian noise."""
        size = check_count("n_samples", n_samples), self._n_features_out
        noise = generator(seed_of(random_state)).standard_normal(size, dtype=np.float32)
        return self.inverse_transform(noise)
