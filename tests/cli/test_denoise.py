"""twofold denoise: images cleaned, and an honest word on what was taken away."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.cli.worlds import write_noisy
from twofold.io.images import read_image


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
