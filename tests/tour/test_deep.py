"""The deep station shows what is there, and is left out where torch is not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from tests.cli.helpers import run_twofold
from twofold.cli.verbs import tour as command
from twofold.tour import EXTRAS, STATIONS
from twofold.tour import deep as station

NAME = "Networks and generators"


@pytest.fixture(scope="module")
def world() -> station.World:
    return station.learned(0)


def number(text: str) -> float:
    return float(text.replace("−", "-").rstrip("%").split()[0])


def test_digits_held_out_are_read_and_never_learned_from(world: station.World) -> None:
    own = {row.tobytes() for row in world.seen}
    assert sum(row.tobytes() in own for row in world.held) < 3  # copies are in the data itself
    assert number(station.reading(world).numbers["right, of digits held out"]) > 90  # by chance 10


def test_bent_codes_lose_less_than_straight_ones(world: station.World) -> None:
    straight, bent = map(number, station.codes(world).numbers.values())
    assert bent < 0.85 * straight


def test_walks_start_and_end_at_digits_and_the_bound_is_below(world: station.World) -> None:
    part = station.walk(world)
    bound, better, used = map(number, part.numbers.values())
    assert bound < better < 0 and used >= 4


def test_the_forger_comes_closer(world: station.World) -> None:
    first, _, last, floor = map(number, station.game(world).numbers.values())
    assert floor < last < 0.6 * first


def test_pixels_that_see_each_other_are_likelier_than_alone(world: station.World) -> None:
    exact, alone, kinds, sure = map(number, station.pixels(world).numbers.values())
    assert exact > alone + 15
    assert alone > -64 * np.log(17)  # knowing nothing
    assert kinds > 5 and sure > 40  # of 10; noise would be one kind, or unsure


def test_without_torch_the_station_is_left_out_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(command, "STATIONS", {NAME: STATIONS[NAME], "first": "twofold.tour.linear:station"})
    result = run_twofold("tour", "-o", str(tmp_path / "page.html"))
    assert result.exit_code == 0, result.output
    (line,) = [line for line in result.stderr.splitlines() if NAME in line]
    assert "torch" in line and "twofold[deep]" in line
    assert NAME not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_every_station_with_extras_is_a_station() -> None:
    assert set(EXTRAS) <= set(STATIONS)
