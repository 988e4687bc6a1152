"""Networks for images: (n,h,w), (n,h,w,c) or flat rows (n,d) in, the same out, pixels from 0 to 1 in between."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.core.params import Interval, StrOptions
from twofold.deep._network import Network, check_layer_sizes

IMAGES: dict = {"image_shape": [None, tuple, list]}  # the constraint of the parameter that they all have
LAYERS: dict = {  # those of the parameters that choose the layers of a generator
    "n_components": [Interval(Integral, 1, None, closed="left")],
    "hidden_layer_sizes": ["array-like", None],
    "architecture": [StrOptions({"dense", "convolutional"})],
}


class ImageNetwork(Network):
    """Base of the networks for images.

    Fitted: ``image_shape_`` (h,w) or (h,w,c); ``flat_``, whether they came as rows; ``range_``, black and white.
    """

    image_shape: tuple[int, ...] | None
    image_shape_: tuple[int, ...]
    flat_: bool
    range_: tuple[float, float]

    @property
    def _channels(self) -> int:
        return self.image_shape_[2] if len(self.image_shape_) == 3 else 1

    def _hidden_sizes(self: Any, usual: Mapping[str, tuple[int, ...]]) -> list[int]:
        """Units, or channels, of each layer: those asked for, or the usual ones of the architecture."""
        return check_layer_sizes(
            "hidden_layer_sizes",
            usual[self.architecture] if self.hidden_layer_sizes is None else self.hidden_layer_sizes,
        )

    def _flattened(self, X: Any, reset: bool) -> Any:
        """X with a row an image; at a fit, whether they came so, and their shape, is noted."""
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

    _clip: ClassVar[bool] = True  # whether pixels beyond black and white are cut off there

    def _read_images(self, X: Any, *, reset: bool = False, **options: Any) -> tuple[Blocks, np.ndarray, Any]:
        """X as pixels (n,c,h,w) from 0 to 1, with the blocks they came from, and y if it was given."""
        if not reset:
            check_is_fitted(self)
        eight_bit = getattr(X, "dtype", None) == np.uint8
        blocks, rows, y = self._rows(self._flattened(X, reset), reset=reset, **options)
        if reset:
            self.range_ = find_pixel_range(rows, eight_bit)
            self.image_shape_ = choose_shape(rows.shape[1], self.image_shape) if self.flat_ else self.image_shape_
        low, high = self.range_
        pixels = (rows - np.float32(low)) / np.float32(high - low)
        pixels = np.clip(pixels, 0, 1) if self._clip else pixels
        h, w = self.image_shape_[:2]
        return blocks, np.ascontiguousarray(pixels.reshape(-1, h, w, self._channels).transpose(0, 3, 1, 2)), y

    def _as_given(self, pixels: np.ndarray) -> np.ndarray:
        """Pixels (n,c,h,w) from 0 to 1 as images like those of the fit."""
        low, high = self.range_
        found = pixels.transpose(0, 2, 3, 1) * (high - low) + low
        return found.reshape(len(found), -1) if self.flat_ else found.reshape(len(found), *self.image_shape_)


def choose_shape(d: int, wish: tuple[int, ...] | None) -> tuple[int, ...]:
    """The (h,w) or (h,w,c) of images that come as rows: the given one, a square, or one line of pixels."""
    if wish is not None:
        if len(wish) not in (2, 3) or math.prod(wish) != d:
            raise InputError(f"image_shape={wish!r} does not make the {d} numbers of a row. Give (h, w) or (h, w, c).")
        return tuple(int(s) for s in wish)
    side = math.isqrt(d)
    return (side, side) if side * side == d else (1, d)


def find_pixel_range(rows: np.ndarray, eight_bit: bool) -> tuple[float, float]:
    """Black and white: 0 and 255 for bytes, 0 and 1 for what lies between, else from the least to the largest."""
    low, high = float(rows.min()), float(rows.max())
    if eight_bit and high > 1:
        return 0.0, 255.0
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    return min(low, 0.0), high if high > min(low, 0.0) else low + 1.0
