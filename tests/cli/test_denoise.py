"""twofold denoise: images, sound, columns of tables and arrays cleaned, and an honest word on what was taken away."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image
from scipy.io import wavfile
from sklearn.datasets import load_wine

from tests.cli.worlds import make_melody, make_noise, write_noisy, write_signals
from twofold import analyses
from twofold.io.images import read_image
from twofold.io.recordings import read_signals


@pytest.fixture
def noisy(folder):
    return write_noisy


def off(truth, guess):
    return float(np.sqrt(np.mean((truth - guess.astype(float)) ** 2)))


@pytest.mark.parametrize(
    ("kind", "ending"), [({}, ".png"), ({"color": False, "dtype": np.uint16}, ".tif"), ({"alpha": True}, ".png")]
)
def test_noise_goes_and_the_picture_stays(ask, noisy, kind, ending):
    alpha = np.arange(48 * 40, dtype=np.uint8).reshape(48, 40) if kind.get("alpha") else None
    clean = noisy(f"noisy{ending}", **kind | {"alpha": alpha})
    given = read_image(f"noisy{ending}")
    found = ask("denoise", f"noisy{ending}", "-o", f"clean{ending}")
    got = read_image(f"clean{ending}")
    assert got.pixels.dtype == given.pixels.dtype and got.pixels.shape == given.pixels.shape
    assert off(clean, got.pixels) < 0.5 * off(clean, given.pixels)
    unit = given.peak / 255
    assert found["sigma"] == pytest.approx(20 * unit, rel=0.2) and not found["sigma_given"]
    own = found["figures"]
    assert own["noise"] < 0.4 * found["baseline"]["noise"]
    assert own["removed_sd"] == pytest.approx(20 * unit, rel=0.3) and abs(own["removed_correlation"]) < 0.2
    if alpha is not None:
        np.testing.assert_array_equal(got.alpha, alpha)


def test_added_noise_is_a_test_against_the_picture_itself(twofold, ask, noisy):
    noisy(sd=0.0, color=False)
    args = ["noisy.png", "--add-noise", 15, "--seed", 3]
    first = ask("denoise", *args, "-o", "a.png")
    assert ask("denoise", *args, "-o", "b.png")["figures"] == first["figures"]
    assert Path("a.png").read_bytes() == Path("b.png").read_bytes()
    truth, got = read_image("noisy.png").pixels, read_image("a.png").pixels
    assert first["baseline"]["psnr"] == pytest.approx(20 * np.log10(255 / 15), abs=0.5)
    assert first["figures"]["psnr"] == pytest.approx(20 * np.log10(255 / off(truth, got)))
    assert first["figures"]["psnr"] > first["baseline"]["psnr"] + 5
    said = twofold("denoise", *args)
    assert "held out" in said.stdout and "PSNR" in said.stdout and "was added" in said.stderr
    np.save("clean.npy", make_melody())
    found = ask("denoise", "clean.npy", "--add-noise", 400, "--seed", 3)
    assert found["figures"]["snr"] > found["baseline"]["snr"] + 5


def test_a_given_sigma_is_used(ask, noisy):
    clean = noisy(color=False)
    found = ask("denoise", "noisy.png", "--sigma", 0.001, "-o", "same.png")
    assert found["sigma"] == 0.001 and found["sigma_given"]
    np.testing.assert_array_equal(read_image("same.png").pixels, read_image("noisy.png").pixels)
    assert off(clean, read_image("same.png").pixels) > 15


def test_choices_of_the_reader_are_said(twofold, noisy):
    noisy()
    with Image.open("noisy.png") as image:
        image.save("two.tif", save_all=True, append_images=[image])
    assert "2 pictures" in twofold("denoise", "two.tif").stderr


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


def test_rows_without_an_order_are_no_signal(twofold, folder):
    wine = load_wine(as_frame=True).frame
    wine.to_csv("wine.csv", index=False)
    refused = twofold("denoise", "wine.csv", "-o", "clean.csv")
    assert refused.exit_code == 2 and "none that says when" in refused.stderr and "--columns alcohol" in refused.stderr
    assert not Path("clean.csv").exists()
    assert twofold("denoise", "wine.csv", "--columns", "alcohol").exit_code == 0
    noise = make_noise(300, 1.0)
    pl.DataFrame({"walk": noise.cumsum()}).write_csv("walk.csv")
    pl.DataFrame({"dice": noise}).write_csv("dice.csv")
    days = pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 10, 26), eager=True)
    pl.DataFrame({"day": days, "walk": noise.cumsum(), "dice": noise}).write_csv("days.csv")
    assert twofold("denoise", "walk.csv").exit_code == 0
    refused = twofold("denoise", "dice.csv")
    assert refused.exit_code == 2 and "differ as much as any two rows" in refused.stderr
    result = twofold("denoise", "days.csv", "-o", "clean.csv")
    assert result.exit_code == 0 and '"dice" kept as it is' in result.stderr
    np.testing.assert_array_equal(pl.read_csv("clean.csv")["dice"], noise)


def test_what_was_taken_away_is_said_as_the_check_says_it(ask, twofold, files, noisy):
    truth = wavfile.read("hum.wav")[1].astype(float)
    said = twofold("denoise", "hum.wav", "-o", "clean.wav", "--compare", "both.png").stdout
    removed = f"{np.std(truth - wavfile.read('clean.wav')[1]):.3g}"
    assert f"{removed} taken away, of noise" in said and f"standard deviation {removed}" in said
    noisy()
    found = ask("denoise", "noisy.png", "--method", "hard", "-o", "clean.png")
    off = read_image("noisy.png").pixels.astype(float) - read_image("clean.png").pixels
    assert found["figures"]["removed_sd"] == pytest.approx(np.sqrt(off.var(axis=(0, 1)).mean()), rel=1e-3)


def test_files_arrays_and_frames_give_the_same(files):
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
