"""
The loss surface of the smallest factorization
==============================================

Factorization in one dimension: find u and z whose product is x. Everything that makes large factorizations difficult,
and everything that makes them work, can be seen from above.
"""

import numpy as np

from twofold.linalg import shrink
from twofold.plots.models import completion as plots

x = 1.4

# %%
# Without a penalty, the minima are the two branches of a hyperbola (orange). The origin (red) is a saddle: downhill
# along the diagonal, uphill across it. Gradient descent finds its way down from nearly everywhere.


def descend(u, z, reg=0.0, step=0.12, steps=60):
    path = [(u, z)]
    for _ in range(steps):
        gap = x - u * z
        u, z = u + step * (z * gap - reg * u), z + step * (u * gap - reg * z)
        path.append((u, z))
    return np.array(path)


# %%
# Half-steps go parallel to the axes. With one factor fixed, the other sees a parabola, and jumps to its lowest point.


def alternate(u, z, reg, sweeps=8):
    path = [(u, z)]
    for _ in range(sweeps):
        u = x * z / (z**2 + reg)
        path.append((u, z))
        z = x * u / (u**2 + reg)
        path.append((u, z))
    return np.array(path)


panels = {
    "no penalty": (
        0.0,
        {
            "gradient": descend(-0.4, 0.55),
            "from a long u": descend(2.4, 0.05, steps=40),
        },
    ),
    "ridge λ = 0.3": (
        0.3,
        {
            "gradient": descend(-0.4, 0.55, 0.3, steps=90),
            "half-steps": alternate(0.0, 2.3, 0.3),
        },
    ),
    "λ = 1.5, more than x": (1.5, {"half-steps": alternate(0.0, 2.3, 1.5, 12)}),
}
landscape = plots.landscape_figure(x, panels)

# %%
# A penalty leaves two minima, which mean the same, and their product is x − λ. That is the soft threshold of x: the
# nuclear norm of a 1 × 1 matrix at work.

for reg in (0.3, 1.5):
    u, z = alternate(0.0, 2.3, reg, 2000)[-1]
    print(
        f"λ = {reg}: u z = {u * z:.4f}, shrink(x, λ) = {shrink([[x]], reg)[0, 0]:.4f}"
    )

# %%
# The same holds for matrices: of all ways to write B = U Z, the cheapest has a penalty ½(‖U‖² + ‖Z‖²) that equals the nuclear norm of B.

B = np.random.default_rng(0).normal(size=(6, 4))
P, s, Q = np.linalg.svd(B, full_matrices=False)
U, Z = P * np.sqrt(s), np.sqrt(s)[:, None] * Q
print(f"half the squared norms {((U**2).sum() + (Z**2).sum()) / 2:.4f}")
print(f"nuclear norm           {s.sum():.4f}")
