"""twofold train and generate: from a set of images to a model, and from the model to new images."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

import twofold as library

QUICK = ("--epochs", "2", "--json")


@pytest.fixture
def digits(folder):
    d = load_digits()
    np.savez("digits.npz", images=(d.images[:300] * 15).astype(np.uint8), labels=d.target[:300])
    return "digits.npz"


def run_json(twofold, *args):
    result = twofold(*args)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("kind", "figure"),
    [
        ("vae", "nats_importance"),
        ("dlgm", "nats_importance"),
        ("pixelcnn", "bits_per_pixel"),
        ("gan", "floor"),
        ("vaegan", "floor"),
        ("autoencoder", "error"),
        ("mlp", "accuracy"),
        ("cnn", "accuracy"),
    ],
)
def test_every_kind_says_how_it_does_on_what_it_never_saw(twofold, digits, kind, figure):
    found = run_json(twofold, "train", kind, digits, *QUICK, "--save", "model.twofold")
    assert np.isfinite(found["figures"][figure])
    assert found["baseline"].keys() - {"method"} <= found["figures"].keys() and len(found["baseline"]) > 1
    assert found["rows"] == 300
    assert type(library.load("model.twofold")).__name__ == found["model"]


def test_a_saved_generator_draws_the_same_again(twofold, digits):
    run_json(twofold, "train", "vaegan", digits, *QUICK, "--save", "model.twofold")
    for name in ("a.npy", "b.npy", "grid.png"):
        found = run_json(twofold, "generate", "model.twofold", "-n", "9", "-o", name, "--json")
        assert found["count"] == 9
    assert np.load("a.npy").shape == (9, 8, 8)
    assert np.array_equal(np.load("a.npy"), np.load("b.npy"))
    sheet = np.asarray(Image.open("grid.png"))
    assert sheet.ndim == 2
    assert min(sheet.shape) > 100


def test_the_layers_of_a_dlgm_are_said(twofold, digits):
    found = run_json(twofold, "train", "dlgm", digits, *QUICK, "-k", "3", "--save", "model.twofold")
    assert library.load("model.twofold").n_components == (3, 6)
    assert any("3, 6" in note for note in found["notes"])
    run_json(twofold, "generate", "model.twofold", "-n", "5", "-o", "drawn.npy", "--json")
    assert np.load("drawn.npy").shape == (5, 8, 8)


@pytest.mark.filterwarnings("error")
def test_a_code_that_is_not_in_use_is_a_note(twofold, folder):
    np.save("two.npy", np.random.default_rng(0).integers(0, 2, size=(300, 1, 1)).repeat(4, axis=1).repeat(4, axis=2))
    found = run_json(twofold, "train", "vae", "two.npy", "--epochs", "20", "--json")
    said = [note for note in found["notes"] if "not in use" in note]
    assert said and "warm_up" not in said[0] and "-k" in said[0]


def test_a_table_is_learned_by_its_target(twofold, folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    rows = [f"{a},{b},{'in' if a * a + b * b < 1 else 'out'},{3 * a - b}" for a, b in X]
    (folder / "table.csv").write_text("\n".join(["a,b,where,sum", *rows]))
    args = ("train", "mlp", "table.csv", "--target", "where", "--json", "--save", "where.twofold")
    classes = run_json(twofold, *args)
    assert classes["model"] == "MLPClassifier"
    assert classes["figures"]["accuracy"] > classes["baseline"]["accuracy"]
    model = library.load("where.twofold")
    assert list(model.feature_names_in_) == ["a", "b", "sum"] and model.target_name_ == "where"
    assert list(model.classes_) == ["in", "out"]
    numbers = run_json(twofold, "train", "mlp", "table.csv", "--target", "sum", "--json")
    assert numbers["model"] == "MLPRegressor"
    assert numbers["figures"]["r2"] > 0.9 > 0.1 > numbers["baseline"]["r2"]


def test_a_look_is_drawn(twofold, digits):
    run_json(twofold, "train", "autoencoder", digits, *QUICK, "-o", "look.png", "-o", "look.html", "-o", "look.csv")
    assert Image.open("look.png").width > 500
    assert len(Path("look.csv").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("train", "bert", "digits.npz"), "cannot be trained here"),
        (("train", "vae", "missing.npy"), "missing.npy"),
        (("train", "cnn", "bare.npy"), "no classes"),
        (("train", "mlp", "table.csv"), "--target"),
        (("train", "mlp", "table.csv", "--target", "z"), "no column 'z'"),
        (("train", "mlp", "holes.csv", "--target", "b"), "blank"),
        (("train", "vae", "table.csv", "--target", "b"), "Train an mlp"),
        (("train", "cnn", "digits.npz", "--components", "3"), "has no code"),
        (("train", "vae", "few.npy"), "20 are needed"),
        (("train", "vae", "digits.npz", "--save", "model.bin"), ".twofold"),
        (("generate", "nowhere.twofold"), "nowhere.twofold"),
        (("generate", "digits.npz"), "digits.npz"),
    ],
)
def test_bad_input_is_one_line(twofold, digits, folder, args, says):
    np.save("bare.npy", np.zeros((30, 4, 4), np.uint8))
    np.save("few.npy", np.zeros((3, 4, 4), np.uint8))
    (folder / "table.csv").write_text("a,b\n1,2\n3,4\n")
    (folder / "holes.csv").write_text("a,b\n1,2\n,4\n")
    before = sorted(p.name for p in folder.iterdir())
    result = twofold(*args)
    assert result.exit_code == 2
    assert says in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(p.name for p in folder.iterdir()) == before


def test_what_draws_nothing_says_so(twofold, digits):
    run_json(twofold, "train", "mlp", digits, *QUICK, "--save", "net.twofold")
    result = twofold("generate", "net.twofold")
    assert result.exit_code == 2
    assert "draws nothing" in result.stderr
