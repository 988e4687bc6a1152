"""
Maps of documents by an autoencoder and by LSA
==============================================

Hinton and Salakhutdinov (2006) drew a map of 800,000 news stories: a deep autoencoder, 2000-500-250-125-2, saw the
counts of the 2,000 most frequent words and had to say each story in two numbers. Its map showed the kinds of news
apart; that of latent semantic analysis did not. Here is the same on a smaller scale: 2,000 docstrings of nine
packages, 1,000 words, 1000-250-125-60-2.
"""

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from twofold import LSA, Autoencoder, BagOfWords, datasets
from twofold.plots.models.images import DIGIT_COLORS
from twofold.plots.style import new_figure, strip_axes, style

text = datasets.docstrings(2000)
counts = BagOfWords(min_df=5, max_df=0.4).fit_transform(text.documents)
frequent = np.argsort(-counts.sum(axis=0), kind="stable")[:1000]
# Ten times a word is not ten times as much, nor is a longer text.
X = np.log1p(counts[:, frequent].toarray())
X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
order = np.random.default_rng(0).permutation(len(X))
X, y = X[order], text.target[order]
seen, held = slice(500, None), slice(500)

# %%
# Both see the same table, of which they learn 1,500 rows; neither knows of packages. The bends are smooth, tanh: with
# ReLU the same network learned hardly anything from a table that is nearly all zeros.

models = {
    "LSA": LSA(2, weighting=None, random_state=0).fit(X[seen]),
    "autoencoder": Autoencoder(
        2,
        hidden_layer_sizes=(250, 125, 60),
        activation="tanh",
        max_iter=20,
        random_state=0,
    ).fit(X[seen]),
}
at = {name: model.transform(X) for name, model in models.items()}

# %%
# The documents that were not learned from.

with style():
    maps = new_figure(11, 5.2)
    for ax, (name, plane) in zip(maps.subplots(1, 2), at.items(), strict=True):
        for i, package in enumerate(text.target_names):
            own = plane[held][y[held] == i]
            ax.scatter(*own.T, s=14, color=DIGIT_COLORS[i], lw=0, label=package)
        ax.set_title(name)
        strip_axes(ax)
    maps.legend(
        *ax.get_legend_handles_labels(), loc="outside right center", markerscale=2
    )

# %%
# How often is the package of such a document that of its nearest neighbors among the 1,500, by majority? And what if
# LSA had more than two numbers, by angle, as it is used for search?

print("neighbors      ", *(f"{m:4}" for m in (1, 3, 7, 15)))


def judge(name, codes, metric="euclidean"):
    rates = [
        KNeighborsClassifier(m, metric=metric)
        .fit(codes[seen], y[seen])
        .score(codes[held], y[held])
        for m in (1, 3, 7, 15)
    ]
    print(f"{name:15}", *(f"{rate:4.0%}" for rate in rates))


for name, plane in at.items():
    judge(name, plane)
more = LSA(50, weighting=None, random_state=0).fit(X[seen])
judge("LSA, 50", more.transform(X), "cosine")

# %%
# In two numbers the autoencoder's map is clearly the better one. But two numbers are for the eye: with fifty, LSA leaves
# both maps far behind.
