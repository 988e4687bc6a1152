"""
Digits drawn and completed by PixelCNN
======================================

A picture is read like a line of text: every pixel has a distribution given those above it and to its left. The product
of all of them is the exact likelihood of the picture, and drawing one pixel after the other makes new ones, or
completes what is missing.
"""

import numpy as np

from twofold import PixelCNN, datasets
from twofold.plots.models.linear import rows_figure

images = datasets.digits().images  # gray values 0, 1, … 16
images = images[np.random.default_rng(5).permutation(len(images))]
seen, held = images[300:], images[:300]

model = PixelCNN(
    16, n_layers=3, learning_rate_init=5e-3, max_iter=8, random_state=0
)
model.fit(seen)
print(f"{model.levels_} levels a pixel, found in the data")

# %%
# How likely are digits that were not learned from? To compare: every pixel for itself, with the frequencies of its
# seventeen levels; and no knowledge at all.

counts = np.stack([(seen == level).sum(axis=0) + 0.5 for level in range(17)])
alone = np.log(counts / counts.sum(axis=0))
each = alone[held.astype(int), np.arange(8)[:, None], np.arange(8)].sum(axis=(1, 2))
print(f"PixelCNN           {model.score(held):7.1f} nats a picture")
print(f"each pixel alone   {each.mean():7.1f}")
print(f"nothing known      {-64 * np.log(17):7.1f}")
print(
    f"the shortest file: {model.bits_per_pixel(held):.2f} bits a pixel, "
    f"of {np.log2(17):.2f}"
)

# %%
# New digits, drawn from the top left to the lower right.

drawn = model.sample(36, random_state=0)
new = rows_figure({"drawn": drawn[:18], "as well": drawn[18:]}, (0, 16))

# %%
# The lower halves of digits that it has never seen, three times each: all that is missing comes after all that is known,
# so that these are exact draws of what the model believes, and where it is not sure they differ.

some = held[:18]
half = some.astype(float)
half[:, 4:] = np.nan
rows = {"known": half}
for i in range(3):
    name = ("one guess", "another", "a third")[i]
    rows[name] = model.complete(some, "lower", random_state=i)
rows["truth"] = some
completed = rows_figure(rows, (0, 16))

# %%
# The likelihood pixel by pixel says what a picture is made of: paper is nearly free, and the gray values of the strokes
# and of their edges take almost all of it.

import torch

from twofold.plots.style import SEQUENTIAL, new_figure, style

with torch.no_grad():
    levels = torch.from_numpy(some[:9].astype(np.uint8))
    nats = model.module_.nats(levels).numpy()
with style():
    surprise = new_figure(11, 2.9)
    axes = surprise.subplots(2, 9)
    for (top, bottom), digit, cost in zip(axes.T, some, nats, strict=False):
        top.imshow(digit, cmap="gray_r", interpolation="none")
        bottom.imshow(cost, cmap=SEQUENTIAL, vmin=0, vmax=4, interpolation="none")
        top.axis("off")
        bottom.axis("off")
    axes[1, 0].set_title("nats each pixel costs", fontsize=10)
