"""
Codes of an autoencoder and of PCA, drawn by t-SNE
==================================================

A deep autoencoder says a handwritten digit of 784 pixels in thirty numbers (Hinton and Salakhutdinov, 2006). The digits
here have 64 pixels, and twelve numbers do. Nobody sees twelve dimensions: t-SNE lays the codes out in a plane so that
neighbors stay neighbors. It is scikit-learn's, which takes any codes; PCA's twelve numbers get the same treatment.
"""

import numpy as np
from sklearn.manifold import TSNE
from sklearn.neighbors import KNeighborsClassifier

from twofold import PCA, Autoencoder, datasets
from twofold.plots.models.linear import planes_figure, rows_figure

digits = datasets.digits()
order = np.random.default_rng(5).permutation(len(digits.target))
X, y = digits.data[order], digits.target[order]
seen, held = slice(600, None), slice(600)

k = 12
models = {
    "PCA": PCA(k).fit(X[seen]),
    "Autoencoder": Autoencoder(
        k,
        hidden_layer_sizes=(256, 128, 64),
        learning_rate_init=2e-3,
        max_iter=40,
        random_state=0,
    ).fit(X[seen]),
}
codes = {name: model.transform(X) for name, model in models.items()}

# %%
# What is lost of digits that were not learned from, and how often the nearest code among those learned from is of the
# same kind: in all twelve numbers. The autoencoder draws better; PCA has the better neighbors. Bends that serve the
# drawing may bring together what is different.

for name, model in models.items():
    again = model.inverse_transform(codes[name][held])
    lost = ((X[held] - again) ** 2).sum(axis=1).mean()
    nearest = KNeighborsClassifier(1).fit(codes[name][seen], y[seen])
    right = nearest.score(codes[name][held], y[held])
    print(f"{name:11} lost {lost:5.1f}   same kind as the nearest {right:.1%}")

# %%
# The digits held out, laid out from their codes. t-SNE was not told the kinds, the colors were.

planes = planes_figure(
    {
        f"t-SNE of {k} numbers, {name}": TSNE(
            perplexity=30, max_iter=500, random_state=0
        ).fit_transform(code[held])
        for name, code in codes.items()
    },
    y[held],
)

# %%
# Both make islands of the kinds, and neither map is clearly the better one: with twelve numbers of sixty-four, little is
# lost that would tell digits apart. How large islands are, or how far from each other, says nothing; t-SNE keeps
# neighbors, not distances. What the numbers hold is seen when the digits are drawn again.

some = X[held][:16]
rows = {"held out": some}
for name, model in models.items():
    rows[name] = model.inverse_transform(model.transform(some))
drawn = rows_figure({n: v.reshape(-1, 8, 8) for n, v in rows.items()}, (0, 16))
