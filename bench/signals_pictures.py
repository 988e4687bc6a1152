"""Twelve pictures that nothing was tuned on: compress, denoise and inpaint beside what others do with them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np
from sklearn.datasets import load_sample_image

from bench.harness import Bar, Contestant, Event, Missing, Row
from twofold import analyses
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


def make_holes(kind: str, seed: int) -> np.ndarray:
    """Missing pixels (h,w): half of them at random, or scratches, bars or boxes at random places."""
    rng, holes = np.random.default_rng(seed), np.zeros((SIDE, SIDE), bool)
    if kind == "half":
        return rng.random(holes.shape) < 0.5
    number, height, width = {"scratches": (12, 3, 90), "bars": (4, 12, 150), "boxes": (5, 40, 40)}[kind]
    for row, column in zip(rng.integers(0, SIDE - height, number), rng.integers(0, SIDE - width, number), strict=True):
        holes[row : row + height, column : column + width] = True
    return holes


def inpainting(kind: str, quick: bool) -> Event | Missing:
    title = f"signals_pictures inpaint {kind}"
    if find_missing("skimage"):
        return Missing(title, "pip install scikit-image")
    whole = load_pictures()[: 2 if quick else None]
    holes = [make_holes(kind, seed) for seed in range(len(whole))]
    pairs = [(np.where(hole, 0, one).astype(np.uint8), hole) for one, hole in zip(whole, holes, strict=True)]

    def entry(name: str, job: Callable[..., np.ndarray], ours: bool = False) -> Contestant:
        run = partial(lambda some: [job(*pair) for pair in some])
        small = [(image[:64, :64], make_holes("half", 0)[:64, :64]) for image, _ in pairs[:1]]
        return Contestant(name, partial(run, pairs), ours, counts=ours, warm=partial(run, small))

    def fill(image: np.ndarray, hole: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
        answer = analyses.inpaint(image, mask=hole)
        return answer.image, answer.figures

    def solve_biharmonic(image: np.ndarray, hole: np.ndarray) -> np.ndarray:
        from skimage.restoration import inpaint_biharmonic

        return np.clip(np.rint(255 * inpaint_biharmonic(image / 255, hole)), 0, 255)

    def march(image: np.ndarray, hole: np.ndarray) -> np.ndarray:
        import cv2

        return cv2.inpaint(image, hole.astype(np.uint8), 5, cv2.INPAINT_TELEA)

    def quality(results: list) -> dict[str, float]:
        found, missed, spreads = [], 0, []
        for one, hole, result in zip(whole, holes, results, strict=True):
            image, figures = result if isinstance(result, tuple) else (result, None)
            found.append(psnr(one[hole], image[hole], 255.0))
            if figures:
                missed += abs(found[-1] - figures["psnr"]) > figures["spread"]
                spreads.append(figures["spread"])
        stated = (
            {"off by more than stated": float(missed), "median spread": float(np.median(spreads))} if spreads else {}
        )
        return {"mean PSNR": float(np.mean(found)), **stated}

    def met(rows: list[Row]) -> bool:
        return rows[0].quality["off by more than stated"] == 0

    telea = Missing("Telea (OpenCV)", "pip install opencv-python-headless")
    return Event(
        title,
        f"{len(whole)} gray pictures of {SIDE} x {SIDE}: {kind}; PSNR of the missing pixels",
        [
            entry("twofold, with its own check", fill, ours=True),
            entry("biharmonic (scikit-image)", solve_biharmonic),
            telea if find_missing("cv2") else entry("Telea (OpenCV)", march),
        ],
        quality=quality,
        as_good=lambda a, b: a["mean PSNR"] >= b["mean PSNR"],
        bar=Bar("no stated quality further from the truth than its spread", test=met),
        repeats=1,
    )


def compressing(bits: float, quick: bool) -> Event | Missing:
    title = f"signals_pictures compress {bits:g}"
    if find_missing("skimage"):
        return Missing(title, "pip install scikit-image")
    pictures = load_pictures(color=True)[: 2 if quick else None]
    limit = int(bits * SIDE * SIDE / 8)
    answers = cache(lambda: [analyses.compress(one, size=limit) for one in pictures])

    def pick(method: str) -> list[float]:
        tables = [answer.table.filter(method=method)["psnr"] for answer in answers()]
        return [one[0] for one in tables if len(one)]

    def entry(name: str, method: str, ours: bool = False) -> Contestant:
        return Contestant(name, partial(pick, method), ours, counts=ours)

    return Event(
        title,
        f"{len(pictures)} colored pictures of {SIDE} x {SIDE} in at most {bits:g} bits a pixel; all files by one call, "
        "so seconds say nothing",
        [
            entry("twofold, wavelets", "wavelet", ours=True),
            entry("twofold, DCT blocks", "dct", ours=True),
            entry("twofold, PCA of patches", "pca", ours=True),
            *(entry(f"{name} (Pillow)", ending) for name, ending in NAMES.items()),
        ],
        quality=lambda found: {"mean PSNR": float(np.mean(found)), "pictures": float(len(found))},
        as_good=lambda a, b: a["mean PSNR"] >= b["mean PSNR"],
        repeats=1,
    )


NAMES = {"JPEG": ".jpg", "WebP": ".webp", "JPEG 2000, mct=1": ".jp2", "AVIF": ".avif"}
EVENTS = (  # called with `quick`
    *(partial(denoising, sigma) for sigma in LEVELS),
    *(partial(inpainting, kind) for kind in ("half", "scratches", "bars", "boxes")),
    *(partial(compressing, bits) for bits in (0.5, 1.0)),
)
