"""
A walk through the latent space of a VAE
========================================

A variational autoencoder learns pictures as draws from a network whose input is Gaussian noise. Since codes are made to
lie close together, the way from one to another leads through pictures.
"""

import numpy as np

from twofold import PCA, VAE, datasets
from twofold.plots.models.linear import planes_figure, rows_figure

digits = datasets.digits()
images, target = digits.images, digits.target
settings = dict(
    hidden_layer_sizes=(128, 128),
    output="gaussian",
    learning_rate_init=3e-3,
    batch_size=50,
    max_iter=40,
    random_state=0,
)
model = VAE(8, **settings).fit(images)
print(f"numbers of the code in use: {int(model.active_.sum())} of 8")
print(f"{model.latent_kl_.sum():.1f} nats a picture go through the code")

# %%
# From a digit of one kind to one of another in twelve steps along a straight line in the code. A straight line between
# the pixels would only fade one picture out and the other in, as the last row shows.

rng = np.random.default_rng(1)
pairs = [(0, 6), (3, 8), (4, 9), (1, 7), (5, 2)]
ends = [
    tuple(images[rng.choice(np.flatnonzero(target == c))] for c in pair)
    for pair in pairs
]
walks = {
    f"{a} to {b}": model.interpolate(*end, 12)
    for (a, b), end in zip(pairs, ends, strict=True)
}
done = np.linspace(0, 1, 12)[:, None, None]
walks["5 to 2, by pixels"] = (1 - done) * ends[-1][0] + done * ends[-1][1]
walk = rows_figure(walks, (0, 16))

# %%
# With a code of two numbers there is a map: the picture at every place, from where 5% of the codes lie to where 95% do.

from scipy.stats import norm

flat = VAE(2, **settings).fit(images)
steps = norm.ppf(np.linspace(0.05, 0.95, 15))
codes = np.array([(x, y) for y in steps[::-1] for x in steps])

from twofold.plots.models.images import gray_mosaic
from twofold.plots.style import new_figure, style

sheet = 255 - gray_mosaic(flat.inverse_transform(codes), 15, (0, 16))

with style():
    atlas = new_figure(6, 6)
    ax = atlas.subplots()
    ax.imshow(sheet, cmap="gray", vmin=0, vmax=255, interpolation="none")
    ax.axis("off")

# %%
# And where the digits themselves lie on it. Nobody told what any of them is.

planes = planes_figure(
    {
        "PCA": PCA(2).fit_transform(images.reshape(-1, 64)),
        "VAE": flat.transform(images),
    },
    target,
)
