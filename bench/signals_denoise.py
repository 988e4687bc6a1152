"""Denoising of house, peppers and barbara: PSNR beside the published table of K-SVD, fixed cosines, wavelets, BM3D."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np

from bench.harness import Bar, Contestant, Event, Missing, Row
from twofold.io.images import read_image
from twofold.metrics import psnr
from twofold.signals import denoise_image

PUBLISHED = {  # Elad & Aharon 2006, patches of 8 x 8, 256 atoms
    "house": {10: 35.98, 20: 33.20, 50: 27.95},
    "peppers": {10: 34.28, 20: 30.82, 50: 26.13},
    "barbara": {10: 34.42, 20: 30.83, 50: 25.47},
}
MAX_DB_BELOW, SECONDS = 0.15, 60.0


def denoising(name: str, sigma: int, quick: bool) -> Event | Missing:
    title = f"signals_denoise {name} {sigma}"
    path = Path(os.environ.get("TWOFOLD_DATA", "")) / "images" / f"{name}.png"
    if not path.is_file():
        return Missing(title, f"TWOFOLD_DATA is not a folder with images/{name}.png")
    clean = read_image(path).pixels.astype(np.float32)
    clean = clean[:96, :96] if quick else clean
    noisy = clean + np.random.default_rng(0).normal(scale=sigma, size=clean.shape).astype(np.float32)

    def entry(peer: str, note: str = "", **options: int | str) -> Contestant:
        def job(image: np.ndarray) -> np.ndarray:
            return denoise_image(image, sigma, random_state=0, **options)

        first = partial(job, noisy[:64, :64])
        return Contestant(peer, partial(job, noisy), ours=True, counts=not note, note=note, warm=first)

    def quality(result: np.ndarray) -> dict[str, float]:
        reached = psnr(clean, result, 255.0)
        return {"PSNR": reached, "published": PUBLISHED[name][sigma], "difference": reached - PUBLISHED[name][sigma]}

    def met(rows: list[Row]) -> bool:
        return rows[0].quality["difference"] >= -MAX_DB_BELOW and rows[0].median <= SECONDS

    return Event(
        title,
        f"{name}, {clean.shape[0]} x {clean.shape[1]}, noise {sigma} ({psnr(clean, noisy, 255.0):.2f} dB, not clipped)",
        [
            entry("twofold, learned atoms", max_iter=10),
            entry("twofold", "groups of similar patches", method="pca"),
            entry("twofold, fixed cosines", "the same without learning", max_iter=0),
            entry("twofold, wavelets, soft", "SURE, 4 x 4 shifts", method="soft"),
            entry("twofold, wavelets, hard", "3 sigma, 8 x 8 shifts", method="hard", level=3.0, shifts=8),
            block_matching(noisy, sigma),
        ],
        quality=quality,
        as_good=lambda a, b: a["PSNR"] >= b["PSNR"] - MAX_DB_BELOW,
        bar=Bar(f"within {MAX_DB_BELOW} dB of the published table, in {SECONDS:g} s", test=met),
        repeats=1,
    )


def block_matching(noisy: np.ndarray, sigma: int) -> Contestant | Missing:
    """BM3D, which codes groups of similar patches together."""
    name = "BM3D (bm3d)"
    try:
        from bm3d import bm3d
    except ImportError:
        return Missing(name, "pip install bm3d")

    def job(image: np.ndarray) -> np.ndarray:
        return 255 * bm3d(image / 255, sigma / 255).astype(np.float32)

    return Contestant(
        name, partial(job, noisy), counts=False, note="another method", warm=partial(job, noisy[:64, :64])
    )


EVENTS = tuple(
    partial(denoising, name, sigma) for name, row in PUBLISHED.items() for sigma in row
)  # called with `quick`
