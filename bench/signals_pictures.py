"""Twelve pictures that nothing was tuned on: compress, denoise and inpaint beside what others do with them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np
from sklearn.datasets import load_sample_image

from bench.harness import Bar, Contestant, Event, Missing, Row
from twofold.metrics import psnr
from twofold.signals import denoise_image

SKIMAGE = "astronaut", "brick", "camera", "chelsea", "coffee", "grass", "gravel", "moon", "rocket"
SIDE = 256  # of the part of a picture, from its middle
MAX_DB_BELOW_BM3D, LEVELS = 0.5, (10, 25, 50)


@cache
def load_pictures(color: bool = False) -> list[np.ndarray]:
    """The middles of scikit-image's bundled photographs and of scikit-learn's, the same for all."""
    from skimage import data
    from skimage.io import imread

    whole = [getattr(data, name)() for name in SKIMAGE]
    whole.append(imread(f"{data.__path__[0]}/motorcycle_left.png"))
    whole += [load_sample_image("china.jpg"), load_sample_image("flower.jpg")]
    found = []
    for pixels in whole:
        h, w = pixels.shape[:2]
        cut = pixels[(h - SIDE) // 2 : (h + SIDE) // 2, (w - SIDE) // 2 : (w + SIDE) // 2]
        gray = cut if cut.ndim == 2 else np.rint(cut[..., :3] @ [0.299, 0.587, 0.114]).astype(np.uint8)
        found.append(cut[..., :3] if color and cut.ndim == 3 else gray)
    return [one for one in found if not color or one.ndim == 3]


def find_missing(*packages: str) -> str:
    """Packages that are not installed, for a line of the table."""
    from importlib.util import find_spec

    names = {"skimage": "scikit-image", "cv2": "opencv-python-headless"}
    return " ".join(names.get(name, name) for name in packages if find_spec(name) is None)


def denoising(sigma: int, quick: bool) -> Event | Missing:
    title = f"signals_pictures denoise {sigma}"
    if find_missing("skimage"):
        return Missing(title, "pip install scikit-image")
    clean = [one.astype(np.float32) for one in load_pictures()[: 2 if quick else None]]
    rng = np.random.default_rng(sigma)
    noisy = [one + rng.normal(scale=sigma, size=one.shape).astype(np.float32) for one in clean]

    def entry(
        name: str, job: Callable[[np.ndarray], np.ndarray], ours: bool = False, counts: bool = False
    ) -> Contestant:
        run = partial(lambda images: [job(one) for one in images])
        return Contestant(name, partial(run, noisy), ours, counts, warm=partial(run, [noisy[0][:48, :48]]))

    def block_matching(image: np.ndarray) -> np.ndarray:
        from bm3d import bm3d

        return 255 * bm3d(image / 255, sigma / 255).astype(np.float32)

    def average_similar(image: np.ndarray) -> np.ndarray:
        from skimage.restoration import denoise_nl_means

        options = {"patch_size": 5, "patch_distance": 10, "h": 0.6 * sigma, "sigma": sigma, "fast_mode": False}
        return denoise_nl_means(image, preserve_range=True, **options)

    def quality(result: list[np.ndarray]) -> dict[str, float]:
        reached = [psnr(one, found, 255.0) for one, found in zip(clean, result, strict=True)]
        return {"mean PSNR": float(np.mean(reached)), "lowest PSNR": min(reached)}

    def met(rows: list[Row]) -> bool:
        found = {row.contestant: row.quality.get("mean PSNR", np.nan) for row in rows}
        return bool(found["twofold"] >= found["BM3D (bm3d)"] - MAX_DB_BELOW_BM3D)

    bm3d = Missing("BM3D (bm3d)", "pip install bm3d") if find_missing("bm3d") else entry("BM3D (bm3d)", block_matching)
    return Event(
        title,
        f"{len(clean)} gray pictures of {SIDE} x {SIDE}, noise of {sigma}, not clipped",
        [
            entry("twofold", lambda image: denoise_image(image, sigma), ours=True, counts=True),
            entry("twofold, wavelets, soft", lambda image: denoise_image(image, sigma, method="soft"), ours=True),
            bm3d,
            entry("non-local means (scikit-image)", average_similar),
        ],
        quality=quality,
        as_good=lambda a, b: a["mean PSNR"] >= b["mean PSNR"] - MAX_DB_BELOW_BM3D,
        bar=Bar(f"within {MAX_DB_BELOW_BM3D} dB of BM3D in the mean", test=met),
        repeats=1,
    )


EVENTS = tuple(partial(denoising, sigma) for sigma in LEVELS)  # called with `quick`
