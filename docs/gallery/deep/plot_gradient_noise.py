"""
The noise of two estimators of a gradient
=========================================

The encoder of a variational autoencoder is learned through draws of the code. How a mean over draws changes with the
distribution they come from can be estimated in two ways. Both are right on average. One is far noisier.
"""

import warnings

import numpy as np

from twofold import VAE, datasets
from twofold.deep import gradient_variance
from twofold.plots.style import COLORS, GREY, new_figure, style

# %%
# First by hand, with one number: :math:`\frac{d}{dm} E\,f(z)` for :math:`z \sim N(m, 1)` and
# :math:`f(z) = (z - 3)^2`, at :math:`m = 0`. The answer is :math:`-6`.

rng = np.random.default_rng(0)
z = rng.standard_normal(20_000)
ways = {
    "through the draw": 2 * (z - 3),
    "REINFORCE": (z - 3) ** 2 * z,
    "REINFORCE, baseline": ((z - 3) ** 2 - 10) * z,
}
for name, g in ways.items():
    print(f"{name:20} mean {g.mean():6.2f}   variance {g.var():8.1f}")

with style():
    by_hand = new_figure(11, 2.9)
    axes = by_hand.subplots(1, 3, sharex=True, sharey=True)
    for ax, color, (name, g) in zip(axes, COLORS, ways.items(), strict=False):
        ax.hist(g, bins=np.linspace(-40, 12, 105), color=color, density=True)
        ax.axvline(-6, color=GREY, lw=1.4, ls=(0, (4, 2)))
        ax.set(title=name, xlabel="estimate from one draw", yticks=[])

# %%
# Now in earnest: the gradient of the encoder's weights on 64 digits, a hundred times with other draws, for codes of more
# and more numbers. REINFORCE has a baseline; a reward is shared by all numbers of the code, and none knows which part is
# its own.

images = datasets.digits().images
sizes = (1, 2, 4, 8, 16)
totals = {"reparameterized": [], "reinforce": []}
for k in sizes:
    model = VAE(
        k,
        hidden_layer_sizes=(64,),
        learning_rate_init=3e-3,
        max_iter=4,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not all numbers are in use yet
        model.fit(images)
    noise = gradient_variance(model, images[:64], n_draws=100, random_state=0)
    for name in totals:
        totals[name].append(noise[name].total)
    times = noise["reinforce"].total / noise["reparameterized"].total
    print(f"{k:2} numbers: {times:7.1f} times the variance")

# %%
# What that means for learning: the same network, the same steps, and only the gradient differs.

runs = {}
for gradient in ("reparameterized", "reinforce"):
    model = VAE(
        8,
        hidden_layer_sizes=(64,),
        gradient=gradient,
        learning_rate_init=2e-3,
        max_iter=25,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs[gradient] = model.fit(images)

with style():
    in_training = new_figure(11, 3.4)
    left, right = in_training.subplots(1, 2)
    for color, name in zip(COLORS, totals, strict=False):
        left.loglog(sizes, totals[name], color=color, lw=2, marker="o", label=name)
        h = runs[name].history_
        loss = np.add(h["reconstruction"], h["kl"])
        right.plot(range(1, 26), loss, color=color, lw=2, label=name)
    left.set_xticks(sizes, [str(k) for k in sizes])
    left.minorticks_off()
    left.yaxis.set_major_formatter("{x:g}")
    left.set(
        title="Variance of one gradient",
        xlabel="numbers in a code",
        ylabel="E ‖g − E g‖²",
    )
    right.set(
        title="Training, 8 numbers", xlabel="epoch", ylabel="−ELBO, nats a picture"
    )
    right.legend()
