"""PixelCNN: the exact likelihood of a picture, pixel by pixel.

    p(x) = ∏ᵢ p(xᵢ | x₁ … xᵢ₋₁)     pixels in raster order, each a Bernoulli or a softmax over its levels
    minimise  − mean log p(x),  all factors at once, by convolutions that see only the pixels before

One epoch:  every batch  a step along the gradient
References: van den Oord, Kalchbrenner & Kavukcuoglu 2016; van den Oord et al. 2016 (two stacks, no blind spot).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.core.estimator import fitting
from twofold.core.params import Interval
from twofold.core.seeds import generator, seed_of
from twofold.deep._images import IMAGES, ImageNetwork
from twofold.deep._masked_conv import Causal
from twofold.deep._network import ROWS, TRAINING
from twofold.deep._train import Player, limit_threads

TOGETHER = 64  # pictures that go through the convolutions at once: more would leave the cache


class PixelCNN(DensityMixin, ImageNetwork):
    """A network that knows how likely a picture is, and draws pictures pixel by pixel.

    Likelihoods are exact, in nats a picture, and those of levels: a value counts as the level it is nearest to. Two
    levels are a Bernoulli distribution; for the likelihood of grey pictures as binary ones binarise them first, once
    (static) or anew for every use (dynamic), and say which. The channels of a colour are read one after the other, as
    neighbours in their row: blue sees red and green.

    Parameters
    ----------
    channels : int, default=32
        Channels of both stacks.
    n_layers : int, default=4
        Layers behind the first; each sees one row and one column further.
    reach : int, default=12
        Rows above, and columns to each side, that the first layer sees, as far as the picture goes. A far one is cheap,
        as pixels are not channels yet.
    levels : int, optional
        Values a pixel can have, evenly from black to white, at most 256. None is the smallest number of levels on
        which all values of the fit lie, and 256 if there is none: 2 for binary pictures, 17 for values 0, 1, … 16.
    image_shape : tuple, optional
        (h, w) or (h, w, c) of pictures that come as rows; squares are recognised, other rows are one line of pixels.
    optimizer, learning_rate, schedule, weight_decay, batch_size, max_iter, device, random_state
        As in :class:`MLPClassifier`.

    Attributes
    ----------
    levels_ : int
    image_shape_ : tuple of int
    weights_ : dict of str to ndarray
    module_ : torch.nn.Module
        Pixels (n,1,h,w·c) from 0 to 1 in; log-odds, or scores of the levels, out.
    history_, n_iter_, converged_
        The objective is the mean −log p of a picture, in nats, while it was being trained.

    References
    ----------
    van den Oord, Kalchbrenner & Kavukcuoglu (2016), *ICML*. van den Oord et al. (2016), *NIPS*.

    Examples
    --------
    >>> from twofold import PixelCNN, datasets
    >>> X = datasets.digits().data.reshape(-1, 8, 8) > 7
    >>> model = PixelCNN(8, n_layers=2, learning_rate=0.02, batch_size=32, max_iter=4, random_state=0).fit(X[:1500])
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
        **IMAGES,
        **TRAINING,
    }
    levels_: int

    def __init__(
        self,
        channels: int = 32,
        *,
        n_layers: int = 4,
        reach: int = 12,
        levels: int | None = None,
        image_shape: tuple[int, ...] | None = None,
        optimizer: str = "adam",
        learning_rate: float = 3e-3,
        schedule: str = "cosine",
        weight_decay: float = 0.0,
        batch_size: int = 16,
        max_iter: int = 10,
        device: str = "auto",
        random_state: Any = None,
    ):
        self.channels = channels
        self.n_layers = n_layers
        self.reach = reach
        self.levels = levels
        self.image_shape = image_shape
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.device = device
        self.random_state = random_state

    @property
    def _size(self) -> tuple[int, int]:
        """Rows and columns as the network reads them: a column for every channel."""
        return self.image_shape_[0], self.image_shape_[1] * self._channels

    def _build(self) -> Causal:
        reach = min(self.reach, max(*self._size, 2) - 1)  # beyond, there is nothing to see
        return Causal(self._size, self.levels_, self.channels, self.n_layers, reach)

    @fitting
    def fit(self, X: Any, y: Any = None) -> PixelCNN:
        """Learn from pictures (n,h,w), (n,h,w,c) or rows (n,d)."""
        blocks, k = self._read(X, reset=True)
        seed = self._seed()
        module = self._fresh(seed)

        def loss(k: Tensor, done: float) -> tuple[Tensor, dict[str, Tensor]]:
            nats = module.nats(k)
            mean = nats.mean()  # of a pixel, so that learning rates mean the same for all sizes
            return mean, {"objective": mean.detach() * nats[0].numel()}

        self._train(module, [Player(list(module.parameters()), loss)], (k,), blocks, seed, X=X)
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """log p of each picture, in nats (n,)."""
        _, k = self._read(X)

        def total(module: Any, k: Tensor) -> Tensor:
            return torch.cat([-module.nats(part).double().sum(dim=(1, 2)) for part in k.split(TOGETHER)])

        return self._through(total, k)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log p of a picture, in nats."""
        return float(self.score_samples(X).mean())

    def bits_per_pixel(self, X: Any) -> float:
        """−log₂ p by pixel, on average: the length of the shortest code. In colour, a pixel's channels count each."""
        return -self.score(X) / (math.prod(self._size) * math.log(2))

    def sample(
        self, n_samples: int = 1, random_state: Any = None, progress: Callable[[float], Any] | None = None
    ) -> np.ndarray:
        """Pictures drawn from the model, like those of the fit; `progress` is told the share that is done."""
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise InputError(f"n_samples={n_samples!r}: give a whole number of at least 1.")
        k = np.zeros((int(n_samples), *self._size), dtype=np.uint8)
        return self._back(self._draw(k, np.ones(k.shape, dtype=bool), random_state, progress))

    def complete(
        self,
        X: Any,
        mask: Any = "lower",
        random_state: Any = None,
        progress: Callable[[float], Any] | None = None,
    ) -> np.ndarray:
        """Pictures of which the missing pixels are drawn anew; the known ones stay as they are.

        `mask` is "lower" for the lower half, None for the cells that are NaN, or an array that is True where a pixel is
        missing, for all pictures (h,w) or shaped like X. What is missing is drawn in raster order, given all pixels
        before, known or drawn: an exact draw if all that is missing comes after all that is known, as in the lower
        half. Known pixels that come after a missing one do not speak in its choice.
        """
        check_is_fitted(self)
        X = np.asarray(X)
        missing = self._missing(X, mask)
        _, k = self._read(np.where(missing, self.range_[0], X))
        drawn = self._draw(k, missing.reshape(k.shape), random_state, progress)
        return np.where(missing, self._back(drawn).reshape(X.shape), X)

    # ---- levels ----------------------------------------------------------------------------------------------------

    def _read(self, X: Any, reset: bool = False) -> tuple[Blocks, np.ndarray]:
        """X as levels (n,h,w·c), and the blocks it came from."""
        blocks, pixels, _ = self._pictures(X, reset=reset)
        if reset:
            self.levels_ = find_levels(pixels) if self.levels is None else int(self.levels)
        k = np.rint(pixels * np.float32(self.levels_ - 1)).astype(np.uint8)
        return blocks, np.ascontiguousarray(k.transpose(0, 2, 3, 1).reshape(len(k), *self._size))

    def _back(self, k: np.ndarray) -> np.ndarray:
        """Levels (n,h,w·c) as pictures like those of the fit."""
        pixels = k.reshape(len(k), *self.image_shape_[:2], self._channels) / (self.levels_ - 1)
        return self._as_given(pixels.transpose(0, 3, 1, 2))

    def _missing(self, X: np.ndarray, mask: Any) -> np.ndarray:
        """Where X has to be completed, shaped like X."""
        if X.ndim < 2 or math.prod(X.shape[1:]) != math.prod(self.image_shape_):
            raise InputError(f"the pictures are {X.shape[1:]}; this model was fitted to {self.image_shape_}.")
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
                f"mask has shape {mask.shape}; the pictures are {self.image_shape_}. Give one of them, or one of X's "
                f"shape {X.shape}."
            )
        mask = mask.reshape(*self.image_shape_[:2], -1)
        one = np.broadcast_to(mask, (*self.image_shape_[:2], self._channels)).reshape(X.shape[1:])
        return np.broadcast_to(one, X.shape).copy()

    def _draw(
        self, k: np.ndarray, missing: np.ndarray, random_state: Any, progress: Callable[[float], Any] | None
    ) -> np.ndarray:
        """Levels k with the missing ones drawn; the random numbers belong to the picture's place."""
        module: Any = self.module_
        where, u = module.place.device, generator(seed_of(random_state)).random(k.shape)
        out = []
        with torch.inference_mode(), limit_threads(min(ROWS, len(k)) * module.place[0, :, 0, 0].numel() ** 2):
            for start in range(0, len(k), ROWS):
                part = slice(start, start + ROWS)

                def tell(share: float, start: int = start) -> None:
                    if progress is not None:
                        progress((start + share * min(ROWS, len(k) - start)) / len(k))

                levels, shares = (torch.from_numpy(a[part].copy()).to(where) for a in (k, u))
                out.append(module.draw(levels, missing[part], shares, tell).cpu().numpy())
        return np.concatenate(out)


def find_levels(pixels: np.ndarray) -> int:
    """The smallest number of even levels from 0 to 1 on which all pixels lie; 256 if no smaller one does."""
    found = 256
    for some in (pixels[:512], pixels):  # most often the first few say it all
        values = np.unique(some).astype(np.float64)
        found = next((n for n in range(2, 256) if fits_levels(values, n)), 256)
        if found == 256 or fits_levels(pixels, found):
            break
    return found


def fits_levels(values: np.ndarray, n: int) -> bool:
    steps = values * (n - 1)
    return bool(np.abs(steps - np.rint(steps)).max() < 1e-3)
