"""Many pictures at once, however they lie on the disk."""

import gzip
import struct

import numpy as np
import pytest

from twofold import InputError
from twofold.io.image_sets import read_pictures
from twofold.io.images import write_image

RNG = np.random.default_rng(0)


def pictures(n=6, shape=(5, 4)):
    return RNG.integers(0, 256, size=(n, *shape), dtype=np.uint8)


def write_idx(path, array, squeeze=False):
    data = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
    path.write_bytes(gzip.compress(data) if squeeze else data)


def test_a_folder_with_subfolders_has_classes(tmp_path):
    given = pictures()
    for i, one in enumerate(given):
        (tmp_path / "abba"[i % 2]).mkdir(exist_ok=True)
        write_image(tmp_path / "abba"[i % 2] / f"{i}.png", one)
    found = read_pictures(tmp_path)
    assert np.array_equal(found.pixels, given[[0, 2, 4, 1, 3, 5]])
    assert found.labels.tolist() == ["a"] * 3 + ["b"] * 3


def test_a_flat_folder_has_none_and_colour_wins(tmp_path):
    write_image(tmp_path / "1.png", pictures(1)[0])
    write_image(tmp_path / "2.png", pictures(1, (5, 4, 3))[0])
    found = read_pictures(tmp_path)
    assert found.labels is None
    assert found.pixels.shape == (2, 5, 4, 3)


def test_sizes_that_differ_are_named_and_scaled_on_request(tmp_path):
    write_image(tmp_path / "1.png", np.full((6, 8), 7, np.uint8))
    write_image(tmp_path / "2.png", np.full((9, 5), 9, np.uint8))
    with pytest.raises(InputError, match=r"2\.png is 5 × 9, 1\.png 8 × 6.*size=28"):
        read_pictures(tmp_path)
    assert np.array_equal(read_pictures(tmp_path, 4).pixels, np.array([7, 9])[:, None, None] * np.ones((1, 4, 4)))


@pytest.mark.parametrize("squeeze", [False, True])
def test_idx_files_bring_their_labels(tmp_path, squeeze):
    end = ".gz" if squeeze else ""
    given, labels = pictures(), np.arange(6, dtype=np.uint8)
    write_idx(tmp_path / f"train-images-idx3-ubyte{end}", given, squeeze)
    write_idx(tmp_path / f"train-labels-idx1-ubyte{end}", labels, squeeze)
    for path in (tmp_path, tmp_path / f"train-images-idx3-ubyte{end}"):
        found = read_pictures(path)
        assert np.array_equal(found.pixels, given)
        assert np.array_equal(found.labels, labels)


def test_arrays(tmp_path):
    given, labels = pictures(), np.array(list("abcabc"))
    np.save(tmp_path / "a.npy", given)
    np.savez(tmp_path / "b.npz", X=given, y=labels)
    assert np.array_equal(read_pictures(tmp_path / "a.npy").pixels, given)
    assert read_pictures(tmp_path / "b.npz").labels.tolist() == list("abcabc")


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.idx", b"", "cannot be read as pictures"),
        ("b.idx", b"hello, I am text", "cannot be read as pictures"),
        ("c.idx", bytes([0, 0, 8, 3, 0, 0, 0, 9]), "cannot be read as pictures"),
        ("d.npy", b"no array", "no readable array"),
    ],
)
def test_what_is_no_set_of_pictures_is_refused(tmp_path, name, data, says):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=says):
        read_pictures(tmp_path / name)


def test_what_is_not_there_or_empty_is_refused(tmp_path):
    with pytest.raises(InputError, match="no pictures"):
        read_pictures(tmp_path)
    with pytest.raises(InputError):
        read_pictures(tmp_path / "missing")
    np.savez(tmp_path / "odd.npz", other=np.zeros(3))
    with pytest.raises(InputError, match="Name the pictures images"):
        read_pictures(tmp_path / "odd.npz")
    np.savez(tmp_path / "short.npz", X=pictures(), y=np.zeros(2))
    with pytest.raises(InputError, match="6 pictures and 2 labels"):
        read_pictures(tmp_path / "short.npz")
