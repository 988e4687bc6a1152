"""The signals station and its figures show what is there."""

from __future__ import annotations

import numpy as np
import pytest

from twofold.plots.models.signals import atoms_figure, bases_figure, compute_energy_lost, pursuits_figure, trace_pursuit
from twofold.signals.bases.dct import DCT
from twofold.signals.bases.haar import Haar
from twofold.signals.sparse_coding.pursuits import matching_pursuit
from twofold.tour import signals as station
from twofold.tour.station import Part, Station


def value(part: Part, name: str) -> float:
    return float(part.numbers[name].split()[0].rstrip("%"))


@pytest.fixture(scope="module")
def made() -> Station:
    return station.station(0)


def test_wavelets_keep_more_of_a_heart_than_steps_and_steps_more_than_waves(made: Station) -> None:
    kept = [value(made.parts[0], f"kept by {name}") for name in ("wavelets", "haar", "cosines")]
    assert 100 > kept[0] > kept[1] > kept[2] > 50


def test_half_of_the_measurements_recover_a_heart(made: Station) -> None:
    assert 0 < value(made.parts[1], "error") < 15


def test_noise_goes_and_holes_are_filled(made: Station) -> None:
    _, _, noise, holes = made.parts
    assert value(noise, "cleaned") > value(noise, "with noise") + 4
    assert value(holes, "filled") > value(holes, "mean in the holes") + 6


# --- figures ------------------------------------------------------------------------------------------------


def test_energy_lost_is_that_of_the_signal_without_the_rest() -> None:
    x = np.random.default_rng(0).standard_normal(40)
    codes = DCT().analyze(x)
    order = np.argsort(-np.abs(codes))
    for k in (0, 1, 7, 40):
        few = np.zeros(40)
        few[order[:k]] = codes[order[:k]]
        rest = x - DCT().synthesize(few)
        np.testing.assert_allclose(compute_energy_lost(codes)[k], rest @ rest / (x @ x), atol=1e-12)


def test_each_basis_has_its_signal_and_its_curve() -> None:
    x = np.random.default_rng(0).standard_normal(64)
    curves, *rows = bases_figure(x, {"one": DCT(), "two": Haar()}, 5).axes
    assert [line.get_label() for line in curves.lines[:2]] == ["one", "two"]
    for ax, line, basis in zip(rows, curves.lines, (DCT(), Haar()), strict=False):
        drawn = np.asarray(ax.lines[1].get_ydata())
        assert np.count_nonzero(np.abs(basis.analyze(drawn)) > 1e-9) == 5
        lost = float(np.sum((x - drawn) ** 2) / np.sum(x**2))
        np.testing.assert_allclose(np.asarray(line.get_ydata())[5], lost)


def test_a_pursuit_is_drawn_from_nothing_to_the_signal() -> None:
    half = np.sqrt(0.5)
    atoms, x = np.array([[1.0, 0], [0, 1], [half, half]]), np.array([2.0, 1.0])
    path = trace_pursuit(atoms, x, 3)
    np.testing.assert_allclose(path[[0, 1, 3]], np.array([[0.0, 0], [1.5, 1.5], [2, 1]]), atol=1e-12)
    errors = matching_pursuit(atoms, x).errors
    way, right = pursuits_figure({"t": (atoms, x)}, {"e": errors}).axes
    arrows = [text for text in way.texts if getattr(text, "arrow_patch", None) is not None]
    assert len(arrows) == 3 + 3  # atoms and steps
    np.testing.assert_allclose(np.asarray(right.lines[0].get_ydata())[:3], errors[:3])


def test_atoms_are_drawn_around_grey() -> None:
    atoms = np.vstack([np.linspace(-1, 1, 16), 5 * np.ones(16)])
    tiles = np.asarray(atoms_figure({"t": atoms}, per_row=2).axes[0].images[0].get_array())
    assert tiles.shape[:2] == (4, 9)
    np.testing.assert_allclose(tiles[0, 0, :3], 0, atol=0.01)
    np.testing.assert_allclose(tiles[3, 3, :3], 1, atol=0.01)
    np.testing.assert_allclose(tiles[:, 5:, :3], 1, atol=0.01)
    assert 0.4 < tiles[1, 3, 0] < 0.55
