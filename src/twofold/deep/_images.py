"""Networks for images: (n,h,w), (n,h,w,c) or flat rows (n,d) in, the same out, pixels from 0 to 1 in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.core.estimator import fitting
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import seed_of
from twofold.core.types import Table
from twofold.deep._network import Network, check_layer_sizes
from twofold.deep._train import Player

Shape = tuple[int, int, int]  # of an image in the network: channels, height, width


class ImageNetwork(Network):
    """Base of the networks for images.

    Fitted: ``image_shape_`` (h,w) or (h,w,c); ``flat_``, whether they came as rows; ``range_``, black and white.
    """

    _parameter_constraints: ClassVar[dict] = {
        "image_shape": [None, tuple, list],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "hidden_layer_sizes": ["array-like", None],
        "architecture": [StrOptions({"dense", "convolutional"})],
    }
    _clip: ClassVar[bool] = True  # whether pixels beyond black and white are cut off there
    image_shape: tuple[int, ...] | None
    image_shape_: tuple[int, ...]
    flat_: bool
    range_: tuple[float, float]

    @property
    def _shape(self) -> Shape:
        h, w, *c = self.image_shape_
        return (c[0] if c else 1), h, w

    def _choose_hidden_sizes(self: Any, usual: Mapping[str, tuple[int, ...]]) -> list[int]:
        """Units, or channels, of each layer: the parameter, or the usual ones of the architecture."""
        sizes = usual[self.architecture] if self.hidden_layer_sizes is None else self.hidden_layer_sizes
        return check_layer_sizes("hidden_layer_sizes", sizes)

    def _flatten_images(self, X: Any, reset: bool) -> Any:
        """X with one image in each row; a fit notes whether they came so, and their shape."""
        if not reset:
            check_is_fitted(self)
        if not isinstance(X, (np.ndarray, list, tuple)) or np.ndim(X) not in (3, 4):
            if reset:
                self.flat_ = True
            return X
        X = np.asarray(X)
        if not reset and X.shape[1:] != self.image_shape_:
            raise InputError(f"the images are {X.shape[1:]}; this model was fitted to {self.image_shape_}.")
        if reset:
            self.flat_, self.image_shape_ = False, X.shape[1:]
        return X.reshape(len(X), -1)

    def _read_images(self, X: Any, *, reset: bool = False, **options: Any) -> tuple[Blocks, np.ndarray, Any]:
        """X as pixels (n,c,h,w) from 0 to 1, with the blocks they came from, and y if it was given."""
        eight_bit = getattr(X, "dtype", None) == np.uint8
        blocks, rows, y = self._rows(self._flatten_images(X, reset), reset=reset, **options)
        if reset:
            self.range_ = find_pixel_range(rows, eight_bit)
            self.image_shape_ = choose_shape(rows.shape[1], self.image_shape) if self.flat_ else self.image_shape_
        low, high = self.range_
        pixels = (rows - np.float32(low)) / np.float32(high - low)
        pixels = np.clip(pixels, 0, 1) if self._clip else pixels
        c, h, w = self._shape
        return blocks, np.ascontiguousarray(pixels.reshape(-1, h, w, c).transpose(0, 3, 1, 2)), y

    def _restore_images(self, pixels: np.ndarray) -> np.ndarray:
        """Pixels (n,c,h,w) from 0 to 1 as images like those of the fit."""
        low, high = self.range_
        images = pixels.transpose(0, 2, 3, 1) * (high - low) + low
        return images.reshape(len(images), -1) if self.flat_ else images.reshape(len(images), *self.image_shape_)


class ImageModel(ImageNetwork):
    """Base of the networks that learn from images alone."""

    @fitting
    def fit(self, X: Table, y: Any = None) -> Self:
        """Learn from images X, (n,h,w), (n,h,w,c) or rows (n,d)."""
        blocks, pixels = self._read(X, reset=True)
        seed = seed_of(self.random_state)
        module = self._build_with(seed)
        if hasattr(module, "learn"):
            module.learn(pixels)
        note = self._make_note(module, pixels, seed)
        self._train(module, self._make_players(module), (pixels,), blocks, seed, X=X, note=note)
        self._check_result(pixels)
        return self

    def _read(self, X: Any, reset: bool = False) -> tuple[Blocks, np.ndarray]:
        """X as the network takes it, and the blocks it came from."""
        return self._read_images(X, reset=reset)[:2]

    def _make_players(self, module: Any) -> list[Player]:
        """The parts of the module that are trained, each with its loss; the loss of the first is the objective."""
        raise NotImplementedError

    def _make_note(self, module: Any, pixels: np.ndarray, seed: int) -> Callable[[dict], dict[str, float]] | None:
        """A function that adds columns to the history after an epoch."""
        return None

    def _check_result(self, pixels: np.ndarray) -> None:
        """Set what follows from the trained network, and warn of what went wrong."""


def choose_shape(d: int, image_shape: tuple[int, ...] | None) -> tuple[int, ...]:
    """The (h,w) or (h,w,c) of images that come as rows: the parameter, a square, or one line of pixels."""
    if image_shape is not None:
        if len(image_shape) not in (2, 3) or math.prod(image_shape) != d:
            raise InputError(
                f"image_shape={image_shape!r} does not make the {d} numbers of a row. Give (h, w) or (h, w, c)."
            )
        return tuple(int(s) for s in image_shape)
    side = math.isqrt(d)
    return (side, side) if side * side == d else (1, d)


def find_pixel_range(rows: np.ndarray, eight_bit: bool) -> tuple[float, float]:
    """Black and white: 0 and 255 for bytes, 0 and 1 for values between, else the least and the largest value."""
    low, high = float(rows.min()), float(rows.max())
    if eight_bit and high > 1:
        return 0.0, 255.0
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    return min(low, 0.0), high if high > min(low, 0.0) else low + 1.0
