"""
When a table of low rank can be recovered
=========================================

Draw a random table of rank r, hide most of its cells, and let a method fill it in. It either finds every hidden cell to
many digits or fails. Repeated over ranks and shares of cells, the outcomes fall apart along an edge.
"""

import warnings

import numpy as np

from twofold import SVP, SVT
from twofold.plots.models import completion as plots

warnings.simplefilter("ignore")  # sweeps that do not suffice are the point here

n = 32
fractions = np.linspace(0.1, 0.9, 9)
ranks = np.arange(1, 14, 2)


def recovered(model, r, p, seed):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n, r)) @ rng.normal(size=(r, n))
    seen = np.where(rng.random((n, n)) < p, truth, np.nan)
    error = model.fit(seen).predict(seen) - truth
    return np.linalg.norm(error) < 1e-2 * np.linalg.norm(truth)


# %%
# A table of rank r is made of r (2n − r) numbers. With fewer cells than that nothing can be done (left of the line), and
# no time is spent. Singular value projection is told the rank; singular value thresholding is not, and solves a convex
# problem instead.


def diagram(make, trials=2):
    share = np.zeros((len(ranks), len(fractions)))
    for a, r in enumerate(ranks):
        for b, p in enumerate(fractions):
            if p * n * n >= r * (2 * n - r):
                outcomes = [
                    recovered(make(r), r, p, (a, b, t)) for t in range(trials)
                ]
                share[a, b] = np.mean(outcomes)
    return share


success = {
    "SVP, which knows the rank": diagram(
        lambda r: SVP(int(r), max_iter=120, random_state=0)
    ),
    "SVT, which does not": diagram(lambda r: SVT(max_iter=100, random_state=0)),
}
phases = plots.phase_figure(success, fractions, ranks, (n, n))

# %%
# The edge is sharp, and not far from the line of counting.

for name, share in success.items():
    print(f"{name}: {share.mean():.0%} of the diagram")
