"""twofold inpaint: holes filled however they are marked, and every known pixel as it was."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from twofold.io.images import read_image, write_image
from twofold.signals.images import inpaint

MAGENTA = (255, 0, 255)


@pytest.fixture
def picture():
    """Stripes, which patches know how to go on with and straight lines do not."""
    rows, columns = np.mgrid[:48, :40]
    stripes = 128 + 80 * np.sin((rows + 2 * columns) / 3.0)
    return np.rint(np.dstack([stripes, 255 - stripes, stripes / 2])).astype(np.uint8)


@pytest.fixture
def holes():
    out = np.random.default_rng(0).random((48, 40)) < 0.3
    out[20:24, 10:15] = True
    return out


@pytest.fixture
def marked(folder, picture, holes):
    """The same holes, marked in every way: mask.png; color.png; clear.png; and the picture beneath, known.png."""
    write_image("known.png", picture)
    write_image("mask.png", (255 * holes).astype(np.uint8))
    write_image("color.png", np.where(holes[..., None], np.uint8(MAGENTA), picture))
    write_image("clear.png", np.where(holes[..., None], np.uint8(0), picture), np.where(holes, 0, 255).astype(np.uint8))


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


def run_json(twofold, *args):
    result = twofold("inpaint", *args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_however_holes_are_marked_the_same_is_filled(twofold, quick, marked, picture, holes):
    for way, args in WAYS.items():
        found = run_json(twofold, *args, "-o", f"{way}_whole.png")
        assert found["missing"] == holes.sum() and found["share"] == pytest.approx(holes.mean())
        got = read_image(f"{way}_whole.png")
        assert got.alpha is None
        np.testing.assert_array_equal(got.pixels[~holes], picture[~holes])
        np.testing.assert_array_equal(got.pixels, read_image("mask_whole.png").pixels)
    off = np.sqrt(np.mean((got.pixels[holes].astype(float) - picture[holes]) ** 2))
    assert off < 25  # the mean would be 50 off


def test_a_plain_run_says_what_it_took_for_holes(twofold, marked, folder):
    before = {p.name for p in folder.iterdir()}
    result = twofold("inpaint", "clear.png")
    assert result.exit_code == 0, result.stderr
    for text in ("missing pixels", "held out", "bilinear", "dB"):
        assert text in result.stdout
    assert "transparent pixels are taken for missing" in result.stderr and "nothing is written" in result.stderr
    assert {p.name for p in folder.iterdir()} == before


def test_the_held_out_figure_is_honest(twofold, quick, marked, picture, holes):
    found = run_json(twofold, *WAYS["mask"])
    held = found["figures"]
    assert held["psnr"] > found["baseline"]["psnr"]
    painted = np.where(holes[..., None], np.uint8(7), picture)  # what is under the mask plays no part
    write_image("known.png", painted)
    assert run_json(twofold, *WAYS["mask"])["figures"] == held
    assert run_json(twofold, *WAYS["mask"], "--seed", 5)["figures"] != held


def test_sixteen_bits_grey_and_tolerance(twofold, quick, folder, picture, holes):
    deep = picture[..., 0].astype(np.uint16) * 200 + 1
    write_image("deep.png", np.where(holes, 65535, deep).astype(np.uint16))
    run_json(twofold, "deep.png", "--color", "white", "-o", "whole.png")
    got = read_image("whole.png").pixels
    assert got.dtype == np.uint16
    np.testing.assert_array_equal(got[~holes], deep[~holes])
    assert (got[holes] < 60_000).all()
    write_image("off.png", np.where(holes[..., None], np.uint8((250, 4, 252)), picture))
    refused = twofold("inpaint", "off.png", "--color", "#ff00ff")
    assert refused.exit_code == 2 and "--tolerance 5" in refused.stderr
    assert run_json(twofold, "off.png", "--color", "ff00ff", "--tolerance", 5)["missing"] == holes.sum()


def test_half_transparent_pixels_stay_so(twofold, quick, folder, picture):
    alpha = np.full((48, 40), 90, np.uint8)
    alpha[10:14, 10:14] = 0
    write_image("glass.png", picture, alpha)
    run_json(twofold, "glass.png", "-o", "whole.png")
    got = read_image("whole.png").alpha
    assert (got[alpha == 0] == 255).all() and (got[alpha == 90] == 90).all()


def test_comparisons(twofold, quick, marked):
    assert twofold("inpaint", *WAYS["clear"], "--compare", "a.png").exit_code == 0
    assert twofold("inpaint", *WAYS["mask"], "--compare", "a.html").exit_code == 0
    assert read_image("a.png").pixels.shape[1] > 1000
    assert "bilinear interpolation" in Path("a.html").read_text()


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["known.png", "-o", "out.png"], "--mask mask.png"),
        (["known.png", "--mask", "small.png", "-o", "out.png"], "20 × 10"),
        (["known.png", "--mask", "black.png", "-o", "out.png"], "white"),
        (["known.png", "--mask", "white.png", "-o", "out.png"], "every pixel"),
        (["known.png", "--mask", "gone.png", "-o", "out.png"], "gone.png"),
        (["known.png", "--mask", "mask.png", "--color", "red"], "one of them"),
        (["known.png", "--mask", "mask.png", "-o", "mask.png", "--force"], "input"),
        (["known.png", "--mask", "mask.png", "--compare", "mask.png", "--force"], "input"),
        (["known.png", "--color", "#ff00fg", "-o", "out.png"], "'#ff00ff'"),
        (["mask.png", "--color", "#ff00ff", "-o", "out.png"], "grey"),
        (["clear.png", "-o", "old.png"], "--force"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(twofold, marked, folder, args, word):
    for name, value, shape in [("small", 255, (10, 20)), ("black", 0, (48, 40)), ("white", 255, (48, 40))]:
        Image.fromarray(np.full(shape, value, np.uint8)).save(f"{name}.png")
    Path("old.png").write_text("old")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    result = twofold("inpaint", *args)
    assert result.exit_code == 2 and word in result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_a_failure_in_writing_leaves_the_old_file(twofold, quick, marked, monkeypatch, folder):
    Path("old.png").write_text("old")

    def fail(*args):
        raise OSError(28, "No space left on device", "both.html")

    monkeypatch.setattr("twofold.analyses.common.html.page", fail)
    result = twofold("inpaint", *WAYS["mask"], "-o", "old.png", "--force", "--compare", "both.html")
    assert result.exit_code == 2 and Path("old.png").read_text() == "old" and not Path("both.html").exists()
