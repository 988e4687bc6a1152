"""Every estimator, once: a model joins the contract suites by being listed here."""

from dataclasses import dataclass, field

import numpy as np

import twofold


@dataclass(frozen=True)
class Case:
    """One model in one setting, and what it takes. `params` make it quick on the small table below."""

    model: str
    params: dict = field(default_factory=dict)
    label: str = ""
    nan: bool = False
    sparse: bool = True
    weights: bool = True
    streams: bool = True
    needs_y: bool = False
    labels: bool = False  # transform gives a whole number a row, not columns
    iterative: bool = False  # makes several sweeps on the table below, bounded by max_iter
    too_many: dict = field(default_factory=lambda: {"n_components": 9})  # of the 8 columns of the table
    none: dict = field(default_factory=lambda: {"n_components": 0})

    def __call__(self, **changes):
        return getattr(twofold, self.model)(**{**self.params, **changes})

    def fit(self, X, y, sample_weight=None, **changes):
        """A fitted model; y goes in only where it belongs."""
        model = self(**changes)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return model.fit(X, y, **weights) if self.needs_y else model.fit(X, **weights)

    def __str__(self):
        return f"{self.model}-{self.label}" if self.label else self.model


def _pca(solver, **changes):
    return Case(
        "PCA",
        {"n_components": 3, "solver": solver, "random_state": 0},
        solver,
        **changes,
    )


def _gaussians(kind):
    params = {"n_components": 3, "covariance_type": kind, "random_state": 0}
    return Case("GaussianMixture", params, kind, nan=True, sparse=False, iterative=True, too_many=TOO_MANY_ROWS)


def _mixture(component):
    params = {"component": component, "n_components": 3, "random_state": 0}
    return Case(
        "Mixture", params, component, sparse=False, iterative=component == "gaussian-diag", too_many=TOO_MANY_ROWS
    )


TOO_MANY_ROWS = {"n_components": 241}  # of the 240 rows of the table
EM = {"n_components": 2, "random_state": 0, "max_iter": 300, "tol": 1e-7}

MODELS = [
    Case("PCA", {"n_components": 3, "random_state": 0}, nan=True),
    _pca("covariance", nan=True),
    _pca("gram", nan=True),
    _pca("svd", nan=True, sparse=False),
    _pca("power", nan=True),
    _pca("randomized", nan=True),
    _pca("lanczos", nan=True),
    Case("PCA", {"n_components": 3, "scale": True, "random_state": 0}, "scaled", nan=True),
    Case("PPCA", {"n_components": 2, "random_state": 0}, nan=True),
    Case("PPCA", {"n_components": 2, "scale": True, "random_state": 0}, "scaled", nan=True),
    Case("PPCA", {**EM, "solver": "em"}, "em", nan=True, iterative=True),
    Case("BayesianPCA", {**EM, "n_components": 5}, nan=True, iterative=True),
    Case("FactorAnalysis", EM, nan=True, iterative=True),
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
    Case(
        "LinearAutoencoder",
        {"n_components": 2, "tied": True, "random_state": 0},
        "tied",
        iterative=True,
    ),
    Case("FisherLDA", {"n_components": 2}, needs_y=True, too_many={"n_components": 3}),
    Case(
        "KMeans",
        {"n_clusters": 3, "random_state": 0},
        too_many={"n_clusters": 241},
        none={"n_clusters": 0},
    ),
    Case(
        "VectorQuantizer",
        {"n_codes": 3, "random_state": 0},
        labels=True,
        too_many={"n_codes": 241},
        none={"n_codes": 0},
    ),
    *(_gaussians(kind) for kind in ("full", "tied", "diag", "spherical", "fixed")),
    *(_mixture(component) for component in ("gaussian", "gaussian-diag", "ppca-1")),
]


def table(n=240, seed=0, dtype=np.float64):
    """Rows of three groups in eight columns, each group a noisy line well apart from the others; and the groups."""
    rng = np.random.default_rng(seed)
    planted = np.random.default_rng(99)  # the same groups whatever the rows
    centres, lines = 5 * planted.normal(size=(3, 8)), planted.normal(size=(3, 8))
    y = rng.permutation(np.arange(n) % 3)
    X = centres[y] + rng.normal(size=(n, 1)) * lines[y] * 1.5 + 0.4 * rng.normal(size=(n, 8))
    return X.astype(dtype), y


def with_holes(X, share=0.1, seed=1):
    """X with some cells missing, but no row and no column without any."""
    holes = np.random.default_rng(seed).random(X.shape) < share
    holes[np.arange(len(X)), np.arange(len(X)) % X.shape[1]] = False
    return np.where(holes, np.nan, X).astype(X.dtype)
