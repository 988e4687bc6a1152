"""Filled pictures: known pixels stay, the rest follows from them, and no hole is left."""

import numpy as np
import pytest
from scipy.interpolate import griddata

from twofold.core.checks import InputError
from twofold.signals import inpaint_image
from twofold.signals.images.inpaint import fit_surface

QUICK = {"n_atoms": 64, "max_iter": 2, "random_state": 0}


def stripes(h=48, w=40):
    """Waves that bend: periodic nearly everywhere."""
    rows, columns = np.mgrid[:h, :w]
    return 100 + 60 * np.sin(rows / 2.0 + columns / 5) + 40 * np.cos((columns - rows / 3) / 1.7)


def hide(shape, share, seed=0):
    return np.random.default_rng(seed).random(shape) < share


def error(out, image, missing):
    return float(np.sqrt(np.mean((out.astype(float) - image)[missing] ** 2)))


def test_waves_are_recovered():
    image, missing = stripes(), hide((48, 40), 0.5)
    out = inpaint_image(image, missing, **QUICK)
    known = np.argwhere(~missing)
    linear = griddata(known, image[~missing], np.argwhere(missing), "linear")
    nearest = griddata(known, image[~missing], np.argwhere(missing), "nearest")
    between = image.copy()
    between[missing] = np.where(np.isnan(linear), nearest, linear)
    assert error(out, image, missing) < 0.1 * np.std(image[missing])
    assert error(out, image, missing) < 0.5 * error(between, image, missing)


def test_learning_beats_cosines_where_cosines_do_not_fit():
    """Every patch is made of pieces of one pattern that is nothing like a wave."""
    rng = np.random.default_rng(0)
    tile = rng.normal(size=(6, 6))
    image = np.tile(tile, (8, 8))
    missing = hide(image.shape, 0.4)
    plain, learned = (inpaint_image(image, missing, n_atoms=64, max_iter=n, random_state=0) for n in (0, 5))
    assert error(learned, image, missing) < 0.5 * error(plain, image, missing)


def test_nothing_missing_changes_nothing():
    for image in (stripes(), stripes().astype(np.uint8)):
        out = inpaint_image(image, np.zeros(image.shape, bool))
        np.testing.assert_array_equal(out, image)
        assert out is not image


@pytest.mark.parametrize("shape", [(1, 1), (1, 12), (3, 4), (8, 8), (9, 30)])
def test_every_hole_is_filled(shape):
    """Also where a patch is missing wholly, and with one pixel known."""
    image = np.linspace(0, 1, shape[0] * shape[1]).reshape(shape)
    missing = np.ones(shape, bool)
    missing.flat[0] = False
    out = inpaint_image(image, missing, **QUICK)
    np.testing.assert_array_equal(out, np.zeros(shape))
    missing[...] = False
    missing[:, shape[1] // 3 :] = missing.size > 1
    missing.flat[0] = False
    out = inpaint_image(np.where(missing, np.nan, image), missing, **QUICK)
    assert np.isfinite(out).all() and out.min() >= -0.5 and out.max() <= 1.5


def test_a_large_hole_in_a_slope_is_closed():
    image = np.add.outer(np.arange(50.0), 2 * np.arange(60.0))
    missing = np.zeros(image.shape, bool)
    missing[10:38, 15:45] = True
    out = inpaint_image(image, missing, method="dictionary", **QUICK)
    assert error(out, image, missing) < 0.1 * np.std(image[missing])
    assert error(inpaint_image(image, missing, **QUICK), image, missing) < 0.4 * np.std(image[missing])


def test_a_surface_keeps_what_is_flat_or_tilted():
    """A slope only where it lies between known pixels: at the border a surface levels out."""
    missing, inside = hide((40, 33), 0.7), (slice(4, -4), slice(4, -4))
    flat, tilted = np.full((40, 33), 3.0), np.add.outer(np.arange(40.0), 0.5 * np.arange(33.0))
    np.testing.assert_allclose(fit_surface(np.where(missing, 0, flat), missing), flat, rtol=1e-12)
    np.testing.assert_allclose(fit_surface(np.where(missing, 0, tilted), missing)[inside], tilted[inside], atol=0.2)


@pytest.mark.parametrize(
    ("image", "mask", "message"),
    [
        (stripes(12, 12), np.ones((12, 12), bool), "nothing is left"),
        (stripes(12, 12), np.zeros((12, 11), bool), "shape"),
        (stripes(12, 12), np.zeros((12, 12)), "mask holds"),
        (np.where(np.eye(12), np.nan, 1.0), np.zeros((12, 12), bool), r"image\[0, 0\] is nan"),
    ],
)
def test_what_cannot_be_is_refused(image, mask, message):
    with pytest.raises(InputError, match=message):
        inpaint_image(image, mask)


def test_a_pattern_goes_on_through_a_wide_hole():
    rows, columns = np.mgrid[:96, :96]
    tiles = 100 + 60.0 * ((rows // 6 + columns // 6) % 2) + 20 * (rows % 6 == 0)
    hole = np.zeros(tiles.shape, bool)
    hole[30:60, 34:62] = True
    filled = inpaint_image(np.where(hole, 0, tiles), hole, random_state=0)
    smooth = inpaint_image(np.where(hole, 0, tiles), hole, method="dictionary", max_iter=0)
    np.testing.assert_array_equal(filled[~hole], tiles[~hole])
    assert np.std((filled - tiles)[hole]) < 0.2 * np.std((smooth - tiles)[hole])
    colors = np.dstack([tiles, tiles / 2, 200 - tiles / 2])
    again = inpaint_image(np.where(hole[..., None], 0, colors), hole, random_state=0)
    assert np.std((again - colors)[hole]) < 0.2 * np.std((smooth - tiles)[hole])
    with pytest.raises(InputError, match="dictionary"):
        inpaint_image(tiles, hole, method="magic")


@pytest.mark.parametrize("side", [7, 12, 25])
def test_holes_too_large_for_their_image_are_filled_all_the_same(side):
    image = np.add.outer(np.arange(side), 2.0 * np.arange(side))
    hole = np.ones(image.shape, bool)
    hole[0] = hole[:, 0] = False
    filled = inpaint_image(image, hole, random_state=0)
    assert np.isfinite(filled).all() and filled.max() <= image[~hole].max() + 1e-9
