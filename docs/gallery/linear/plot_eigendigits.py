"""
PCA of handwritten digits
=========================

Handwritten digits of 8 × 8 pixels are points in 64 dimensions. PCA turns the axes so that a few of them hold most of
what differs between digits.
"""

# sphinx_gallery_thumbnail_number = 2

import numpy as np

from twofold import PCA, datasets
from twofold.plots.models import linear as plots

X = datasets.digits().data
full = PCA().fit(X)

# %%
# How many directions are used? The rules answer different questions, and so give different numbers.

rules = {
    "parallel analysis": "parallel",
    "knee": "knee",
    "90% of the variance": 0.9,
    "Gavish–Donoho": "gavish-donoho",
}
chosen = {
    name: PCA(rule, random_state=0).fit(X).n_components_
    for name, rule in rules.items()
}
spectrum = plots.spectrum_figure(full.explained_variance_, chosen)

# %%
# Each direction has 64 weights, so it can be looked at. Going along it adds ink where it is blue and takes ink away where
# it is red.

pictures = full.components_[:17].reshape(-1, 8, 8)
eigendigits = plots.directions_figure(
    full.mean_.reshape(8, 8), pictures, full.explained_variance_ratio_[:17]
)

# %%
# The slider, as a row of pictures: twelve digits drawn from their first k numbers.

pick = X[10:22]
U = full.transform(pick)
rows = {"original": pick.reshape(-1, 8, 8)}
for k in (1, 2, 5, 10, 20, 40):
    held = full.explained_variance_ratio_[:k].sum()
    drawn = U[:, :k] @ full.components_[:k] + full.mean_
    rows[f"k = {k}, {held:.0%}"] = drawn.reshape(-1, 8, 8)
slider = plots.rows_figure(rows, (0.0, 16.0))

# %%
# What is lost is known beforehand: the sum of the variances left out.

pca = PCA(20).fit(X)
lost = ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum() / (len(X) - 1)
print(f"measured  {lost:.10f}")
print(f"foretold  {full.explained_variance_[20:].sum():.10f}")
assert np.isclose(lost, pca.reconstruction_error())
