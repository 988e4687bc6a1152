"""
Two signals on which matching pursuit fails
===========================================

Take the atom that looks most like the signal, subtract as much of it as there is, and look again at what is left: that
is matching pursuit. Every step makes the rest shorter. It may still end with the wrong atoms, or never end at all.
"""

import numpy as np
from matplotlib.figure import Figure

from twofold.signals import (
    basis_pursuit,
    matching_pursuit,
    orthogonal_matching_pursuit,
    recovery_bound,
)

half = np.sqrt(0.5)
detour = np.array([[1, 0], [0, 1], [half, half]]), np.array([2.0, 1.0])
endless = (
    np.array([[1, 0], [half, half], [np.sqrt(0.75), 0.5]]),
    np.array([0.0, 1.0]),
)

# %%
# **A detour.** The signal (2, 1) is 2 of the first atom and 1 of the second. The third lies between the two and is closer
# to the signal than either, so it is taken first. What is then left needs both of the others.

atoms, x = detour
found = matching_pursuit(atoms, x)
print("atoms used:", np.count_nonzero(found.codes), "with", found.codes.round(3))

# %%
# **No end.** The signal (0, 1) lies in the plane of the first two atoms, which are at 45 degrees. The second takes its
# part, what is left goes to the first, what is left of that to the second again. Each round halves the rest: what can only
# be halved is never gone.

atoms, x = endless
found = matching_pursuit(atoms, x, n_steps=20)
print("length of the rest:", found.errors[::2].round(5))

# %%
# The orthogonal variant fits all atoms chosen so far again after each choice. What is left is then orthogonal to each of
# them, none is chosen twice, and two steps in the plane are enough.


def orthogonal_errors(atoms, x, steps):
    codes = [
        orthogonal_matching_pursuit(atoms, x, n_nonzero=k)
        for k in range(1, steps + 1)
    ]
    return [np.linalg.norm(x), *(np.linalg.norm(x - c @ atoms) for c in codes)]


curves = {
    "matching pursuit, detour": matching_pursuit(*detour).errors,
    "matching pursuit, no end": found.errors,
    "orthogonal, no end": orthogonal_errors(*endless, 2),
}
ways = Figure(figsize=(11, 3.9), layout="constrained")
*left, right = ways.subplots(1, 3)
for ax, (atoms, x) in zip(left, (detour, endless), strict=True):
    for atom in atoms:
        ax.annotate("", atom, (0, 0), arrowprops={"arrowstyle": "-|>"})
    rests = [matching_pursuit(atoms, x, n_steps=t).residual for t in range(12)]
    ax.plot(*(x - np.array(rests)).T, "o-", color="#d16d4e", label="path")
    ax.plot(*x, "*", ms=13, color="black")
    ax.set(aspect="equal", xlim=(-0.4, 2.4), ylim=(-0.4, 2.1))
left[0].set_title("A detour")
left[1].set_title("No end")
for name, errors in curves.items():
    right.plot(np.maximum(errors, 1e-6), "o-", label=name)
right.set(title="What is left", xlabel="steps", yscale="log")
right.legend()

# %%
# Could one have known? If the largest cosine between two atoms is μ, any code with fewer than ½ (1 + 1/μ) atoms is found
# by the orthogonal pursuit, and by basis pursuit, which minimizes the sum of sizes instead of choosing. Neither dictionary
# promises more than a single atom.

for name, (atoms, _) in {"detour": detour, "no end": endless}.items():
    print(f"{name}: safe below {recovery_bound(atoms):.2f} atoms")

# %%
# Nor is the orthogonal pursuit safe: what it has chosen it keeps. Forty random atoms in twenty dimensions, and signals of
# five atoms, plus or minus one of each. Plain matching pursuit may take 300 steps. Basis pursuit decides about all atoms at once, and loses fewer.

rng = np.random.default_rng(0)
atoms = rng.standard_normal((40, 20))
atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
right = []
for _ in range(200):
    code = np.zeros(40)
    code[rng.choice(40, 5, replace=False)] = rng.choice([-1, 1], 5)
    x = code @ atoms
    guesses = (
        matching_pursuit(atoms, x, n_steps=300).codes,
        orthogonal_matching_pursuit(atoms, x, n_nonzero=5),
        basis_pursuit(atoms.T, x),
    )
    right.append([np.allclose(guess, code, atol=1e-4) for guess in guesses])
for name, share in zip(
    ("matching pursuit", "orthogonal", "basis pursuit"),
    np.mean(right, axis=0),
    strict=True,
):
    print(f"{name:16} right {share:.0%} of the time")
