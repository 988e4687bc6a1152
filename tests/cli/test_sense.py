"""twofold sense: few measurements of pictures and signals, and what comes back."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.worlds import make_cosines, write_measured
from twofold.io.images import read_image


@pytest.fixture
def photo(folder):
    return write_measured()


@pytest.mark.parametrize("kind", ["fourier", "hadamard", "gaussian", "rademacher"])
def test_sparse_signals_come_back_from_few_measurements(ask, photo, kind):
    found = ask("sense", "two.csv", "--fraction", 0.4, "--kind", kind, "-o", "back.csv", "-o", "back.npy")
    assert found["signals"] == ["a", "b"] and found["measurements"] == round(0.4 * 128)
    back = pl.read_csv("back.csv")
    assert back.columns == ["a", "b"]
    np.testing.assert_allclose(back.to_numpy().T, np.load("back.npy"))
    error = np.linalg.norm(np.load("back.npy") - make_cosines()) / np.linalg.norm(make_cosines())
    assert error == pytest.approx(found["figures"]["relative_error"]) and error < 0.02
    assert found["baseline"]["relative_error"] > 10 * error
    assert found["sparsity"] == 3 and found["measurements_needed"] < 51
    again = ask("sense", "two.csv", "--fraction", 0.4, "--kind", kind, "-o", "again.csv")
    assert again["tried"] == found["tried"] and Path("again.csv").read_bytes() == Path("back.csv").read_bytes()
    assert any("taken for time" in note for note in found["notes"])


def test_arrays_are_signals_by_rows(ask, photo):
    one = ask("sense", "one.npy", "-o", "back.npy")
    assert one["length"] == 128 and np.load("back.npy").shape == (128,)
    two = ask("sense", "two.npy")
    assert two["length"] == 128 and len(two["signals"]) == 2


def test_pictures_come_back_as_pictures(ask, photo):
    found = ask("sense", "photo.png", "--fraction", 0.5, "-o", "back.png")
    back = read_image("back.png").pixels
    assert back.shape == photo.shape and back.dtype == np.uint8
    assert np.abs(back.astype(int) - photo).mean() < 4 and found["figures"]["psnr"] > 30
