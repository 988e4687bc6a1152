"""twofold compress: sound, a column of a table and arrays in fewer bytes, and back."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.io import wavfile

from twofold.io.recordings import write_sound


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
