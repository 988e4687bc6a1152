"""analyses.compress: the answer is the same for files and arrays."""

import numpy as np
import pytest

from twofold import analyses
from twofold.core.checks import InputError
from twofold.io.images import write_image


@pytest.fixture
def image():
    rows, columns = np.mgrid[:48, :40] / 48
    light = 0.2 + 0.4 * rows + 0.3 * (rows + columns > 0.9)
    return np.rint(255 * np.dstack([light, 0.7 * light, 1 - light])).astype(np.uint8)


def test_file_array_and_code_give_the_same(tmp_path, monkeypatch, image):
    monkeypatch.chdir(tmp_path)
    write_image("photo.png", image)
    answer, other = analyses.compress("photo.png", size=900), analyses.compress(image, size=900)
    assert answer.figures == other.figures and answer.table.equals(other.table)
    for one, given in ((answer, {}), (other, {"data": image})):
        exec(one.code, given)
        assert given["answer"].figures == one.figures
    answer.save("small.tfi")
    back = analyses.compress("small.tfi")
    np.testing.assert_array_equal(back.image, answer.image)
    exec(back.code, given := {})
    assert given["answer"].figures == back.figures
    with pytest.raises(InputError, match="compressed already"):
        analyses.compress("small.tfi", psnr=30)


@pytest.mark.parametrize("shape", [(1, 1), (3, 200), (48, 40), (48, 40, 2), (48, 40, 4)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_every_image_has_an_answer(shape, dtype):
    """Formats that cannot hold an image are left out of the comparison."""
    pixels = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    answer = analyses.compress(pixels, psnr=25, method="dct")
    assert answer.image.shape == shape and answer.figures["psnr"] >= 25
    assert answer.table["bytes"].max() == answer.figures["bytes"]
