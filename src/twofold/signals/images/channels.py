"""The channels of an image: gray as it is, colors decorrelated, alpha set aside.

    (h,w) or (h,w,1) gray   (h,w,3) red, green, blue   (h,w,2), (h,w,4) the same with alpha last, which stays untouched

Colors are turned to lightness, red against blue, and green against both, by an orthonormal matrix: noise of the same
strength in all colors keeps it, and most of the image goes into one channel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold.core.checks import InputError

OPPONENT = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])


def check_image(image: Any) -> np.ndarray:
    """The image as an array of finite numbers."""
    image = np.asarray(image)
    if image.ndim not in (2, 3) or 0 in image.shape or (image.ndim == 3 and image.shape[2] > 4):
        raise InputError(
            f"the shape is {image.shape}; an image is (h, w), or (h, w, c) with 1 to 4 channels. Give one at a time."
        )
    if image.dtype.kind not in "fiu":
        raise InputError(f"the image holds {image.dtype}; an image is of integers or floats. Convert it first.")
    bad = None if image.dtype.kind in "iu" else ~np.isfinite(image)
    if bad is not None and bad.any():
        at = tuple(int(i) for i in np.unravel_index(np.argmax(bad), bad.shape))
        raise InputError(
            f"image[{', '.join(map(str, at))}] is {image[at]}; every pixel needs a finite number. Fill missing pixels "
            "first, for example with twofold.signals.inpaint_image(image, mask)."
        )
    return image


def split_channels(image: np.ndarray) -> list[np.ndarray]:
    """The channels (h,w) without alpha, as floats: one of a gray image, three of a colored one."""
    narrow = image.dtype.itemsize <= (2 if image.dtype.kind in "iu" else 4)
    dtype = np.dtype(np.float32 if narrow else np.float64)
    if image.ndim == 2 or image.shape[2] < 3:
        return [np.array(image if image.ndim == 2 else image[..., 0], dtype)]
    return [_mix_planes([image[..., i] for i in range(3)], weights, dtype) for weights in OPPONENT]


def join_channels(channels: list[np.ndarray], like: np.ndarray) -> np.ndarray:
    """The image with these channels, of the shape and dtype of `like` and with its alpha.

    Integers are rounded and clipped to what they can hold; floats stay as they are.
    """
    out = like.copy()
    if len(channels) == 1:
        out[(...,) if out.ndim == 2 else (..., 0)] = cast_values(channels[0], out.dtype)
        return out
    for i in range(3):
        out[..., i] = cast_values(_mix_planes(channels, OPPONENT[:, i], channels[0].dtype), out.dtype)
    return out


def _mix_planes(planes: list[np.ndarray], weights: np.ndarray, dtype: Any) -> np.ndarray:
    total = planes[0] * dtype.type(weights[0])
    for plane, weight in zip(planes[1:], weights[1:], strict=True):
        total += plane * dtype.type(weight)
    return total


def cast_values(plane: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """As this type: integers are rounded, and clipped to what they can hold; the array that came in may be used up."""
    if dtype.kind not in "iu":
        return plane.astype(dtype)
    limits, plane = np.iinfo(dtype), np.rint(plane)
    top = plane.dtype.type(limits.max)
    top = top if int(top) <= limits.max else np.nextafter(top, plane.dtype.type(0))  # 2⁶³ − 1 as a float is 2⁶³
    return np.clip(plane, limits.min, top, out=plane).astype(dtype)
