"""The figures of signals.md: every public function returns one, drawn when the documentation is built."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from twofold import KSVD, CompressiveSensing, PCABasis, datasets
from twofold.metrics import psnr
from twofold.plots.models import images
from twofold.plots.models import signals as plots
from twofold.plots.models.signals import transition_figure
from twofold.plots.models.words import curves_figure
from twofold.plots.style import COLORS, GREY, INK, add_title, new_figure, strip_axes, style
from twofold.signals import (
    DCT,
    Gabor,
    Haar,
    Union,
    Wavelet,
    basis_pursuit,
    compress_image,
    denoise_image,
    denoise_signal,
    inpaint_image,
    matching_pursuit,
    orthogonal_matching_pursuit,
    phase_diagram,
    rate_distortion,
    recovery_bound,
    threshold,
)
from twofold.signals.images.patches import count_places, make_cosine_atoms, take_patches_at

RNG = np.random.default_rng
SIDE = 8  # of a patch
ROUNDING = 1e-12  # a residual of this length is zero


def _grey(photograph: np.ndarray) -> np.ndarray:
    return np.rint(photograph.mean(axis=2)).astype(np.uint8)


def _pagoda() -> np.ndarray:
    """Part of a photograph (160, 240)."""
    return _grey(datasets.photographs().china[90:250, 90:330])


# --- bases and codes ------------------------------------------------------------------------------------------


def signals_bases() -> Figure:
    """A heart's beats in three bases."""
    signal = datasets.signals().ecg
    return plots.bases_figure(
        signal - signal.mean(), {"Cosines": DCT(), "Haar": Haar(), "Wavelets (db4)": Wavelet(1, "db4")}, 50
    )


def signals_union() -> Figure:
    """Waves with spikes: many numbers in either basis, few in both together."""
    d, rng = 128, RNG(4)
    both = np.vstack([np.eye(d), DCT().matrix(d)])
    code = np.zeros(2 * d)
    code[rng.choice(d, 4, replace=False)] = [3, -2.5, 2, -2]
    code[d + np.array([3, 7, 19, 30])] = [4, 3, -3, 2]
    x = code @ both
    found = basis_pursuit(both.T, x)
    sizes = {"spikes alone": x, "waves alone": DCT().analyze(x), "both, by basis pursuit": found}
    with style():
        figure = new_figure(11, 3.5)
        left, right = figure.subplots(1, 2, width_ratios=[1.5, 1])
        left.plot(x, color=INK, lw=1.6)
        left.plot(found[d:] @ both[d:], color=COLORS[1], lw=1.6, label="its waves, as found")
        left.set_title("Four waves and four spikes")
        left.margins(x=0.01)
        left.legend()
        for color, (name, values) in zip(COLORS, sizes.items(), strict=False):
            ordered = np.sort(np.abs(values))[::-1][:30]
            right.plot(range(1, 31), ordered, color=color, lw=2, marker="o", ms=4, label=name)
        right.set(title="Sizes of the coefficients", xlabel="the largest first")
        right.legend()
    return figure


def signals_gabor() -> Figure:
    """Some Gabor atoms: frequencies and directions across, cosines above and sines below."""
    waves = Gabor(2, (0.5, 0.9, 1.4), 3, 5.0, phases=2)
    middle = np.zeros(waves.coefficients((33, 33)))
    with style():
        figure = new_figure(11, 2.7)
        grid = figure.subplots(2, len(middle) // 2)
        for i, ax in enumerate(grid.T.ravel()):
            atom = np.zeros_like(middle)
            atom[i, 16, 16] = 1
            values = waves.synthesize(atom)
            ax.imshow(values, "gray", vmin=-np.abs(values).max(), vmax=np.abs(values).max())
            strip_axes(ax)
        add_title(figure, "Gabor waves: cosines, and below each its sine", 11.5)
    return figure


def signals_texture() -> Figure:
    """A slope with a patch of texture: long in cosines and in Gabor waves, short in both together."""
    h = 48
    y, x = np.mgrid[:h, :h]
    slope = 110 * np.exp(-((x - 15) ** 2 + (y - 33) ** 2) / 500) + x
    bell = np.exp(-((x - 33) ** 2 + (y - 15) ** 2) / 60)
    picture = slope - slope.mean() + 40 * bell * np.cos(1.2 * (x + y) * np.sqrt(0.5) + 0.5)
    waves = Gabor(2, (0.8, 1.2, 1.6), 4, 4.0, phases=2, step=4)
    both = Union(DCT(2), waves, shape=(h, h))
    alone = Gabor(2, (0.0, 0.4, 0.8, 1.2, 1.6), 4, 4.0, phases=2, step=4)
    alphabets = {"cosines": DCT(2), "Gabor waves": alone, "both": both}
    counts, whole = (1, 2, 4, 8, 12, 16, 24, 32, 48), np.linalg.norm(picture)
    left = {name: [] for name in alphabets}
    for name, basis in alphabets.items():
        for K in counts:
            codes = orthogonal_matching_pursuit(basis, picture, n_nonzero=K)
            left[name].append(np.linalg.norm(picture - basis.synthesize(codes)) / whole)
    codes = orthogonal_matching_pursuit(both, picture, n_nonzero=24)
    panels = {"slope and texture": picture} | dict(zip(("in cosines", "in waves"), both.separate(codes), strict=True))
    with style():
        figure = new_figure(11, 3.0)
        *shown, right = figure.subplots(1, 4, width_ratios=[1, 1, 1, 1.5])
        for ax, (name, values) in zip(shown, panels.items(), strict=True):
            ax.imshow(values, "gray", vmin=picture.min(), vmax=picture.max())
            ax.set_title(name)
            strip_axes(ax)
        for color, (name, errors) in zip(COLORS, left.items(), strict=False):
            right.plot(counts, errors, color=color, lw=2, marker="o", ms=4, label=name)
        right.set(title="what is left", xlabel="atoms", ylim=(0, None))
        right.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        right.legend()
    return figure


def signals_balls() -> Figure:
    """The first point of a line that a growing ball touches: for sums of squares, and for sums of sizes."""
    a, b = np.array([0.45, 0.9]), 0.72  # the codes c with ⟨a, c⟩ = b
    touch = {"Least sum of squares": b * a / (a @ a), "Least sum of sizes": np.array([0.0, b / a[1]])}
    turn = np.linspace(0, 2 * np.pi, 200)
    with style():
        figure = new_figure(8.6, 3.9)
        for i, (ax, (title, at)) in enumerate(zip(figure.subplots(1, 2), touch.items(), strict=True)):
            if i == 0:
                shape = np.linalg.norm(at) * np.column_stack([np.cos(turn), np.sin(turn)])
            else:
                shape = np.abs(at).sum() * np.array([[1, 0], [0, 1], [-1, 0], [0, -1], [1, 0]])
            ax.fill(*shape.T, color=COLORS[i], alpha=0.25, lw=0)
            ax.plot(*shape.T, color=COLORS[i], lw=2)
            xs = np.array([-1.3, 1.5])
            ax.plot(xs, (b - a[0] * xs) / a[1], color=INK, lw=1.8)
            ax.plot(*at, "o", ms=10, color=COLORS[3], mec="white", mew=1.5, zorder=5)
            ax.annotate("codes that explain x", (0.62, 0.53), rotation=-26.6, rotation_mode="anchor", fontsize=9)
            ax.axhline(0, color=GREY, lw=0.8)
            ax.axvline(0, color=GREY, lw=0.8)
            ax.set(title=title, xlim=(-1.2, 1.5), ylim=(-1.0, 1.3), xticks=[], yticks=[], aspect="equal")
            ax.spines[:].set_visible(False)
    return figure


def signals_traps() -> Figure:
    """Where matching pursuit takes a detour, and where it never ends."""
    half = np.sqrt(0.5)
    detour = np.array([[1, 0], [0, 1], [half, half]]), np.array([2.0, 1.0])
    endless = np.array([[1, 0], [half, half], [np.sqrt(0.75), 0.5]]), np.array([0.0, 1.0])
    atoms, x = endless
    two = [x, *(x - orthogonal_matching_pursuit(atoms, x, n_nonzero=k) @ atoms for k in (1, 2))]
    errors = {
        "matching pursuit, detour": matching_pursuit(*detour).errors,
        "matching pursuit, no end": matching_pursuit(*endless, n_steps=20).errors,
        "orthogonal, no end": np.linalg.norm(two, axis=1),
    }
    return _pursuits_figure({"A detour": detour, "No end": endless}, errors)


def signals_recovery() -> Figure:
    """How often K atoms of spikes and waves are found again, far beyond the bound that coherence gives."""
    d, trials, rng = 64, 16, RNG(0)
    both = np.vstack([np.eye(d), DCT().matrix(d)])
    counts = range(1, 41, 3)
    right = {name: [] for name in ("basis pursuit", "orthogonal, sizes that differ", "orthogonal, equal sizes")}
    for K in counts:
        hits = np.zeros((trials, 3))
        for t in range(trials):
            places, signs = rng.choice(2 * d, K, replace=False), rng.choice([-1.0, 1.0], K)
            code, equal = np.zeros((2, 2 * d))
            code[places], equal[places] = signs * np.exp(rng.standard_normal(K)), signs
            guesses = [basis_pursuit(both.T, code @ both)]
            guesses += [orthogonal_matching_pursuit(both, c @ both, n_nonzero=K) for c in (code, equal)]
            hits[t] = [np.allclose(g, c, atol=1e-4) for g, c in zip(guesses, (code, code, equal), strict=True)]
        for name, share in zip(right, hits.mean(axis=0), strict=True):
            right[name].append(share)
    figure = curves_figure(
        {name: (list(counts), shares) for name, shares in right.items()},
        "atoms in the signal", "found exactly", "Spikes and waves, 128 atoms in 64 dimensions", share=True,
    )  # fmt: skip
    bound, ax = recovery_bound(both), figure.axes[0]
    ax.axvspan(0, bound, color=COLORS[5], alpha=0.2, lw=0)
    ax.annotate("promised", (bound / 2, 0.03), ha="center", fontsize=9, rotation=90)
    ax.set_xlim(0, 41)
    with style():
        ax.legend(loc="lower left", bbox_to_anchor=(0.09, 0.05))
    return figure


def signals_transition() -> Figure:
    """The share of signals recovered, and the curve of Donoho and Tanner."""
    grid = {"delta": np.arange(0.1, 1, 0.1), "rho": np.arange(0.05, 1, 0.05), "trials": 10, "random_state": 0}
    return transition_figure(
        {
            "Basis pursuit": phase_diagram(100, **grid),
            "Orthogonal matching pursuit, told K": phase_diagram(100, method="orthogonal_matching_pursuit", **grid),
        }
    )


def signals_sensing() -> Figure:
    """A photograph from a tenth, a quarter and a half as many measurements as it has pixels."""
    picture = _pagoda()[16:144, 24:216]
    panels = [("original", picture)]
    for share in (0.5, 0.25, 0.1):
        sensing = CompressiveSensing(int(share * picture.size), kind="fourier", random_state=0).fit(picture)
        found = sensing.recover(sensing.measure(picture.astype(np.float64)))
        found = np.clip(np.rint(found), 0, 255).astype(np.uint8)
        panels.append((f"{share:.0%} measured: {psnr(picture, found, 255):.1f} dB", found))
    return images.comparison_figure(panels)


# --- dictionaries ---------------------------------------------------------------------------------------------


def _patches(picture: np.ndarray, seed: int) -> np.ndarray:
    """Patches that are not flat, without their means."""
    picture = picture.astype(np.float32)
    X = take_patches_at(picture, SIDE, RNG(seed).choice(count_places(picture.shape, SIDE), 20_000, replace=False))
    X -= X.mean(axis=1, keepdims=True)
    spread = X.std(axis=1)
    return X[spread > np.median(spread)]


@functools.cache
def _learned(name: str) -> tuple[KSVD, np.ndarray, np.ndarray]:
    """Atoms of the left half of a photograph, the patches they were learned from, and patches of the right half."""
    left, right = np.array_split(_grey(datasets.photographs()[name]), 2, axis=1)
    learn, held = _patches(left, 0), _patches(right, 1)
    model = KSVD(144, n_nonzero=4, max_iter=20, tol=0, init=make_cosine_atoms(144, SIDE), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stopped early on purpose
        return model.fit(learn), learn, held


def signals_atoms() -> Figure:
    """Cosines, to begin with, and what K-SVD made of them, the atoms that do most first."""
    found = {"Cosines, to begin with": make_cosine_atoms(144, SIDE)}
    for title, name in {"Learned from a pagoda": "china", "Learned from a flower": "flower"}.items():
        model, learn, _ = _learned(name)
        used = np.asarray(abs(model.transform(learn)).sum(axis=0)).ravel()
        found[title] = model.components_[np.argsort(-used)]
    return _atoms_figure(found)


def signals_ksvd() -> Figure:
    """The error of each sweep, and what few atoms leave of patches that were not learned from."""
    model, learn, held = _learned("china")
    total, counts = np.square(held).sum(), range(1, 11)
    ways = {
        "principal directions, 64": PCABasis(64).fit(learn).matrix(),
        "cosines, 64": make_cosine_atoms(64, SIDE),
        "cosines, 144": make_cosine_atoms(144, SIDE),
        "learned, 144": model.components_,
    }
    with style():
        figure = new_figure(11, 3.5)
        left, right = figure.subplots(1, 2)
        errors = 2 * np.array(model.history_["objective"]) / np.square(learn).sum()
        left.plot(range(1, len(errors) + 1), errors, color=COLORS[3], lw=2, marker="o", ms=4)
        left.set(title="Learning: four atoms a patch", xlabel="sweeps", ylabel="energy lost")
        for color, (name, atoms) in zip(COLORS, ways.items(), strict=False):
            lost = []
            for k in counts:
                rest = held - orthogonal_matching_pursuit(atoms, held, n_nonzero=k) @ atoms
                lost.append(np.square(rest).sum() / total)
            right.plot(counts, lost, color=color, lw=2, marker="o", ms=4, label=name)
        right.set(title="Patches of the other half of the picture", xlabel="atoms a patch", ylabel="energy lost")
        right.legend()
        for ax in (left, right):
            ax.set_ylim(0)
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    return figure


# --- pictures -------------------------------------------------------------------------------------------------


def signals_rate() -> Figure:
    """What a photograph costs at which quality."""
    names = {"dct": "cosines in blocks", "wavelet": "wavelets", "pca": "principal directions of blocks"}
    photograph = datasets.photographs().flower[60:316, 180:500]
    curves = {names[method]: curve for method, curve in rate_distortion(photograph).items()}
    small = compress_image(photograph, size=6000)
    return images.rate_distortion_figure(
        curves,
        {names[small.method]: (small.bits_per_pixel, small.psnr)},
        [("original, 245,760 bytes", photograph), (f"{small.size:,} bytes, {small.psnr:.1f} dB", small.decode())],
    )


def signals_denoise() -> Figure:
    """A photograph with noise, cleaned by learned atoms and by groups of similar patches."""
    picture = _pagoda()
    noisy = np.clip(np.rint(picture + RNG(0).normal(0, 25, picture.shape)), 0, 255).astype(np.uint8)
    panels = [("original", picture), (f"noise: {psnr(picture, noisy, 255):.2f} dB", noisy)]
    for name, method in (("learned atoms", "ksvd"), ("groups", "pca")):
        clean = denoise_image(noisy, 25, method=method, random_state=0)
        panels.append((f"{name}: {psnr(picture, clean, 255):.2f} dB", clean))
    return images.comparison_figure(panels)


def _filled(picture: np.ndarray, mask: np.ndarray, sweeps: int) -> tuple[np.ndarray, float]:
    """The picture without its holes, and the PSNR of what was filled in."""
    out = inpaint_image(np.where(mask, 0, picture), mask, max_iter=sweeps, random_state=0)
    return out, psnr(picture[mask], out[mask], 255)


def signals_inpaint() -> Figure:
    """A photograph with half of its pixels gone."""
    picture = _pagoda()[10:106, 60:204]
    mask = RNG(0).random(picture.shape) < 0.5
    panels = [("original", picture), ("half of it", images.paint_holes(picture, mask))]
    for name, sweeps in (("cosines", 0), ("learned", 10)):
        out, quality = _filled(picture, mask, sweeps)
        panels.append((f"{name}: {quality:.2f} dB", out))
    return images.comparison_figure(panels)


def signals_missing() -> Figure:
    """How well holes are filled, the more there are, by cosines and by learned atoms."""
    picture = _grey(datasets.photographs().flower[148:228, 248:344])
    percent = (25, 50, 70, 80, 90)
    masks = [RNG(1).random(picture.shape) < share / 100 for share in percent]
    curves = {
        name: (percent, [_filled(picture, mask, sweeps)[1] for mask in masks])
        for name, sweeps in (("cosines", 0), ("learned from what is there", 10))
    }
    figure = curves_figure(curves, "pixels missing, %", "PSNR of what was filled in, dB", "A flower with holes")
    figure.axes[0].set_xticks(percent)
    return figure


# --- thresholds -----------------------------------------------------------------------------------------------


def signals_threshold() -> Figure:
    """A heart's beats with noise, cleaned in four ways: what is left of the noise."""
    clean = datasets.signals().ecg
    clean = clean - clean.mean()
    noisy = clean + RNG(0).normal(scale=20, size=clean.shape)
    sym8 = Wavelet(1, "sym8")
    ways = {
        "cosines, hard": {"basis": DCT()},
        "wavelets, soft, universal": {"basis": sym8, "method": "soft", "level": "universal", "shifts": 1},
        "wavelets, hard, universal": {"basis": sym8, "shifts": 1},
        "wavelets, soft, SURE": {"basis": sym8, "method": "soft", "shifts": 1},
        "hard, cycle spinning": {"basis": sym8},
    }
    part, t = slice(150, 620), np.linspace(-4, 4, 401)
    with style():
        figure = new_figure(11, 6.2)
        grid = figure.add_gridspec(3, 3, width_ratios=[1, 1, 0.8])
        rules = figure.add_subplot(grid[0, 2])
        for color, method in zip(COLORS, ("hard", "soft"), strict=False):
            rules.plot(
                t, np.where(np.abs(t) < 1.5, np.nan, threshold(t, 1.5, method)[0]), color=color, lw=2, label=method
            )
        rules.plot([-1.5, 1.5], [0, 0], color=INK, lw=2)
        rules.set_title("two rules")
        rules.legend()
        panels = {"with noise": noisy} | {name: denoise_signal(noisy, 20, **options) for name, options in ways.items()}
        for i, (name, values) in enumerate(panels.items()):
            ax = figure.add_subplot(grid[i // 2, i % 2])
            ax.plot(clean[part], color=GREY, lw=2.2, alpha=0.5)
            ax.plot(values[part], color=COLORS[3] if i == 0 else COLORS[0], lw=1.1)
            ax.set_title(f"{name}: {np.std(values - clean):.1f}")
            ax.set(xticks=[], yticks=[])
        sizes, drawn = figure.add_subplot(grid[1:, 2]), {"noise": noisy - clean, "beats": clean}
        for color, (name, values) in zip((COLORS[3], COLORS[0]), drawn.items(), strict=True):
            sizes.plot(np.sort(np.abs(sym8.analyze(values)))[::-1][:200], color=color, lw=2, label=name)
        level = 20 * np.sqrt(2 * np.log(len(clean)))
        sizes.axhline(level, color=GREY, lw=1, ls=(0, (3, 2)))
        sizes.annotate("universal level", (195, level), ha="right", va="bottom", fontsize=9)
        sizes.set(title="sizes, the largest first", yscale="log", ylim=(2, None))
        sizes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        sizes.legend()
    return figure


# --- the parts of these figures ------------------------------------------------------------------------------


def _trace_pursuit(dictionary: np.ndarray, x: np.ndarray, steps: int) -> np.ndarray:
    """(steps + 1, d) what matching pursuit has made of x after 0, 1, 2, ... steps."""
    x = np.asarray(x, dtype=np.float64)
    return np.array([x - matching_pursuit(dictionary, x, n_steps=t).residual for t in range(steps + 1)])


def _pursuits_figure(
    panels: Mapping[str, tuple[np.ndarray, np.ndarray]], errors: Mapping[str, np.ndarray], steps: int = 12
) -> Figure:
    """Paths of matching pursuit in the plane, of at most `steps` steps, and the errors of pursuits; a ring marks 0."""
    with style():
        figure = new_figure(11, 3.9)
        *left, right = figure.subplots(1, len(panels) + 1)
        for ax, (title, (atoms, x)) in zip(left, panels.items(), strict=True):
            _draw_path(ax, np.asarray(atoms), np.asarray(x), steps)
            ax.set_title(title)
        seen = [value for values in errors.values() for value in values if value > ROUNDING]
        floor = min(seen) / 4
        for color, (name, values) in zip(COLORS, errors.items(), strict=False):
            right.plot(np.maximum(values, floor), color=color, lw=2, marker="o", ms=4, label=name)
            if values[-1] <= ROUNDING:
                right.plot(len(values) - 1, floor, "o", ms=8, mfc="white", mec=color, mew=2)
        ends = [len(values) - 1 for values in errors.values() if values[-1] <= ROUNDING]
        if ends:
            right.annotate("0", (max(ends), floor), xytext=(9, 0), textcoords="offset points", va="center")
        right.set(title="What is left", xlabel="steps", ylabel="length of the residual", yscale="log")
        right.xaxis.set_major_locator(MaxNLocator(integer=True))
        right.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        right.legend()
    return figure


def _draw_path(ax: Axes, atoms: np.ndarray, x: np.ndarray, steps: int) -> None:
    look: Any = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0}
    for i, atom in enumerate(atoms / np.linalg.norm(atoms, axis=1, keepdims=True)):
        ax.annotate("", atom, (0, 0), arrowprops=look | {"color": GREY, "lw": 1.6})
        beside = (atom[0] + 0.09 * atom[1], atom[1] - 0.09 * atom[0])
        ax.annotate(f"u{'₁₂₃₄₅₆₇₈₉'[i]}", beside, color=GREY, ha="center", va="center", fontsize=10.5)
    path = _trace_pursuit(atoms, x, steps)
    moved = np.linalg.norm(np.diff(path, axis=0), axis=1) > 1e-9
    for a, b in zip(path[:-1][moved], path[1:][moved], strict=True):
        ax.annotate("", b, a, arrowprops=look | {"color": COLORS[1], "lw": 1.8, "mutation_scale": 9})
    ax.plot(*x, "*", ms=13, color=INK, mec="white", zorder=5)
    ax.annotate("x", (x[0], x[1]), xytext=(8, 4), textcoords="offset points", fontweight="bold")
    every = np.vstack([atoms, path, x[None], np.zeros((1, 2))])
    low, high = every.min(axis=0), every.max(axis=0)
    middle, half = (low + high) / 2, 0.62 * float((high - low).max())
    ax.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half), aspect="equal")
    ax.axhline(0, color=GREY, lw=0.6, zorder=0)
    ax.axvline(0, color=GREY, lw=0.6, zorder=0)


def _atoms_figure(dictionaries: Mapping[str, np.ndarray], per_row: int = 12) -> Figure:
    """Atoms (k, p²) that are small images, one grid a dictionary, each atom on its own scale around gray."""
    side = round(np.sqrt(next(iter(dictionaries.values())).shape[1]))
    with style():
        figure = new_figure(11, 11 / max(len(dictionaries), 2) + 0.3)
        for ax, (title, atoms) in zip(
            figure.subplots(1, len(dictionaries), squeeze=False).ravel(), dictionaries.items(), strict=True
        ):
            tiles = np.asarray(atoms).reshape(-1, side, side)
            tiles = tiles / np.maximum(np.abs(tiles).max(axis=(1, 2), keepdims=True), np.finfo(np.float32).tiny)
            ax.imshow(
                images.color_mosaic(tiles, mpl.colormaps["gray"], -1.0, 1.0, per_row=per_row), interpolation="none"
            )
            ax.set_title(title)
            ax.axis("off")
    return figure
