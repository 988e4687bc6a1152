"""twofold compress: pictures in fewer bytes, and back."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.worlds import write_photo
from twofold.io.images import read_image

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


def test_a_size_is_kept_and_used_for_quality(ask, photo):
    photo()
    small, large = (ask("compress", "photo.png", "--size", size) for size in ("300", "0.6k"))
    for found, limit in ((small, 300), (large, 600)):
        assert all(one["bytes"] <= limit for one in found["methods"])
        assert found["figures"]["psnr"] == max(one["psnr"] for one in found["methods"])
    assert small["figures"]["psnr"] < large["figures"]["psnr"]
    one = ask("compress", "photo.png", "--size", "600", "--method", "dct")
    assert [m["method"] for m in one["methods"]] == ["dct"]
    assert one["figures"]["psnr"] == next(m["psnr"] for m in large["methods"] if m["method"] == "dct")
    assert one["methods"][0]["ratio"] * one["figures"]["bytes"] == pytest.approx(48 * 40 * 3)


def test_formats_that_everyone_reads_have_the_same_size(twofold, ask, photo):
    pixels = photo()
    found = ask("compress", "photo.png", "--size", 900, "-o", "small.webp", "-o", "small.jp2")
    assert {row["method"] for row in found["same_size"]} == {".webp", ".jp2"}
    for row in found["same_size"]:
        data = Path(f"small{row['method']}")
        assert data.stat().st_size == row["bytes"] <= found["figures"]["bytes"]
        assert quality(pixels, read_image(data).pixels) == pytest.approx(row["psnr"]) and row["psnr"] > 20
    refused = twofold("compress", "photo.png", "--size", 150, "-o", "tiny.jp2")
    assert refused.exit_code == 2 and "JPEG 2000" in refused.stderr and not Path("tiny.jp2").exists()
