"""Files of a given size in formats that everyone reads: WebP and JPEG 2000."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image, features

from twofold.io.images import Picture

STANDARDS = {".webp": "WebP", ".jp2": "JPEG 2000"}
CODECS = {".webp": "webp", ".jp2": "jpg_2000"}  # names in Pillow
JP2_HEADER_BYTES = 120  # of a .jp2 file beside its pixels, about
MAX_JP2_TRIES = 6


def make_standard_file(ending: str, pixels: np.ndarray, size: int) -> bytes | None:
    """The best file of that format with at most `size` bytes; None without one, or without the codec in Pillow."""
    if not features.check(CODECS[ending]) or (ending == ".webp" and pixels.dtype != np.uint8):
        return None
    find = find_best_webp if ending == ".webp" else find_best_jp2
    try:
        return find(Image.fromarray(pixels), pixels.nbytes, size)
    except (OSError, TypeError, ValueError):  # the codec refuses few pixels, or three channels of 16 bits
        return None


def find_best_webp(image: Image.Image, raw: int, size: int) -> bytes | None:
    """The file of the highest quality that fits, by bisection: size rises with quality."""
    best, low, high = None, -1, 101
    while high - low > 1:
        middle = (low + high) // 2
        data = encode(image, "WEBP", quality=middle)
        if len(data) <= size:
            best, low = data, middle
        else:
            high = middle
    return best


def find_best_jp2(image: Image.Image, raw: int, size: int) -> bytes | None:
    """The first of ever smaller files that fits."""
    levels = min(6, int(np.log2(max(min(image.size), 1))) + 1)
    ratio = raw / max(size - JP2_HEADER_BYTES, 1)
    for _ in range(MAX_JP2_TRIES):
        options = {"quality_mode": "rates", "quality_layers": [ratio], "irreversible": True, "num_resolutions": levels}
        data = encode(image, "JPEG2000", **options)
        if len(data) <= size:
            return data
        ratio *= 1.02 * len(data) / size
    return None


def encode(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def measure_quality(before: Picture, data: bytes) -> float:
    """PSNR of the image in a file."""
    from twofold.metrics import psnr

    with Image.open(io.BytesIO(data)) as image:
        mode = "RGB" if before.pixels.ndim == 3 else "L"
        after = np.asarray(image if before.peak > 255 else image.convert(mode))
    return psnr(before.pixels, after, before.peak)
