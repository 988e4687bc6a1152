"""analyses.inpaint: the answer is the same for files and arrays."""

from functools import partial

import numpy as np
import pytest

from twofold import analyses
from twofold.analyses.inpaint.heldout import choose_hidden, interpolate_bilinear
from twofold.io.images import write_image
from twofold.signals.images import inpaint


@pytest.fixture
def image():
    rows, columns = np.mgrid[:36, :32]
    stripes = 128 + 80 * np.sin((rows + 2 * columns) / 3.0)
    return np.rint(np.dstack([stripes, 255 - stripes, stripes / 2])).astype(np.uint8)


@pytest.fixture
def holes():
    return np.random.default_rng(0).random((36, 32)) < 0.3


@pytest.fixture
def quick(monkeypatch):
    """The same method with few atoms."""
    monkeypatch.setattr(inpaint, "inpaint_image", partial(inpaint.inpaint_image, n_atoms=32, max_iter=1))


def test_file_array_and_code_give_the_same(quick, tmp_path, monkeypatch, image, holes):
    monkeypatch.chdir(tmp_path)
    write_image("known.png", image)
    write_image("mask.png", (255 * holes).astype(np.uint8))
    answer, other = analyses.inpaint("known.png", mask="mask.png"), analyses.inpaint(image, mask=holes)
    assert answer.figures == other.figures and answer.baseline == other.baseline
    np.testing.assert_array_equal(answer.image, other.image)
    np.testing.assert_array_equal(answer.image[~holes], image[~holes])
    for one, given in ((answer, {}), (other, {"data": image, "mask": holes})):
        exec(one.code, given)
        assert given["answer"].figures == one.figures
    assert answer.table["psnr"].to_list() == [answer.figures["psnr"], answer.baseline["psnr"]]


@pytest.mark.parametrize("shape", [(30, 50), (400, 300)])
def test_what_is_hidden_is_known_and_shaped_like_the_holes(shape):
    holes = np.zeros(shape, bool)
    holes[5:11, 7:17] = True
    for seed in range(20):
        part, missing, hidden = choose_hidden(holes, seed)
        np.testing.assert_array_equal(missing, holes[part])
        assert not (missing & hidden).any() and 0 < hidden.sum() <= 0.05 * hidden.size
        rows, columns = np.nonzero(hidden)
        assert len(set(rows)) <= 12 and len(set(columns)) <= 20  # no wider than the hole, but for turning over an edge
    assert not choose_hidden(np.ones(shape, bool), 0)[2].any()


def test_bilinear_is_exact_on_planes():
    rows, columns = np.mgrid[:20, :20]
    plane = np.dstack([rows + 2.0 * columns, 3.0 * rows])
    missing = np.random.default_rng(0).random((20, 20)) < 0.4
    missing[[0, -1]] = missing[:, [0, -1]] = False  # every line begins and ends with a known pixel
    np.testing.assert_allclose(interpolate_bilinear(plane, missing, missing), plane[missing], atol=1e-9)
    line = np.ones((3, 5), bool)
    line[0, 2] = False  # alone: all that is known
    assert interpolate_bilinear(np.arange(15.0).reshape(3, 5), line, line).tolist() == [2.0] * 14
