"""analyses.sense: the answer is the same for files and arrays."""

import numpy as np
import polars as pl
import pytest
from scipy.fft import idctn

from twofold import analyses
from twofold.io.images import write_image


@pytest.fixture
def signals():
    coefficients = np.zeros((2, 96))
    coefficients[0, [3, 17, 40]] = [5, -4, 3]
    coefficients[1, [8, 30, 71]] = [4, 6, -5]
    return idctn(coefficients, axes=1, norm="ortho")


@pytest.fixture
def image():
    rows, columns = np.mgrid[:24, :20]
    return np.rint(128 + 60 * np.cos(rows / 5) + 40 * np.sin(columns / 4)).astype(np.uint8)


def test_file_array_and_code_give_the_same(tmp_path, monkeypatch, signals, image):
    monkeypatch.chdir(tmp_path)
    np.save("two.npy", signals)
    write_image("photo.png", image)
    for path, data in (("two.npy", signals), ("photo.png", image)):
        answer, other = analyses.sense(path, fraction=0.5), analyses.sense(data, fraction=0.5)
        assert answer.figures == other.figures and answer.baseline == other.baseline
        assert answer.table.equals(other.table)
        for one, given in ((answer, {}), (other, {"data": data})):
            exec(one.code, given)
            assert given["answer"].figures == one.figures
    np.testing.assert_array_equal(answer.image, other.image)
    assert answer.image.dtype == np.uint8 and answer.image.shape == image.shape


def test_columns_of_a_frame_are_signals(signals):
    frame = pl.DataFrame({"t": np.arange(96) / 50, "a": signals[0], "b": signals[1]})
    answer = analyses.sense(frame, fraction=0.5)
    assert answer.table.columns == ["a", "b"]
    np.testing.assert_allclose(answer.table.to_numpy().T, signals, atol=1e-3)
    assert not hasattr(answer, "image")


@pytest.mark.parametrize("kind", ["hadamard", "gaussian"])
def test_least_squares_explains_the_measurements_with_the_least_length(signals, kind):
    answer = analyses.sense(signals[0], fraction=0.4, kind=kind)
    A = answer.model.measure(np.eye(96)).T
    shortest = np.linalg.pinv(A) @ (A @ signals[0])
    error = np.linalg.norm(shortest - signals[0]) / np.linalg.norm(signals[0])
    assert answer.baseline["relative_error"] == pytest.approx(error)
    assert answer.figures["relative_error"] < 0.1 * error
