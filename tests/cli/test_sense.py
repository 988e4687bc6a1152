"""twofold sense: few measurements of pictures and signals, and what comes back."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.worlds import make_cosines, write_measured
from twofold import CompressiveSensing
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
    one = ask("sense", "one.npy", "--simulate", "-o", "back.npy")
    assert one["length"] == 128 and np.load("back.npy").shape == (128,)
    two = ask("sense", "two.npy", "--simulate")
    assert two["length"] == 128 and len(two["signals"]) == 2


def test_pictures_come_back_as_pictures(ask, photo):
    found = ask("sense", "photo.png", "--fraction", 0.5, "-o", "back.png")
    back = read_image("back.png").pixels
    assert back.shape == photo.shape and back.dtype == np.uint8
    assert np.abs(back.astype(int) - photo).mean() < 4 and found["figures"]["psnr"] > 30


@pytest.fixture
def matrix(folder):
    """The matrix, and what it measured of two signals."""
    A = np.random.default_rng(0).normal(size=(56, 128))
    np.save("matrix.npy", A)
    pl.DataFrame(A).write_csv("matrix.csv")
    np.save("turned.npy", A.T)
    pl.DataFrame((make_cosines() @ A.T).T, schema=["a", "b"]).write_csv("measured.csv")
    return A


def test_measured_numbers_and_their_matrix_give_the_signals(twofold, ask, matrix):
    found = ask("sense", "measured.csv", "--matrix", "matrix.npy", "-o", "back.csv")
    back = pl.read_csv("back.csv")
    assert back.columns == ["a", "b"] and found["measurements"] == 56 and found["basis"] == "cosines"
    np.testing.assert_allclose(back.to_numpy().T, make_cosines(), atol=1e-3)
    assert found["figures"]["relative_error"] < 1e-3 < 0.5 < found["baseline"]["relative_error"]
    assert ask("sense", "measured.csv", "--matrix", "matrix.csv")["figures"] == found["figures"]
    refused = twofold("sense", "measured.csv", "--matrix", "turned.npy")
    assert refused.exit_code == 2 and "transposed" in refused.stderr
    noise = 0.05 * np.random.default_rng(1).normal(size=(2, 56))
    np.save("noisy.npy", make_cosines() @ matrix.T + noise)
    ask("sense", "noisy.npy", "--matrix", "matrix.npy", "--sigma", 0.05, "-o", "back.npy")
    assert np.std(np.load("back.npy") - make_cosines()) < 0.05


@pytest.mark.parametrize("kind", ["hadamard", "gaussian"])
def test_a_seed_stands_for_the_matrix(ask, folder, kind):
    signal = make_cosines()[0]
    np.save("y.npy", CompressiveSensing(60, kind=kind, random_state=7).fit(signal).measure(signal))
    found = ask("sense", "y.npy", "--length", 128, "--kind", kind, "--seed", 7, "-o", "back.npy")
    np.testing.assert_allclose(np.load("back.npy"), signal, atol=1e-3)
    assert any("random_state=7" in note for note in found["notes"])
    wrong = ask("sense", "y.npy", "--length", 128, "--kind", kind, "--seed", 8)
    assert wrong["figures"]["relative_error"] > 0.5 > 1e-3 > found["figures"]["relative_error"]


def test_measured_numbers_of_an_image_give_an_image(ask, photo):
    gray = photo.mean(axis=2)
    h, w = gray.shape
    model = CompressiveSensing(gray.size // 2, kind="fourier", random_state=3).fit(gray)
    np.save("y.npy", model.measure(gray))
    ask("sense", "y.npy", "--length", f"{h}x{w}", "--kind", "fourier", "--seed", 3, "-o", "back.png")
    back = read_image("back.png").pixels
    assert back.shape == gray.shape and np.abs(back - gray).mean() < 4
