"""
k-means, step by step
=====================

k-means takes turns: every row goes to the nearest center, then every center moves to the mean of its rows. Neither
half-step can raise the cost.
"""

import numpy as np

from twofold import PCA, GaussianMixture, KMeans, datasets, select
from twofold.plots.models import clusters as plots

X = PCA(2, scale=True).fit_transform(datasets.wine().data)
start = X[np.argsort(-X[:, 0])[:3]]  # a poor one: all on one side

# %%
# A sweep is two lines of NumPy. The black lines are the ways the centers have come.

path = [start]
while len(path) < 2 or not np.array_equal(path[-1], path[-2]):
    labels = ((X[:, None] - path[-1]) ** 2).sum(axis=2).argmin(axis=1)
    path.append(np.array([X[labels == c].mean(axis=0) for c in range(3)]))
moving = plots.moving_centers_figure(X, path, (0, 1, 2, len(path) - 1))

# %%
# The library does the same, faster.

model = KMeans(3, init=start, tol=0).fit(X)
assert np.allclose(model.cluster_centers_, path[-1])
print("cost after each sweep:", np.round(model.history_["objective"], 1))

# %%
# A mixture of Gaussians learns shapes too, and BIC says how many are worth their parameters.

kinds = ["full", "tied", "diag", "spherical"]
found = select(
    GaussianMixture(reg_covar=1e-2, random_state=0),
    X,
    n_components=range(1, 7),
    covariance_type=kinds,
)
rows = found.table.rows(named=True)
curves = {
    kind: [
        (r["n_components"], r["bic"]) for r in rows if r["covariance_type"] == kind
    ]
    for kind in kinds
}
k = found.best_params["n_components"]
mixture = plots.mixture_figure(X, found.winner.predict(X), found.winner, curves, k)
print(found.best_params)
