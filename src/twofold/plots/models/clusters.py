"""Figures of the cluster models: cells and moving centers, ellipses, criteria over k, centers as images, palettes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.ticker import FuncFormatter, MaxNLocator

from twofold.plots.models.images import DIGIT_COLORS, PAPER, color_mosaic
from twofold.plots.style import COLORS, INK, new_figure, new_grid, new_panels, strip_axes, style


def _color(c: int) -> str:
    return DIGIT_COLORS[c % len(DIGIT_COLORS)]


def _find_nearest(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return ((X[:, None] - Z) ** 2).sum(axis=2).argmin(axis=1)


def moving_centers_figure(X: np.ndarray, path: Sequence[np.ndarray], shown: Sequence[int]) -> Figure:
    """Draw Lloyd's sweeps over X (n,2) at the sweeps `shown`: the cell of each center (k,2) and its path."""
    low, high = X.min(axis=0), X.max(axis=0)
    low, high = low - 0.06 * (high - low), high + 0.06 * (high - low)
    ratio = float((high - low)[1] / (high - low)[0])
    with style():
        figure, panels = new_panels(len(shown), 11, 10.2 / len(shown) * ratio + 0.4)
        for ax, t in zip(panels, shown, strict=True):
            draw_cells(ax, path[t], low, high)
            labels = _find_nearest(X, path[t])
            ax.scatter(*X.T, s=9, c=[_color(c) for c in labels], alpha=0.75, linewidths=0, rasterized=True)
            for c in range(len(path[t])):
                ax.plot(*np.array([Z[c] for Z in path[: t + 1]]).T, color=INK, lw=1.3)
            own = [_color(c) for c in range(len(path[t]))]
            ax.scatter(*path[t].T, s=70, c=own, edgecolors="white", lw=1.6, zorder=5)
            cost = float(((X - path[t][labels]) ** 2).sum())
            ax.set_title(f"{'start' if t == 0 else f'sweep {t}'}: cost {cost:,.0f}", fontsize=10.5)
            ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
            strip_axes(ax)
            ax.set_aspect("equal")
    return figure


def draw_cells(ax: Axes, Z: np.ndarray, low: np.ndarray, high: np.ndarray, fine: int = 260) -> None:
    """Draw the Voronoi cells of centers in the plane, in pale colors with white borders."""
    x, y = np.linspace(low[0], high[0], fine), np.linspace(low[1], high[1], fine)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    own = _find_nearest(grid, Z).reshape(fine, fine)
    shades = ListedColormap([_color(c) for c in range(len(Z))])
    extent = (float(low[0]), float(high[0]), float(low[1]), float(high[1]))
    ax.imshow(own, cmap=shades, vmin=-0.5, vmax=len(Z) - 0.5, origin="lower", extent=extent, alpha=0.16, aspect="auto")
    for c in range(len(Z)):
        ax.contour(x, y, own == c, levels=[0.5], colors="white", linewidths=1.4)


def draw_ellipses(ax: Axes, model: Any) -> None:
    """Draw one and two standard deviations of each component of a mixture in the plane; heavier ones are darker."""
    for c, (mean, weight) in enumerate(zip(model.means_, model.weights_, strict=True)):
        values, axes = np.linalg.eigh(_full_covariance(model, c))
        angle = float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1])))
        for times, alpha in ((2, 0.13), (1, 0.22)):
            width, height = 2 * times * np.sqrt(values[::-1])
            fill = alpha * (0.5 + weight / model.weights_.max() / 2)
            at, size = (float(mean[0]), float(mean[1])), {"width": float(width), "height": float(height)}
            ax.add_patch(Ellipse(at, **size, angle=angle, fc=_color(c), ec="none", alpha=fill))
            ax.add_patch(Ellipse(at, **size, angle=angle, fc="none", ec=_color(c), lw=1.5))
        ax.plot(*mean, "o", ms=6, color=_color(c), mec="white", mew=1.2)


def _full_covariance(model: Any, c: int) -> np.ndarray:
    """Return the full covariance of component c."""
    S, kind = model.covariances_, model.covariance_type
    if kind in ("tied", "fixed"):
        return S
    return S[c] if kind == "full" else np.diag(np.broadcast_to(S[c], 2))


def mixture_figure(
    X: np.ndarray, labels: np.ndarray, model: Any, curves: Mapping[str, Sequence[tuple[int, float]]], chosen: int
) -> Figure:
    """Draw a mixture of rows X (n,2) in the plane beside BIC: `curves` hold (k, value) for each kind of covariance."""
    with style():
        figure = new_figure(11, 4.3)
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
        draw_ellipses(left, model)
        left.scatter(*X.T, s=15, c=[_color(c) for c in labels], alpha=0.75, linewidths=0, rasterized=True)
        left.set_title("Rows and components, one and two standard deviations")
        strip_axes(left)
        draw_criteria(right, curves, chosen)
    return figure


def draw_criteria(
    ax: Axes, curves: Mapping[str, Sequence[tuple[int, float]]], chosen: int, xlabel: str = "components"
) -> None:
    """Draw BIC above its best value over the number of clusters, one curve for each kind of covariance."""
    best = min(value for curve in curves.values() for _, value in curve)
    for color, (label, curve) in zip(COLORS, curves.items(), strict=False):
        k, values = zip(*curve, strict=True)
        ax.plot(k, np.array(values) - best, color=color, lw=2, marker="o", ms=4.5, label=label)
    ax.plot([chosen], [0], "o", ms=12, mfc="none", mec=INK, mew=1.6, zorder=5)
    ax.set(title=f"BIC above the best, at k = {chosen}", xlabel=xlabel)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}"))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(curves) > 1:
        ax.legend()


def centers_figure(images: np.ndarray, captions: Sequence[str], per_row: int = 10) -> Figure:
    """Draw centers that are images (k,h,w), each with its caption."""
    with style():
        figure, panels = new_grid(len(images), per_row, 11, 1.5)
        for ax, image, caption in zip(panels, images, captions, strict=True):
            ax.axis("off")
            ax.imshow(color_mosaic(image[None], PAPER, 0.0, float(image.max())), interpolation="none")
            ax.set_title(caption, fontsize=10, fontweight="normal", loc="center", y=-0.38)
    return figure


def palette_figure(image: np.ndarray, reduced: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Draw an image and the same in few colors: `reduced` has images (h,w,3) with their palettes (k,3)."""
    h, w, _ = image.shape
    half = -(-len(reduced) // 2)
    with style():
        figure = new_figure(11, 11 * h / w * 2 / (half + 2) + 1.1)
        grid = figure.add_gridspec(2, half + 2)
        whole = figure.add_subplot(grid[:, :2])
        whole.imshow(image)
        whole.set_title("original", fontsize=10.5)
        for i, (name, (fewer, colors)) in enumerate(reduced.items()):
            both = grid[i // half, 2 + i % half].subgridspec(2, 1, height_ratios=[11, 1], hspace=0.02)
            top, below = figure.add_subplot(both[0]), figure.add_subplot(both[1])
            top.imshow(fewer)
            top.set_title(name, fontsize=10.5, pad=5)
            bright = np.argsort(colors.astype(float) @ [0.299, 0.587, 0.114], kind="stable")
            below.imshow(colors[bright][None].astype(image.dtype), aspect="auto", interpolation="none")
        for ax in figure.axes:
            ax.axis("off")
    return figure
