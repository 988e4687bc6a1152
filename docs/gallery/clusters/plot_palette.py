"""
The palette of a photograph, by k-means
=======================================

Pixels are rows of three numbers. k-means finds the few colors that stand for all with the least squared error.
"""

import numpy as np

from twofold import datasets
from twofold.clusters import palette
from twofold.plots.models import clusters as plots

image = datasets.photographs().flower[::2, ::2]

# %%
# ``palette`` returns the colors and, for every pixel, the number of its color.

reduced = {}
for k in (4, 8, 16, 32):
    colors, indices = palette(image, k, random_state=0)
    reduced[f"{k} colors"] = colors[indices], colors
pictures = plots.palette_figure(image, reduced)

# %%
# Every further bit a pixel buys some decibels.

for name, (picture, colors) in reduced.items():
    error = np.mean((image.astype(float) - picture) ** 2)
    quality = 10 * np.log10(255**2 / error)
    print(f"{name:>10}: {np.log2(len(colors)):.0f} bits a pixel, {quality:.1f} dB")
