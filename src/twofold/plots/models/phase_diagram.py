"""The phase transition of sparse recovery, as a picture."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from twofold.plots.style import COLORS, INK, SEQUENTIAL, new_figure, style
from twofold.signals.sensing.phase_diagram import PhaseDiagram, donoho_tanner


def transition_figure(diagrams: Mapping[str, PhaseDiagram]) -> Figure:
    """How often signals were recovered, over δ = m/n and ρ = K/m, with the curves of theory and of half success.

    Parameters
    ----------
    diagrams : mapping from title to PhaseDiagram
        One panel each.
    """
    fine = np.linspace(0.0, 1.0, 201)
    curve = donoho_tanner(fine)
    with style():
        figure = new_figure(4.9 * len(diagrams) + 0.9, 4.3)
        axes = figure.subplots(1, len(diagrams), sharey=True, squeeze=False).ravel()
        for ax, (title, found) in zip(axes, diagrams.items(), strict=True):
            sides = _edges(found.delta)
            for i, (rho, share) in enumerate(
                zip(found.rho, found.success, strict=True)
            ):  # the K/m differ, m being whole
                cells = sides[i : i + 2], _edges(rho), share[:, None]
                image = ax.pcolormesh(*cells, cmap=SEQUENTIAL, vmin=0, vmax=1, rasterized=True)  # no hairlines
            ax.plot(fine, curve, color=INK, lw=1.6, ls=(0, (4, 2)), label="Donoho–Tanner, n → ∞")
            ax.plot(found.delta, found.curve50, color=COLORS[1], lw=2.2, label="half recovered")
            ax.set(
                title=title, xlabel=f"measurements for each of n = {found.n} unknowns, m/n", xlim=(0, 1), ylim=(0, 1)
            )
            ax.grid(visible=False)
        axes[0].set_ylabel("numbers not zero for each measurement, K/m")
        axes[0].legend(loc="upper left", fontsize=9)
        bar = figure.colorbar(image, ax=list(axes), fraction=0.04, pad=0.02, label="recovered")
        bar.ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        bar.outline.set_visible(False)
    return figure


def _edges(middles: np.ndarray) -> np.ndarray:
    """Where cells around these points begin and end, within 0 and 1."""
    between = (middles[1:] + middles[:-1]) / 2
    return np.concatenate([[0.0], between, [1.0]])
