"""Compressed pictures and signals: what was asked is reached, what comes back is what went in, damage is seen."""

import numpy as np
import pytest
from sklearn.datasets import load_sample_image

from twofold import InputError
from twofold.signals import (
    CompressedImage,
    CompressedSignal,
    compress_image,
    compress_signal,
    open_image,
    open_signal,
)
from twofold.signals.tfi_file import (
    CHECK,
    HEAD,
    METHODS,
    Head,
    Lapped,
    Pyramid,
    find_principal_atoms,
    make_cosine_blocks,
    make_learned_blocks,
    seal,
)

PHOTO = load_sample_image("flower.jpg")[120:184, 260:340]  # (64, 80, 3)


def sound(d=5000):
    t = np.arange(d) / 8000
    return 9000 * np.sin(2 * np.pi * 440 * t) * np.exp(-3 * t) + 500 * np.sin(2 * np.pi * 1234 * t)


def decibels(a, b, peak):
    error = np.mean((a.astype(np.float64) - b.astype(np.float64)) ** 2)
    return 10 * np.log10(peak**2 / error) if error else np.inf


def peak_of(image):
    return {"uint8": 255, "uint16": 65535, "int16": 65535}.get(image.dtype.name) or np.ptp(image)


def make_picture(dtype, shape):
    """A piece of the photograph, of this kind."""
    piece = np.concatenate([PHOTO, 255 - PHOTO[..., :1]], axis=2)[: shape[0], : shape[1]]
    piece = piece[..., 0] if len(shape) == 2 else piece[..., [0, 3] if shape[2] == 2 else slice(shape[2])]
    if np.dtype(dtype).kind == "f":
        return (piece / 255).astype(dtype)
    return piece.astype(dtype) * (257 if dtype == "uint16" else 1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("goal", [28, 36.1, 50])
def test_the_quality_is_reached_and_hardly_exceeded(method, goal):
    result = compress_image(PHOTO, psnr=goal, method=method)
    found = decibels(result.decode(), PHOTO, 255)
    assert goal <= found < goal + 0.1
    assert result.psnr == pytest.approx(found, abs=1e-9)
    assert result.method == method
    assert result.bits_per_pixel == 8 * len(result.data) / (64 * 80)


@pytest.mark.parametrize("method", METHODS)
def test_the_size_is_kept_and_used(method):
    for size in (2000, 6000):
        result = compress_image(PHOTO, size=size, method=method)
        assert 0.97 * size < result.size == len(result.data) <= size
    assert decibels(result.decode(), PHOTO, 255) > 30


def test_auto_is_the_best_of_all():
    each = [compress_image(PHOTO, psnr=34, method=method) for method in METHODS]
    assert compress_image(PHOTO, psnr=34).size == min(one.size for one in each)
    each = [compress_image(PHOTO, size=3000, method=method) for method in METHODS]
    assert compress_image(PHOTO, size=3000).psnr == max(one.psnr for one in each)
    assert compress_image(PHOTO).psnr >= 36


KINDS = [
    ("uint8", (1, 1)),
    ("float64", (1, 9)),
    ("uint16", (13, 21)),
    ("int16", (13, 21, 1)),
    ("float32", (9, 17, 2)),
    ("uint8", (10, 10, 3)),
    ("uint16", (17, 8, 4)),
    ("float64", (9, 7, 4)),
]


@pytest.mark.parametrize("dtype, shape", KINDS)
def test_shape_dtype_and_alpha_are_kept(dtype, shape):
    image = make_picture(dtype, shape)
    for method in METHODS:
        out = compress_image(image, psnr=40, method=method).decode()
        assert out.shape == image.shape and out.dtype == image.dtype
        if len(shape) == 3 and shape[2] in (2, 4):
            np.testing.assert_array_equal(out[..., -1], image[..., -1])
            assert decibels(out[..., :-1], image[..., :-1], peak_of(image[..., :-1])) >= 40
        else:
            assert decibels(out, image, peak_of(image)) >= 40


@pytest.mark.parametrize("method", METHODS)
def test_integers_can_be_exact(method):
    for image in (make_picture("uint8", (20, 30)), make_picture("uint16", (20, 30, 3))):
        exact = compress_image(image, psnr=np.inf, method=method)
        np.testing.assert_array_equal(exact.decode(), image)
        assert compress_image(image, size=10**6, method=method).size == exact.size


def test_a_constant_picture_takes_next_to_nothing():
    for image in (np.full((300, 200), 77, np.uint8), np.zeros((40, 40)), np.full((30, 40, 3), 0.25, np.float32)):
        result = compress_image(image)
        assert result.size < 70
        np.testing.assert_allclose(result.decode(), image, atol=0.02 * abs(image).max())


def test_saved_opened_and_decoded(tmp_path):
    result = compress_image(np.dstack([PHOTO, PHOTO[..., 0]]), psnr=33)
    result.save(tmp_path / "photo.tfi")
    assert (tmp_path / "photo.tfi").read_bytes() == result.data
    again = open_image(tmp_path / "photo.tfi")
    np.testing.assert_array_equal(again.decode(), result.decode())
    assert (again.psnr, again.method, again.shape, again.dtype) == (result.psnr, result.method, (64, 80, 4), np.uint8)
    assert [path.name for path in tmp_path.iterdir()] == ["photo.tfi"]


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (CompressedImage, compress_image(make_picture("uint8", (9, 11, 2)), psnr=30).data),
        (CompressedSignal, compress_signal(sound(60), psnr=30).data),
    ],
)
def test_no_damage_goes_unseen(kind, data):
    rng = np.random.default_rng(0)
    for place in range(len(data)):
        broken = bytearray(data)
        broken[place] ^= int(rng.integers(1, 256))
        for wrong in (bytes(broken), data[:place]):
            with pytest.raises(InputError, match="compressed"):
                kind(wrong).decode()
    with pytest.raises(InputError):
        kind(data + b"\0")


@pytest.mark.parametrize("method", METHODS)
def test_a_forged_file_is_refused_or_decoded_but_never_breaks(method):
    """Right checksum, wrong contents: numbers of the head and of the body at random."""
    data = compress_image(make_picture("uint8", (12, 12, 4)), psnr=30, method=method).data
    rng = np.random.default_rng(0)
    for _ in range(60):
        broken = bytearray(data[: -CHECK.size])
        for place in rng.integers(3, len(broken), size=3):
            broken[place] = rng.integers(256)
        try:
            forged = CompressedImage(seal(Head(*HEAD.unpack(broken[: HEAD.size])), bytes(broken[HEAD.size :]), b""))
            assert forged.decode().shape == forged.shape
        except InputError:
            pass


def test_files_that_are_not_there_or_not_ours(tmp_path):
    (tmp_path / "text.tfi").write_text("not a picture, whatever its name says; it is long enough, though, for one")
    for path, words in [("none.tfi", "not a file"), ("", "not a file"), ("text.tfi", "is not an image")]:
        with pytest.raises(InputError, match=words):
            open_image(tmp_path / path)
    newer = bytearray(compress_image(PHOTO[:8, :8]).data)
    newer[3] = 9
    (tmp_path / "newer.tfi").write_bytes(newer)
    with pytest.raises(InputError, match="version 9"):
        open_image(tmp_path / "newer.tfi")


def test_the_smallest_size_is_said():
    with pytest.raises(InputError, match="smallest file of this image has") as refused:
        compress_image(PHOTO, size=20)
    least = int(str(refused.value).split("has ")[1].split()[0])
    assert compress_image(PHOTO, size=least).size == least


def test_a_texture_of_its_own_is_what_pca_is_for():
    """Blocks that are mixtures of three unknown patterns: their directions are learned, cosines are not."""
    rng = np.random.default_rng(0)
    patterns, weights = rng.normal(size=(3, 8, 8)), rng.normal(size=(40, 40, 3))
    image = np.einsum("abk,kij->aibj", weights, patterns).reshape(320, 320)
    sizes = {method: compress_image(image, psnr=40, method=method).size for method in METHODS}
    assert sizes["pca"] < 0.5 * min(sizes["dct"], sizes["wavelet"])


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (16, 16), (33, 50), (1, 40), (57, 16)])
def test_transforms_are_inverted(shape):
    channel = np.random.default_rng(0).normal(size=shape)
    for way in (make_cosine_blocks(), make_learned_blocks(find_principal_atoms([channel])), Pyramid()):
        planes = way.planes(channel)
        assert [plane.shape for plane in planes] == way.shapes(shape)
        np.testing.assert_allclose(way.channel(planes, shape), channel, atol=1e-8)


def test_bases_of_blocks_are_orthonormal_and_wavelets_nearly():
    image = np.random.default_rng(0).normal(size=(64, 96))
    for way in (make_cosine_blocks(), make_learned_blocks(find_principal_atoms([image]))):
        np.testing.assert_allclose(way.atoms @ way.atoms.T, np.eye(64), atol=1e-12)
    energy = sum(float((plane**2).sum()) for plane in Pyramid().planes(image))
    assert energy == pytest.approx(float((image**2).sum()), rel=0.1)
    flat = Pyramid().planes(np.full((64, 96), 3.0))
    assert max(float(np.abs(plane).max(initial=0)) for plane in flat[1:]) < 1e-9


# ---- signals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (1, 512), (2, 1300), (3, 2048)])
def test_lapped_cosines_are_orthonormal_and_come_back(shape):
    x = np.random.default_rng(0).normal(size=shape)
    way = Lapped()
    planes = way.planes(x)
    assert [plane.shape for plane in planes] == way.shapes(shape)
    np.testing.assert_allclose(way.channel(planes, shape), x, atol=1e-12)
    some = np.zeros((1, 4096))
    some[0, 1024:3072] = np.random.default_rng(1).normal(size=2048)  # far from the ends, which are mirrored
    assert np.sum(way.planes(some)[0] ** 2) == pytest.approx(np.sum(some**2))


@pytest.mark.parametrize("method", ["auto", "lapped", "wavelet"])
@pytest.mark.parametrize("psnr", [25, 45])
def test_the_quality_asked_for_is_reached(method, psnr):
    x = np.stack([sound(), 0.5 * sound()[::-1]])
    small = compress_signal(x, psnr=psnr, method=method)
    error = np.sqrt(np.mean((small.decode() - x) ** 2))
    assert 20 * np.log10((x.max() - x.min()) / error) >= psnr - 1e-6
    assert small.shape == x.shape and small.size < x.nbytes / 8
    assert method in ("auto", small.method)


def test_a_size_is_kept_and_more_bytes_are_better():
    x = sound()
    sizes = (200, 800, 3000)
    found = [compress_signal(x, size=size) for size in sizes]
    assert all(one.size <= size for one, size in zip(found, sizes, strict=True))
    assert found[0].psnr < found[1].psnr < found[2].psnr


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.float32, np.float64])
def test_files_keep_type_rate_and_names(dtype, tmp_path):
    x = np.rint(100 + sound() / 100).astype(dtype)
    small = compress_signal(x, psnr=60, rate=8000, names=["søund"])
    small.save(tmp_path / "a.tfs")
    again = open_signal(tmp_path / "a.tfs")
    assert again.rate == 8000 and again.names == ["søund"] and again.decode().dtype == dtype
    np.testing.assert_array_equal(again.decode(), small.decode())


@pytest.mark.parametrize(
    "names", [b"{}", b'[8000, "float64", ["a"]]', b"[1, 2]", b"nothing", b"[" * 20_000, b'[1, "object", ["a", "b"]]']
)
def test_names_that_do_not_fit_are_refused_though_the_checksum_does(names):
    data = compress_signal(np.random.default_rng(0).normal(size=(2, 200)), psnr=30).data
    head = Head(*HEAD.unpack(data[: HEAD.size]))
    coefficients = data[HEAD.size : -CHECK.size - head.extra]
    with pytest.raises(InputError, match="names"):
        CompressedSignal(seal(head._replace(extra=len(names)), coefficients, names))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compress_image(PHOTO, psnr=36, size=9), "both"),
        (lambda: compress_image(PHOTO, psnr=-1), "psnr=-1"),
        (lambda: compress_image(PHOTO, psnr=np.nan), "decibels > 0"),
        (lambda: compress_image(PHOTO, size=0), "size=0"),
        (lambda: compress_image(PHOTO, method="jpeg"), "jpeg"),
        (lambda: compress_image(PHOTO / 255, psnr=400), r"the best for this image is 1\d\d"),
        (lambda: compress_signal(sound(), method="mp3"), "lapped"),
        (lambda: compress_signal(np.ones((2, 3, 4))), "shape"),
        (lambda: compress_signal([1.0, np.inf]), r"x\[1\] is inf"),
        (lambda: compress_signal(sound(), size=10), "size=10: the smallest file"),
        (lambda: open_signal("nowhere.tfs"), "nowhere.tfs"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
