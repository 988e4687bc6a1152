"""Analyses of images and signals: the answer is the same for files and arrays, and its figures are honest."""

from functools import partial

import numpy as np
import polars as pl
import pytest
from scipy.fft import idctn

from twofold import analyses
from twofold.analyses.denoise import measure_removed
from twofold.analyses.inpaint.bilinear import interpolate_bilinear
from twofold.analyses.inpaint.check import hide_pixels, measure_on_hidden
from twofold.core.checks import InputError
from twofold.io.images import write_image
from twofold.signals.images import inpaint

ROWS, COLUMNS = np.mgrid[:40, :32]
HOLES = np.random.default_rng(0).random((40, 32)) < 0.3


def make_photo():
    """Two plains with noise, in three colors."""
    light = 60.0 + 100 * (ROWS > COLUMNS) + ROWS
    noise = np.random.default_rng(0).normal(scale=20, size=(40, 32, 3))
    return np.clip(np.rint(np.dstack([light, light, 200 - light / 2]) + noise), 0, 255).astype(np.uint8)


def make_waves():
    coefficients = np.zeros((2, 96))
    coefficients[0, [3, 17, 40]] = [5, -4, 3]
    coefficients[1, [8, 30, 71]] = [4, 6, -5]
    return idctn(coefficients, axes=1, norm="ortho")


PHOTO, WAVES = make_photo(), make_waves()
STRIPES = np.rint(128 + 80 * np.sin((ROWS + 2 * COLUMNS) / 3.0)).astype(np.uint8)


@pytest.mark.parametrize(
    ("verb", "data", "options"),
    [
        ("compress", PHOTO, {"size": 900}),
        ("denoise", PHOTO, {"add_noise": 5.0, "seed": 3}),
        ("denoise", WAVES[0], {"add_noise": 0.1}),
        ("inpaint", STRIPES, {"mask": HOLES}),
        ("sense", STRIPES, {"fraction": 0.5}),
        ("sense", WAVES, {"fraction": 0.5}),
    ],
)
def test_file_array_and_code_give_the_same(tmp_path, monkeypatch, verb, data, options):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(inpaint, "inpaint_image", partial(inpaint.inpaint_image, n_atoms=32, max_iter=1))
    np.save("waves.npy", WAVES if data is WAVES else WAVES[0])
    write_image("photo.png", data if data.dtype == np.uint8 else PHOTO)
    write_image("mask.png", (255 * HOLES).astype(np.uint8))
    path, by_path = "photo.png" if data.dtype == np.uint8 else "waves.npy", dict(options)
    if "mask" in options:
        by_path["mask"] = "mask.png"
    answer, other = getattr(analyses, verb)(path, **by_path), getattr(analyses, verb)(data, **options)
    assert answer.figures == other.figures and answer.baseline == other.baseline
    assert answer.baseline.keys() - {"method"} <= answer.figures.keys()
    result = "image" if data.dtype == np.uint8 else "signals"
    np.testing.assert_array_equal(getattr(answer, result), getattr(other, result))
    for one, variables in ((answer, {}), (other, {"data": data, "image": data, "mask": HOLES})):
        exec(one.code, variables)
        assert variables["answer"].figures == one.figures


# --- compress -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (3, 200), (48, 40), (48, 40, 2), (48, 40, 4)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_formats_that_cannot_hold_an_image_are_left_out(shape, dtype):
    pixels = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    answer = analyses.compress(pixels, psnr=25, method="dct")
    assert answer.image.shape == shape and answer.figures["psnr"] >= 25
    assert answer.table["bytes"].max() == answer.figures["bytes"]


# --- denoise ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.zeros((4, 4)), np.zeros((4, 4, 5), np.uint8)])
def test_an_array_that_is_no_image_is_refused(bad):
    with pytest.raises(InputError, match="uint8 or uint16"):
        analyses.denoise(bad)


def test_removed_noise_is_not_correlated_and_removed_edges_are():
    rng = np.random.default_rng(0)
    noise = rng.normal(scale=7, size=(300, 300))
    deviation, correlation = measure_removed(noise, np.zeros_like(noise))
    assert deviation == pytest.approx(7, rel=0.05) and abs(correlation) < 0.02
    stripes = np.repeat(rng.normal(size=(300, 30)), 10, axis=1)
    assert measure_removed(stripes, np.zeros_like(stripes))[1] > 0.3
    assert measure_removed(noise, noise) == (0.0, 0.0)


# --- inpaint ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(60, 70), (400, 300)])
def test_hidden_pixels_are_known_and_shaped_like_the_holes(shape):
    holes = np.zeros(shape, bool)
    holes[5:11, 7:17] = True
    for seed in range(10):
        sites = hide_pixels(holes, seed)
        assert not sites[holes].any() and (sites > 0).any() and (sites > 0).sum() <= 0.25 * holes.size
        for site in np.unique(sites[sites > 0]):
            rows, columns = np.nonzero(sites == site)
            assert np.ptp(rows) < 6 and np.ptp(columns) < 10 and len(rows) >= 0.9 * 60
    assert not hide_pixels(np.ones(shape, bool), 0).any()


def make_scene(seed):
    """Edges of shapes on a slope, with texture, that nothing was tuned on."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:128, :128]
    scene = 80 + 0.5 * rows + 10 * np.sin(columns / rng.uniform(1, 4))
    for _ in range(12):
        row, column, size = rng.uniform(0, 128, 2).tolist() + [rng.uniform(6, 30)]
        scene[(rows - row) ** 2 + (columns - column) ** 2 < size**2] += rng.uniform(-60, 60)
    return np.clip(scene + rng.normal(0, 3, scene.shape), 0, 255).round().astype(np.uint8)


def make_holes(kind, seed):
    rng, holes = np.random.default_rng(seed), np.zeros((128, 128), bool)
    if kind == "half":
        return rng.random(holes.shape) < 0.5
    height, width = (20, 20) if kind == "boxes" else (11, 90)
    for row, column in zip(rng.permutation([5, 45, 85]), rng.integers(0, 128 - width, 3), strict=True):
        holes[row : row + height, column : column + width] = True
    return holes


@pytest.mark.parametrize("kind", ["half", "boxes", "bars"])
def test_the_true_quality_is_within_the_stated_spread(kind):
    inside, fills = 0, {"lines": interpolate_bilinear}
    for seed in range(20):
        scene, holes = make_scene(seed), make_holes(kind, seed)
        _, found = measure_on_hidden(scene, holes, seed, 255.0, fills)
        off = interpolate_bilinear(scene, holes)[holes] - scene[holes]
        truth = 10 * np.log10(255**2 / np.mean(np.square(off)))
        assert found["lines"].spread < 25
        inside += abs(truth - found["lines"].psnr) <= found["lines"].spread
    assert inside >= 17  # of 20 at 99 %


def test_bilinear_is_exact_on_planes():
    rows, columns = np.mgrid[:20, :20]
    plane = np.dstack([rows + 2.0 * columns, 3.0 * rows])
    missing = np.random.default_rng(0).random((20, 20)) < 0.4
    missing[[0, -1]] = missing[:, [0, -1]] = False  # every line begins and ends with a known pixel
    np.testing.assert_allclose(interpolate_bilinear(plane, missing), plane, atol=1e-9)
    line = np.ones((3, 5), bool)
    line[0, 2] = False  # alone: all that is known
    assert interpolate_bilinear(np.arange(15.0).reshape(3, 5), line).tolist() == [[2.0] * 5] * 3


# --- sense --------------------------------------------------------------------------------------------------


def test_columns_of_a_frame_are_signals():
    frame = pl.DataFrame({"t": np.arange(96) / 50, "a": WAVES[0], "b": WAVES[1]})
    answer = analyses.sense(frame, fraction=0.5)
    assert answer.table.columns == ["a", "b"]
    np.testing.assert_allclose(answer.table.to_numpy().T, WAVES, atol=1e-3)
    assert not hasattr(answer, "image")


@pytest.mark.parametrize("kind", ["hadamard", "gaussian"])
def test_least_squares_explains_the_measurements_with_the_least_length(kind):
    answer = analyses.sense(WAVES[0], fraction=0.4, kind=kind)
    A = answer.model.measure(np.eye(96)).T
    shortest = np.linalg.pinv(A) @ (A @ WAVES[0])
    error = np.linalg.norm(shortest - WAVES[0]) / np.linalg.norm(WAVES[0])
    assert answer.baseline["relative_error"] == pytest.approx(error)
    assert answer.figures["relative_error"] < 0.1 * error


# --- folders of images --------------------------------------------------------------------------------------


def test_results_keep_the_names_of_files(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("day/b.png", "day/a.png", "night/c.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_image(tmp_path / name, rng.integers(0, 255, (6, 6), np.uint8))
    analyses.reduce(rng.normal(size=(30, 36)), 2).save(tmp_path / "pca.twofold")
    answer = analyses.apply(tmp_path / "pca.twofold", tmp_path)
    assert answer.table["image"].to_list() == ["day/a.png", "day/b.png", "night/c.png"]
