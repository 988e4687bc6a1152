"""twofold denoise: images cleaned, and an honest word on what was taken away."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from twofold.io.images import read_image, write_image


@pytest.fixture
def noisy(folder):
    """noisy("a.png") writes a picture of two plains with noise, and returns it without."""

    def make(name="noisy.png", sd=20.0, dtype=np.uint8, color=True, alpha=None):
        rows, columns = np.mgrid[:48, :40]
        light = 60.0 + 100 * (rows > columns) + rows
        clean = np.dstack([light, light, 200 - light / 2]) if color else light
        unit = np.iinfo(dtype).max / 255
        dirty = clean + np.random.default_rng(0).normal(scale=sd, size=clean.shape)
        write_image(name, np.clip(np.rint(dirty * unit), 0, 255 * unit).astype(dtype), alpha)
        return clean * unit

    return make


def run_json(twofold, *args):
    result = twofold("denoise", *args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def off(truth, guess):
    return float(np.sqrt(np.mean((truth - guess.astype(float)) ** 2)))


def test_no_options_are_needed_and_nothing_is_written_unasked(twofold, noisy, folder):
    noisy()
    result = twofold("denoise", "noisy.png")
    assert result.exit_code == 0, result.stderr
    for text in ("noise", "before", "after", "check:"):
        assert text in result.stdout
    assert "estimated" in result.stderr and "-o" in result.stderr
    assert [p.name for p in folder.iterdir()] == ["noisy.png"]


@pytest.mark.parametrize(
    ("kind", "ending"), [({}, ".png"), ({"color": False, "dtype": np.uint16}, ".tif"), ({"alpha": True}, ".png")]
)
def test_noise_goes_and_the_picture_stays(twofold, noisy, kind, ending):
    alpha = np.arange(48 * 40, dtype=np.uint8).reshape(48, 40) if kind.get("alpha") else None
    clean = noisy(f"noisy{ending}", **kind | {"alpha": alpha})
    given = read_image(f"noisy{ending}")
    found = run_json(twofold, f"noisy{ending}", "-o", f"clean{ending}")
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


def test_added_noise_is_a_test_against_the_picture_itself(twofold, noisy):
    noisy(sd=0.0, color=False)
    args = ["noisy.png", "--add-noise", 15, "--seed", 3]
    first = run_json(twofold, *args, "-o", "a.png")
    assert run_json(twofold, *args, "-o", "b.png")["figures"] == first["figures"]
    assert Path("a.png").read_bytes() == Path("b.png").read_bytes()
    truth, got = read_image("noisy.png").pixels, read_image("a.png").pixels
    assert first["baseline"]["psnr"] == pytest.approx(20 * np.log10(255 / 15), abs=0.5)
    assert first["figures"]["psnr"] == pytest.approx(20 * np.log10(255 / off(truth, got)))
    assert first["figures"]["psnr"] > first["baseline"]["psnr"] + 5
    said = twofold("denoise", *args)
    assert "held out" in said.stdout and "PSNR" in said.stdout and "was added" in said.stderr


def test_a_given_sigma_is_used(twofold, noisy):
    clean = noisy(color=False)
    found = run_json(twofold, "noisy.png", "--sigma", 0.001, "-o", "same.png")
    assert found["sigma"] == 0.001 and found["sigma_given"]
    np.testing.assert_array_equal(read_image("same.png").pixels, read_image("noisy.png").pixels)
    assert off(clean, read_image("same.png").pixels) > 15


def test_comparisons(twofold, noisy):
    noisy()
    assert twofold("denoise", "noisy.png", "--compare", "both.png").exit_code == 0
    assert twofold("denoise", "noisy.png", "--add-noise", 5, "--compare", "both.html").exit_code == 0
    assert read_image("both.png").pixels.shape[1] > 1000
    text = Path("both.html").read_text()
    assert "data:image/png;base64," in text and "held out" in text.lower() and "http" not in text


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["noisy.png", "-o", "noisy.png", "--force"], "input"),
        (["noisy.png", "-o", "old.png"], "--force"),
        (["noisy.png", "-o", "out.gif"], ".png"),
        (["noisy.png", "-o", "out.png", "--compare", "out.png"], "twice"),
        (["noisy.png", "-o", "out.png", "--compare", "both.jpg"], ".html"),
        (["noisy.png", "-o", "out.png", "--compare", "old.png"], "--force"),
        (["clear.png", "-o", "out.jpg"], "transparency"),
        (["deep.png", "-o", "out.jpg"], "16 bits"),
        (["cut.png", "-o", "out.png"], "cut.png"),
        (["gone.png", "-o", "out.png"], "gone.png"),
        (["noisy.png", "--sigma", "-1"], "--sigma"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(twofold, noisy, folder, args, word):
    noisy()
    noisy("clear.png", alpha=np.zeros((48, 40), np.uint8))
    noisy("deep.png", dtype=np.uint16, color=False)
    Path("cut.png").write_bytes(Path("noisy.png").read_bytes()[:900])
    Path("old.png").write_text("old")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    result = twofold("denoise", *args)
    assert result.exit_code == 2 and word in result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_choices_of_the_reader_are_said(twofold, noisy):
    noisy()
    with Image.open("noisy.png") as image:
        image.save("two.tif", save_all=True, append_images=[image])
    assert "2 pictures" in twofold("denoise", "two.tif").stderr
