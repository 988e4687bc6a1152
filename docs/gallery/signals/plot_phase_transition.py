"""
The phase transition of sparse recovery
=======================================

A signal of n numbers, of which K are not zero, is measured m times: each measurement is a random mixture of all n. With
fewer measurements than numbers there are many signals that would explain them. Which one was it? Draw many, and try.
"""

import numpy as np

from twofold.plots.models.signals import transition_figure
from twofold.signals import (
    DCT,
    CompressiveSensing,
    measurements_needed,
    phase_diagram,
)

# %%
# Basis pursuit takes the signal with the least sum of sizes. It either finds the true one to the last digit or another
# one, and the two fates are separated by an edge. The dashed curve is what theory says for endless signals: it was found
# by counting the faces of polytopes, and later by asking when a random plane misses a cone. Orthogonal matching pursuit is
# told K, which basis pursuit is not; where there are few measurements, it does better for signals like these, whose
# numbers differ in size, and it does worse where there are many.

grid = {
    "delta": np.arange(0.1, 1, 0.1),
    "rho": np.arange(0.05, 1, 0.05),
    "trials": 20,
    "random_state": 0,
}
found = {
    "Basis pursuit": phase_diagram(100, **grid),
    "Orthogonal matching pursuit": phase_diagram(
        100, method="orthogonal_matching_pursuit", **grid
    ),
}
diagram = transition_figure(found)

# %%
# How far is half success from theory, already with n = 100?

one = found["Basis pursuit"]
for d, measured, theory in zip(one.delta, one.curve50, one.theory, strict=True):
    print(
        f"m/n = {d:.1f}: half success at K/m = {measured:.3f}, theory {theory:.3f}"
    )

# %%
# The other way round: how many measurements does a signal need? Ten waves among 256, with the number the theory asks for,
# with fewer, and with more.

n, K = 256, 10
rng = np.random.default_rng(0)
signals = np.zeros((20, n))
for c in signals:
    c[rng.choice(n, K, replace=False)] = rng.standard_normal(K)
X = DCT().synthesize(signals)
need = measurements_needed(K, n)
for m in (int(0.75 * need), need, int(1.25 * need)):
    sensing = CompressiveSensing(m, basis=DCT(), random_state=0).fit(X)
    again = sensing.recover(sensing.measure(X))
    right = np.linalg.norm(again - X, axis=1) < 1e-4 * np.linalg.norm(X, axis=1)
    print(f"{m:3d} measurements of {n} numbers: {right.mean():.0%} recovered")
