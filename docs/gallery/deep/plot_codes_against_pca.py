"""
Digits in two numbers: autoencoder and PCA
==========================================

PCA says a digit in two numbers by dropping it onto a plane. An autoencoder may bend the plane. Without hidden layers it
cannot, and finds PCA's plane; with them, as many numbers say more.
"""

import numpy as np

from twofold import PCA, Autoencoder, datasets
from twofold.plots.models.linear import planes_figure, rows_figure

digits = datasets.digits()
order = np.random.default_rng(5).permutation(len(digits.target))
X, y = digits.data[order], digits.target[order]
seen, held = X[400:], X[:400]

pca = PCA(2).fit(seen)
plain = Autoencoder(
    2,
    hidden_layer_sizes=(),
    activation="identity",
    learning_rate_init=0.01,
    max_iter=60,
    random_state=0,
).fit(seen)
bent = Autoencoder(
    2,
    hidden_layer_sizes=(256, 128),
    learning_rate_init=2e-3,
    max_iter=80,
    random_state=0,
).fit(seen)

# %%
# What is lost of digits that were not learned from, as a squared error a picture, and how often the nearest code among
# those learned from belongs to a digit of the same kind.

from sklearn.neighbors import KNeighborsClassifier

for name, model in {"PCA": pca, "linear": plain, "two layers": bent}.items():
    again = model.inverse_transform(model.transform(held))
    lost = ((held - again) ** 2).sum(axis=1).mean()
    nearest = KNeighborsClassifier(5).fit(model.transform(seen), y[400:])
    right = nearest.score(model.transform(held), y[:400])
    print(f"{name:11} lost {lost:6.1f}   kind by the nearest codes {right:4.0%}")

# %%
# The plane of the linear autoencoder is PCA's, though its axes are not: nothing asks them to be orthogonal. The cosines
# of the angles between both planes are nearly 1. (Pixels that are always white have no weights, and no part in PCA's.)

decoder = plain.module_.decoder[0].weight.detach().numpy()
basis = np.linalg.qr(decoder)[0]
cosines = np.linalg.svd(
    basis.T @ pca.components_[:, plain.columns_].T, compute_uv=False
)
print("cosines of the angles:", cosines.round(4))

# %%
# Digits that were not learned from, in two numbers.

planes = planes_figure(
    {"PCA": pca.transform(held), "Autoencoder": bent.transform(held)}, y[:400]
)

# %%
# And drawn again from these two numbers alone.

shown = held[:16]
rows = {"held out": shown}
for name, model in {"PCA": pca, "linear": plain, "two layers": bent}.items():
    rows[name] = model.inverse_transform(model.transform(shown))
again = rows_figure({k: v.reshape(-1, 8, 8) for k, v in rows.items()}, (0, 16))
