"""Numbers of groups and topics: the range grows while the best is at its end, and then narrows."""

import importlib
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from twofold import analyses
from twofold.analyses.common.sizes import find_size, list_sizes_beside

FOREVER = 1e9


def choosing(true, asked):
    """Chooses the size nearest to the true one, and remembers what it was asked."""

    def choose(sizes, seconds):
        asked.append(sizes)
        best = min(sizes, key=lambda k: abs(np.log(k / true)))
        return SimpleNamespace(best_params={"k": best}, table=pl.DataFrame({"k": sizes, "note": [None] * len(sizes)}))

    return choose


@pytest.mark.parametrize("true", [1, 3, 8, 9, 10, 11, 23, 64, 100, 187])
def test_any_number_is_found_nearly(true):
    asked = []
    found, table = find_size(choosing(true, asked), "k", range(1, 11), 200, FOREVER)
    assert abs(found.best_params["k"] - true) <= max(0.5, 0.05 * true)
    assert len(asked) == 1 or true > 8  # a number well inside is found at once
    assert table["k"].to_list() == sorted({k for sizes in asked for k in sizes})
    assert sum(map(len, asked)) <= 10 + 5 * (np.log2(max(true, 1)) + 3)


def test_it_goes_no_further_than_it_may():
    asked = []
    found, table = find_size(choosing(1000, asked), "k", range(1, 11), 30, FOREVER)
    assert found.best_params["k"] == table["k"].max() == 30
    found, table = find_size(choosing(1000, asked), "k", [3, 5, 8], 400, FOREVER, narrow=False)
    assert found.best_params["k"] == 400
    asked.clear()
    find_size(choosing(1000, asked), "k", range(1, 11), 400, 0.0)
    assert len(asked) == 1


def test_gaps_are_halved():
    assert list_sizes_beside(100, [50, 100, 200]) == [75, 150]
    assert list_sizes_beside(100, [96, 100, 104]) == list_sizes_beside(1, [1, 2]) == list_sizes_beside(1, [1]) == []


def test_more_than_ten_groups_are_found(monkeypatch):
    """A grid of 25 clouds, ten standard deviations apart."""
    module = importlib.import_module("twofold.analyses.cluster.groups")
    monkeypatch.setattr(module, "SECONDS", FOREVER)
    rng = np.random.default_rng(0)
    centers = 10.0 * np.stack(np.meshgrid(np.arange(5), np.arange(5)), axis=-1).reshape(-1, 2)
    X = np.repeat(centers, 30, axis=0) + rng.normal(size=(750, 2))
    answer = analyses.cluster(X)
    assert abs(answer.k - 25) <= 1
    assert not any("one cloud" in note or "most tried" in note for note in answer.notes)
    assert answer.figures["stability"] > 0.8
