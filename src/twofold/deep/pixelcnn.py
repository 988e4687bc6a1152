"""PixelCNN: the exact likelihood of an image, pixel by pixel.

    p(x) = ∏ᵢ p(xᵢ | x₁ … xᵢ₋₁)     pixels in raster order, each a Bernoulli or a softmax over its levels
    minimize  − mean log p(x),  all factors at once, by convolutions that read only the pixels before

One epoch:  every batch  a step along the gradient

A masked kernel has only the part that it may see, and the image is shifted instead of the weights being zeroed, so that
nothing is multiplied by zero. Two stacks run side by side. The vertical one sees all rows above, to both sides; the
horizontal one sees the pixels to the left and, at every layer, the output of the vertical one. One stack alone would
have a blind spot to the upper right.

    vertical    v ← v + K₂ₓ₃ ∗ relu(v)               this row and the one above
    horizontal  h ← h + U relu(K₁ₓ₂ ∗ h + W v)       this column and the one to the left

The first kernels leave out the row, and the pixel, itself (mask A); the later ones include it (mask B).
References: van den Oord, Kalchbrenner & Kavukcuoglu 2016; van den Oord et al. 2016 (two stacks, no blind spot).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from twofold.core.checks import InputError
from twofold.core.params import Interval
from twofold.core.progress import part, report, report_share_to
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table
from twofold.deep._network import ImageModel, check_count, init_weights
from twofold.deep._rows import PIECE_ROWS, NetworkRows
from twofold.deep._train import Player, limit_threads

IMAGES_AT_ONCE = 64  # through the convolutions: more would leave the cache


class Layer(nn.Module):
    """A step of both stacks (mask B)."""

    def __init__(self, p: int):
        super().__init__()
        self.down = nn.Conv2d(p, p, (2, 3), padding=1)
        self.across = nn.Conv2d(p, p, (1, 2), padding=(0, 1))
        self.over = nn.Conv2d(p, p, 1)
        self.out = nn.Conv2d(p, p, 1)

    def forward(self, v: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:  # both (n,p,h,w)
        v = v + self.down(F.relu(v))[:, :, :-1]
        return v, h + self.out(F.relu(self.across(h)[..., :-1] + self.over(v)))

    def row(self, before: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The vertical step for a row v (n,p,1,w) and the one before: the next v, and the horizontal input."""
        both = F.relu(torch.cat([before, v], dim=2))
        v = v + F.conv2d(both, self.down.weight, self.down.bias, padding=(0, 1))
        return v, self.over(v)

    def pixel(self, before: Tensor, h: Tensor, above: Tensor) -> Tensor:
        """The horizontal step for one pixel h (n,p), the one before, and the input from above (n,p)."""
        a = apply_at_pixel(self.across, torch.stack([before, h], dim=2).flatten(1)) + above
        return h + apply_at_pixel(self.out, F.relu(a))


class Causal(nn.Module):
    """Pixels (n,1,h,w) from 0 to 1 in; log-odds of each (n,1,h,w), or a score for every level (n,L,h,w), out."""

    def __init__(self, size: tuple[int, int], levels: int, channels: int, layers: int, reach: int):
        super().__init__()
        p = channels
        self.levels, self.reach, self.size = levels, reach, size
        self.above = nn.Conv2d(reach, p, (1, 2 * reach + 1), padding=(0, reach))  # mask A: rows i − reach … i − 1
        self.left = nn.Linear(reach, p)  # mask A: columns j − reach … j − 1
        self.place = nn.Parameter(torch.zeros(2, p, *size))  # learned input of both stacks at each place
        self.layers = nn.ModuleList([Layer(p) for _ in range(layers)])
        self.head = nn.Sequential(
            nn.ReLU(), nn.Conv2d(p, 2 * p, 1), nn.ReLU(), nn.Conv2d(2 * p, levels if levels > 2 else 1, 1)
        )
        init_weights(self, "relu")
        layer: Any
        with torch.no_grad():  # a sum over many layers should start no larger than one over few
            for layer in self.layers:
                layer.down.weight /= (1 + layers) ** 0.5
                layer.out.weight /= (1 + layers) ** 0.5

    def forward(self, x: Tensor) -> Tensor:
        before = F.pad(x[:, 0], (self.reach, 0, self.reach, 0))  # (n, reach + h, reach + w)
        rows = before[:, :-1, self.reach :].unfold(1, self.reach, 1)  # (n,h,w,reach): as channels they are quicker
        columns = before[:, self.reach :, :-1].unfold(2, self.reach, 1)  # (n,h,w,reach)
        v = self.above(rows.contiguous().movedim(-1, 1)) + self.place[0]
        h = self.left(columns).movedim(-1, 1) + self.place[1]
        for layer in self.layers:
            v, h = layer(v, h)
        return self.head(h)

    def pixels(self, k: Tensor) -> Tensor:  # levels (n,h,w) -> (n,1,h,w) from 0 to 1
        return k.unsqueeze(1).float() / (self.levels - 1)

    def nats(self, k: Tensor) -> Tensor:
        """−log p of each of the pixels (n,h,w), given as levels."""
        out = self(self.pixels(k))
        if self.levels == 2:
            return F.binary_cross_entropy_with_logits(out[:, 0], k.float(), reduction="none")
        return F.cross_entropy(out, k.long(), reduction="none")

    def choose(self, out: Tensor, u: Tensor) -> Tensor:
        """Levels (n,) that lie at the shares u of their distributions; out (n,1) or (n,L)."""
        if self.levels == 2:
            return (u >= torch.sigmoid(-out[:, 0])).to(torch.uint8)
        shares = out.double().softmax(dim=1).cumsum(dim=1)[:, :-1]
        return (u[:, None] >= shares).sum(dim=1).to(torch.uint8)

    def draw(self, k: Tensor, missing: np.ndarray, u: Tensor) -> Tensor:
        """Levels k (n,h,w) of which the missing are drawn in raster order, with shares u; every pixel costs once.

        The vertical stack keeps one row of each layer, the horizontal one pixel of each: as much as a kernel
        needs. Rows without a missing pixel, and pixels after the last one, need no horizontal stack.
        """
        x = F.pad(self.pixels(k), (self.reach, 0, self.reach, 0))  # (n, 1, reach + h, reach + w)
        (rows, columns), n = self.size, len(k)
        gone = torch.from_numpy(missing).to(k.device)
        memory = [x.new_zeros(n, self.place.shape[1], 1, columns) for _ in self.layers]
        for i in range(rows):
            above = self._row(x[:, :, i : i + self.reach, self.reach :], i, memory)
            gaps = np.flatnonzero(missing[:, i].any(axis=0))
            if len(gaps):
                line = x[:, 0, i + self.reach]  # of x itself
                self._fill(line, above, i, gaps[-1] + 1, k[:, i], gone[:, i], u[:, i])
            report(i + 1, rows)
        return k

    def _row(self, x: Tensor, i: int, memory: list[Tensor]) -> list[Tensor]:
        """The output of the vertical stack for row i in each layer, from the rows x (n,1,reach,w) above it."""
        v = self.above(x.movedim(2, 1)) + self.place[0, :, i : i + 1]
        out = []
        layer: Any
        for j, layer in enumerate(self.layers):
            memory[j], (v, over) = v, layer.row(memory[j], v)
            out.append(over[:, :, 0])
        return out

    def _fill(self, line: Tensor, above: list[Tensor], i: int, end: int, k: Tensor, missing: Tensor, u: Tensor) -> None:
        """Draw the missing pixels of row i, up to `end`, into its levels k (n,w) and its pixels line (n,reach + w)."""
        memory = [line.new_zeros(len(line), self.place.shape[1]) for _ in self.layers]
        layer: Any
        for j in range(end):
            h = self.left(line[:, j : j + self.reach]) + self.place[1, :, i, j]
            for m, layer in enumerate(self.layers):
                memory[m], h = h, layer.pixel(memory[m], h, above[m][:, :, j])
            if missing[:, j].any():
                out = apply_at_pixel(self.head[3], F.relu(apply_at_pixel(self.head[1], F.relu(h))))
                k[:, j] = torch.where(missing[:, j], self.choose(out, u[:, j]), k[:, j])
                line[:, self.reach + j] = k[:, j].float() / (self.levels - 1)


def apply_at_pixel(conv: Any, x: Tensor) -> Tensor:
    """A convolution at one place: its kernel over all that it sees there, (n,q) -> (n,p)."""
    return F.linear(x, conv.weight.flatten(1), conv.bias)


@dataclass(eq=False, repr=False)
class PixelCNN(DensityMixin, ImageModel):
    """A network that knows how likely an image is, and draws images pixel by pixel.

    Likelihoods are exact, in nats an image, and those of levels: a value counts as the level it is nearest to. Two
    levels are a Bernoulli distribution; for the likelihood of gray images as binary ones binarize them first, once
    (static) or again for every use (dynamic), and report which. The channels of a color are read one by one, as
    neighbors in their row: blue depends on red and green.

    Parameters
    ----------
    channels : int, default=32
        Channels of both stacks.
    n_layers : int, default=4
        Layers behind the first; each sees one row and one column further.
    reach : int, default=12
        Rows above, and columns to each side, that the first layer sees, as far as the image goes. A far one is cheap,
        as pixels are not channels yet.
    levels : int, optional
        Values a pixel can have, evenly from black to white, at most 256. None is the smallest number of levels on
        which all values of the fit lie, and 256 if there is none: 2 for binary images, 17 for values 0, 1, … 16.
    image_shape, solver, alpha, learning_rate, learning_rate_init, batch_size, max_iter, device, random_state
        As in :class:`CNNClassifier`.

    Attributes
    ----------
    levels_ : int
    image_shape_ : tuple of int
    weights_ : dict of str to ndarray
    module_ : torch.nn.Module
        Pixels (n,1,h,w·c) from 0 to 1 in; log-odds, or scores of the levels, out.
    history_, n_iter_, converged_
        The objective is the mean −log p of an image, in nats, while it was being trained.

    References
    ----------
    van den Oord, Kalchbrenner & Kavukcuoglu (2016), *ICML*. van den Oord et al. (2016), *NIPS*.

    Examples
    --------
    >>> from twofold import PixelCNN, datasets
    >>> X = datasets.digits().data.reshape(-1, 8, 8) > 7
    >>> model = PixelCNN(8, n_layers=2, learning_rate_init=0.02, batch_size=32, max_iter=4, random_state=0)
    >>> model = model.fit(X[:1500])
    >>> p = X[:1500].mean(axis=0).clip(1e-3, 1 - 1e-3)  # each pixel for itself
    >>> alone = np.where(X[1500:], np.log(p), np.log(1 - p)).sum(axis=(1, 2)).mean()
    >>> bool(model.score(X[1500:]) > alone + 4)
    True
    >>> model.sample(3, random_state=0).shape
    (3, 8, 8)
    """

    _parameter_constraints: ClassVar[dict] = {
        "channels": [Interval(Integral, 1, None, closed="left")],
        "n_layers": [Interval(Integral, 1, None, closed="left")],
        "reach": [Interval(Integral, 1, None, closed="left")],
        "levels": [None, Interval(Integral, 2, 256, closed="both")],
    }
    channels: int = 32
    _: KW_ONLY
    n_layers: int = 4
    reach: int = 12
    levels: int | None = None
    learning_rate_init: float = 3e-3
    batch_size: int | str = 16
    max_iter: int = 10

    @property
    def _size(self) -> tuple[int, int]:
        """Rows and columns as the network reads them: a column for every channel."""
        c, h, w = self._shape
        return h, w * c

    def _build(self) -> Causal:
        reach = min(self.reach, max(*self._size, 2) - 1)  # beyond, there is nothing to see
        return Causal(self._size, self.levels_, self.channels, self.n_layers, reach)

    def _make_players(self, module: Any) -> list[Player]:
        def loss(k: Tensor, done: float) -> tuple[Tensor, dict[str, Tensor]]:
            nats = module.nats(k)
            mean = nats.mean()  # of a pixel, so that learning rates mean the same for all sizes
            return mean, {"objective": mean.detach() * nats[0].numel()}

        return [Player(list(module.parameters()), loss)]

    def score_samples(self, X: Table) -> np.ndarray:
        """log p of each image, in nats (n,)."""

        def total(module: Any, k: Tensor) -> Tensor:
            return torch.cat([-module.nats(part).double().sum(dim=(1, 2)) for part in k.split(IMAGES_AT_ONCE)])

        return self._through(total, self._read(X))

    def score(self, X: Table, y: Any = None) -> float:
        """The mean log p of an image, in nats."""
        return float(self.score_samples(X).mean())

    def bits_per_pixel(self, X: Table) -> float:
        """−log₂ p by pixel, on average: the length of the shortest code. In color, a pixel's channels count each."""
        return -self.score(X) / (math.prod(self._size) * math.log(2))

    def sample(
        self, n_samples: int = 1, random_state: Seed = None, progress: Callable[[float], Any] | None = None
    ) -> np.ndarray:
        """Images drawn from the model, like those of the fit; `progress` receives the finished share."""
        check_is_fitted(self)
        k = np.zeros((check_count("n_samples", n_samples), *self._size), dtype=np.uint8)
        with report_share_to(progress):
            return self._restore_levels(self._draw(k, np.ones(k.shape, dtype=bool), random_state))

    def complete(
        self, X: Table, mask: Any = "lower", random_state: Seed = None, progress: Callable[[float], Any] | None = None
    ) -> np.ndarray:
        """Images whose missing pixels are drawn; the known ones stay as they are.

        `mask` is "lower" for the lower half, None for the cells that are NaN, or an array that is True where a pixel is
        missing, for all images (h,w) or shaped like X. Missing pixels are drawn in raster order, given all pixels
        before, known or drawn: an exact draw if every missing pixel comes after all known ones, as in the lower half.
        Known pixels that come after a missing one do not influence it.
        """
        check_is_fitted(self)
        X = np.asarray(X)
        missing = self._find_missing(X, mask)
        k = self._read(np.where(missing, self.range_[0], X))[:]
        with report_share_to(progress):
            drawn = self._draw(k, missing.reshape(k.shape), random_state)
        return np.where(missing, self._restore_levels(drawn).reshape(X.shape), X)

    # ---- levels ----------------------------------------------------------------------------------------------------

    def _read(self, X: Any, reset: bool = False) -> NetworkRows:
        """X as levels (n,h,w·c)."""
        pixels = self._read_images(X, reset=reset)[0]
        if reset:
            self.levels_ = find_levels(pixels) if self.levels is None else int(self.levels)
        return pixels.map(partial(as_levels, levels=self.levels_, size=self._size))

    def _restore_levels(self, k: np.ndarray) -> np.ndarray:
        """Levels (n,h,w·c) as images like those of the fit."""
        pixels = k.reshape(len(k), *self.image_shape_[:2], self._shape[0]) / (self.levels_ - 1)
        return self._restore_images(pixels.transpose(0, 3, 1, 2))

    def _find_missing(self, X: np.ndarray, mask: Any) -> np.ndarray:
        """A mask shaped like X, True where X has to be completed."""
        if X.ndim < 2 or math.prod(X.shape[1:]) != math.prod(self.image_shape_):
            raise InputError(f"the images are {X.shape[1:]}; this model was fitted to {self.image_shape_}.")
        if mask is None:
            return np.isnan(X)
        if isinstance(mask, str):
            if mask != "lower":
                raise InputError(f'mask="{mask}": give "lower", None for NaN, or an array, True where a pixel misses.')
            mask = np.arange(self.image_shape_[0])[:, None] >= (self.image_shape_[0] + 1) // 2
            mask = np.broadcast_to(mask, self.image_shape_[:2])
        mask = np.asarray(mask, dtype=bool)
        if mask.shape == X.shape:
            return mask
        if mask.shape not in (self.image_shape_, self.image_shape_[:2]):
            raise InputError(
                f"mask has shape {mask.shape}; give one of an image's shape {self.image_shape_}, or of X's {X.shape}."
            )
        mask = mask.reshape(*self.image_shape_[:2], -1)
        one = np.broadcast_to(mask, (*self.image_shape_[:2], self._shape[0])).reshape(X.shape[1:])
        return np.broadcast_to(one, X.shape).copy()

    def _draw(self, k: np.ndarray, missing: np.ndarray, random_state: Any) -> np.ndarray:
        """Levels k with the missing ones drawn; the random numbers belong to the image's place."""
        module: Any = self.module_
        where, u = module.place.device, generator(seed_of(random_state)).random(k.shape)
        out = []
        with torch.inference_mode(), limit_threads(min(PIECE_ROWS, len(k)) * module.place[0, :, 0, 0].numel() ** 2):
            for start in range(0, len(k), PIECE_ROWS):
                rows = slice(start, min(start + PIECE_ROWS, len(k)))
                levels, shares = (torch.from_numpy(a[rows].copy()).to(where) for a in (k, u))
                with part(rows.start, rows.stop, len(k)):
                    out.append(module.draw(levels, missing[rows], shares).cpu().numpy())
        return np.concatenate(out)


def as_levels(pixels: np.ndarray, levels: int, size: tuple[int, int]) -> np.ndarray:
    """Pixels (n,c,h,w) from 0 to 1 as levels (n,h,w·c)."""
    k = np.rint(pixels * np.float32(levels - 1)).astype(np.uint8)
    return np.ascontiguousarray(k.transpose(0, 2, 3, 1).reshape(len(k), *size))


def find_levels(rows: NetworkRows) -> int:
    """The smallest number of even levels from 0 to 1 on which all pixels lie; 256 if no smaller one does."""
    values = np.empty(0)
    for start in range(0, len(rows), PIECE_ROWS):
        values = np.union1d(values, rows[start : start + PIECE_ROWS].astype(np.float64))
        if not any(fits_levels(values, n) for n in range(2, 256)):
            return 256
    return next(n for n in range(2, 256) if fits_levels(values, n))


def fits_levels(values: np.ndarray, n: int) -> bool:
    steps = values * (n - 1)
    return bool(np.abs(steps - np.rint(steps)).max() < 1e-3)
