"""Pictures from 30 % and from 10 % of their measurements: quality and time, with nothing written as a matrix."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image
from scipy import fft

from bench.harness import Contestant, Event, Missing
from twofold import CompressiveSensing

NAMES = ("cameraman", "house", "peppers", "barbara")


def recover(image: np.ndarray, kind: str, share: float, sigma: float) -> np.ndarray:
    sensing = CompressiveSensing(int(share * image.size), kind=kind, random_state=0).fit(image)
    y = sensing.measure(image)
    return sensing.recover(y + sigma * np.random.default_rng(0).normal(size=y.shape), sigma=sigma)


def lowest(image: np.ndarray, share: float, sigma: float) -> np.ndarray:
    """As many measurements, all of the lowest cosines, and nothing guessed about the others."""
    waves = fft.dctn(image, norm="ortho")
    slow = np.hypot(*np.meshgrid(*(np.arange(n) / n for n in image.shape), indexing="ij"))
    waves += sigma * np.random.default_rng(0).normal(size=image.shape)
    return fft.idctn(np.where(slow <= np.quantile(slow, share), waves, 0.0), norm="ortho")


def picture(name: str, share: float, sigma: float, quick: bool) -> Event | Missing:
    title = f"signals_sense {name} {share:.0%}" + (f" noise {sigma:g}" if sigma else "")
    path = Path(os.environ.get("TWOFOLD_DATA", "")) / "images" / f"{name}.png"
    if not path.is_file():
        return Missing(title, f"TWOFOLD_DATA is not a folder with images/{name}.png")
    image = np.asarray(Image.open(path).convert("L"), dtype=np.float64)
    image = image[:64, :64] if quick else image

    def ours(kind: str) -> Contestant:
        warm = partial(recover, image[:32, :32], kind, share, sigma)
        return Contestant(f"twofold {kind}", partial(recover, image, kind, share, sigma), ours=True, warm=warm)

    noise = f", noise of {sigma:g} gray levels on each" if sigma else ""
    return Event(
        title,
        f"{name}, {image.shape[0]} x {image.shape[1]}, from {share:.0%} of its measurements{noise}",
        [
            ours("fourier"),
            ours("hadamard"),
            Contestant("lowest cosines alone", lambda: lowest(image, share, sigma), counts=False, note="no recovery"),
        ],
        quality=lambda result: {"PSNR, dB": 10 * np.log10(255**2 / np.mean((result - image) ** 2))},
        as_good=lambda a, b: a["PSNR, dB"] >= b["PSNR, dB"] - 0.1,
        repeats=1,
    )


EVENTS = (
    *(partial(picture, name, 0.3, 0.0) for name in NAMES),
    partial(picture, "cameraman", 0.3, 5.0),
    *(partial(picture, name, 0.1, 0.0) for name in ("cameraman", "peppers")),
)
