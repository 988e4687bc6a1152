"""The signals station: a heart in three bases and from few measurements, a photograph cleaned and its holes filled."""

from __future__ import annotations

import numpy as np

from twofold import datasets
from twofold.core.seeds import generator
from twofold.metrics import psnr
from twofold.plots.models.images import comparison_figure, paint_holes
from twofold.plots.models.signals import bases_figure, compare_signals_figure
from twofold.signals.bases.dct import DCT
from twofold.signals.bases.thresholds import keep_largest
from twofold.signals.bases.wavelet import Haar, Wavelet
from twofold.signals.images.denoise import denoise_image
from twofold.signals.images.inpaint import inpaint_image
from twofold.signals.sensing.compressive_sensing import CompressiveSensing
from twofold.tour.station import Part, Station

COEFFICIENTS = 50  # of the heart's 1024 numbers
MEASUREMENTS = 512
NOISE = 25  # standard deviation, of 255
MISSING = 0.5
BASES = {"Cosines": DCT(), "Haar": Haar(), "Wavelets": Wavelet(1, "db4")}


def station(seed: int = 0) -> Station:
    """Show three bases, few measurements, noise, holes."""
    heart = datasets.signals().ecg
    heart = heart - heart.mean()
    picture = photograph()
    return Station(
        "Signals in few numbers",
        "A signal is a long list of numbers, and most of them say nothing new. In the right alphabet a few suffice. "
        "Then it can be stored in fewer bytes, recovered from fewer measurements, told from noise, and completed "
        "where it is missing. The alphabet may be given, as cosines and wavelets are, or learned: codes and atoms, "
        "each easy to find when the other is known.",
        [bases(heart), few_measurements(heart, seed), noise(picture, seed), holes(picture, seed)],
    )


def photograph() -> np.ndarray:
    """Return part of a flower, gray (96, 128)."""
    return np.rint(datasets.photographs().flower[136:232, 232:360].mean(axis=2)).astype(np.uint8)


def bases(heart: np.ndarray) -> Part:
    energy = float(heart @ heart)
    kept = {name: 1 - keep_largest(basis.analyze(heart), COEFFICIENTS)[1] / energy for name, basis in BASES.items()}
    return Part(
        "A heartbeat in three bases",
        f"A thousand numbers of an electrocardiogram, made again from the {COEFFICIENTS} that say most. Cosines last "
        "from end to end, and many must work together for one sharp beat. Haar's steps and smoother wavelets live at "
        "one place, and beats are made of few. Since each basis is a rotation, what is lost is exactly the squares "
        "left out.",
        f'few, lost = keep_largest(Wavelet(1, "db4").analyze(heart), {COEFFICIENTS})\n'
        'again = Wavelet(1, "db4").synthesize(few)',
        bases_figure(heart, BASES, COEFFICIENTS),
        "An electrocardiogram made from its largest coefficients in cosines, Haar's steps and wavelets.",
        {f"kept by {name.lower()}": f"{share:.1%}" for name, share in kept.items()},
    )


def few_measurements(heart: np.ndarray, seed: int) -> Part:
    sensing = CompressiveSensing(MEASUREMENTS, kind="hadamard", basis=Wavelet(1, "db4"), random_state=seed).fit(heart)
    found = sensing.recover(sensing.measure(heart))
    off = float(np.linalg.norm(found - heart) / np.linalg.norm(heart))
    name = f"{MEASUREMENTS} measurements of {len(heart):,} numbers"
    return Part(
        "Half of the measurements",
        f"If few numbers matter, must one measure all {len(heart):,} to find them? Here are {MEASUREMENTS} "
        "measurements, each the sum of all numbers with random signs. Infinitely many signals would explain them; "
        "the one whose wavelets have the least sum of sizes is nearly the right one.",
        f'sensing = CompressiveSensing({MEASUREMENTS}, kind="hadamard", basis=Wavelet(1, "db4")).fit(heart)\n'
        "sensing.recover(sensing.measure(heart))",
        compare_signals_figure(heart[None], found[None], [name], labels=("signal", "recovered")),
        "The electrocardiogram, and over it what was recovered from half as many measurements.",
        {"measurements": f"{MEASUREMENTS} of {len(heart):,}", "error": f"{off:.1%} of its length"},
    )


def noise(picture: np.ndarray, seed: int) -> Part:
    noisy = picture + generator(seed, 1).normal(0, NOISE, picture.shape)
    noisy = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    clean = denoise_image(noisy, NOISE, random_state=seed)
    before, after = (psnr(picture, one, 255) for one in (noisy, clean))
    return Part(
        "Noise has no alphabet",
        "Each patch of 8 × 8 pixels is coded with the fewest atoms that leave a rest as small as the noise. Petals "
        "need few, noise would need them all. The atoms are learned from the noisy picture itself, by K-SVD: first the "
        "codes of all patches, then every atom for the patches that use it. No other picture was seen.",
        f"denoise_image(noisy, sigma={NOISE})",
        comparison_figure([("photograph", picture), ("with noise", noisy), ("cleaned", clean)]),
        "A photograph, the same with noise, and cleaned.",
        {"with noise": f"{before:.1f} dB", "cleaned": f"{after:.1f} dB"},
    )


def holes(picture: np.ndarray, seed: int) -> Part:
    gone = generator(seed, 2).random(picture.shape) < MISSING
    filled = inpaint_image(np.where(gone, 0, picture), gone, random_state=seed)
    mean = np.full(picture.shape, picture[~gone].mean())
    flat, after = (psnr(picture[gone], one[gone], 255) for one in (mean, filled))
    return Part(
        "Half of a picture is enough",
        "Half of the pixels are gone. What is seen of a patch tells which few atoms it is made of, and these go on "
        "where nothing is seen. Atoms are learned from patches with holes, too: cells that are missing count nothing, "
        "as in every table of this library.",
        "inpaint_image(picture, missing)",
        comparison_figure([("photograph", picture), ("half of it", paint_holes(picture, gone)), ("filled", filled)]),
        "A photograph, the same with half of its pixels missing, and filled in.",
        {"mean in the holes": f"{flat:.1f} dB", "filled": f"{after:.1f} dB"},
    )
