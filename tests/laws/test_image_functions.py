"""Laws of all functions that change images and signals: what stays, units, threads, progress, refusals."""

import numpy as np
import pytest
from sklearn.datasets import load_sample_image

from twofold import InputError, config
from twofold.signals import compress_image, denoise_image, denoise_signal, inpaint_image
from twofold.signals.images import patches

PHOTO = load_sample_image("flower.jpg")[120:184, 260:340]  # (64, 80, 3)
QUICK = {"n_atoms": 36, "max_iter": 1, "random_state": 0}
HIDDEN = np.random.default_rng(0).random((64, 80)) < 0.3
HIDDEN[0, 0] = False


def inpaint(image, scale=1.0, **options):
    return inpaint_image(image, HIDDEN[: len(image), : image.shape[1]], **QUICK, **options)


def denoise_learned(image, scale=1.0, **options):
    return denoise_image(image, 15 * scale, **QUICK, **options)


def denoise_groups(image, scale=1.0, **options):
    return denoise_image(image, 15 * scale, method="pca", **options)


def denoise_hard(image, scale=1.0, **options):
    return denoise_image(image, 15 * scale, method="hard", **options)


def denoise_rows(image, scale=1.0, **options):
    return denoise_signal(image, 15 * scale, **options)


def compress(image, scale=1.0):
    return compress_image(image, psnr=34, method="pca").decode()


CHANGES = [inpaint, denoise_learned, denoise_groups, denoise_hard]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("channels", [None, 1, 2, 3, 4])
@pytest.mark.parametrize("change", CHANGES)
def test_shape_dtype_alpha_and_the_input_stay(change, channels, dtype):
    scale = {np.uint16: 257, np.float32: 1 / 255}.get(dtype, 1)
    planes = np.concatenate([PHOTO, 255 - PHOTO[..., :1]], axis=2)[:24, :30].astype(float)
    image = ((planes[..., 0] if channels is None else planes[..., :channels]) * scale).astype(dtype)
    before = image.copy()
    out = change(image, scale)
    assert out.shape == image.shape and out.dtype == dtype
    np.testing.assert_array_equal(image, before)
    if channels in (2, 4):
        np.testing.assert_array_equal(out[..., -1], image[..., -1])
    off = np.std((out.astype(float) - image)[HIDDEN[:24, :30]]) / scale
    assert off < (15 if change is not inpaint else 0.5 * np.std(image / scale))
    if change is inpaint:
        np.testing.assert_array_equal(out[~HIDDEN[:24, :30]], image[~HIDDEN[:24, :30]])


@pytest.mark.parametrize("change", [*CHANGES, denoise_rows, compress])
def test_units_do_not_matter(change):
    image = PHOTO[:32, :32, 1] + np.random.default_rng(0).normal(scale=15, size=(32, 32))
    expected = change(image)
    for scale in (2.0**-40, 2.0**70):
        np.testing.assert_allclose(change(image * scale, scale) / scale, expected, rtol=1e-6)


@pytest.mark.parametrize("change", [inpaint, denoise_learned, denoise_groups, compress])
def test_the_bits_depend_on_nothing_but_the_seed(change, monkeypatch):
    monkeypatch.setattr(patches, "PLACES_PER_STRIP", 1000)
    results = []
    for threads, memory in ((1, "1GB"), (2, "1GB"), (2, "2MB")):
        with config(threads=threads, memory=memory):
            results.append(change(PHOTO).tobytes())
    assert len(set(results)) == 1


@pytest.mark.parametrize("shape", [(40, 40), (20, 20, 3)])
@pytest.mark.parametrize("change", [*CHANGES, denoise_rows])
def test_progress_rises_to_one(change, shape):
    shares = []
    change(np.random.default_rng(0).normal(100, 40, shape), progress=shares.append)
    assert shares == sorted(shares) and shares[0] <= 0.5 and shares[-1] == 1.0 and len(shares) >= 4


@pytest.mark.parametrize("change", [lambda image: compress_image(image), denoise_image, lambda image: inpaint(image)])
@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.where(np.eye(9), np.nan, 1.0), r"image\[0, 0\] is nan.*inpaint_image"),
        (np.full((9, 9, 3), np.inf), r"image\[0, 0, 0\] is inf"),
        (np.ones((2, 9, 9, 3)), "shape"),
        (np.ones((9, 9, 5)), "1 to 4 channels"),
        (np.ones((0, 9)), "shape"),
        (np.ones((9, 9), dtype=bool), "holds bool"),
    ],
)
def test_what_is_no_image_is_refused(change, image, message):
    with pytest.raises(InputError, match=message):
        change(image)


@pytest.mark.parametrize("wrong", [{"patch": 0}, {"n_atoms": 2.5}, {"n_atoms": 0}, {"max_iter": -1}])
def test_patches_that_cannot_be_are_refused(wrong):
    for call in (denoise_image, lambda image, **options: inpaint_image(image, HIDDEN[:9, :9], **options)):
        with pytest.raises(InputError, match=f"{next(iter(wrong))}={next(iter(wrong.values()))}"):
            call(np.ones((9, 9)), **wrong)
