"""Every estimator, once: a model joins the contract suites by being listed here, or says why it cannot."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy import sparse

import twofold
from twofold.factors import Huber, NonNegative, Poisson, Ridge, Simplex

MIDDLE = 15.0  # of the values in the table
KEPT = {}


@dataclass(frozen=True)
class Case:
    """One model in one setting, and what it takes. `params` make it quick on the small table below."""

    model: str
    params: dict = field(default_factory=dict)
    label: str = ""
    nan: bool = False
    sparse: bool = True
    weights: bool = True
    repeats: bool = True  # a row of weight 2 counts like two rows; not so where its mere presence says something
    streams: bool = True
    needs_y: bool = False
    labels: bool = False  # transform gives a whole number a row, not columns
    positive: bool = False  # negative cells are refused
    alone: bool = False  # one row is enough to fit
    completes: bool = False  # unstored cells are unknown, not zero; predict(X) has a value for every cell
    falls: bool = True  # the objective never rises
    iterative: bool = False  # makes several sweeps on the table below, bounded by max_iter
    too_many: dict = field(default_factory=lambda: {"n_components": 9})  # of the 8 columns of the table
    none: dict = field(default_factory=lambda: {"n_components": 0})  # a bad value; empty without parameters
    good: tuple = (1, 2)  # other values of the parameter in `none`

    def __call__(self, **changes):
        return getattr(twofold, self.model)(**{**self.params, **changes})

    def fit(self, X, y, sample_weight=None, **changes):
        """A fitted model; y goes in only where it belongs."""
        model = self(**changes)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return model.fit(X, y, **weights) if self.needs_y else model.fit(X, **weights)

    def get_fitted(self):
        """The model fitted to `table()`, made once, for tests that only ask it."""
        if str(self) not in KEPT:
            KEPT[str(self)] = self.fit(*table())
        return KEPT[str(self)]

    def wish(self, k):
        """A good value for its first parameter: k itself where it is a number of things."""
        return {name: k if self.good == (1, 2) else self.good[k % len(self.good)] for name in self.none}

    def __str__(self):
        return f"{self.model}-{self.label}" if self.label else self.model


def _pca(solver, **changes):
    return Case("PCA", {"n_components": 3, "svd_solver": solver, "random_state": 0}, solver, none=BELOW, **changes)


def _clusters(model, size, **traits):
    """A clustering into groups whose number is the parameter `size`; there are 240 rows."""
    return Case(model, {size: 3, "random_state": 0}, too_many={size: 241}, none={size: 0}, **traits)


def _gaussians(kind):
    params = {"n_components": 3, "covariance_type": kind, "random_state": 0}
    slow = kind in ("diag", "spherical")  # the others have nothing left to do after their start, on these data
    return Case("GaussianMixture", params, kind, nan=True, sparse=False, iterative=slow, too_many=TOO_MANY_ROWS)


def _mixture(component):
    params, slow = {"component": component, "n_components": 3, "random_state": 0}, component == "gaussian-diag"
    return Case("Mixture", params, component, sparse=False, iterative=slow, too_many=TOO_MANY_ROWS)


def _split(changes):
    """Traits among these options, and the parameters of the model that are left."""
    traits = {k: changes.pop(k) for k in tuple(changes) if k in Case.__dataclass_fields__}
    return traits, changes


def _filling(model, label="", **changes):
    """A completion model; the options that are no traits are its parameters."""
    traits, params = _split(changes)
    return Case(model, params, label, **{"nan": True, "alone": True, "completes": True, "iterative": True, **traits})


def _topics(model, label="", **changes):
    """A model of counts (any positive numbers: Gibbs sampling, which needs whole ones, has its own laws)."""
    traits, params = _split(changes)
    return Case(
        model,
        {**TWO, **params},
        label,
        **{"positive": True, "alone": True, "iterative": True, "too_many": {}, **traits},
    )


def _factors(label, **changes):
    """A factorization in the general language: any number of components, one row is enough."""
    traits, params = _split(changes)
    traits = {"nan": True, "alone": True, "iterative": True, "too_many": {}, **traits}
    return Case("Factorization", {**TWO, "tol": 1e-9, "max_iter": 5000, **params}, label, **traits)


def _atoms(model, **traits):
    """A learned dictionary: more atoms than rows or columns are welcome, one row is enough, and the start is drawn from
    the rows, so that a repeated row draws another; its laws have weights from a given start."""
    params = {"n_components": 3, "n_nonzero": 1, "random_state": 0}
    return Case(model, params, sparse=False, alone=True, iterative=True, repeats=False, too_many={}, **traits)


BELOW = {"n_components": -1}  # none at all is a model, too: the mean, or a diagonal covariance
TOO_MANY_ROWS = {"n_components": 241}  # of the 240 rows of the table
TWO = {"n_components": 2, "random_state": 0}
NEIGHBORS = {"n_neighbors": 5, "iterative": False, "repeats": False, "too_many": {}, "none": {"n_neighbors": 0}}
ONCE = {"iterative": False, "too_many": {}, "none": {"max_items": 0}, "good": (3, 5)}
EM = {"n_components": 2, "random_state": 0, "max_iter": 2000, "tol": 1e-7}

MODELS = [
    Case("PCA", {"n_components": 3, "random_state": 0}, nan=True, none=BELOW),
    _pca("full", nan=True, sparse=False),
    *(_pca(solver, nan=True) for solver in ("covariance_eigh", "gram", "power", "randomized", "arpack")),
    Case("PCA", {"n_components": 3, "scale": True, "random_state": 0}, "scaled", nan=True, none=BELOW),
    Case("PPCA", {"n_components": 2, "random_state": 0}, nan=True),
    Case("PPCA", {"n_components": 2, "scale": True, "random_state": 0}, "scaled", nan=True),
    Case("PPCA", {**EM, "solver": "em"}, "em", nan=True, iterative=True),
    Case("BayesianPCA", {**EM, "n_components": 5}, nan=True, iterative=True),
    Case("FactorAnalysis", EM, nan=True, iterative=True, none=BELOW),
    Case(
        "MixtureOfPPCA",
        {"n_components": 3, "n_latent": 1, "random_state": 0, "max_iter": 300, "tol": 1e-7},
        nan=True,
        iterative=True,
        too_many={"n_latent": 9},
        none={"n_latent": 0},
    ),
    Case("PPCAClassifier", {"n_components": 2, "random_state": 0}, nan=True, needs_y=True),
    Case("LinearAutoencoder", {"n_components": 2, "random_state": 0}, iterative=True),
    Case("LinearAutoencoder", {"n_components": 2, "tied": True, "random_state": 0}, "tied", iterative=True),
    Case("FisherLDA", {"n_components": 2}, needs_y=True, too_many={"n_components": 3}),
    _clusters("KMeans", "n_clusters"),
    _clusters("KMedoids", "n_clusters", repeats=False),  # its start is drawn from the rows, looked at in their order
    _clusters("VectorQuantizer", "n_codes", labels=True),
    Case("PCABasis", {"n_components": 3}),
    _atoms("KSVD", nan=True),
    _atoms("OnlineDictionary", falls=False),
    *(_gaussians(kind) for kind in ("full", "tied", "diag", "spherical", "fixed")),
    *(_mixture(component) for component in ("gaussian", "gaussian-diag", "ppca-1")),
    _filling("MeanImpute", iterative=False, too_many={}, none={"strategy": "none"}, good=("row", "column")),
    _filling("Biases", too_many={}, none={"reg": -1.0}, good=(1.0, 0.5), repeats=False),
    _filling("SVDImpute", tol=1e-9, **TWO),
    _filling("ALS", "cholesky", solver="cholesky", reg=0.1, **TWO),
    _filling("ALS", "cg", solver="cg", reg=0.1, **TWO),
    _filling("ALS", "nonnegative", nonnegative=True, reg=0.1, max_iter=100, **{**TWO, "n_components": 4}),
    *(_filling("ALS", side, normalize=side, reg=0.1, max_iter=100, **TWO) for side in ("row", "column")),
    _filling("ALS", "auto", repeats=False, **TWO),
    _filling("ALS", "unbiased", biases=False, reg=0.1, max_iter=100, **TWO),
    _filling("GradientFactorization", "sgd", solver="sgd", reg=0.1, repeats=False, falls=False, **TWO),
    _filling("GradientFactorization", "auto", repeats=False, falls=False, **TWO),
    _filling("GradientFactorization", "gradient", solver="gradient", reg=0.1, repeats=False, **TWO),
    _filling("SVDPlusPlus", repeats=False, tol=1e-3, **TWO),
    *(_filling("Neighborhood", kind, kind=kind, **NEIGHBORS) for kind in ("item", "user")),
    _filling("SVP", tol=1e-9, **TWO),
    _filling("SVT", weights=False, too_many={}, none={"tau": 0.0}, good=(None, 300.0), random_state=0),
    _filling("SoftImpute", reg=5.0, repeats=False, **TWO),
    _topics("LSA", weighting=None, iterative=False, none={"n_components": 0}, too_many={"n_components": 9}),
    _topics("NMF", "squared", nan=True, tol=1e-12, max_iter=5000),
    _topics("NMF", "kl", nan=True, beta_loss="kullback-leibler"),
    _topics("PLSA"),
    _topics("LatentDirichletAllocation", "scvb0", falls=False),
    _topics("LatentDirichletAllocation", "batch", learning_method="batch", falls=False),
    _topics("LatentDirichletAllocation", "online", learning_method="online", falls=False, repeats=False),
    _filling("EASE", reg=50.0, iterative=False, too_many={}, none={"reg": 0.0}, good=(20.0, "auto")),
    _filling("EASE", "intercept", reg=50.0, intercept=True, **ONCE),
    _filling("EASE", "speakers", reg=50.0, intercept=True, max_items=5, **ONCE),
    _filling("EASE", "auto", repeats=False, **ONCE),
    _filling("Popularity", iterative=False, too_many={}, none={}),
    _filling("ImplicitALS", repeats=False, reg=1.0, alpha=0.02, tol=1e-4, max_iter=200, **TWO),
    _factors("free"),
    _factors("nonnegative", left=NonNegative(), right=NonNegative()),
    _factors("huber", loss=Huber(5.0), left=Ridge(10.0), right=Ridge(10.0), intercept=True, tol=1e-8),
    _factors("poisson", loss=Poisson(), left=NonNegative(), right=Simplex(), positive=True, tol=1e-8),
]

_NETWORK = "a network's promises cost minutes on the table: tests/deep/test_shared.py has them, {} its laws"
_TEXT = "its data is text: tests/contract/test_words.py has the promises"
EXEMPT = {  # from the suites over tables, and why; test_everyone.py has what holds for these, too
    "SparseCoder": "learns nothing from rows, its atoms are given: tests/laws/test_basis_pursuit.py",
    "CompressiveSensing": "learns the shape of a signal alone: tests/laws/test_sensing.py",
    "Recommender": "its data is ratings by id: tests/completion/recommender/test_recommender.py",
    "ForestImpute": "trees have no objective and no sweeps that fall: tests/completion/test_forest_impute.py",
    "NearestRows": "needs the group of every row: tests/laws/test_nearest_rows.py",
    "ColumnImpute": "is as good as the models it is given: tests/completion/test_column_impute.py",
    "BagOfWords": "its data is text: tests/text/test_bag_of_words.py",
    **dict.fromkeys(("Vocabulary", "Cooccurrence", "SkipGram", "GloVe", "PMIEmbedding"), _TEXT),
    "WordVectors": "is made from words and vectors and never fitted: tests/words/test_word_vectors.py",
    "Alignment": "its data is two sets of word vectors: tests/words/test_alignment.py",
    "MLPClassifier": _NETWORK.format("tests/deep/test_mlp.py"),
    "MLPRegressor": _NETWORK.format("tests/deep/test_mlp.py"),
    "CNNClassifier": _NETWORK.format("tests/deep/test_cnn.py"),
    "Autoencoder": _NETWORK.format("tests/deep/test_autoencoder.py"),
    "VAE": _NETWORK.format("tests/deep/test_vae.py"),
    "DLGM": _NETWORK.format("tests/deep/test_vae.py"),
    "GAN": _NETWORK.format("tests/deep/test_gan.py"),
    "VAEGAN": _NETWORK.format("tests/deep/test_gan.py"),
    "NormalizingFlow": _NETWORK.format("tests/laws/test_normalizing_flow.py"),
    "PixelCNN": _NETWORK.format("tests/deep/test_pixelcnn.py"),
}


def table(n=240, seed=0, dtype=np.float64):
    """Rows of three groups in eight columns, each group a noisy line well apart from the others; and the groups.

    All values are positive, since some models take no others.
    """
    rng = np.random.default_rng(seed)
    planted = np.random.default_rng(99)  # the same groups whatever the rows
    centers, lines = 5 * planted.normal(size=(3, 8)), planted.normal(size=(3, 8))
    y = rng.permutation(np.arange(n) % 3)
    X = MIDDLE + centers[y] + rng.normal(size=(n, 1)) * lines[y] * 1.5 + 0.4 * rng.normal(size=(n, 8))
    return X.astype(dtype), y


def remove_middle(case, X):
    """X less its middling values, dense and sparse: zeros, or holes where unstored cells are unknown."""
    off = np.abs(X - MIDDLE) < 2
    if not case.completes:
        D = np.where(off, 0.0, X if case.positive else X - MIDDLE)
        return D, sparse.csr_array(D)
    rows, cols = np.nonzero(~off)
    return np.where(off, np.nan, X), sparse.csr_array((X[rows, cols], (rows, cols)), shape=X.shape)


def with_holes(X, share=0.1, seed=1):
    """X with some cells missing, but no row and no column without any."""
    holes = np.random.default_rng(seed).random(X.shape) < share
    holes[np.arange(len(X)), np.arange(len(X)) % X.shape[1]] = False
    return np.where(holes, np.nan, X).astype(X.dtype)


def swept(case, X):
    """X, with holes where a fit without any would be over at once."""
    return with_holes(X, 0.3) if case.completes else X


def one_each(cases):
    """The first case of each model: for what the code that models share does alone."""
    return list({case.model: case for case in reversed(cases)}.values())[::-1]


def one_each_package(cases):
    """The first case of each package."""
    packages = {twofold._MODELS[case.model].rpartition(".")[0]: case for case in reversed(cases)}
    return list(packages.values())[::-1]


def parametrize(cases, quick=None):
    """A mark that gives a test each case; with `quick`, the other cases run with `make soak` alone."""
    slow = [] if quick is None else [case for case in cases if case not in quick]
    return pytest.mark.parametrize(
        "case", [pytest.param(case, marks=pytest.mark.soak) if case in slow else case for case in cases], ids=str
    )


def those(**traits):
    """A mark that gives a test the cases with these traits."""
    return parametrize([case for case in MODELS if all(getattr(case, k) == v for k, v in traits.items())])


every, first = parametrize(MODELS), parametrize(one_each(MODELS))
