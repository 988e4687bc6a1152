"""twofold denoise: sound, columns of tables and arrays cleaned, in the format they came in."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.io import wavfile

from twofold import analyses
from twofold.io.recordings import read_signals, write_sound


def melody(n=4000):
    t = np.arange(n) / 8000
    return 6000 * np.sin(2 * np.pi * 300 * t) * np.exp(-((t - 0.2) ** 2) * 80)


def noise(shape, sigma, seed=0):
    return np.random.default_rng(seed).normal(scale=sigma, size=shape)


@pytest.fixture
def files(folder):
    """hum.wav, both.wav, sensors.csv and walk.npy, each with noise."""
    clean = melody()
    write_sound("hum.wav", (clean + noise(clean.shape, 500)).astype(np.int16)[None], 8000)
    write_sound("both.wav", (np.stack([clean, clean[::-1]]) + noise((2, 4000), 500)).astype(np.float32), 8000)
    n = 600
    level = np.repeat([1.0, 5.0, 3.0], 200)
    frame = pl.DataFrame({"minute": np.arange(n) * 0.5, "place": ["x"] * n, "level": level + noise(n, 0.5)})
    frame.with_columns(pl.Series("heat", 20 + np.sin(np.arange(n) / 40) + noise(n, 0.2, 1))).write_csv("sensors.csv")
    np.save("walk.npy", level + noise(n, 0.5))
    return folder


def run_json(twofold, *args):
    result = twofold("denoise", *args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_sound_comes_back_as_sound(twofold, files):
    found = run_json(twofold, "hum.wav", "-o", "clean.wav")
    rate, got = wavfile.read("clean.wav")
    assert rate == found["rate"] == 8000 and got.dtype == np.int16
    assert np.std(got - melody()) < 0.5 * np.std(wavfile.read("hum.wav")[1] - melody())
    assert found["sigma"] == pytest.approx([500], rel=0.1) and found["figures"]["noise"] < 0.2
    both = run_json(twofold, "both.wav", "-o", "both2.wav")
    assert both["signals"] == ["left", "right"] and wavfile.read("both2.wav")[1].shape == (4000, 2)


def test_every_column_is_a_signal_but_the_one_that_says_when(twofold, files):
    result = twofold("denoise", "sensors.csv", "-o", "clean.csv")
    assert result.exit_code == 0, result.stderr
    assert '"minute" only rises' in result.stderr
    before, after = pl.read_csv("sensors.csv"), pl.read_csv("clean.csv")
    assert set(after.columns) == set(before.columns) and after["place"].equals(before["place"])
    assert after["minute"].equals(before["minute"])
    truth = np.repeat([1.0, 5.0, 3.0], 200)
    assert np.std(after["level"].to_numpy() - truth) < 0.5 * np.std(before["level"].to_numpy() - truth)
    assert after["heat"].diff().std() < 0.2 * before["heat"].diff().std()
    one = run_json(twofold, "sensors.csv", "--columns", "heat", "--method", "soft", "--compare", "heat.html")
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


def test_rows_of_an_array_are_signals(twofold, files):
    walk = np.load("walk.npy")
    np.save("three.npy", np.stack([walk, walk[::-1], 2 * walk]))
    found = run_json(twofold, "three.npy", "-o", "clean.npy")
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


def test_added_noise_is_a_test_against_the_signal_itself(twofold, folder):
    np.save("clean.npy", melody())
    args = ["clean.npy", "--add-noise", 400, "--seed", 3]
    found = run_json(twofold, *args)
    assert found == run_json(twofold, *args) | {"seconds": found["seconds"]}
    assert found["figures"]["snr"] > found["baseline"]["snr"] + 5
    assert "held out" in twofold("denoise", *args).stdout


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["walk.npy", "-o", "walk.wav"], "numbers a second"),
        (["hum.wav", "-o", "hum.wav", "--force"], "input"),
        (["hum.wav", "-o", "clean.png"], ".wav"),
        (["hum.wav", "--columns", "left"], "no columns"),
        (["sensors.csv", "--columns", "levl"], 'Did you mean "level"'),
        (["hum.wav", "--method", "ksvd"], "hard or soft"),
        (["photo.png", "--columns", "a"], "is for tables"),
        (["photo.png", "--method", "median"], "ksvd, hard or soft"),
        (["cut.wav"], "cut.wav"),
        (["text.wav"], "uncompressed WAV"),
        (["gone.wav"], "gone.wav"),
        (["short.csv"], "3 rows"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(twofold, files, args, word):
    from twofold.io.images import write_image

    write_image("photo.png", np.full((20, 20), 99, np.uint8))
    Path("cut.wav").write_bytes(Path("hum.wav").read_bytes()[:30])
    Path("text.wav").write_text("no sound at all")
    Path("short.csv").write_text("a\n1\n2\n5\n")
    before = {p.name: p.read_bytes() for p in files.iterdir()}
    result = twofold("denoise", *args)
    assert result.exit_code == 2 and word in result.stderr, result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""
    assert {p.name: p.read_bytes() for p in files.iterdir()} == before
