"""twofold sense: few measurements of pictures and signals, and what comes back."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.fft import idctn

from twofold.io.images import read_image, write_image


@pytest.fixture
def signals():
    """Two signals of 128 numbers, each a sum of three cosines."""
    coefficients = np.zeros((2, 128))
    coefficients[0, [3, 17, 40]] = [5, -4, 3]
    coefficients[1, [8, 30, 71]] = [4, 6, -5]
    return idctn(coefficients, axes=1, norm="ortho")


@pytest.fixture
def tables(folder, signals):
    time = np.arange(128) / 50
    pl.DataFrame({"t": time, "a": signals[0], "b": signals[1]}).write_csv("two.csv")
    np.save("one.npy", signals[0])
    np.save("two.npy", signals)
    pl.DataFrame({"a": [1.0, None, 3.0] * 9}).write_csv("blank.csv")
    pl.DataFrame({"a": [1.0, 2.0]}).write_csv("short.csv")


@pytest.fixture
def photo(folder):
    """A picture of few cosines in each colour."""
    coefficients = np.zeros((24, 20, 3))
    coefficients[0, 0] = 2800
    coefficients[[1, 2, 0], [2, 0, 1]] = [[600, 200, 100], [-300, 400, 50], [200, 100, -500]]
    pixels = np.clip(np.rint(idctn(coefficients, axes=(0, 1), norm="ortho")), 0, 255).astype(np.uint8)
    write_image("photo.png", pixels)
    write_image("grey.png", pixels[..., 0])
    return pixels


def run_json(twofold, *args):
    result = twofold("sense", *args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_no_options_are_needed_and_nothing_is_written_unasked(twofold, photo, folder):
    result = twofold("sense", "grey.png")
    assert result.exit_code == 0, result.stderr
    for text in ("measurements", "30%", "PSNR", "cosines", "theory"):
        assert text in result.stdout
    assert "--kind" in result.stderr and "nothing is written" in result.stderr
    assert sorted(p.name for p in folder.iterdir()) == ["grey.png", "photo.png"]


@pytest.mark.parametrize("kind", ["fourier", "hadamard", "gaussian", "rademacher"])
def test_sparse_signals_come_back_from_few_measurements(twofold, tables, signals, kind):
    found = run_json(twofold, "two.csv", "--fraction", 0.4, "--kind", kind, "-o", "back.csv", "-o", "back.npy")
    assert found["signals"] == ["a", "b"] and found["measurements"] == round(0.4 * 128)
    back = pl.read_csv("back.csv")
    assert back.columns == ["a", "b"]
    np.testing.assert_allclose(back.to_numpy().T, np.load("back.npy"))
    error = np.linalg.norm(np.load("back.npy") - signals) / np.linalg.norm(signals)
    assert error == pytest.approx(found["figures"]["relative_error"]) and error < 0.02
    assert found["baseline"]["relative_error"] > 10 * error
    assert found["sparsity"] == 3 and found["measurements_needed"] < 51
    again = run_json(twofold, "two.csv", "--fraction", 0.4, "--kind", kind, "-o", "again.csv")
    assert again["tried"] == found["tried"] and Path("again.csv").read_bytes() == Path("back.csv").read_bytes()
    assert any("taken for time" in note for note in found["notes"])


def test_arrays_are_signals_by_rows(twofold, tables, signals):
    one = run_json(twofold, "one.npy", "-o", "back.npy")
    assert one["length"] == 128 and np.load("back.npy").shape == (128,)
    two = run_json(twofold, "two.npy")
    assert two["length"] == 128 and len(two["signals"]) == 2


def test_more_measurements_never_hurt_much(twofold, photo):
    found = run_json(twofold, "grey.png", "--fraction", 1)
    scores = [one["psnr"] or 99 for one in found["tried"]]
    assert [one["fraction"] for one in found["tried"]] == [0.1, 0.2, 0.3, 0.5, 1.0]
    assert all(late > early - 1 for early, late in pairwise(scores))
    assert scores[-1] > scores[0] + 10


def test_pictures_come_back_as_pictures(twofold, photo):
    found = run_json(twofold, "photo.png", "--fraction", 0.5, "-o", "back.png", "--compare", "both.png")
    back = read_image("back.png").pixels
    assert back.shape == photo.shape and back.dtype == np.uint8
    assert np.abs(back.astype(int) - photo).mean() < 4 and found["figures"]["psnr"] > 30
    assert read_image("both.png").pixels.shape[1] > 1000


def test_pages_of_signals(twofold, tables):
    assert twofold("sense", "two.csv", "--compare", "both.html").exit_code == 0
    text = Path("both.html").read_text()
    assert "data:image/png;base64," in text and "theory" in text


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["photo.png", "-o", "old.png"], "--force"),
        (["photo.png", "-o", "out.csv"], ".png"),
        (["two.csv", "-o", "out.png"], ".csv"),
        (["photo.png", "-o", "out.png", "--kind", "magic"], "hadamard"),
        (["photo.png", "-o", "out.png", "--fraction", "0"], "0.3"),
        (["photo.png", "-o", "out.png", "--fraction", "2"], "--fraction"),
        (["blank.csv", "-o", "out.csv"], "row 2"),
        (["short.csv", "-o", "out.csv"], "too short"),
        (["gone.csv", "-o", "out.csv"], "gone.csv"),
        (["text.png", "-o", "out.png"], "text.png"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(twofold, tables, photo, folder, args, word):
    Path("old.png").write_text("old")
    Path("text.png").write_text("no picture")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    result = twofold("sense", *args)
    assert result.exit_code == 2 and word in result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
