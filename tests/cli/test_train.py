"""twofold train and generate: from a set of images to a model, and from the model to new images."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import twofold as library
from tests.cli.worlds import write_digits

QUICK = ("digits.npz", "--epochs", "2")


@pytest.fixture
def digits(folder):
    return write_digits()


@pytest.mark.parametrize(
    ("kind", "figure", "draws"),
    [
        ("vae", "nats_importance", True),
        ("dlgm", "nats_importance", True),
        ("pixelcnn", "bits_per_pixel", True),
        ("gan", "floor", True),
        pytest.param("vaegan", "floor", True, marks=pytest.mark.soak),
        ("autoencoder", "error", False),
        ("flow", "nats", True),
        ("mlp", "accuracy", False),
        ("cnn", "accuracy", False),
    ],
)
def test_a_network_is_trained_judged_on_rows_held_out_saved_and_draws(twofold, ask, digits, kind, figure, draws):
    options = ["-k", "3"] if kind == "dlgm" else []
    found = ask("train", kind, *QUICK, *options, "--save", "model.twofold", "-o", "look.png", "-o", "look.csv")
    assert np.isfinite(found["figures"][figure]) and found["rows"] == 300
    assert found["baseline"].keys() - {"method"} <= found["figures"].keys() and len(found["baseline"]) > 1
    assert type(library.load("model.twofold")).__name__ == found["model"]
    assert Image.open("look.png").width > 500 and len(Path("look.csv").read_text().splitlines()) == 3
    if kind == "dlgm":
        assert library.load("model.twofold").n_components == (3, 6)
        assert any("3, 6" in note for note in found["notes"])
    if not draws:
        result = twofold("generate", "model.twofold")
        assert result.exit_code == 2 and "draws nothing" in result.stderr
        return
    for name in ("a.npy", "b.npy", "grid.png"):
        assert ask("generate", "model.twofold", "-n", "9", "-o", name)["count"] == 9
    assert np.load("a.npy").shape == (9, 8, 8) and np.array_equal(np.load("a.npy"), np.load("b.npy"))
    sheet = np.asarray(Image.open("grid.png"))
    assert sheet.ndim == 2 and min(sheet.shape) > 100


@pytest.mark.filterwarnings("error")
def test_a_code_that_is_not_in_use_is_a_note(ask, folder):
    np.save("two.npy", np.random.default_rng(0).integers(0, 2, size=(300, 1, 1)).repeat(4, axis=1).repeat(4, axis=2))
    found = ask("train", "vae", "two.npy", "--epochs", "20")
    said = [note for note in found["notes"] if "not in use" in note]
    assert said and "warm_up" not in said[0] and "-k" in said[0]


def test_a_table_is_learned_by_its_target(ask, folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    rows = [f"{a},{b},{'in' if a * a + b * b < 1 else 'out'},{3 * a - b}" for a, b in X]
    (folder / "table.csv").write_text("\n".join(["a,b,where,sum", *rows]))
    args = ("train", "mlp", "table.csv", "--target", "where", "--save", "where.twofold")
    classes = ask(*args)
    assert classes["model"] == "MLPClassifier"
    assert classes["figures"]["accuracy"] > classes["baseline"]["accuracy"]
    model = library.load("where.twofold")
    assert list(model.feature_names_in_) == ["a", "b", "sum"] and model.target_name_ == "where"
    assert list(model.classes_) == ["in", "out"]
    numbers = ask("train", "mlp", "table.csv", "--target", "sum")
    assert numbers["model"] == "MLPRegressor"
    assert numbers["figures"]["r2"] > 0.9 > 0.1 > numbers["baseline"]["r2"]
