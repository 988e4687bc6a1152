"""
Binary pixels by PCA, logistic PCA and an autoencoder
=====================================================

Pixels that are only ever ink or paper are answers of yes and no. PCA draws them again with squared error, and may say
1.2 or −0.1. Logistic PCA says for each pixel how likely ink is: a low rank table, bent into probabilities. An
autoencoder may bend the codes as well.
"""

import numpy as np

from twofold import PCA, Autoencoder, Factorization, datasets
from twofold.factors import Logistic, Ridge
from twofold.plots.models.linear import rows_figure
from twofold.plots.style import new_figure, style

ink = (datasets.digits().data >= 8).astype(float)  # pictures of 8 × 8 pixels
ink = ink[np.random.default_rng(0).permutation(len(ink))]
seen, held = ink[400:], ink[:400]


def make(k):
    return {
        "PCA, clipped": PCA(k),
        "logistic PCA": Factorization(
            k,
            loss=Logistic(),
            left=Ridge(0.1),
            right=Ridge(0.1),
            intercept=True,
            tol=1e-3,
            random_state=0,
        ),
        "autoencoder": Autoencoder(
            k,
            hidden_layer_sizes=(256, 128),
            output="logistic",
            learning_rate_init=2e-3,
            max_iter=30,
            random_state=0,
        ),
    }


# %%
# The measure is the cross-entropy of a pixel, in bits: what it costs to send the pixel to someone who has the drawing.
# Whoever is certain and wrong would pay without bound, so that all are kept between 1 % and 99 %; a pixel then costs
# 0.0145 bits at least. The digits were not learned from.


def bits(x, p):
    p = np.clip(p, 0.01, 0.99)
    return -np.mean(x * np.log2(p) + (1 - x) * np.log2(1 - p))


sizes = (1, 2, 4, 8, 16)
fitted = {k: {name: m.fit(seen) for name, m in make(k).items()} for k in sizes}
costs = {
    name: [
        bits(held, m.inverse_transform(m.transform(held)))
        for m in (fitted[k][name] for k in sizes)
    ]
    for name in fitted[sizes[0]]
}
print(f"{'numbers a digit':15}", *(f"{k:6}" for k in sizes))
for name, row in costs.items():
    print(f"{name:15}", *(f"{cost:6.3f}" for cost in row))
alone = bits(held, np.broadcast_to(seen.mean(axis=0), held.shape))
print(f"no numbers, each pixel by its share of ink: {alone:.3f}")

# %%
# Up to four numbers the autoencoder is ahead: its curved sheet passes closer to the digits. With eight and more it is
# logistic PCA, by far. It searches for the best code of each new digit, while the autoencoder's encoder gives one
# answer and is done; and sixteen free numbers can say sixty-four answers of yes and no nearly outright, since only the
# side of each boundary counts. PCA pays for a measure that is not its own.

with style():
    curves = new_figure(7, 3.9)
    ax = curves.subplots()
    for name, row in costs.items():
        ax.plot(sizes, row, marker="o", ms=5, lw=2, label=name)
    ax.set(
        title="Bits a pixel of digits held out",
        xlabel="numbers a digit",
        xscale="log",
        ylim=(0, None),
    )
    ax.set_xticks(sizes, [str(k) for k in sizes])
    ax.minorticks_off()
    ax.legend()

# %%
# The same digits from four numbers each.

shown = held[:16]
rows = {"held out": shown}
for name, m in fitted[4].items():
    rows[name] = m.inverse_transform(m.transform(shown))
again = rows_figure({k: v.reshape(-1, 8, 8) for k, v in rows.items()}, (0, 1))
