"""twofold compress: pictures in fewer bytes, and back."""

import json
from pathlib import Path

import numpy as np
import pytest

from twofold.io.images import read_image, write_image

MAKES = {"dct", "wavelet", "pca"}


@pytest.fixture
def photo(folder):
    """photo("a.png") writes a picture, smooth but for an edge, and returns its pixels."""

    def make(name="photo.png", dtype=np.uint8, color=True, alpha=None):
        rows, columns = np.mgrid[:48, :40] / 48
        light = 0.2 + 0.4 * rows + 0.3 * (rows + columns > 0.9)
        values = np.dstack([light, 0.7 * light, 1 - light]) if color else light
        pixels = np.rint(values * np.iinfo(dtype).max).astype(dtype)
        write_image(name, pixels, alpha)
        return pixels

    return make


def run_json(twofold, *args):
    result = twofold("compress", *args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def quality(truth, guess):
    return 10 * np.log10(float(np.iinfo(truth.dtype).max) ** 2 / np.mean((truth.astype(float) - guess) ** 2))


def test_no_options_are_needed_and_nothing_is_written_unasked(twofold, photo, folder):
    photo()
    result = twofold("compress", "photo.png")
    assert result.exit_code == 0, result.stderr
    for text in ("48", "40", "colour", "bytes", "ratio", "bits a pixel", "PSNR", "DCT blocks", "wavelets", "PCA"):
        assert text in result.stdout
    assert "36 dB" in result.stderr and "-o photo.tfi" in result.stderr
    assert [p.name for p in folder.iterdir()] == ["photo.png"]


@pytest.mark.parametrize("kind", [{}, {"color": False}, {"color": False, "dtype": np.uint16}, {"alpha": True}])
def test_what_comes_back_has_the_quality_asked_for(twofold, photo, kind):
    alpha = np.arange(48 * 40, dtype=np.uint8).reshape(48, 40) if kind.get("alpha") else None
    pixels = photo(**kind | {"alpha": alpha})
    found = run_json(twofold, "photo.png", "--psnr", 40, "-o", "small.tfi")
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


def test_a_size_is_kept_and_used_for_quality(twofold, photo):
    photo()
    small, large = (run_json(twofold, "photo.png", "--size", size) for size in ("300", "0.6k"))
    for found, limit in ((small, 300), (large, 600)):
        assert all(one["bytes"] <= limit for one in found["methods"])
        assert found["figures"]["psnr"] == max(one["psnr"] for one in found["methods"])
    assert small["figures"]["psnr"] < large["figures"]["psnr"]
    one = run_json(twofold, "photo.png", "--size", "600", "--method", "dct")
    assert [m["method"] for m in one["methods"]] == ["dct"]
    assert one["figures"]["psnr"] == next(m["psnr"] for m in large["methods"] if m["method"] == "dct")
    assert one["methods"][0]["ratio"] * one["figures"]["bytes"] == pytest.approx(48 * 40 * 3)


def test_formats_that_everyone_reads_have_the_same_size(twofold, photo):
    pixels = photo()
    found = run_json(twofold, "photo.png", "--size", 900, "-o", "small.webp", "-o", "small.jp2")
    assert {row["method"] for row in found["same_size"]} == {".webp", ".jp2"}
    for row in found["same_size"]:
        data = Path(f"small{row['method']}")
        assert data.stat().st_size == row["bytes"] <= found["figures"]["bytes"]
        assert quality(pixels, read_image(data).pixels) == pytest.approx(row["psnr"]) and row["psnr"] > 20
    refused = twofold("compress", "photo.png", "--size", 150, "-o", "tiny.jp2")
    assert refused.exit_code == 2 and "JPEG 2000" in refused.stderr and not Path("tiny.jp2").exists()


def test_pictures_and_reports(twofold, photo):
    photo()
    for name in ("a", "b"):
        assert twofold("compress", "photo.png", "-o", f"{name}.png", "-o", f"{name}.html").exit_code == 0
    for ending in ("png", "html"):
        assert Path(f"a.{ending}").read_bytes() == Path(f"b.{ending}").read_bytes()
    assert min(read_image("a.png").pixels.shape[:2]) > 600
    text = Path("a.html").read_text()
    assert "data:image/png;base64," in text and "PCA of patches" in text and "http" not in text


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["photo.png", "-o", "photo.png", "--force"], "input"),
        (["photo.png", "-o", "old.tfi"], "--force"),
        (["photo.png", "-o", "out.jpg"], ".tfi"),
        (["photo.png", "-o", "out.tfi", "--psnr", "40", "--size", "1k"], "one of them"),
        (["photo.png", "-o", "out.tfi", "--size", "lots"], "40k"),
        (["photo.png", "-o", "out.tfi", "--size", "20"], "bytes"),
        (["photo.png", "-o", "out.tfi", "--method", "magic"], "wavelet"),
        (["phoot.png", "-o", "out.tfi"], "photo.png"),
        (["text.png", "-o", "out.tfi"], "text.png"),
        (["none.tfi", "-o", "out.png"], "none.tfi"),
        (["cut.tfi", "-o", "out.png"], "cut.tfi"),
        (["good.tfi", "-o", "out.jpg"], "transparency"),
        (["good.tfi", "-o", "out.tfi"], ".png"),
        (["good.tfi", "-o", "out.png", "--psnr", "30"], "compressed already"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(twofold, photo, folder, args, word):
    photo()
    photo("clear.png", alpha=np.zeros((48, 40), np.uint8))
    assert twofold("compress", "clear.png", "-o", "good.tfi", "--method", "dct").exit_code == 0
    whole = Path("good.tfi").read_bytes()
    Path("cut.tfi").write_bytes(whole[: len(whole) // 2])
    Path("text.png").write_text("no picture")
    Path("old.tfi").write_text("old")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    result = twofold("compress", *args)
    assert result.exit_code == 2 and word in result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
