"""The planted size is found for every estimator that has one, at three levels of noise, by `select` as it is."""

import inspect
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import twofold
from twofold.core.estimator import Model
from twofold.core.heldout import SQUARED, split_columns
from twofold.model_selection.select import SIZES

from .registry import EXEMPT, MODELS, table

GRIDS = [
    pytest.param((0.5,), range(2), id="some noise"),
    pytest.param((0.2, 0.5, 0.8), range(5), id="little, some, much noise", marks=pytest.mark.soak),
]
TRIED = [1, 2, 3, 4, 6]  # 3 are planted
NEXT = (2, 3, 4)


def plant_plane(noise, rng, n=80, d=8, k=3):
    """Rows on a plane, far from zero, with white noise."""
    axes = np.linalg.qr(rng.normal(size=(d, k)))[0].T
    return 5 + 3 * rng.normal(size=(n, k)) @ axes + noise * rng.normal(size=(n, d))


def plant_plane_at_zero(noise, rng):
    return plant_plane(noise, rng) - 5


def plant_holes(noise, rng):
    """A table of low rank with noise, a fifth of its cells unknown."""
    X = plant_plane(0.7 * noise, rng, 40, 24) - 5
    return np.where(rng.random(X.shape) < 0.2, np.nan, X)


def plant_parts(noise, rng, n=80, d=9, k=3):
    """Parts of a few columns each, added up, with noise."""
    U, Z = rng.exponential(size=(n, k)) * (rng.random((n, k)) < 0.7), np.kron(np.eye(k), np.ones(d // k))
    return np.maximum(3 * U @ (Z + rng.exponential(0.2, size=Z.shape)) + noise * rng.normal(size=(n, d)), 0)


def plant_topics(noise, rng, n=100, d=40, k=3):
    """Documents of 50 words from a few topics; `noise` is how mixed they are."""
    topics = rng.dirichlet(np.full(d, 0.2), size=k)
    return np.array([rng.multinomial(50, p @ topics) for p in rng.dirichlet(np.full(k, noise), size=n)])


def plant_blobs(noise, rng, n=120, d=4, k=3):
    """Round clusters around the corners of a simplex."""
    centers = 5 * np.linalg.qr(rng.normal(size=(d, d)))[0][:k]
    return centers[rng.integers(k, size=n)] + noise * rng.normal(size=(n, d))


def plant_lines(noise, rng, n=150, d=5, k=3):
    """Clusters that are lines, each in a direction of its own."""
    y, lines = rng.integers(k, size=n), rng.normal(size=(k, d))
    return 6 * np.eye(d)[y] + rng.normal(size=(n, 1)) * lines[y] + (0.2 + 0.4 * noise) * rng.normal(size=(n, d))


def plant_atoms(noise, rng, n=120, d=8, k=3):
    """Signals of one atom each."""
    atoms = np.linalg.qr(rng.normal(size=(d, k)))[0].T
    return 4 * rng.normal(size=(n, 1)) * atoms[rng.integers(k, size=n)] + noise * rng.normal(size=(n, d))


def plant_clicks(noise, rng, n=90, d=24, k=3):
    """Users of a few groups, each clicking on items of its own and, at random, on others."""
    y, own = rng.integers(k, size=n), np.arange(d) % k
    clicks = rng.random((n, d)) < np.where(y[:, None] == own, 0.6, 0.05 + 0.1 * noise)
    return sparse.csr_array(clicks.astype(float))


def plant_classes(noise, rng, n=150, d=6):
    """Seven classes whose means lie in three directions; and the classes."""
    means = np.vstack([np.zeros(3), 4 * np.eye(3), -4 * np.eye(3)])
    y = np.arange(n) % len(means)
    return np.pad(means, ((0, 0), (0, d - 3)))[y] + noise * rng.normal(size=(n, d)), y


def plant_planes(noise, rng, n=150, d=8, k=3):
    """Two classes around the same place, on planes of three dimensions that differ; and the classes."""
    y = np.arange(n) % 2
    axes = np.linalg.qr(rng.normal(size=(d, 2 * k)))[0].T.reshape(2, k, d)
    return np.einsum("nk,nkd->nd", 2 * rng.normal(size=(n, k)), axes[y]) + noise * rng.normal(size=(n, d)), y


PLANTED = {  # an estimator, in its settings -> what is planted
    "PCA": (plant_plane, {}),
    "PPCA": (plant_plane, {}),
    "BayesianPCA": (plant_plane, {"tol": 1e-5}),
    "FactorAnalysis": (plant_plane, {"tol": 1e-5}),
    "LinearAutoencoder": (plant_plane, {"max_iter": 100}),
    "MixtureOfPPCA": (plant_lines, {"n_latent": 1}),
    "PPCAClassifier": (plant_planes, {}),
    "FisherLDA": (plant_classes, {}),
    "PCABasis": (plant_plane, {}),
    "KMeans": (plant_blobs, {}),
    "KMedoids": (plant_blobs, {}),
    "VectorQuantizer": (plant_blobs, {}),
    "GaussianMixture": (plant_blobs, {}),
    "Mixture": (plant_blobs, {}),
    "KSVD": (plant_atoms, {"n_nonzero": 1}),
    "OnlineDictionary": (plant_atoms, {"n_nonzero": 1}),
    "LSA": (plant_plane_at_zero, {"weighting": None}),
    "NMF": (plant_parts, {}),
    "PLSA": (plant_topics, {"tol": 1e-4, "max_iter": 40}),
    "LatentDirichletAllocation": (plant_topics, {}),
    "Factorization": (plant_plane_at_zero, {}),
    "SVDImpute": (plant_holes, {"max_iter": 10}),
    "ALS": (plant_holes, {"reg": 0.1}),
    "GradientFactorization": (plant_holes, {"reg": 0.1, "solver": "gradient"}),
    "SVP": (plant_holes, {"max_iter": 8}),
    "ImplicitALS": (plant_clicks, {"reg": 1.0}),
}
_NETWORK = "a fit takes seconds, and fifteen choices take minutes: bench/select_planted.py plants its size"
_WORDS = "word vectors have no true length: a task decides, as a function given to select"
UNPLANTED = {  # and why
    "Autoencoder": _NETWORK,
    "VAE": _NETWORK,
    "DLGM": _NETWORK,
    "SVDPlusPlus": "a fit takes a quarter of a second at least, and fifteen choices minutes: bench/select_planted.py",
    "SoftImpute": "its size is the price of singular values, which it chooses by itself: n_components is only a bound",
    "GAN": "it has no score: nothing says how probable a row is",
    "VAEGAN": "its code is judged by a critic that changes with it",
    **dict.fromkeys(("SkipGram", "GloVe", "PMIEmbedding"), _WORDS),
}


def size_of(name):
    """The size of an estimator: the first of its parameters that is one, or None."""
    return next((p for p in inspect.signature(getattr(twofold, name)).parameters if p in SIZES), None)


def test_no_size_is_forgotten():
    named = {case.model for case in MODELS} | set(EXEMPT)
    assert {name for name in named if size_of(name)} == set(PLANTED) | set(UNPLANTED)


@pytest.mark.parametrize(("noises", "seeds"), GRIDS)
@pytest.mark.parametrize("name", PLANTED)
def test_the_planted_size_or_the_next_is_found(name, noises, seeds):
    plant, params = PLANTED[name]
    chosen = []
    for noise in noises:
        for seed in seeds:
            data = plant(noise, np.random.default_rng([seed, int(10 * noise)]))
            X, y = data if isinstance(data, tuple) else (data, None)
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # of sizes that are wrong
                model = getattr(twofold, name)(**params)
                found = twofold.select(model, X, y, random_state=seed, **{size_of(name): TRIED})
            chosen.append(found.best_params[size_of(name)])
    assert sum(k not in NEXT for k in chosen) <= len(chosen) // 10, chosen


HIDING = [case for case in MODELS if getattr(twofold, case.model)._hiding is not Model._hiding]


@pytest.mark.parametrize("case", HIDING, ids=str)
def test_what_is_hidden_is_not_looked_at(case):
    """A squared error is a parabola in the hidden cells: what is predicted does not move with them."""
    model, X = case.get_fitted(), table(20, seed=3)[0]
    if not model._heldout_unit.startswith(SQUARED):
        pytest.skip("its loss is no parabola")
    costs, *state = model._hiding()
    for split in split_columns(X.shape[1], model._turns, "it"):
        step = np.zeros(X.shape)
        step[:, split.hidden] = 7.0
        turned = step if split.turn is None else step @ split.turn.T
        one, two, three = (costs(X + t * turned, split, *state)[:, 0] for t in (0, 1, 2))
        np.testing.assert_allclose(one - 2 * two + three, 2 * 7.0**2 * len(split.hidden), rtol=1e-6)
