"""The figures of topics.md: every public function returns one, drawn when the documentation is built."""

from __future__ import annotations

import warnings

import numpy as np
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.utils import Bunch

from twofold import LSA, NMF, PCA, PLSA, BagOfWords, LatentDirichletAllocation, datasets
from twofold.plots.models import topics as plots
from twofold.plots.models.linear import rows_figure
from twofold.plots.style import COLORS, GREY, new_figure, style
from twofold.topics.evaluation import perplexity

RNG = np.random.default_rng


def _docstrings(most: int) -> tuple[sparse.csr_array, np.ndarray, Bunch]:
    text = datasets.docstrings(most)
    bag = BagOfWords(min_df=5, max_df=0.4)
    return bag.fit_transform(text.documents), bag.get_feature_names_out(), text


def topics_lsa() -> Figure:
    """Docstrings along the second and third direction of LSA; the first is common to all."""
    X, words, text = _docstrings(1500)
    model = LSA(3, random_state=0)
    at = model.fit_transform(X)[:, 1:]
    groups = [text.target_names[t] for t in text.target]
    reach = 0.9 * np.abs(at).max(axis=0)
    loadings = model.components_[1:].T
    far = np.argsort(-np.abs(loadings / np.abs(loadings).max(axis=0)).max(axis=1), kind="stable")[:14]
    scale = reach / np.abs(loadings[far]).max(axis=0)
    return plots.documents_figure(at, groups, {str(words[j]): loadings[j] * scale for j in far})


def topics_bars() -> Figure:
    """Bars on a grid of 25 words are the topics; documents mix a few of them; PLSA finds the bars."""
    rng = RNG(0)
    bars = np.zeros((10, 5, 5))
    for c in range(5):
        bars[c, c, :], bars[5 + c, :, c] = 0.2, 0.2
    truth = bars.reshape(10, 25)
    X = rng.multinomial(80, rng.dirichlet(np.full(10, 0.15), 500) @ truth)
    rows = {"planted": bars, "documents": (X[:10] / X[:10].max(axis=1, keepdims=True) * 0.2).reshape(-1, 5, 5)}
    order = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stopped early on purpose
        for sweeps in (200, 40, 10, 2):
            found = PLSA(10, max_iter=sweeps, tol=0, random_state=3).fit(sparse.csr_array(X)).components_
            if order is None:
                like = found @ truth.T
                order = [0] * 10
                for _ in range(10):
                    a, b = np.unravel_index(np.argmax(like), like.shape)
                    order[b] = int(a)
                    like[a], like[:, b] = -1, -1
            rows[f"{sweeps} sweeps"] = found[order].reshape(-1, 5, 5)
    names = ["planted", "documents", "2 sweeps", "10 sweeps", "40 sweeps", "200 sweeps"]
    return rows_figure({name: rows[name] for name in names}, (0.0, 0.2))


def topics_dirichlet() -> Figure:
    """Mixtures of three topics, drawn from three priors."""
    rng = RNG(1)
    corners = np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
    with style():
        figure = new_figure(10.5, 3.3)
        for ax, alpha, what in zip(
            figure.subplots(1, 3),
            (0.15, 1.0, 8.0),
            ("most have one topic", "all mixtures equally likely", "all have some of each"),
            strict=True,
        ):
            at = rng.dirichlet(np.full(3, alpha), 600) @ corners
            ax.plot(*corners[[0, 1, 2, 0]].T, color=GREY, lw=1)
            ax.scatter(*at.T, s=9, color=COLORS[0], alpha=0.45, linewidths=0, rasterized=True)
            for c, (x, y) in enumerate(corners):
                ax.annotate(
                    f"topic {c + 1}", (x, y), xytext=(0, 6 if y else -14), textcoords="offset points", ha="center",
                    fontsize=9,
                )  # fmt: skip
            ax.set_title(f"α = {alpha:g}: {what}", fontsize=10.5, pad=14)
            ax.set(aspect="equal", xlim=(-0.15, 1.15), ylim=(-0.12, 1.0))
            ax.axis("off")
    return figure


def topics_parts() -> Figure:
    """Sixteen components of the digits: strokes that add up, and directions that cancel."""
    X = datasets.digits().data
    parts = {
        "NMF: parts that add": NMF(16, random_state=0).fit(X).components_,
        "PCA: directions that cancel": PCA(16).fit(X).components_,
    }
    return plots.parts_figure({name: Z.reshape(-1, 8, 8) for name, Z in parts.items()}, per_row=8)


def topics_solvers() -> Figure:
    """The same problem and start, solved in three ways."""
    X = datasets.digits().data
    names = {"cd": "HALS", "als": "projected ALS", "mu": "mu"}
    with style():
        figure = new_figure(7.2, 3.4)
        ax = figure.subplots()
        curves = {}
        for solver in names:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # run for a fixed number of sweeps
                model = NMF(16, solver=solver, tol=0, max_iter=200, random_state=0).fit(X)
            curves[solver] = np.array(model.history_["objective"])
        least = min(curve.min() for curve in curves.values())
        for color, (solver, curve) in zip(COLORS, curves.items(), strict=False):
            ax.plot(np.arange(1, len(curve) + 1), curve / least - 1, color=color, lw=2, label=names[solver])
        ax.set(xscale="log", yscale="log", ylim=(1e-3, None), xlabel="sweep", ylabel="objective above the least")
        ax.set_xticks([1, 10, 100], ["1", "10", "100"])
        ax.set_yticks([0.001, 0.01, 0.1, 1], ["0.1%", "1%", "10%", "100%"])
        ax.minorticks_off()
        ax.set_title("NMF of the digits, 16 parts")
        ax.legend()
    return figure


def topics_perplexity() -> Figure:
    """Perplexity on fitted words, which flatters, and by document completion, on documents from ten planted topics."""
    rng = RNG(0)
    topics = rng.dirichlet(np.full(500, 0.05), 10)
    mixtures = rng.dirichlet(np.full(10, 0.2), 900)
    X = sparse.csr_array(np.array([rng.multinomial(60, p) for p in mixtures @ topics]))
    test, train = X[:300], X[300:]
    ks = (2, 5, 10, 20, 40, 80)
    share = np.asarray(train.sum(axis=0)).ravel() + 0.01
    lines = {"word frequencies alone": share[None], "the planted topics": topics}
    with style():
        figure = new_figure(11, 3.5)
        left, right = figure.subplots(1, 2)
        for color, model in zip(COLORS, (PLSA, LatentDirichletAllocation), strict=False):
            fitted, held = [], []
            for k in ks:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    own = model(k, random_state=0).fit(train)
                fitted.append(np.exp(-own.fit_log_likelihood(train)))
                smooth = own.components_ * train.sum() / k + 0.01  # so that no word is impossible
                held.append(perplexity(smooth, test, alpha=getattr(own, "doc_topic_prior_", None)))
            name = "pLSA" if model is PLSA else "LDA"
            left.plot(ks, fitted, color=color, lw=2, marker="o", ms=4, label=name)
            right.plot(ks, held, color=color, lw=2, marker="o", ms=4, label=name)
        for name, own in lines.items():
            value = perplexity(own, test, alpha=0.2)
            right.axhline(value, color=GREY, lw=1.4, ls=(0, (4, 2)))
            right.annotate(name, (2, value), xytext=(0, 3), textcoords="offset points", fontsize=9)
        for ax, title in ((left, "On the words fitted"), (right, "By document completion")):
            ax.set(title=title, xlabel="topics", xscale="log")
            ax.set_xticks(ks, [str(k) for k in ks])
            ax.minorticks_off()
        left.set_ylabel("perplexity")
        left.legend()
    return figure
