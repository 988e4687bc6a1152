"""Every array of a fitted model says how it fits, and a file whose arrays do not fit is refused by the array's name."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import sparse

import twofold
from tests.attack.model_files import LINES, models
from tests.contract.registry import MODELS, table
from twofold.core.files.arrays_fit import read_declarations
from twofold.core.files.safetensors_file import read_file, write_file

IMAGES = np.random.default_rng(0).random((20, 8, 8))
EXEMPT = {  # arrays that are not declared, and why
    "history_": "is shown, and nothing is computed from it",
    "loss_curve_": "is shown, and nothing is computed from it",
    "validation_scores_": "is shown, and nothing is computed from it",
    "normalization_": "a record that says itself whether it fits: Completion._check_parts",
    "sums_": "sums of earlier batches, which NumPy alone adds to: shapes that differ are refused there",
    "moments_": "sums of earlier batches, which NumPy alone adds to: shapes that differ are refused there",
    "weights_": "of a network: held against the network that the parameters describe, Network._check_parts",
    "content_": "what features say, used by SciPy and NumPy alone",
    "range_": "two numbers, used by NumPy alone",
    "image_shape_": "sizes, held against the weights of the network",
}


@cache
def networks() -> dict[str, object]:
    quick = {"max_iter": 1, "random_state": 0}
    y = np.arange(20) % 2
    return {
        "CNNClassifier": twofold.CNNClassifier((2,), hidden_layer_sizes=4, **quick).fit(IMAGES, y),
        "MLPRegressor": twofold.MLPRegressor(hidden_layer_sizes=(4,), **quick).fit(*table()),
        "VAE": twofold.VAE(2, hidden_layer_sizes=(4,), **quick).fit(IMAGES),
        "DLGM": twofold.DLGM((2, 3), hidden_layer_sizes=4, **quick).fit(IMAGES),
        "GAN": twofold.GAN(2, hidden_layer_sizes=(4,), **quick).fit(IMAGES),
        "GAN of convolutions": twofold.GAN(2, architecture="convolutional", hidden_layer_sizes=(4, 4), **quick).fit(
            IMAGES
        ),
        "VAEGAN": twofold.VAEGAN(2, hidden_layer_sizes=(4,), **quick).fit(IMAGES),
        "NormalizingFlow": twofold.NormalizingFlow(2, hidden_layer_sizes=(4,), **quick).fit(*table()[:1]),
        "PixelCNN": twofold.PixelCNN(4, n_layers=2, levels=4, **quick).fit(IMAGES),
    }


@cache
def fit_models() -> dict[str, object]:
    some = {str(case): case.get_fitted() for case in MODELS} | {name: model for name, (model, _) in models().items()}
    X, _ = table()
    batches = {name: getattr(twofold, name)(2).partial_fit(X) for name in ("PCA", "KMeans", "GaussianMixture")}
    some |= {f"{name} in batches": model for name, model in batches.items()}
    some["Cooccurrence"] = twofold.Cooccurrence(min_count=1).fit(LINES)
    some["Vocabulary"] = twofold.Vocabulary(min_count=1).fit(LINES)
    some["SkipGram of a softmax"] = twofold.SkipGram(2, loss="softmax", min_count=1, max_iter=1).fit(LINES)
    return some | networks()


def arrays_in(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(arrays_in, value))
    return (
        any(map(arrays_in, value.values()))
        if isinstance(value, dict)
        else isinstance(value, np.ndarray) or (sparse.issparse(value))
    )


@pytest.mark.filterwarnings("ignore")
def test_every_array_of_a_fitted_model_is_declared_or_exempt_for_a_reason() -> None:
    missing = {}
    for name, model in fit_models().items():
        held = {key for key, value in vars(model).items() if key.endswith("_") and key[0] != "_" and arrays_in(value)}
        free = held - read_declarations(type(model)).keys() - EXEMPT.keys()
        if free:
            missing[name] = sorted(free)
    assert not missing


@pytest.mark.filterwarnings("ignore")
def test_what_is_declared_is_there_and_holds(tmp_path) -> None:
    """So that no declaration is of a name that nobody has, and files of all models load."""
    seen: dict[type, set[str]] = {}
    for model in fit_models().values():
        model.save(tmp_path / "a.twofold")
        again = twofold.load(tmp_path / "a.twofold")
        seen.setdefault(type(model), set()).update(vars(again))
    for cls, names in seen.items():
        inherited = {name for base in cls.__bases__ for name in read_declarations(base)}
        said = {name.partition(".")[0] for name in read_declarations(cls).keys() - inherited}
        optional = {
            "scale_",
            "labels_",
            "means_",
            "singular_values_",
            "biases_",
            "names_",
            "counts_",
            "loglike_",
            "groups_",
        }
        assert said - names - optional == set(), cls.__name__


def spoil_file(model, tmp_path, name, change) -> str:
    path = tmp_path / "a.twofold"
    model.save(path)
    header, arrays = read_file(path)
    arrays[name] = np.ascontiguousarray(change(arrays[name]))
    write_file(path, header, arrays)
    with pytest.raises(twofold.ModelFileError) as told:
        twofold.load(path)
    return str(told.value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["VAE", "GAN", "GAN of convolutions", "DLGM", "VAEGAN", "CNNClassifier", "PixelCNN"])
def test_weights_of_another_network_are_refused_by_name(name, tmp_path) -> None:
    model = networks()[name]
    key = next(key for key, w in model.weights_.items() if w.ndim >= 2)
    assert f"weights_.{key} of" in spoil_file(model, tmp_path, f"weights_.{key}", lambda w: np.concatenate([w, w]))


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical", "fixed"])
def test_covariances_are_those_of_their_kind(kind, tmp_path) -> None:
    model = twofold.GaussianMixture(3, covariance_type=kind, random_state=0).fit(table()[0])
    said = spoil_file(model, tmp_path, "covariances_", lambda S: S[:-1])
    assert "covariances_ of GaussianMixture has shape" in said


def test_parts_of_a_model_must_agree(tmp_path) -> None:
    model = models()["SkipGram"][0]
    for name in ("vectors_.vectors_", "contexts_.vectors_"):
        path = tmp_path / "a.twofold"
        model.save(path)
        header, arrays = read_file(path)
        arrays[name] = np.ascontiguousarray(arrays[name][:, :1])
        write_file(path, header, arrays)
        with pytest.raises(twofold.ModelFileError, match="vectors_"):
            twofold.load(path)


def test_counts_on_disk_are_a_path_in_the_file(tmp_path) -> None:
    found = twofold.Cooccurrence(min_count=1).fit(LINES, to=tmp_path / "a.csr")
    found.save(tmp_path / "a.twofold")
    assert twofold.load(tmp_path / "a.twofold").counts_ == found.counts_
