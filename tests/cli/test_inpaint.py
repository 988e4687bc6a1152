"""twofold inpaint: holes filled however they are marked, and every known pixel as it was."""

from functools import partial

import numpy as np
import pytest

from tests.cli.worlds import make_stripes, write_holes
from twofold.io.images import read_image, write_image
from twofold.signals.images import inpaint


@pytest.fixture
def marks(folder):
    return write_holes()


@pytest.fixture
def picture():
    return make_stripes()[0]


@pytest.fixture
def holes():
    return make_stripes()[1]


@pytest.fixture
def quick(monkeypatch):
    """The same method with few atoms, for tests that are about something else."""
    few = partial(inpaint.inpaint_image, n_atoms=32, max_iter=1)
    monkeypatch.setattr(inpaint, "inpaint_image", few)


WAYS = {
    "mask": ["known.png", "--mask", "mask.png"],
    "color": ["color.png", "--color", "#ff00ff"],
    "clear": ["clear.png"],
}


def test_however_holes_are_marked_the_same_is_filled(ask, quick, marks, picture, holes):
    for way, args in WAYS.items():
        found = ask("inpaint", *args, "-o", f"{way}_whole.png")
        assert found["missing"] == holes.sum() and found["share"] == pytest.approx(holes.mean())
        got = read_image(f"{way}_whole.png")
        assert got.alpha is None
        np.testing.assert_array_equal(got.pixels[~holes], picture[~holes])
        np.testing.assert_array_equal(got.pixels, read_image("mask_whole.png").pixels)
    off = np.sqrt(np.mean((got.pixels[holes].astype(float) - picture[holes]) ** 2))
    assert off < 25  # the mean would be 50 off


def test_the_held_out_figure_is_honest(ask, quick, marks, picture, holes):
    found = ask("inpaint", *WAYS["mask"])
    held = found["figures"]
    assert held["psnr"] > found["baseline"]["psnr"]
    painted = np.where(holes[..., None], np.uint8(7), picture)  # what is under the mask plays no part
    write_image("known.png", painted)
    assert ask("inpaint", *WAYS["mask"])["figures"] == held
    assert ask("inpaint", *WAYS["mask"], "--seed", 5)["figures"] != held


def test_sixteen_bits_grey_and_tolerance(twofold, ask, quick, folder, picture, holes):
    deep = picture[..., 0].astype(np.uint16) * 200 + 1
    write_image("deep.png", np.where(holes, 65535, deep).astype(np.uint16))
    ask("inpaint", "deep.png", "--color", "white", "-o", "whole.png")
    got = read_image("whole.png").pixels
    assert got.dtype == np.uint16
    np.testing.assert_array_equal(got[~holes], deep[~holes])
    assert (got[holes] < 60_000).all()
    write_image("off.png", np.where(holes[..., None], np.uint8((250, 4, 252)), picture))
    refused = twofold("inpaint", "off.png", "--color", "#ff00ff")
    assert refused.exit_code == 2 and "--tolerance 5" in refused.stderr
    assert ask("inpaint", "off.png", "--color", "ff00ff", "--tolerance", 5)["missing"] == holes.sum()


def test_half_transparent_pixels_stay_so(ask, quick, folder, picture):
    alpha = np.full((48, 40), 90, np.uint8)
    alpha[10:14, 10:14] = 0
    write_image("glass.png", picture, alpha)
    ask("inpaint", "glass.png", "-o", "whole.png")
    got = read_image("whole.png").alpha
    assert (got[alpha == 0] == 255).all() and (got[alpha == 90] == 90).all()
