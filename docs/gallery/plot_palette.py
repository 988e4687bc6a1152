"""
A photograph in few colours
===========================

Pixels are rows of three numbers. k-means finds the few colours that stand for all with the least squared error.
"""

import numpy as np

from twofold import datasets
from twofold.clusters import palette
from twofold.plots.models import clusters as plots

image = datasets.photographs().flower[::2, ::2]

# %%
# ``palette`` returns the colours and, for every pixel, the number of its colour.

reduced = {}
for k in (4, 8, 16, 32):
    colours, indices = palette(image, k, random_state=0)
    reduced[f"{k} colours"] = colours[indices], colours
pictures = plots.palette_figure(image, reduced)

# %%
# Every further bit a pixel buys some decibels.

for name, (picture, colours) in reduced.items():
    error = np.mean((image.astype(float) - picture) ** 2)
    quality = 10 * np.log10(255**2 / error)
    print(f"{name:>10}: {np.log2(len(colours)):.0f} bits a pixel, {quality:.1f} dB")
