"""The signals station: a heart in three bases and from few measurements, a photograph cleaned and its holes filled."""

from __future__ import annotations

import numpy as np

from twofold import datasets
from twofold.core.seeds import generator
from twofold.metrics import psnr
from twofold.plots.models.images import comparison_figure, paint_holes
from twofold.plots.models.signals import bases_figure, compare_signals_figure
from twofold.signals.bases import DCT, Haar, Wavelet
from twofold.signals.compressive_sensing import CompressiveSensing
from twofold.signals.images.denoise import denoise_image
from twofold.signals.images.inpaint import inpaint_image
from twofold.signals.thresholding import keep_largest
from twofold.tour import Part, Station

COEFFICIENTS = 50  # of the heart's 1024 numbers
MEASUREMENTS = 512
NOISE = 25  # standard deviation, of 255
MISSING = 0.5
BASES = {"Cosines": DCT(), "Haar": Haar(), "Wavelets": Wavelet(1, "db4")}


def station(seed: int = 0) -> Station:
    """Find three bases, few measurements, noise, holes."""
    heart = datasets.signals().ecg
    heart = heart - heart.mean()
    picture = photograph()
    found = {"bases": bases(heart), "few_measurements": few_measurements(heart, seed)}
    return found | {"noise": noise(picture, seed), "holes": holes(picture, seed)}


def photograph() -> np.ndarray:
    """Return part of a flower, gray (96, 128)."""
    return np.rint(datasets.photographs().flower[136:232, 232:360].mean(axis=2)).astype(np.uint8)


def bases(heart: np.ndarray) -> Part:
    energy = float(heart @ heart)
    kept = {name: 1 - keep_largest(basis.analyze(heart), COEFFICIENTS)[1] / energy for name, basis in BASES.items()}
    numbers = {f"kept by {name.lower()}": f"{share:.1%}" for name, share in kept.items()}
    return Part(bases_figure(heart, BASES, COEFFICIENTS), numbers, kept=COEFFICIENTS)


def few_measurements(heart: np.ndarray, seed: int) -> Part:
    sensing = CompressiveSensing(MEASUREMENTS, kind="hadamard", basis=Wavelet(1, "db4"), random_state=seed).fit(heart)
    found = sensing.recover(sensing.measure(heart))
    off = float(np.linalg.norm(found - heart) / np.linalg.norm(heart))
    name = f"{MEASUREMENTS} measurements of {len(heart):,} numbers"
    figure = compare_signals_figure(heart[None], found[None], [name], labels=("signal", "recovered"))
    numbers = {"measurements": f"{MEASUREMENTS} of {len(heart):,}", "error": f"{off:.1%} of its length"}
    return Part(figure, numbers, measurements=MEASUREMENTS, length=len(heart))


def noise(picture: np.ndarray, seed: int) -> Part:
    noisy = picture + generator(seed, 1).normal(0, NOISE, picture.shape)
    noisy = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    clean = denoise_image(noisy, NOISE, random_state=seed)
    before, after = (psnr(picture, one, 255) for one in (noisy, clean))
    figure = comparison_figure([("photograph", picture), ("with noise", noisy), ("cleaned", clean)])
    return Part(figure, {"with noise": f"{before:.1f} dB", "cleaned": f"{after:.1f} dB"}, sigma=NOISE)


def holes(picture: np.ndarray, seed: int) -> Part:
    gone = generator(seed, 2).random(picture.shape) < MISSING
    filled = inpaint_image(np.where(gone, 0, picture), gone, random_state=seed)
    mean = np.full(picture.shape, picture[~gone].mean())
    flat, after = (psnr(picture[gone], one[gone], 255) for one in (mean, filled))
    seen = paint_holes(picture, gone)
    figure = comparison_figure([("photograph", picture), ("half of it", seen), ("filled", filled)])
    return Part(figure, {"mean in the holes": f"{flat:.1f} dB", "filled": f"{after:.1f} dB"})
