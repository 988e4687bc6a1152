"""
Parts of digits by NMF and by PCA
=================================

A handwritten digit is ink on paper: there is no negative ink. PCA does not know this, and draws a digit as a mean with
corrections in both directions. Non-negative factorization may only add, so what it finds are pieces of digits.
"""

import numpy as np

from twofold import NMF, PCA, datasets
from twofold.plots.models import linear, topics

X = datasets.digits().data
k = 20
nmf, pca = NMF(k, random_state=0).fit(X), PCA(k).fit(X)

# %%
# The components as pictures. On the left strokes and arcs, on the right patterns of plus (blue) and minus (red).

parts = topics.parts_figure(
    {
        "NMF": nmf.components_.reshape(-1, 8, 8),
        "PCA": pca.components_.reshape(-1, 8, 8),
    },
    per_row=5,
)

# %%
# PCA has the least squared error that twenty components can have; nothing is better. NMF gives some of it away, and gets
# parts that are mostly empty, and digits that do without many of them.

codes = nmf.transform(X)
errors = {
    "NMF": np.mean((X - codes @ nmf.components_) ** 2),
    "PCA": np.mean((X - pca.inverse_transform(pca.transform(X))) ** 2),
    "mean": np.mean((X - X.mean(axis=0)) ** 2),
}
for name, error in errors.items():
    print(f"{name:5} squared error a pixel {error:5.2f}")
empty = np.mean(nmf.components_ < 0.01 * nmf.components_.max(axis=1, keepdims=True))
print(f"{empty:.0%} of the pixels of the parts are empty")
print(f"{np.mean(codes < 0.01 * codes.max()):.0%} of the codes are zero")

# %%
# One digit put together, strongest part first; the digit itself is above the sum of all. Nothing that was drawn is ever
# taken away again.

i = 17
order = np.argsort(-codes[i] * nmf.components_.sum(axis=1))
steps = [
    codes[i, order[:m]] @ nmf.components_[order[:m]] for m in (1, 2, 3, 4, 6, 8, 20)
]
added = [
    codes[i, order[m - 1]] * nmf.components_[order[m - 1]]
    for m in (1, 2, 3, 4, 6, 8)
]
building = linear.rows_figure(
    {
        "part": np.array([*added, X[i]]).reshape(-1, 8, 8),
        "sum": np.array(steps).reshape(-1, 8, 8),
    },
    (0.0, 16.0),
)

# %%
# Pixels may be missing. A hole is not a zero: each row is fitted to what is known of it, with fewer parts, for there is
# less to go by.

hidden = np.random.default_rng(0).random(X.shape) < 0.3
seen = np.where(hidden, np.nan, X)
model = NMF(10, random_state=0).fit(seen)
filled = np.where(hidden, model.transform(seen) @ model.components_, X)
rows = {"truth": X, "seen": seen, "filled": filled}
masked = linear.rows_figure(
    {name: table[10:22].reshape(-1, 8, 8) for name, table in rows.items()},
    (0.0, 16.0),
)
blind = np.nanmean(seen, axis=0)
print(f"error in the holes: {np.sqrt(np.mean((filled - X)[hidden] ** 2)):.2f}")
print(f"by pixel means:     {np.sqrt(np.mean((blind - X)[hidden] ** 2)):.2f}")
