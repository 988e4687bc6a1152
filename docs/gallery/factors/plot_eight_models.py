"""
Eight models as one Factorization
=================================

PCA, NMF, k-means, dictionary learning: they have different names, different inventors and different programs. All of
them say that a table is two factors multiplied. What differs is how a misfit is measured, and what the factors may be.
Say these, and the model is said.
"""

import numpy as np

from twofold import PCA, Factorization, datasets
from twofold.factors import (
    L1,
    Absolute,
    KSparse,
    Logistic,
    NonNegative,
    OneHot,
    Orthonormal,
    Poisson,
    Ridge,
    Simplex,
    UnitNorm,
)
from twofold.plots.models import images, linear
from twofold.plots.style import DIVERGING, GREY, new_figure, style

X = datasets.digits().data[:600]  # pictures of 8 × 8 pixels, from 0 to 16
ink = (X >= 8).astype(float)  # each pixel is yes or no
rng = np.random.default_rng(0)
broken = rng.random(X.shape) < 0.05  # one pixel in twenty shows nonsense
wild = np.where(broken, rng.choice([-50.0, 50.0], X.shape), X)

# %%
# A line each. Two of them are given another table than the rest: the logistic loss asks for yes or no, and absolute
# error shows its worth where something is broken. Each kind of PCA has a level for every pixel, the intercept.

k = 12
models = {
    "PCA": Factorization(k, right=Orthonormal()),
    "sparse PCA": Factorization(k, left=UnitNorm(), right=L1(50)),
    "logistic PCA": Factorization(k, loss=Logistic(), left=Ridge(), right=Ridge()),
    "robust PCA": Factorization(k, loss=Absolute()),
    "k-means": Factorization(k, left=OneHot()),
    "dictionary learning": Factorization(k, left=KSparse(3), right=UnitNorm()),
    "NMF": Factorization(k, left=NonNegative(), right=NonNegative()),
    "pLSA": Factorization(k, loss=Poisson(), left=NonNegative(), right=Simplex()),
}
tables = {"logistic PCA": ink, "robust PCA": wild}
for name, model in models.items():
    model.set_params(intercept="PCA" in name, tol=1e-3, random_state=0)
    model.fit(tables.get(name, X))

# %%
# The twelve components of each, blue for plus and red for minus. Where only the product of the factors counts, any
# turn of the axes fits as well; these are turned so that the first ones carry most.


def components(name):
    model, table = models[name], tables.get(name, X)
    if name in ("PCA", "logistic PCA", "robust PCA"):
        codes = model.transform(table)
        drawn = (codes - codes.mean(axis=0)) @ model.components_
        return np.linalg.svd(drawn, full_matrices=False)[2][:k]
    return model.components_


def says(model):
    loss = type(model.loss).__name__ if model.loss else "Squared"
    sides = [model.left, model.right]
    return f"{loss}: " + " × ".join(
        type(s).__name__ if s else "Free" for s in sides
    )


with style():
    eight = new_figure(11, 5.15)
    for ax, (name, model) in zip(
        eight.subplots(2, 4).ravel(), models.items(), strict=True
    ):
        Z = components(name).reshape(-1, 8, 8)
        Z = Z / np.abs(Z).max(axis=(1, 2), keepdims=True)
        ax.imshow(
            images.color_mosaic(Z, DIVERGING, -1, 1, per_row=4),
            interpolation="none",
        )
        ax.set_title(name, pad=20)
        ax.annotate(
            says(model),
            (0, 1),
            (0, 5),
            "axes fraction",
            "offset points",
            color=GREY,
            fontsize=9,
        )
        ax.axis("off")

# %%
# What each makes of the same digits. At squared error no other twelve numbers a digit do better than PCA's. k-means has
# one number for a digit, the dictionary three; logistic PCA says how likely ink is; robust PCA has seen the digits of the
# second row only.

some = slice(10, 22)
rows = {"digits": X[some], "broken": wild[some]}
for name, model in models.items():
    drawn = model.inverse_transform(model.transform(tables.get(name, X)[some]))
    rows[name] = 16 * drawn if name == "logistic PCA" else drawn
same = linear.rows_figure(
    {name: drawn.reshape(-1, 8, 8) for name, drawn in rows.items()}, (0.0, 16.0)
)

# %%
# How far are they from the digits as they were? PCA of the broken ones chases the nonsense.

chasing = PCA(k).fit(wild)
errors = {
    "PCA": (X, models["PCA"]),
    "robust PCA, broken": (wild, models["robust PCA"]),
    "PCA, broken": (wild, chasing),
}
for name, (table, model) in errors.items():
    error = model.inverse_transform(model.transform(table)) - X
    print(f"{name:19} mean error of a pixel {np.abs(error).mean():.2f}")

# %%
# And a ninth, which has no name: parts that only add, fitted by absolute error, to a table that is broken and has holes.

holes = np.where(rng.random(X.shape) < 0.2, np.nan, wild)
parts = Factorization(k, loss=Absolute(), left=NonNegative(), right=NonNegative())
parts.set_params(tol=1e-3, random_state=0).fit(holes)
filled = parts.inverse_transform(parts.transform(holes[some]))
rows = {"digits": X[some], "given": holes[some], "drawn": filled}
ninth = linear.rows_figure(
    {name: drawn.reshape(-1, 8, 8) for name, drawn in rows.items()}, (0.0, 16.0)
)
