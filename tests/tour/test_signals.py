"""The signals station and its figures show what is there."""

from __future__ import annotations

import numpy as np
import pytest

from twofold.plots.models.signals import bases_figure, compute_energy_lost
from twofold.signals.bases.dct import DCT
from twofold.signals.bases.wavelet import Haar
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
