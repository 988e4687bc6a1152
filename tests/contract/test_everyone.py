"""Every public model is in the contract suites or says why not; and what holds whatever its data is."""

import pickle
import re
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import twofold

from .helpers import differences
from .registry import EXEMPT, MODELS, table

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(0)
X, y = table(60)
PICTURES = (RNG.random((40, 4, 4)) < 0.5).astype(np.float32)
LINES = [[f"word{chr(97 + k)}" for k in RNG.integers(0, 12, 9)] for _ in range(60)]
RATINGS = pl.DataFrame(
    {"user": np.repeat(np.arange(20), 6), "item": np.tile(np.arange(12), 10), "rating": RNG.random(120)}
)
NETWORK = {"max_iter": 2, "random_state": 0}


def vectors(seed):
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(5, 5)))[0]
    return twofold.WordVectors.of([f"w{k}" for k in range(30)], np.random.default_rng(7).normal(size=(30, 5)) @ turn)


# How each exempt model is made, and what it is fitted to.
OTHERS = {
    "SparseCoder": ({"dictionary": RNG.normal(size=(12, 8)), "transform_n_nonzero_coefs": 2}, lambda: (X,)),
    "CompressiveSensing": ({"n_measurements": 4, "random_state": 0}, lambda: (X[0],)),
    "Recommender": ({"model": twofold.ALS(2, random_state=0), "random_state": 0}, lambda: (RATINGS,)),
    "ForestImpute": ({"n_trees": 3, "random_state": 0}, lambda: (X,)),
    "NearestRows": ({"max_distance": 2.0}, lambda: (X, np.arange(len(X)) % 3 - 1)),
    "ColumnImpute": ({"models": [twofold.PPCA(2, random_state=0)]}, lambda: (X,)),
    "BagOfWords": ({}, lambda: ([" ".join(line) for line in LINES],)),
    "Vocabulary": ({"min_count": 1}, lambda: (LINES,)),
    "Cooccurrence": ({"min_count": 1}, lambda: (LINES,)),
    "SkipGram": ({"n_components": 4, "min_count": 1, **NETWORK}, lambda: (LINES,)),
    "GloVe": ({"n_components": 4, "min_count": 1, **NETWORK}, lambda: (LINES,)),
    "PMIEmbedding": ({"n_components": 4, "min_count": 1, "random_state": 0}, lambda: (LINES,)),
    "Alignment": ({}, lambda: (vectors(0), vectors(1))),
    "MLPClassifier": ({"hidden_layer_sizes": (4,), **NETWORK}, lambda: (X, y)),
    "MLPRegressor": ({"hidden_layer_sizes": (4,), **NETWORK}, lambda: (X, X[:, 0])),
    "CNNClassifier": ({"channels": (2,), "hidden_layer_sizes": 4, **NETWORK}, lambda: (PICTURES, np.arange(40) % 2)),
    "Autoencoder": ({"hidden_layer_sizes": (4,), **NETWORK}, lambda: (X,)),
    "VAE": ({"n_components": 2, "hidden_layer_sizes": (4,), **NETWORK}, lambda: (PICTURES,)),
    "DLGM": ({"n_components": (2, 2), "hidden_layer_sizes": 4, **NETWORK}, lambda: (PICTURES,)),
    "GAN": ({"n_components": 2, "hidden_layer_sizes": (4,), **NETWORK}, lambda: (PICTURES,)),
    "VAEGAN": ({"n_components": 2, "hidden_layer_sizes": (4,), **NETWORK}, lambda: (PICTURES,)),
    "NormalizingFlow": ({"n_layers": 2, "hidden_layer_sizes": (4,), **NETWORK}, lambda: (X,)),
    "PixelCNN": ({"channels": 4, "n_layers": 1, **NETWORK}, lambda: (PICTURES,)),
}
others = pytest.mark.parametrize("name", OTHERS)
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*collapse:UserWarning"),  # two epochs teach a network nothing
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def make(name):
    if twofold._MODELS[name].startswith("twofold.deep"):
        pytest.importorskip("torch")
    return getattr(twofold, name)(**OTHERS[name][0])


@cache
def fit_once(name):
    """The fitted model, for tests that do not change it."""
    return make(name).fit(*OTHERS[name][1]())


def find_differences(a, b):
    """Return where two models differ, clocks put aside."""
    return [d for d in differences(a, b) if "per_second" not in d]


def test_every_public_model_is_in_the_registry_or_exempt():
    listed = {case.model for case in MODELS}
    assert listed | set(EXEMPT) == set(twofold._MODELS), "add the model to MODELS, or to EXEMPT with the reason"
    assert not listed & set(EXEMPT)
    assert set(OTHERS) == set(EXEMPT) - {"WordVectors"}, "a model that is exempt is in OTHERS"


@pytest.mark.parametrize("name", EXEMPT)
def test_an_exemption_names_the_tests_that_stand_in(name):
    places = re.findall(r"tests/[\w/]+\.py", EXEMPT[name])
    assert places and all((ROOT / place).exists() for place in places)
    assert any(name in (ROOT / place).read_text(encoding="utf-8") for place in places)


@others
def test_constructors_store_and_fits_leave_parameters_alone(name):
    model = make(name)
    before = model.get_params()
    assert model.fit(*OTHERS[name][1]()) is model
    assert not differences(model.get_params(), before) and not differences(clone(model).get_params(), before)


@others
def test_same_seed_same_bits_also_after_another_fit(name):
    model = pickle.loads(pickle.dumps(fit_once(name)))
    assert not find_differences(model, fit_once(name))
    assert not find_differences(model.fit(*OTHERS[name][1]()), fit_once(name))


@others
def test_saved_and_loaded_is_the_same_model(name, tmp_path):
    model = fit_once(name)
    model.save(tmp_path / "m.twofold")
    back = twofold.load(tmp_path / "m.twofold")
    assert type(back) is type(model) and not differences(back.get_params(), model.get_params())
    assert not differences(back, model)


@others
def test_there_is_nothing_to_save_before_the_fit(name, tmp_path):
    if name == "SparseCoder":
        pytest.skip("learns nothing, and may be saved at once")
    with pytest.raises(NotFittedError):
        make(name).save(tmp_path / "m.twofold")
    assert not list(tmp_path.iterdir())
