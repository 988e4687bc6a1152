"""Gaussian codes and the distributions of pixels: the formulas of the generators with codes.

    prior      p(z) = N(0, I)                          z (n,k)
    posterior  q(z|x) = N(m, diag v), with one correlated direction N(m, (D + uuᵀ)⁻¹), or with all N(m, UUᵀ)
    observed   p(x|z) = Π Bernoulli(x; σ(a))           or Π N(x; a, s²), a (n,c,h,w) from the generator

A posterior makes draws of standard noise (n,k), knows its density and its divergence from the prior in closed form.
References: Kingma & Welling 2014; Rezende, Mohamed & Wierstra 2014 (one correlated direction).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

LOG_2PI = math.log(2 * math.pi)
MIN_NOISE_SHARE = 1e-6  # of the data's variance: an exact reconstruction has no infinite density


def log_standard(z: Tensor) -> Tensor:
    """log N(z; 0, I) over the last axis."""
    return -0.5 * (z.square().sum(-1) + LOG_2PI * z.shape[-1])


# ---- posteriors ----------------------------------------------------------------------------------------------------


class Diagonal(NamedTuple):
    """N(m, diag v): independent numbers."""

    mean: Tensor  # (n,k)
    log_variance: Tensor  # (n,k)

    def draw(self, noise: Tensor) -> Tensor:
        """m + √v ε for standard noise (..., n, k)."""
        return self.mean + (0.5 * self.log_variance).exp() * noise

    def log_density(self, z: Tensor) -> Tensor:
        """log q(z) for z (..., n, k)."""
        off = (z - self.mean).square() * (-self.log_variance).exp()
        return -0.5 * (off + self.log_variance + LOG_2PI).sum(-1)

    def kl(self) -> Tensor:
        """KL(q ‖ N(0, I)) of each row (n,): ½ Σ m² + v − 1 − log v."""
        return self.kl_each().sum(1)

    def kl_each(self) -> Tensor:
        """The same for every number on its own (n,k)."""
        return 0.5 * (self.mean.square() + self.log_variance.exp() - 1.0 - self.log_variance)


class RankOne(NamedTuple):
    """N(m, C) with C⁻¹ = D + uuᵀ: one direction in which the variance is smaller."""

    mean: Tensor  # (n,k)
    log_variance: Tensor  # (n,k): −log D
    direction: Tensor  # (n,k): u

    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """D⁻¹ u (n,k), uᵀD⁻¹u (n,1), and η = 1 / (1 + uᵀD⁻¹u) (n,1)."""
        scaled = self.log_variance.exp() * self.direction
        length = (scaled * self.direction).sum(1, keepdim=True)
        return scaled, length, 1.0 / (1.0 + length)

    def draw(self, noise: Tensor) -> Tensor:
        """m + R ε with RRᵀ = C:  R = D^-½ − (1 − √η)/(uᵀD⁻¹u) D⁻¹ u uᵀ D^-½."""
        scaled, _, eta = self._parts()
        free = (0.5 * self.log_variance).exp() * noise
        share = eta / (1.0 + eta.sqrt())  # (1 − √η) / length, also where u = 0
        return self.mean + free - share * scaled * (self.direction * free).sum(-1, keepdim=True)

    def log_density(self, z: Tensor) -> Tensor:
        off = z - self.mean
        _, length, _ = self._parts()
        square = off.square() * (-self.log_variance).exp()
        along = (off * self.direction).sum(-1)
        log_det = self.log_variance.sum(1) - torch.log1p(length[:, 0])  # of C
        return -0.5 * (square.sum(-1) + along.square() + log_det + LOG_2PI * z.shape[-1])

    def kl(self) -> Tensor:
        """½ (tr C + ‖m‖² − k − log|C|)."""
        scaled, length, eta = self._parts()
        trace = (self.log_variance.exp() - eta * scaled.square()).sum(1)
        log_det = self.log_variance.sum(1) - torch.log1p(length[:, 0])
        return 0.5 * (trace + self.mean.square().sum(1) - self.mean.shape[1] - log_det)

    def kl_each(self) -> Tensor:
        """The divergence of every number's own distribution, without the others (n,k)."""
        scaled, _, eta = self._parts()
        variance = self.log_variance.exp() - eta * scaled.square()
        return Diagonal(self.mean, variance.log()).kl_each()


class Full(NamedTuple):
    """N(m, UUᵀ) with U triangular: any correlations."""

    mean: Tensor  # (n,k)
    root: Tensor  # (n,k,k): U, below the diagonal and on it, where it is positive

    @classmethod
    def of(cls, numbers: Tensor, k: int) -> Full:
        """From the m, the logarithms of U's squared diagonal, and U below it, side by side (n, 2k + k(k − 1)/2)."""
        mean, logs, below = numbers.split([k, k, k * (k - 1) // 2], dim=1)
        root = torch.diag_embed((0.5 * logs).exp())
        row, column = torch.tril_indices(k, k, -1, device=numbers.device)
        root = root.index_put((torch.arange(len(mean), device=mean.device)[:, None], row, column), below)
        return cls(mean, root)

    def draw(self, noise: Tensor) -> Tensor:
        """m + U ε."""
        return self.mean + (self.root @ noise[..., None])[..., 0]

    def log_density(self, z: Tensor) -> Tensor:
        off = torch.linalg.solve_triangular(self.root, (z - self.mean)[..., None], upper=False)[..., 0]
        return -0.5 * (off.square().sum(-1) + self._log_det() + LOG_2PI * z.shape[-1])

    def _log_det(self) -> Tensor:  # of C
        return 2 * self.root.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def kl(self) -> Tensor:
        """½ (tr C + ‖m‖² − k − log|C|)."""
        trace = self.root.square().sum((-2, -1))
        return 0.5 * (trace + self.mean.square().sum(1) - self.mean.shape[1] - self._log_det())

    def kl_each(self) -> Tensor:
        """The divergence of every number's own distribution, without the others (n,k)."""
        return Diagonal(self.mean, self.root.square().sum(-1).log()).kl_each()


class Stacked(NamedTuple):
    """Independent posteriors of several layers, their numbers side by side."""

    parts: tuple[Diagonal | RankOne | Full, ...]

    @property
    def mean(self) -> Tensor:
        return torch.cat([q.mean for q in self.parts], dim=1)

    def draw(self, noise: Tensor) -> Tensor:
        return torch.cat([q.draw(e) for q, e in zip(self.parts, self._split(noise), strict=True)], dim=-1)

    def log_density(self, z: Tensor) -> Tensor:
        return torch.stack([q.log_density(y) for q, y in zip(self.parts, self._split(z), strict=True)]).sum(0)

    def kl(self) -> Tensor:
        return torch.stack([q.kl() for q in self.parts]).sum(0)

    def kl_each(self) -> Tensor:
        return torch.cat([q.kl_each() for q in self.parts], dim=1)

    def _split(self, z: Tensor) -> tuple[Tensor, ...]:
        return z.split([q.mean.shape[1] for q in self.parts], dim=-1)


Posterior = Diagonal | RankOne | Full | Stacked


def count_numbers(covariance: str, k: int) -> int:
    """The count of numbers that describe a posterior of k."""
    return {"diagonal": 2 * k, "rank-one": 3 * k, "full": 2 * k + k * (k - 1) // 2}[covariance]


def read_posterior(covariance: str, numbers: Tensor, k: int) -> Diagonal | RankOne | Full:
    """The posteriors that the numbers (n, count_numbers) describe."""
    if covariance == "full":
        return Full.of(numbers, k)
    return RankOne(*numbers.chunk(3, dim=1)) if covariance == "rank-one" else Diagonal(*numbers.chunk(2, dim=1))


# ---- pixels --------------------------------------------------------------------------------------------------------


class Bernoulli(nn.Module):
    """Pixels that are on with probability σ(a + average image); gray ones count as that share of an on pixel."""

    offset: Tensor

    def __init__(self, shape: tuple[int, int, int]):
        super().__init__()
        self.register_buffer("offset", torch.zeros(shape))  # the average image, as log-odds

    def learn(self, pixels: np.ndarray) -> None:
        share = (pixels.sum(axis=0, dtype=np.float64) + 0.5) / (len(pixels) + 1)
        self.offset.copy_(torch.from_numpy(np.log(share) - np.log1p(-share)))

    def log_density(self, x: Tensor, a: Tensor) -> Tensor:
        """log p(x|a) of each image (n,)."""
        return -F.binary_cross_entropy_with_logits(a + self.offset, x, reduction="none").flatten(1).sum(1)

    def mean(self, a: Tensor) -> Tensor:
        return torch.sigmoid(a + self.offset)

    def draw(self, a: Tensor) -> Tensor:
        return torch.bernoulli(self.mean(a))


class Gaussian(nn.Module):
    """Pixels around a · spread + average image, with a noise that is learned or given.

    The best variance is the mean square of the residuals, so that it needs no steps: a running mean of these follows
    the training. Densities are those of the data's own scale, on which `unit` is the distance from black to white.
    """

    offset: Tensor
    spread: Tensor
    share: Tensor

    def __init__(self, shape: tuple[int, int, int], noise: str | float, unit: float):
        super().__init__()
        self.unit, self.given = unit, None if isinstance(noise, str) else float(noise) / unit
        self.register_buffer("offset", torch.zeros(shape))
        self.register_buffer("spread", torch.ones(()))  # one number for all pixels
        self.register_buffer("share", torch.ones(shape if noise == "pixel" else (1, 1, 1)))  # noise of the variance

    def learn(self, pixels: np.ndarray) -> None:
        mean, spread = center(pixels)
        self.offset.copy_(torch.from_numpy(mean))
        self.spread.fill_(spread)
        if self.given is not None:
            self.share.fill_((self.given / spread) ** 2)

    def variance(self) -> Tensor:  # (1,1,1) or (c,h,w), of pixels from 0 to 1
        return self.spread.square() * (self.share if self.given is not None else self.share + MIN_NOISE_SHARE)

    def log_density(self, x: Tensor, a: Tensor) -> Tensor:
        """log p(x|a) of each image (n,)."""
        squares, variance = (x - self.mean(a)).square(), self.variance()
        if self.training and self.given is None:
            self._follow(squares.detach())
        volume = variance.log().expand_as(self.offset).sum()
        volume = volume + self.offset.numel() * (LOG_2PI + 2 * math.log(self.unit))
        return -0.5 * ((squares / variance).flatten(1).sum(1) + volume)

    def _follow(self, squares: Tensor) -> None:
        """Set the noise to the mean square of the residuals over the last batches."""
        left = squares.mean(0) if self.share.numel() > 1 else squares.mean().reshape(1, 1, 1)
        self.share.lerp_(left / self.spread.square(), 0.05)

    def mean(self, a: Tensor) -> Tensor:
        return self.offset + self.spread * a

    def draw(self, a: Tensor) -> Tensor:
        return self.mean(a) + self.variance().sqrt() * torch.randn_like(a)


def center(pixels: np.ndarray) -> tuple[np.ndarray, float]:
    """The average image (c,h,w), and the spread of all pixels around it, 1 where there is none."""
    mean = pixels.mean(axis=0, dtype=np.float64)
    squares = sum(float(np.square(pixels[i : i + 1024] - mean).sum()) for i in range(0, len(pixels), 1024))
    spread = math.sqrt(squares / pixels.size)
    return mean, spread if spread > 1e-6 else 1.0
