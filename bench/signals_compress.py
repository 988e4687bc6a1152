"""Gray pictures at 36 dB: bits a pixel of each method, beside JPEG, JPEG 2000 and WebP as Pillow writes them."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from bench.harness import Bar, Contestant, Event, Missing, Row
from twofold.io.images import read_image
from twofold.metrics import psnr
from twofold.signals import compress_image

NAMES = "house", "peppers", "cameraman", "barbara"
GOAL, SECONDS = 36.0, 2.0
Found = tuple[int, np.ndarray]  # bytes, and the picture that comes back


def photograph(title: str, name: str, quick: bool) -> np.ndarray | Missing:
    """A shared gray picture; a corner of it if time is short."""
    path = Path(os.environ.get("TWOFOLD_DATA", "")) / "images" / f"{name}.png"
    if not path.is_file():
        return Missing(title, f"TWOFOLD_DATA is not a folder with images/{name}.png")
    pixels = read_image(path).pixels
    return pixels[:64, :64] if quick else pixels


def ours(image: np.ndarray, method: str) -> Found:
    made = compress_image(image, psnr=GOAL, method=method)
    return made.size, made.decode()


def save_image(image: np.ndarray, **options: object) -> Found:
    file = io.BytesIO()
    Image.fromarray(image).save(file, **options)
    return file.tell(), np.asarray(Image.open(file).convert("L"))


def coarsest(image: np.ndarray, write: Callable[[np.ndarray, int], Found], low: int, high: int) -> Found:
    """The lowest quality setting that reaches the goal, by bisection."""
    while high > low:
        middle = (low + high) // 2
        good = psnr(image, write(image, middle)[1], 255.0) >= GOAL
        low, high = (low, middle) if good else (middle + 1, high)
    return write(image, low)


def peers(image: np.ndarray) -> list[Contestant]:
    def jpeg(image: np.ndarray, quality: int) -> Found:
        return save_image(image, format="JPEG", quality=quality, optimize=True)

    def webp(image: np.ndarray, quality: int) -> Found:
        return save_image(image, format="WEBP", quality=quality, method=6)

    def jpeg2000(image: np.ndarray, tenths: int) -> Found:
        return save_image(image, format="JPEG2000", quality_mode="dB", quality_layers=[tenths / 10], irreversible=True)

    return [
        Contestant("JPEG (Pillow, optimized)", lambda: coarsest(image, jpeg, 20, 100)),
        Contestant("JPEG 2000 (Pillow, 9/7)", lambda: coarsest(image, jpeg2000, 300, 450)),
        Contestant("WebP (Pillow)", lambda: coarsest(image, webp, 20, 100), note="tuned to the eye, not to PSNR"),
    ]


def smaller(rows: list[Row]) -> bool:
    """Fewer bits than JPEG, each method within two seconds."""
    own = {row.contestant: row for row in rows if row.ours}
    jpeg = next(row for row in rows if row.contestant.startswith("JPEG ("))
    quick = all(row.median < SECONDS for name, row in own.items() if name != "twofold auto")
    return own["twofold auto"].quality["bits a pixel"] < jpeg.quality["bits a pixel"] and quick


def compressing(name: str, quick: bool) -> Event | Missing:
    title = f"signals_compress {name}"
    image = photograph(title, name, quick)
    if isinstance(image, Missing):
        return image

    def quality(result: Found) -> dict[str, float]:
        return {"bits a pixel": 8 * result[0] / image.size, "PSNR": psnr(image, result[1], 255.0)}

    return Event(
        title,
        f"{name}, {image.shape[0]} x {image.shape[1]}, as few bits as reach {GOAL:g} dB",
        [
            *(
                Contestant(f"twofold {m}", partial(ours, image, m), ours=True, warm=partial(ours, image[:32, :32], m))
                for m in ("auto", "dct", "wavelet", "pca")
            ),
            *peers(image),
        ],
        quality=quality,
        as_good=lambda a, b: a["bits a pixel"] <= b["bits a pixel"],
        bar=Bar(f"fewer bits than JPEG; each method within {SECONDS:g} s", test=smaller),
        repeats=1,
    )


EVENTS = tuple(partial(compressing, name) for name in NAMES)
