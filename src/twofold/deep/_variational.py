"""Generators with Gaussian codes: the base of the variational autoencoder, its deep form, and the one with a critic.

    log p(x) ≥ ELBO(x) = E_q log p(x|z) − KL(q(z|x) ‖ p(z))        minimize  −E_q log p(x|z) + w β KL,  mean over rows
    p(z) = N(0, I),  q(z|x) Gaussian from the recognizing network,  p(x|z) from the generating one
    w grows from 0 to 1 over the first `warm_up` of the training

One step:  z = m + √v ε with fresh ε, one or more for each row, and the gradient of both networks through z
References: Kingma & Welling 2014; Rezende, Mohamed & Wierstra 2014; Burda, Grosse & Salakhutdinov 2016 (likelihood).
"""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from twofold.core import loop
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.core.spelling import spell_parameters
from twofold.core.types import Seed, Table
from twofold.deep._gaussians import Bernoulli, Gaussian, Posterior, center, log_standard
from twofold.deep._network import ImageModel, check_count
from twofold.deep._train import Player

MIN_CODE_NATS = 0.01  # of information about an image: a number of the code with less is not in use
DRAWS_AT_ONCE = 8  # codes of a row that go through the generator together
MAX_ROWS_FOR_CODE_USE = 10_000  # about, from which the use of the code is judged


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

    def learn(self, pixels: np.ndarray) -> None:
        """Start from the average image."""
        mean, spread = center(pixels)
        self.mean.copy_(torch.from_numpy(mean))
        self.spread.fill_(spread)
        self.output.learn(pixels)
        some = torch.from_numpy(pixels[: DRAWS_AT_ONCE * 128])
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
    _fitted: ClassVar[dict[str, str]] = {"latent_kl_": "k", "active_": "k"}
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

    def _check_result(self, pixels: np.ndarray) -> None:
        self._measure_codes(pixels[:: 1 + len(pixels) // MAX_ROWS_FOR_CODE_USE])

    def _measure_codes(self, pixels: np.ndarray) -> None:
        """Note which numbers of the code are in use, on average over images; warn of those that are not."""
        each = self._through(lambda module, x: module.posterior(x).kl_each(), pixels)
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
        return self._through(lambda module, x: module.posterior(x).mean, self._read(X)[1])

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
        _, pixels = self._read(X)
        seed = zlib.crc32(str(seed_of(random_state)).encode())
        keys = np.array([zlib.crc32(row.tobytes(), seed) for row in pixels], dtype=np.int64)

        def rows(module: Coder, x: Tensor, keys: Tensor) -> Tensor:
            return reduce(torch.cat(list(compute_log_weights(module, x, keys.tolist(), s)), dim=1), s).float()

        return self._through(rows, pixels, keys)


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
        yield (there + log_standard(z) - q.log_density(z)).double().T
