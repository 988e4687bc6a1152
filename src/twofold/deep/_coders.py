"""The networks of the variational autoencoder: pictures to codes and back, by dense layers or by convolutions."""

from __future__ import annotations

import math
from itertools import pairwise

from torch import Tensor, nn

from twofold.deep._gaussians import Bernoulli, Diagonal, Gaussian
from twofold.deep._network import ACTIVATIONS, build_dense, init_weights
from twofold.deep._variational import Coder


class DenseCoder(Coder):
    """d - hidden - 2k and k - hidden reversed - d."""

    def __init__(
        self,
        shape: tuple[int, int, int],
        output: Bernoulli | Gaussian,
        k: int,
        hidden: list[int],
        activation: str,
    ):
        super().__init__(shape, output)
        self.n_codes, d = k, math.prod(shape)
        self.encoder = build_dense([d, *hidden, 2 * k], activation)
        self.decoder = build_dense([k, *hidden[::-1], d], activation)
        init_weights(self.encoder[-1], "linear")
        init_weights(self.decoder[-1], "linear")

    def recognise(self, x: Tensor) -> Diagonal:  # (n,c,h,w) -> two of (n,k)
        return Diagonal(*self.encoder(x.flatten(1)).chunk(2, dim=1))

    def generate(self, z: Tensor) -> Tensor:  # (n,k) -> (n,c,h,w)
        return self.decoder(z).reshape(-1, *self.shape)


class ConvolutionalCoder(Coder):
    """Convolutions that halve the picture, one for each number of channels, a dense layer, and the same way back."""

    def __init__(
        self,
        shape: tuple[int, int, int],
        output: Bernoulli | Gaussian,
        k: int,
        channels: list[int],
        activation: str,
    ):
        super().__init__(shape, output)
        self.n_codes = k
        act, (c, h, w) = ACTIVATIONS[activation], shape
        down: list[nn.Module] = []
        up: list[nn.Module] = []
        for i, (a, b) in enumerate(pairwise([c, *channels])):
            # (a,h,w) -> (b,⌈h/2⌉,⌈w/2⌉), and back to an even or odd size as it was
            down += [nn.Conv2d(a, b, 3, stride=2, padding=1), act()]
            back = nn.ConvTranspose2d(b, a, 3, stride=2, padding=1, output_padding=(1 - h % 2, 1 - w % 2))
            up = [back, *([act()] if i else []), *up]
            h, w = -(-h // 2), -(-w // 2)
        self.small = (b, h, w)
        wide = 4 * b
        self.encoder = nn.Sequential(*down, nn.Flatten(), nn.Linear(b * h * w, wide), act(), nn.Linear(wide, 2 * k))
        self.decoder = nn.Sequential(
            nn.Linear(k, wide), act(), nn.Linear(wide, b * h * w), act(), nn.Unflatten(1, self.small), *up
        )
        init_weights(self, activation)
        init_weights(self.encoder[-1], "linear")
        init_weights(self.decoder[-1], "linear")

    def recognise(self, x: Tensor) -> Diagonal:  # (n,c,h,w) -> two of (n,k)
        return Diagonal(*self.encoder(x).chunk(2, dim=1))

    def generate(self, z: Tensor) -> Tensor:  # (n,k) -> (n,c,h,w)
        return self.decoder(z)
