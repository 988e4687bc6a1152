"""analyses.train and generate: targets, notes and saved models."""

import sys

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_digits

import twofold
from twofold import analyses
from twofold.analyses.train import score_pixels_alone
from twofold.core.checks import InputError


@pytest.fixture
def digits():
    d = load_digits()
    return (d.images[:200] * 15).astype(np.uint8), d.target[:200]


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 150))
    where = ["in" if inside else "out" for inside in a * a + b * b < 1]
    return pl.DataFrame({"a": a, "where": where, "b": b, "few": (a > 0).astype(float)})


def test_an_autoencoder_behind_pca_says_to_train_longer(digits):
    answer = analyses.train("autoencoder", digits[0], epochs=1)
    assert answer.figures["error"] > answer.baseline["error"]
    assert any("train longer, with epochs=4" in note for note in answer.notes)


def test_images_that_an_mlp_sees_as_rows_keep_their_shape(tmp_path, digits):
    images, labels = digits
    answer = analyses.train("mlp", images, target=labels, epochs=1)
    answer.save(tmp_path / "m.twofold")
    model = twofold.load(tmp_path / "m.twofold")
    assert model.image_shape_ == (8, 8)
    assert model.predict(images.reshape(len(images), -1)).shape == (200,)


def test_whole_numbers_are_classes_and_rows_without_a_target_are_left_out(frame):
    holes = frame.with_columns(pl.Series("few", [None] * 10 + frame["few"].to_list()[10:]))
    answer = analyses.train("mlp", holes, target="few", epochs=2)
    assert list(answer.model.classes_) == [0, 1] and len(answer.data.X) == 140
    assert any("10 rows are left out" in note for note in answer.notes)


def test_pixels_on_their_own():
    class Model:
        range_ = (0.0, 1.0)

    kept = np.array([[0, 1], [0, 1], [1, 1], [1, 1]], float)
    want = np.log(3 / 6) + np.log(5 / 6)
    assert score_pixels_alone(Model(), kept, np.array([[1.0, 1.0]])) == pytest.approx(want)
    Model.levels_ = 2
    assert score_pixels_alone(Model(), kept, np.array([[1.0, 1.0]])) == pytest.approx(want)


def test_without_torch_one_line_says_so(monkeypatch, digits):
    for name in [name for name in sys.modules if name.startswith("twofold.deep")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(vars(twofold), "Autoencoder", raising=False)
    with pytest.raises(InputError, match=r"needs torch, which is not installed: pip install"):
        analyses.train("autoencoder", digits[0])


def test_samples_of_a_model_and_of_its_file_are_the_same(tmp_path, digits):
    model = twofold.GaussianMixture(2, covariance_type="diag", random_state=0).fit(digits[0].reshape(200, -1))
    model.save(tmp_path / "m.twofold")
    answer, other = (analyses.generate(one, 5, seed=2) for one in (model, tmp_path / "m.twofold"))
    np.testing.assert_array_equal(answer.drawn, other.drawn)
    exec(answer.code, given := {"model": model})
    np.testing.assert_array_equal(given["answer"].drawn, answer.drawn)
    with pytest.raises(InputError, match=r"\.npy"):
        answer.save(tmp_path / "rows.png")
