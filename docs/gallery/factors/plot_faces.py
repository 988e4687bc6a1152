"""
Faces by PCA, NMF, vector quantization and K-SVD
================================================

Eigenfaces, parts, prototypes and atoms, learned from the same pictures. The page uses the CBCL faces where they lie on
this machine (a folder ``cbcl_faces`` under ``TWOFOLD_DATA``), and handwritten digits elsewhere; the code is the same.
"""

# sphinx_gallery_thumbnail_number = 1

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from twofold import KSVD, NMF, PCA, InputError, KMeans, datasets
from twofold.plots.models import linear, topics

try:
    pictures = datasets.fetch("cbcl_faces").images / 255.0
except InputError:
    pictures = datasets.digits().images / 16.0
side = pictures.shape[1]
X = pictures.reshape(len(pictures), -1)
train, held = X[20:1200], X[:6]
print(f"{len(train):,} pictures of {side} × {side} pixels")

# %%
# Each model writes a picture as a sum of 49 components (16 for digits), and differs in what the numbers may be: any (PCA: eigenfaces, blue
# adds ink and red takes it away), none below zero (NMF: parts), a single one (vector quantization: prototypes). This is
# the comparison of Lee and Seung (1999).

k = 49 if side > 8 else 16
pca = PCA(k).fit(train)
nmf = NMF(k, tol=1e-4, random_state=0).fit(train)
vq = KMeans(k, n_init=1, random_state=0).fit(train)
components = {
    "PCA: eigenfaces": pca.components_,
    "NMF: parts": nmf.components_,
    "vector quantization: prototypes": vq.components_,
}
parts = topics.parts_figure(
    {name: Z.reshape(-1, side, side) for name, Z in components.items()},
    per_row=int(k**0.5),
)

# %%
# Pictures that were not learned from, drawn again. PCA has the least error, by Eckart and Young. A prototype is somebody
# else's face.

few = PCA(3).fit(train)
again = {
    "held out": held,
    "mean": np.tile(train.mean(axis=0), (len(held), 1)),
    "PCA, 3 numbers": few.inverse_transform(few.transform(held)),
    f"PCA, {k} numbers": pca.inverse_transform(pca.transform(held)),
    f"NMF, {k} numbers": nmf.transform(held) @ nmf.components_,
    f"VQ, one of {k}": vq.components_[vq.predict(held)],
}
drawn = linear.rows_figure(
    {name: rows.reshape(-1, side, side) for name, rows in again.items()}, (0.0, 1.0)
)
for name, rows in again.items():
    print(f"{name:16} squared error a pixel {np.mean((rows - held) ** 2):.4f}")

# %%
# Small pieces of pictures are alike everywhere: K-SVD learns atoms for patches of 6 × 6 pixels, three of which make a
# patch. They are edges and bars, and no longer faces.

size = 6
windows = np.lib.stride_tricks.sliding_window_view(
    pictures[20:320], (size, size), axis=(1, 2)
)
patches = windows[:, ::3, ::3].reshape(-1, size * size)
patches = patches - patches.mean(axis=1, keepdims=True)
patches = patches[patches.std(axis=1) > 0.05][:5000]
atoms = KSVD(49, n_nonzero=3, tol=2e-3, random_state=0).fit(patches).components_
patch_atoms = topics.parts_figure(
    {
        "K-SVD: atoms of patches": atoms.reshape(-1, size, size),
        "PCA of patches": PCA(35).fit(patches).components_.reshape(-1, size, size),
    },
    per_row=7,
)

# %%
# Codes are also features. With three numbers a picture, a linear classifier of digits is far above chance; with ten it is
# nearly where all 64 pixels are.

digits = datasets.digits()
for count in (3, 10, 64):
    model = make_pipeline(PCA(count), LogisticRegression(max_iter=2000))
    score = cross_val_score(model, digits.data, digits.target).mean()
    print(f"{count:2} components: {score:.0%} of the digits recognized")
