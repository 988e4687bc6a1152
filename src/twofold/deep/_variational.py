"""Generators with Gaussian codes: the base of the variational autoencoder, its deep form, and the one with a critic.

    log p(x) ≥ ELBO(x) = E_q log p(x|z) − KL(q(z|x) ‖ p(z))        minimize  −E_q log p(x|z) + w β KL,  mean over rows
    p(z) = N(0, I),  q(z|x) Gaussian from the recognizing network,  p(x|z) from the generating one
    w grows from 0 to 1 over the first `warm_up` of the training

    posterior  q(z|x) = N(m, diag v), with one correlated direction N(m, (D + uuᵀ)⁻¹), or with all N(m, UUᵀ)
    observed   p(x|z) = Π Bernoulli(x; σ(a))           or Π N(x; a, s²), a (n,c,h,w) from the generator

One step:  z = m + √v ε with fresh ε, one or more for each row, and the gradient of both networks through z
References: Kingma & Welling 2014; Rezende, Mohamed & Wierstra 2014; Burda, Grosse & Salakhutdinov 2016 (likelihood).
"""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from twofold.core import loop
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.core.spelling import spell_parameters
from twofold.core.types import Seed, Table
from twofold.deep._network import ImageModel, check_count
from twofold.deep._rows import NetworkRows
from twofold.deep._train import Player

LOG_2PI = math.log(2 * math.pi)
MIN_NOISE_SHARE = 1e-6  # of the data's variance: an exact reconstruction has no infinite density
MIN_CODE_NATS = 0.01  # of information about an image: a number of the code with less is not in use
DRAWS_AT_ONCE = 8  # codes of a row that go through the generator together
MAX_ROWS_FOR_CODE_USE = 10_000  # about, from which the use of the code is judged


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

    def learn(self, rows: NetworkRows) -> None:
        share = ((rows.moments().mean * len(rows) + 0.5) / (len(rows) + 1)).reshape(rows.shape[1:])
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

    def learn(self, rows: NetworkRows) -> None:
        mean, spread = center(rows)
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
            left = squares.detach()
            left = left.mean(0) if self.share.numel() > 1 else left.mean().reshape(1, 1, 1)
            self.share.lerp_(left / self.spread.square(), 0.05)  # of the last batches
        volume = variance.log().expand_as(self.offset).sum()
        volume = volume + self.offset.numel() * (LOG_2PI + 2 * math.log(self.unit))
        return -0.5 * ((squares / variance).flatten(1).sum(1) + volume)

    def mean(self, a: Tensor) -> Tensor:
        return self.offset + self.spread * a

    def draw(self, a: Tensor) -> Tensor:
        return self.mean(a) + self.variance().sqrt() * torch.randn_like(a)


def center(rows: NetworkRows) -> tuple[np.ndarray, float]:
    """The average image (c,h,w), and the spread of all pixels around it, 1 where there is none."""
    moments = rows.moments()
    spread = math.sqrt(moments.variance.mean())
    return moments.mean.reshape(rows.shape[1:]), spread if spread > 1e-6 else 1.0


class CollapseWarning(UserWarning):
    """Some numbers of a code contain no information about the image: the generator has learned to ignore them.

    `fact` is the message without its advice, which names parameters of the constructor.
    """

    def __init__(self, fact: str, advice: str):
        super().__init__(spell_parameters(f"{fact}. {advice}"))
        self.fact = fact


class Coder(nn.Module):
    """A recognizer and a generator, which a subclass gives as `recognize` and `generate`."""

    mean: Tensor
    spread: Tensor
    baseline: Tensor

    def __init__(self, model: Any, n_codes: int | None = None):
        super().__init__()
        self.shape, self.output = model._shape, model._make_output()
        self.n_codes = int(model.n_components) if n_codes is None else n_codes  # k
        self.covariance = getattr(model, "covariance", "diagonal")
        self.register_buffer("mean", torch.zeros(self.shape))
        self.register_buffer("spread", torch.ones(()))
        self.register_buffer("baseline", torch.zeros(()))  # the usual −log p(x|z), for REINFORCE

    def recognize(self, x: Tensor) -> Posterior:  # centered images (n,c,h,w) -> q(z|x)
        raise NotImplementedError

    def generate(self, z: Tensor) -> Tensor:  # (n,k) -> (n,c,h,w), parameters of the output distribution
        raise NotImplementedError

    def learn(self, rows: NetworkRows) -> None:
        """Start from the average image."""
        mean, spread = center(rows)
        self.mean.copy_(torch.from_numpy(mean))
        self.spread.fill_(spread)
        self.output.learn(rows)
        some = torch.from_numpy(rows[: DRAWS_AT_ONCE * 128])
        self.eval()
        with torch.no_grad():
            self.baseline.fill_(-self.output.log_density(some, torch.zeros_like(some)).mean())

    def posterior(self, x: Tensor) -> Posterior:
        return self.recognize((x - self.mean) / self.spread)

    def log_density(self, x: Tensor, z: Tensor) -> Tensor:
        """log p(x|z) of each row (n,)."""
        return self.output.log_density(x, self.generate(z))

    def draw(self, n: int, device: torch.device) -> Tensor:
        """n mean images of codes drawn from N(0, I)."""
        return self.output.mean(self.generate(torch.randn(n, self.n_codes, device=device)))

    def forward(self, x: Tensor) -> Tensor:  # (n,c,h,w) -> (n,c,h,w), reconstructed
        return self.output.mean(self.generate(self.posterior(x).mean))


def compute_loss(
    module: Coder, x: Tensor, noise: Tensor, weight: float, reinforce: bool = False
) -> tuple[Tensor, dict[str, Tensor]]:
    """The mean loss of a batch for given noise (n,k), or (l,n,k) for l draws a row, with its two terms.

    REINFORCE (Williams 1992) does not differentiate z: it raises the density of codes that were better than usual,
    ∇ E_q f = E_q (f − baseline) ∇ log q. The term that is added for it has the value 0 and this gradient.
    """
    q = module.posterior(x)
    z = q.draw(noise)
    if reinforce:
        z = z.detach()
    lost = -module.log_density(x.repeat(len(z), 1, 1, 1), z.flatten(0, 1)) if z.ndim == 3 else -module.log_density(x, z)
    reconstruction, kl = lost.mean(), q.kl().mean()
    loss = reconstruction + weight * kl
    if reinforce:
        score = ((lost.detach() - module.baseline) * q.log_density(z).flatten()).mean()
        loss = loss + score - score.detach()
    return loss, {"reconstruction": reconstruction, "kl": kl}


@dataclass(eq=False, repr=False)
class Variational(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ImageModel):
    """Base of the generators with Gaussian codes."""

    _parameter_constraints: ClassVar[dict] = {
        "output": [StrOptions({"bernoulli", "gaussian"})],
        "noise": [StrOptions({"shared", "pixel"}), Interval(Real, 0, None, closed="neither")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "warm_up": [Interval(Real, 0, 1, closed="both")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
    }
    latent_kl_: Annotated[np.ndarray, "k"] = field(init=False, repr=False)
    active_: Annotated[np.ndarray, "k"] = field(init=False, repr=False)
    # parameters that some have, and the others at these values
    gradient = "reparameterized"
    output = "bernoulli"
    noise = "shared"
    n_draws = 1

    _: KW_ONLY
    activation: str = "relu"
    beta: float = 1.0
    warm_up: float = 0.1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]  # networks compute in single precision
        return tags

    @property
    def _n_features_out(self) -> int:
        module: Any = self.module_
        return module.n_codes  # also in the middle of a fit, for callbacks that draw

    def _make_output(self) -> Bernoulli | Gaussian:
        """The distribution of the pixels."""
        if self.output == "bernoulli":
            return Bernoulli(self._shape)
        return Gaussian(self._shape, self.noise, unit=self.range_[1] - self.range_[0])

    @property
    def _clip(self) -> bool:  # type: ignore[override]
        """A Gaussian reaches beyond black and white: nothing is cut off there."""
        return self.output != "gaussian"

    def _kl_weight(self, done: float) -> float:
        """β, grown into over the first `warm_up` of the training."""
        return self.beta * min(1.0, done / self.warm_up if self.warm_up else 1.0)

    def _make_players(self, module: Any) -> list[Player]:
        def loss(x: Tensor, done: float) -> tuple[Tensor, dict[str, Tensor]]:
            draws = (self.n_draws,) if self.n_draws > 1 else ()
            noise = torch.randn(*draws, len(x), module.n_codes, device=x.device)
            reinforce = self.gradient == "reinforce"
            loss, parts = compute_loss(module, x, noise, self._kl_weight(done), reinforce)
            if reinforce:
                module.baseline.lerp_(parts["reconstruction"].detach(), 0.1)
            return loss, parts

        return [Player(list(module.parameters()), loss)]

    def _check_result(self, rows: NetworkRows) -> None:
        self._measure_codes(rows.some(slice(None, None, 1 + len(rows) // MAX_ROWS_FOR_CODE_USE)))

    def _measure_codes(self, rows: NetworkRows) -> None:
        """Note which numbers of the code are in use, on average over images; warn of those that are not."""
        each = self._through(lambda module, x: module.posterior(x).kl_each(), rows)
        self.latent_kl_ = each.mean(axis=0, dtype=np.float64)
        self.active_ = self.latent_kl_ >= MIN_CODE_NATS
        k, unused = len(self.active_), np.flatnonzero(~self.active_)
        if len(unused):
            names = ", ".join(self._code_name(j) for j in unused[:8]) + (", …" if len(unused) > 8 else "")
            fact = (
                f"{type(self).__name__}: {len(unused)} of the {k} latent numbers are not in use ({names}): each "
                f"contains less than {MIN_CODE_NATS} nats of an image (posterior collapse). "
                "Ask for fewer with ⟨n_components⟩"
            )
            advice = "Or lower beta, or raise warm_up."
            warnings.warn(CollapseWarning(fact, advice), stacklevel=loop.outside())

    def _code_name(self, j: int) -> str:
        return str(j)

    def transform(self, X: Table) -> np.ndarray:
        """The means of q(z|x), (n,k), in single precision."""
        return self._through(lambda module, x: module.posterior(x).mean, self._read(X))

    def inverse_transform(self, Z: Any) -> np.ndarray:
        """The mean images E[x|z] of codes Z (n,k)."""
        codes = np.ascontiguousarray(self._check_codes(Z), dtype=np.float32)
        return self._restore_images(self._through(lambda module, z: module.output.mean(module.generate(z)), codes))

    def reconstruct(self, X: Table) -> np.ndarray:
        """Images through the code and back, by its mean."""
        return self.inverse_transform(self.transform(X))

    def sample(self, n_samples: int = 1, random_state: Seed = None, *, noise: bool = False) -> np.ndarray:
        """New images: codes from the prior, and their mean images; with `noise`, pixels drawn around these."""
        check_is_fitted(self)
        n, seed = check_count("n_samples", n_samples), seed_of(random_state)
        codes = generator(seed).standard_normal((n, self._n_features_out), dtype=np.float32)
        if not noise:
            return self.inverse_transform(codes)
        pixels = self._through(lambda module, z: module.output.draw(module.generate(z)), codes, seed=seed)
        return self._restore_images(pixels)

    def interpolate(self, a: Any, b: Any, n_steps: int = 10) -> np.ndarray:
        """The walk from image a to image b along a straight line in the code, n_steps images with both ends."""
        check_is_fitted(self)
        n = check_count("n_steps", n_steps, 2)
        shape = (-1,) if self.flat_ else self.image_shape_
        first, last = (self.transform(np.asarray(p).reshape(1, *shape)) for p in (a, b))
        done = np.linspace(0, 1, n, dtype=np.float32)[:, None]
        return self.inverse_transform((1 - done) * first + done * last)

    # ---- likelihood ------------------------------------------------------------------------------------------------

    def elbo(self, X: Table, n_draws: int = 16, random_state: Seed = 0) -> np.ndarray:
        """The evidence lower bound of each row (n,), in nats: the average of `n_draws` log p(x,z) / q(z|x)."""
        return self._estimate(X, n_draws, random_state, lambda logs, s: logs.mean(1))

    def log_likelihood(self, X: Table, n_draws: int = 128, random_state: Seed = 0) -> np.ndarray:
        """log p(x) of each row (n,), in nats, by importance sampling: log of the average of p(x,z) / q(z|x).

        On average it is below the truth, by less the more draws; with the same draws it is never below the `elbo`.
        The draws depend on the seed and the row alone.
        """
        return self._estimate(X, n_draws, random_state, lambda logs, s: logs.logsumexp(1) - math.log(s))

    def score_samples(self, X: Table) -> np.ndarray:
        """The `elbo` of each row (n,), from 16 draws that are always the same."""
        return self.elbo(X)

    def score(self, X: Table, y: Any = None) -> float:
        """The mean of `score_samples`: nats an image, higher is better."""
        return float(self.score_samples(X).mean(dtype=np.float64))

    def _estimate(self, X: Any, n_draws: int, random_state: Any, reduce: Any) -> np.ndarray:
        """`reduce` of the log-weights (n, n_draws) of each row, in single precision as the networks are."""
        check_is_fitted(self)
        s = check_count("n_draws", n_draws)
        seed = zlib.crc32(str(seed_of(random_state)).encode())

        def estimate(module: Coder, x: Tensor) -> Tensor:
            keys = [zlib.crc32(row.tobytes(), seed) for row in x.cpu().numpy()]
            return reduce(torch.cat(list(compute_log_weights(module, x, keys, s)), dim=1), s).float()

        return self._through(estimate, self._read(X))


def compute_log_weights(module: Coder, x: Tensor, keys: list[int], n_draws: int) -> Iterator[Tensor]:
    """log p(x|z) + log p(z) − log q(z|x) for at most DRAWS_AT_ONCE draws of z at a time, in double precision."""
    q = module.posterior(x)
    n, k = q.mean.shape
    g = torch.Generator()
    for start in range(0, n_draws, DRAWS_AT_ONCE):
        s = min(DRAWS_AT_ONCE, n_draws - start)
        place = start.to_bytes(8, "little")
        noise = torch.stack([torch.randn(s, k, generator=g.manual_seed(zlib.crc32(place, key))) for key in keys], dim=1)
        z = q.draw(noise.to(x.device))  # (s,n,k)
        there = module.log_density(x.repeat(s, 1, 1, 1), z.reshape(s * n, k)).reshape(s, n)
        prior = -0.5 * (z.square().sum(-1) + LOG_2PI * k)  # log p(z)
        yield (there + prior - q.log_density(z)).double().T
