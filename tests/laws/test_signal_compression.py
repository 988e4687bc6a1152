"""Signals in few bytes: what was promised comes back, and the windows leave no seam."""

import numpy as np
import pytest

from twofold import InputError
from twofold.signals import CompressedSignal, compress_signal, open_signal
from twofold.signals.images.tfi_file import CHECK, HEAD, Head, Lapped, seal


def sound(d=5000):
    t = np.arange(d) / 8000
    return 9000 * np.sin(2 * np.pi * 440 * t) * np.exp(-3 * t) + 500 * np.sin(2 * np.pi * 1234 * t)


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


def test_damaged_files_are_refused():
    data = compress_signal(sound(400), psnr=30).data
    for at in range(0, len(data), 7):
        bad = bytearray(data)
        bad[at] ^= 0x41
        with pytest.raises(InputError, match="compressed signal"):
            CompressedSignal(bytes(bad)).decode()
    for end in (0, 3, 12, len(data) - 1):
        with pytest.raises(InputError, match="compressed signal"):
            CompressedSignal(data[:end]).decode()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compress_signal(sound(), psnr=30, size=100), "both"),
        (lambda: compress_signal(sound(), method="mp3"), "lapped"),
        (lambda: compress_signal(np.ones((2, 3, 4))), "shape"),
        (lambda: compress_signal([1.0, np.inf]), r"x\[1\] is inf"),
        (lambda: compress_signal(sound(), size=10), "size=10: the smallest file"),
        (lambda: open_signal("nowhere.tfs"), "nowhere.tfs"),
    ],
)
def test_what_cannot_be_used_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    "names", [b"{}", b'[8000, "float64", ["a"]]', b"[1, 2]", b"nothing", b"[" * 20_000, b'[1, "object", ["a", "b"]]']
)
def test_names_that_do_not_fit_are_refused_though_the_checksum_does(names):
    data = compress_signal(np.random.default_rng(0).normal(size=(2, 200)), psnr=30).data
    head = Head(*HEAD.unpack(data[: HEAD.size]))
    coefficients = data[HEAD.size : -CHECK.size - head.extra]
    with pytest.raises(InputError, match="names"):
        CompressedSignal(seal(head._replace(extra=len(names)), coefficients, names))
