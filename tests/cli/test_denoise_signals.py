"""twofold denoise: sound, columns of tables and arrays cleaned, in the format they came in."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.io import wavfile

from tests.cli.worlds import make_melody, write_signals
from twofold import analyses
from twofold.io.recordings import read_signals


@pytest.fixture
def files(folder):
    return write_signals()


def test_sound_comes_back_as_sound(ask, files):
    found = ask("denoise", "hum.wav", "-o", "clean.wav")
    rate, got = wavfile.read("clean.wav")
    assert rate == found["rate"] == 8000 and got.dtype == np.int16
    assert np.std(got - make_melody()) < 0.5 * np.std(wavfile.read("hum.wav")[1] - make_melody())
    assert found["sigma"] == pytest.approx([500], rel=0.1) and found["figures"]["noise"] < 0.2
    both = ask("denoise", "both.wav", "-o", "both2.wav")
    assert both["signals"] == ["left", "right"] and wavfile.read("both2.wav")[1].shape == (4000, 2)


def test_every_column_is_a_signal_but_the_one_that_says_when(twofold, ask, files):
    result = twofold("denoise", "sensors.csv", "-o", "clean.csv")
    assert result.exit_code == 0, result.stderr
    assert '"minute" only rises' in result.stderr
    before, after = pl.read_csv("sensors.csv"), pl.read_csv("clean.csv")
    assert set(after.columns) == set(before.columns) and after["place"].equals(before["place"])
    assert after["minute"].equals(before["minute"])
    truth = np.repeat([1.0, 5.0, 3.0], 200)
    assert np.std(after["level"].to_numpy() - truth) < 0.5 * np.std(before["level"].to_numpy() - truth)
    assert after["heat"].diff().std() < 0.2 * before["heat"].diff().std()
    one = ask("denoise", "sensors.csv", "--columns", "heat", "--method", "soft", "--compare", "heat.html")
    assert one["signals"] == ["heat"] and "columns=" in Path("heat.html").read_text()  # in the code that reproduces it


def test_files_arrays_and_frames_are_cleaned_alike(files):
    by_file = analyses.denoise("walk.npy").signals
    np.testing.assert_array_equal(analyses.denoise(np.load("walk.npy")).signals, by_file)
    answer = analyses.denoise(pl.DataFrame({"walk": np.load("walk.npy")}))
    np.testing.assert_array_equal(answer.signals, by_file)
    answer.save("out.npy", "out.parquet", compare="both.png")
    np.testing.assert_array_equal(np.load("out.npy"), by_file[0])
    np.testing.assert_array_equal(pl.read_parquet("out.parquet")["walk"], by_file[0])
    assert Path("both.png").stat().st_size > 1000
    assert "analyses.denoise(data" in answer.code


def test_rows_of_an_array_are_signals(ask, files):
    walk = np.load("walk.npy")
    np.save("three.npy", np.stack([walk, walk[::-1], 2 * walk]))
    found = ask("denoise", "three.npy", "-o", "clean.npy")
    assert found["signals"] == ["row 1", "row 2", "row 3"]
    got = np.load("clean.npy")
    np.testing.assert_allclose(got[0], analyses.denoise(walk).signals[0])
    np.testing.assert_allclose(got[2], 2 * got[0])


def test_blanks_lie_on_lines_and_this_is_said(twofold, files):
    walk = np.load("walk.npy")
    cells = [f"{v}" for v in walk]
    cells[10] = cells[599] = ""
    Path("holes.csv").write_text("\n".join(["walk", *(f'"{c}"' for c in cells)]) + "\n")
    result = twofold("denoise", "holes.csv")
    assert result.exit_code == 0 and "2 blanks" in result.stderr
    read = read_signals("holes.csv").signals[0]
    assert read[10] == pytest.approx((walk[9] + walk[11]) / 2) and read[599] == walk[598]


def test_added_noise_is_a_test_against_the_signal_itself(twofold, ask, folder):
    np.save("clean.npy", make_melody())
    args = ["clean.npy", "--add-noise", 400, "--seed", 3]
    found = ask("denoise", *args)
    assert found == ask("denoise", *args) | {"seconds": found["seconds"]}
    assert found["figures"]["snr"] > found["baseline"]["snr"] + 5
    assert "held out" in twofold("denoise", *args).stdout
