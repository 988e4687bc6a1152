"""The figures of linear.md: every public function returns one, drawn when the documentation is built."""

from __future__ import annotations

import warnings

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from sklearn.decomposition import FastICA

from twofold import PCA, PPCA, BayesianPCA, FactorAnalysis, FisherLDA, MixtureOfPPCA, datasets
from twofold.linalg import low_rank, power_iteration
from twofold.linear import LinearAutoencoder
from twofold.plots.style import COLORS, GREY, INK, new_figure, style

RNG = np.random.default_rng


def _arrow(ax, start, step, color, text=""):
    ax.annotate("", start + step, start, arrowprops={"arrowstyle": "-|>", "color": color, "lw": 2.2})
    if text:
        ax.text(*(start + 1.12 * step), text, color=color, ha="center", va="center", fontweight="bold")


def _powers(axis):
    """Ticks at powers of ten, written with plain characters."""
    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    axis.set_major_formatter(FuncFormatter(lambda v, _: "10" + f"{round(np.log10(v))}".translate(raised)))
    axis.set_minor_formatter(NullFormatter())


def _plain(ax):
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)


def two_views() -> Figure:
    """A point, its shadow on the line, and what is lost."""
    X = RNG(3).normal(size=(60, 2)) @ np.array([[2.0, 0.9], [0.0, 0.55]])
    pca = PCA(1).fit(X)
    shadow = pca.inverse_transform(pca.transform(X))
    with style():
        figure = new_figure(10, 3.6)
        for ax, good, title in zip(
            figure.subplots(1, 2), (True, False), ("The principal axis", "Another direction"), strict=True
        ):
            z = pca.components_[0] if good else np.array([0.35, -0.94])
            z = z / np.linalg.norm(z)
            at = shadow if good else (X - pca.mean_) @ np.outer(z, z) + pca.mean_
            ax.plot(*(pca.mean_ + np.outer([-5.5, 5.5], z)).T, color=GREY, lw=1)
            ax.plot([X[:, 0], at[:, 0]], [X[:, 1], at[:, 1]], color=COLORS[1], lw=0.9, alpha=0.8)
            ax.scatter(*X.T, s=16, color=INK, zorder=3)
            ax.scatter(*at.T, s=14, color=COLORS[0], zorder=3)
            kept = ((at - pca.mean_) ** 2).sum() / (len(X) - 1)
            lost = ((X - at) ** 2).sum() / (len(X) - 1)
            ax.set_title(f"{title}: keeps {kept:.2f}, loses {lost:.2f}, together {kept + lost:.2f}", fontsize=10.5)
            ax.set(xlim=(-5.5, 5.5), ylim=(-3, 3))
            _plain(ax)
    return figure


def eckart_young() -> Figure:
    """The error of the best rank-k table, measured and foretold."""
    X = datasets.digits().data[:400]
    s = np.linalg.svd(X, compute_uv=False)
    ks = np.arange(1, 41, 3)
    frobenius = [np.linalg.norm(X - low_rank(X, int(k))) for k in ks]
    spectral = [np.linalg.norm(X - low_rank(X, int(k)), 2) for k in ks]
    with style():
        figure = new_figure(8, 3.4)
        ax = figure.subplots()
        every = np.arange(1, 41)
        ax.plot(every, [np.sqrt((s[k:] ** 2).sum()) for k in every], color=COLORS[0], lw=2, label="√Σ s² of the rest")
        ax.plot(every, s[1:41], color=COLORS[1], lw=2, label="the next s")
        ax.plot(ks, frobenius, "o", color=COLORS[0], ms=6, mfc="white", label="measured, Frobenius norm")
        ax.plot(ks, spectral, "o", color=COLORS[1], ms=6, mfc="white", label="measured, spectral norm")
        ax.set(yscale="log", xlabel="k", ylim=(20, 2000), title="Error of the best rank-k approximation of 400 digits")
        _powers(ax.yaxis)
        ax.legend(ncols=2)
    return figure


def power_method() -> Figure:
    """How fast the power method turns towards the first axis, for three gaps."""
    Q = np.linalg.qr(RNG(0).normal(size=(30, 30)))[0]
    with style():
        figure = new_figure(8, 3.3)
        ax = figure.subplots()
        for color, ratio in zip(COLORS, (0.5, 0.8, 0.95), strict=False):
            values = np.append([1.0], ratio * np.linspace(1, 0.1, 29))
            A = (Q * values) @ Q.T
            v, angles = Q @ np.ones(30), []
            for _ in range(80):
                v = A @ v
                v /= np.linalg.norm(v)
                angles.append(np.linalg.norm(v - Q[:, 0] * (v @ Q[:, 0])))
            ax.plot(range(1, 81), angles, color=color, lw=2, label=f"λ₂/λ₁ = {ratio}")
            assert np.isclose(power_iteration(A, 1, random_state=0)[0][0], 1.0)
        ax.set(yscale="log", ylim=(1e-9, 2), xlabel="step", title="Sine of the angle to the first axis")
        _powers(ax.yaxis)
        ax.legend()
    return figure


def autoencoder() -> Figure:
    """Gradient descent reaches PCA's loss and plane, but not its axes."""
    X = datasets.digits().data
    pca = PCA(4).fit(X)
    best = 0.5 * pca.reconstruction_error() * (len(X) - 1) / len(X)
    with style():
        figure = new_figure(12, 3.4)
        left, middle, right = figure.subplots(1, 3, width_ratios=[1.5, 1, 1])
        for color, tied in zip(COLORS, (False, True), strict=False):
            model = LinearAutoencoder(4, tied=tied, random_state=0).fit(X)
            loss = np.array(model.history_["objective"]) - best
            left.plot(
                range(1, len(loss) + 1), np.maximum(loss, 1e-7), color=color, lw=2, label="tied" if tied else "not tied"
            )
        left.set(xscale="log", yscale="log", xlabel="sweep", title="Loss above PCA's")
        _powers(left.xaxis)
        _powers(left.yaxis)
        left.legend()
        ordered = LinearAutoencoder(4, tied=True, ordered=True, random_state=0).fit(X)
        for axes, net, title in ((middle, model, "tied"), (right, ordered, "tied and ordered")):
            overlap = np.abs(pca.components_ @ np.linalg.qr(net.components_.T)[0])
            axes.imshow(overlap, cmap="Blues", vmin=0, vmax=1)
            for (i, j), value in np.ndenumerate(overlap):
                axes.text(j, i, f"{value:.2f}", ha="center", va="center", color="white" if value > 0.6 else INK)
            axes.set(title=f"|cos| of axes, {title}", xlabel="autoencoder", ylabel="PCA", xticks=[], yticks=[])
            axes.grid(visible=False)
    return figure


def em() -> Figure:
    """EM climbs to the closed form."""
    X = datasets.digits().data
    closed = PPCA(10).fit(X)
    with style():
        figure = new_figure(8, 3.2)
        ax = figure.subplots()
        for color, seed in zip(COLORS, range(4), strict=False):
            model = PPCA(10, solver="em", tol=1e-12, max_iter=300, random_state=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the curve shows how far it came
                model.fit(X)
            gap = np.array(model.history_["objective"]) + closed.score(X)
            ax.plot(range(1, len(gap) + 1), np.maximum(gap, 1e-10), color=color, lw=2, label=f"start {seed}")
        ax.set(yscale="log", xlabel="sweep", title="Negative log-likelihood a digit, above the closed form's")
        _powers(ax.yaxis)
        ax.legend(ncols=4)
    return figure


def relevance() -> Figure:
    """PPCA uses every direction it is given; Bayesian PCA switches off what is not there."""
    X = RNG(0).normal(size=(300, 5)) * [3, 2.5, 2, 1.5, 1.2] @ np.linalg.qr(RNG(1).normal(size=(30, 5)))[0].T
    X += 0.5 * RNG(2).normal(size=X.shape)
    ppca, bayes = PPCA(29).fit(X), BayesianPCA(random_state=0).fit(X)
    with style():
        figure = new_figure(8, 3.0)
        ax = figure.subplots()
        c = np.arange(1, 30)
        ax.bar(c - 0.2, np.linalg.norm(ppca.loadings_, axis=0), 0.4, label="PPCA, 29 directions", color=COLORS[1])
        sizes = np.zeros(29)
        sizes[: bayes.n_active_] = np.linalg.norm(bayes.loadings_, axis=0)
        ax.bar(c + 0.2, sizes, 0.4, label=f"Bayesian PCA, {bayes.n_active_} left on", color=COLORS[0])
        ax.set(title="Length of each column of W; the data has five directions in thirty", xlabel="column")
        ax.grid(axis="x", visible=False)
        ax.legend()
    return figure


def factor_analysis() -> Figure:
    """One loud column draws PCA to itself; factor analysis calls it noise."""
    rng = RNG(0)
    truth = np.ones(6) / np.sqrt(6)
    X = 2 * rng.normal(size=(2000, 1)) * truth + rng.normal(size=(2000, 6)) * [0.4, 0.4, 0.4, 0.4, 0.4, 2.5]
    pca, fa = PCA(1).fit(X).components_[0], FactorAnalysis(1, random_state=0).fit(X).components_[0]
    with style():
        figure = new_figure(8, 3.0)
        ax = figure.subplots()
        for shift, (name, w) in zip(
            (-0.27, 0, 0.27), (("truth", truth), ("factor analysis", fa), ("PCA", pca)), strict=True
        ):
            color = {"truth": GREY, "factor analysis": COLORS[0], "PCA": COLORS[1]}[name]
            ax.bar(np.arange(6) + shift, np.abs(w) / np.linalg.norm(w), 0.25, label=name, color=color)
        ax.set_xticks(range(6), [f"column {j + 1}" for j in range(5)] + ["column 6, noisy"])
        ax.set(title="The one direction that six columns share")
        ax.grid(axis="x", visible=False)
        ax.legend()
    return figure


def independent() -> Figure:
    """Two signals mixed: factor analysis finds their plane, independent components the signals themselves."""
    t = np.linspace(0, 8, 1000)
    sources = np.stack([np.sign(np.sin(3 * t)), (t % 1.3) / 0.65 - 1], axis=1)
    X = sources @ np.array([[1.0, 0.6, -0.3], [0.5, -1.0, 0.8]]) + 0.05 * RNG(0).normal(size=(1000, 3))
    found = {
        "what was mixed": sources,
        "factor analysis": FactorAnalysis(2, random_state=0).fit(X).transform(X),
        "independent components": FastICA(2, whiten="unit-variance", random_state=0).fit_transform(X),
    }
    with style():
        figure = new_figure(11, 3.0)
        for axes, (name, codes) in zip(figure.subplots(1, 3), found.items(), strict=True):
            for j in range(2):
                line = codes[:, j] / np.abs(codes[:, j]).max()
                axes.plot(t, line - 2.6 * j, color=COLORS[j], lw=1.4)
            axes.set(title=name, xticks=[], yticks=[])
            axes.grid(visible=False)
    return figure


def mixture() -> Figure:
    """Two planes, here lines, found together with who belongs to which."""
    rng = RNG(4)
    lines = [np.array([[2.2, 1.0]]), np.array([[1.8, -1.4]])]
    X = np.vstack([rng.normal(size=(250, 1)) @ z + m for z, m in zip(lines, ([-2.5, 1], [2.5, 0]), strict=True)])
    X += 0.25 * rng.normal(size=X.shape)
    model = MixtureOfPPCA(2, n_latent=1, random_state=0).fit(X)
    share = model.predict_proba(X)[:, 0]
    with style():
        figure = new_figure(7, 3.3)
        ax = figure.subplots()
        ax.scatter(*X.T, s=12, c=[COLORS[0] if r > 0.5 else COLORS[1] for r in share], alpha=0.6, linewidths=0)
        for c in range(2):
            reach = model.loadings_[c][:, 0] * 2
            ax.plot(*np.array([model.means_[c] - reach, model.means_[c] + reach]).T, color=INK, lw=2.2)
        _plain(ax)
    return figure


def fisher() -> Figure:
    """Where variance and separation disagree."""
    rng = RNG(0)
    spread = np.array([[2.6, 0.0], [0.0, 0.35]])
    X = np.vstack([rng.normal(size=(150, 2)) @ spread + [0, 0.75 * side] for side in (-1, 1)])
    y = np.repeat([0, 1], 150)
    axes = {"PCA": PCA(1).fit(X).components_[0], "Fisher": FisherLDA(1).fit(X, y).components_[0]}
    with style():
        figure = new_figure(10, 3.0)
        left, *others = figure.subplots(1, 3, width_ratios=[1.5, 1, 1])
        for label in (0, 1):
            left.scatter(*X[y == label].T, s=10, color=COLORS[label], alpha=0.6, linewidths=0)
        for (name, z), ax in zip(axes.items(), others, strict=True):
            z = z / np.linalg.norm(z)
            _arrow(left, X.mean(axis=0), z * (5 if name == "PCA" else 2.2), INK, name)
            ax.hist([X[y == label] @ z for label in (0, 1)], bins=30, stacked=True, color=COLORS[:2])
            ax.set(title=f"Seen along {name}'s axis", yticks=[])
            ax.grid(visible=False)
        left.set(xlim=(-8, 8), ylim=(-3.4, 3.4))
        _plain(left)
    return figure
