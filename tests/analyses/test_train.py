"""analyses.train and generate: targets, notes and saved models."""

import sys

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_digits

import twofold
from twofold import analyses
from twofold.analyses.train.analysis import score_pixels_alone
from twofold.analyses.train.data import read_data
from twofold.analyses.train.prediction import compare, judge
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


@pytest.fixture
def animals(tmp_path):
    """A table as people have them: the class depends on a category and a number, some cells are blank."""
    rng = np.random.default_rng(1)
    n = 400
    color, size = rng.choice(["red", "green", "blue"], n), rng.normal(20, 5, n).round(2)
    kind = np.where((color == "red") ^ (size > 20), "wild", "tame")
    day = np.datetime64("2021-01-01") + rng.integers(0, 900, n)
    frame = pl.DataFrame({"id": np.arange(n) + 100, "color": color, "size": size, "day": day, "kind": kind})
    frame = frame.with_columns(pl.when(pl.col("id") % 40 == 0).then(None).otherwise(pl.col("size")).alias("size"))
    frame.write_csv(tmp_path / "animals.csv")
    return tmp_path / "animals.csv"


def test_a_table_of_several_kinds_of_columns_is_learned_beside_other_models_and_applied(animals, tmp_path):
    answer = analyses.train("mlp", animals, target="kind", epochs=60)
    assert answer.figures["accuracy"] > 0.85 > 0.65 > answer.baseline["accuracy"]
    assert answer.figures["accuracy"] > answer.figures["accuracy_of_logistic_regression"] + 0.1  # it is no sum
    assert 0 < answer.figures["accuracy_spread"] < 0.2 and "accuracy_of_random_forest" in answer.figures
    assert any("cells are blank and count as average" in note for note in answer.notes)
    assert "color = red" in answer.model.feature_names_in_ and "id" not in answer.model.feature_names_in_
    answer.save(tmp_path / "m.twofold")
    new = pl.read_csv(animals, try_parse_dates=True).head(50)
    applied = analyses.apply(tmp_path / "m.twofold", new)
    assert applied.figures["accuracy"] > 0.85 and len(applied.table) == 50


def test_the_comparison_is_scikit_learns_on_the_same_rows(frame):
    from sklearn.dummy import DummyClassifier

    data = read_data("mlp", frame.select("a", "b", "where"), "where", None)
    found = compare(lambda: DummyClassifier(), data, 0)
    assert found.scores["network"] == found.scores["always the commonest class"] and found.folds == 5
    assert found.scores["random forest"].mean > 0.8


def test_spreads_of_one_part_are_standard_errors():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(400, 500))
    off = y + rng.normal(size=y.shape)
    scores = [judge(a, b, False) for a, b in zip(y, off, strict=True)]
    means, errors = (np.array(column) for column in zip(*scores, strict=True))
    assert abs(means.std() / errors.mean() - 1) < 6 / np.sqrt(2 * 400)  # a standard deviation of 400 figures
    rights = [judge(a > 0, b > 0, True) for a, b in zip(y, off, strict=True)]
    means, errors = (np.array(column) for column in zip(*rights, strict=True))
    assert abs(means.std() / errors.mean() - 1) < 6 / np.sqrt(2 * 400)


def test_a_flow_is_judged_beside_a_gaussian(frame):
    answer = analyses.train("flow", frame.select("a", "b"), epochs=5)
    assert answer.figures["nats"] == pytest.approx(answer.baseline["nats"], abs=1.0)  # the data is one
    assert analyses.generate(answer.model, 7).drawn.shape == (7, 2)


def test_dates_and_missing_columns_are_refused_as_targets(animals):
    for target, message in (
        ("id", "names the rows"),
        ("day", "holds dates"),
        ("weight", "no column 'weight'"),
        (None, "name the column"),
    ):
        with pytest.raises(InputError, match=message):
            analyses.train("mlp", animals, target=target)
