"""twofold compress: pictures, sound, columns of tables and arrays in fewer bytes, and back."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image, features
from scipy.io import wavfile

from tests.cli.worlds import write_photo
from twofold.io.images import read_image, write_image
from twofold.io.recordings import write_sound

MAKES = {"dct", "wavelet", "pca"}


@pytest.fixture
def photo(folder):
    return write_photo


def quality(truth, guess):
    return 10 * np.log10(float(np.iinfo(truth.dtype).max) ** 2 / np.mean((truth.astype(float) - guess) ** 2))


@pytest.mark.parametrize("kind", [{}, {"color": False}, {"color": False, "dtype": np.uint16}, {"alpha": True}])
def test_what_comes_back_has_the_quality_asked_for(twofold, ask, photo, kind):
    alpha = np.arange(48 * 40, dtype=np.uint8).reshape(48, 40) if kind.get("alpha") else None
    pixels = photo(**kind | {"alpha": alpha})
    found = ask("compress", "photo.png", "--psnr", 40, "-o", "small.tfi")
    own = found["figures"]
    assert Path("small.tfi").stat().st_size == own["bytes"] < found["baseline"]["bytes"]
    assert {one["method"] for one in found["methods"]} == MAKES
    assert own["bytes"] == min(one["bytes"] for one in found["methods"])
    assert twofold("compress", "small.tfi", "-o", "back.png").exit_code == 0
    back = read_image("back.png")
    assert back.pixels.dtype == pixels.dtype and back.pixels.shape == pixels.shape
    assert quality(pixels, back.pixels) >= 40
    assert quality(pixels, back.pixels) == pytest.approx(own["psnr"], abs=0.01)
    if alpha is not None:
        np.testing.assert_array_equal(back.alpha, alpha)


def test_formats_that_everyone_reads_have_the_same_size(twofold, ask, photo):
    pixels = photo()
    endings = {".jpg", ".webp", ".jp2", *([".avif"] if features.check("avif") else [])}
    out = [word for ending in [*endings, ".jpeg"] for word in ("-o", f"small{ending}")]
    found = ask("compress", "photo.png", "--size", 1200, *out)
    assert {row["method"] for row in found["same_size"]} == endings
    assert Path("small.jpeg").read_bytes() == Path("small.jpg").read_bytes()
    for row in found["same_size"]:
        data = Path(f"small{row['method']}")
        assert data.stat().st_size == row["bytes"] <= found["figures"]["bytes"]
        assert quality(pixels, read_image(data).pixels) == pytest.approx(row["psnr"]) and row["psnr"] > 20


def test_formats_refuse_what_they_cannot_hold_before_the_work(twofold, photo):
    photo(color=False, dtype=np.uint16)
    refused = twofold("compress", "photo.png", "-o", "small.jpg")
    assert refused.exit_code == 2 and "16 bits" in refused.stderr and not Path("small.jpg").exists()
    photo(alpha=np.arange(48 * 40, dtype=np.uint8).reshape(48, 40))
    refused = twofold("compress", "photo.png", "-o", "small.jpeg")
    assert refused.exit_code == 2 and "transparency" in refused.stderr


def test_jpeg_2000_turns_colors_as_others_do(ask, folder):
    ramp = np.add.outer(np.arange(96.0), 2 * np.arange(128.0)) / 2
    gray = ramp + 20 * np.random.default_rng(0).normal(size=ramp.shape)  # what all three colors share
    pixels = np.clip(np.dstack([gray, gray + 10, gray - 10]), 0, 255).astype(np.uint8)
    write_image("photo.png", pixels)
    found = ask("compress", "photo.png", "--size", 5000, "-o", "small.jp2")
    size = Path("small.jp2").stat().st_size
    own = next(row["psnr"] for row in found["same_size"] if row["method"] == ".jp2")
    reached = {}
    for mct in (0, 1):
        ratio = [pixels.nbytes / (size - 120)]
        Image.fromarray(pixels).save("peer.jp2", quality_layers=ratio, irreversible=True, mct=mct)
        reached[mct] = quality(pixels, read_image("peer.jp2").pixels)
    assert own > reached[1] - 0.2 and own > reached[0] + 1


@pytest.fixture
def files(folder):
    t = np.arange(6000) / 8000
    hum = (9000 * np.sin(2 * np.pi * 440 * t) * np.exp(-3 * t)).astype(np.int16)
    write_sound("hum.wav", np.stack([hum, hum // 2]), 8000)
    pl.DataFrame({"day": np.arange(600.0), "a": np.sin(t[:600] * 99), "b": np.cos(t[:600] * 50)}).write_csv("two.csv")
    np.save("hum.npy", hum)
    return folder


def test_sound_goes_there_and_back(twofold, ask, files):
    found = ask("compress", "hum.wav", "--psnr", 45, "-o", "hum.tfs", "-o", "look.png")
    assert Path("hum.tfs").stat().st_size == found["figures"]["bytes"] < found["baseline"]["bytes"]
    assert {one["method"] for one in found["methods"]} == {"lapped", "wavelet", "gzip"}
    assert twofold("compress", "hum.tfs", "-o", "back.wav").exit_code == 0
    (rate, was), (again, got) = wavfile.read("hum.wav"), wavfile.read("back.wav")
    assert rate == again and got.dtype == was.dtype and got.shape == was.shape
    error = np.sqrt(np.mean((got - was.astype(float)) ** 2))
    assert 20 * np.log10((was.max() - was.min()) / error) > 44


def test_one_column_and_arrays(twofold, files):
    assert twofold("compress", "two.csv", "--columns", "a", "-o", "a.tfs").exit_code == 0
    assert twofold("compress", "a.tfs", "-o", "a.csv").exit_code == 0
    error = pl.read_csv("a.csv")["a"] - pl.read_csv("two.csv")["a"]
    assert np.sqrt(np.mean(error.to_numpy() ** 2)) < 0.0101 * 2  # 40 dB of a range of 2
    result = twofold("compress", "hum.npy", "--size", "500")
    assert result.exit_code == 0 and "-o hum.tfs" in result.stderr and "500" in result.stdout
