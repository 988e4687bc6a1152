"""
A photograph denoised and inpainted
===================================

A picture repeats itself: the tiles of a roof, the petals of a flower. Similar patches differ in few directions, noise
in all. Small patches are also made of few strokes out of an alphabet, and a patch with holes still shows which. Directions
and alphabet are learned from the damaged picture itself.
"""

import numpy as np
from matplotlib.figure import Figure

from twofold import datasets
from twofold.metrics import psnr
from twofold.plots.models.images import comparison_figure, gray_mosaic, paint_holes
from twofold.signals import KSVD, denoise_image, inpaint_image
from twofold.signals.images.patches import make_cosine_atoms, take_patches

photo = datasets.photographs().flower[88:280, 170:426]
rng = np.random.default_rng(0)

# %%
# **Noise**, of a tenth of the range. Groups of similar patches of 7 x 7 pixels, and they overlap, are shrunk in their
# principal directions, in two passes; then each pixel is the mean of all that is said of it.

noisy = photo + rng.normal(0, 25, photo.shape)
noisy = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
clean = denoise_image(noisy, sigma=25)
cleaning = comparison_figure(
    [
        ("photograph", photo),
        (f"with noise, {psnr(photo, noisy, 255):.1f} dB", noisy),
        (f"cleaned, {psnr(photo, clean, 255):.1f} dB", clean),
    ]
)

# %%
# **Holes.** Half of the pixels of a pagoda are gone, and a scratch goes through it. Each patch is matched where it is
# known; the atoms found say what is missing.

pagoda = datasets.photographs().china[100:212, 100:260].mean(axis=2)
pagoda = np.rint(pagoda).astype(np.uint8)
gone = rng.random(pagoda.shape) < 0.5
rows, columns = np.indices(gone.shape)
gone |= np.abs(columns - 40 - rows / 2) < 2
filled = inpaint_image(pagoda, gone, random_state=0)
mean = np.where(gone, pagoda[~gone].mean(), pagoda)
filling = comparison_figure(
    [
        ("photograph", pagoda),
        (f"{gone.mean():.0%} missing", paint_holes(pagoda, gone)),
        (f"filled in, {psnr(pagoda[gone], filled[gone], 255):.1f} dB", filled),
    ]
)
print(f"what was filled in: {psnr(pagoda[gone], filled[gone], 255):.1f} dB")
print(f"the mean in its place: {psnr(pagoda[gone], mean[gone], 255):.1f} dB")

# %%
# The alphabet: cosines to begin with, then some sweeps of K-SVD over the noisy patches of the flower. Each sweep finds the few atoms of
# every patch, then improves every atom for the patches that use it.

gray = noisy.mean(axis=2)
patches = take_patches(gray, 8, range(gray.shape[0] - 7))
patches -= patches.mean(axis=1, keepdims=True)
busy = patches[patches.std(axis=1) > 20]
model = KSVD(
    144,
    n_nonzero=4,
    init=make_cosine_atoms(144, 8),
    max_iter=12,
    tol=0.01,
    random_state=0,
)
model.fit(busy)
used = np.asarray(abs(model.transform(busy)).sum(axis=0)).ravel()
alphabet = Figure(figsize=(11, 5.8), layout="constrained")
dictionaries = {
    "Cosines, to begin with": make_cosine_atoms(144, 8),
    "Learned from the noisy flower": model.components_[np.argsort(-used)],
}
for ax, (title, atoms) in zip(
    alphabet.subplots(1, 2), dictionaries.items(), strict=True
):
    scale = np.abs(atoms).max(axis=1, keepdims=True)
    tiles = (atoms / scale).reshape(-1, 8, 8)
    ax.imshow(gray_mosaic(tiles, limits=(-1, 1)), "gray", vmin=0, vmax=255)
    ax.set_title(title)
    ax.axis("off")
