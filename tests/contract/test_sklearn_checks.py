"""scikit-learn's own checks, over every model with its defaults."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import twofold

from .registry import MODELS

pytestmark = [  # the checks' tables are small and without structure: not every fit on them ends well, and it may say so
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:component.*collapsed:UserWarning"),
]

# Why a check cannot hold, by model; nothing is waived without a reason.
_ROWS = "n_components=None keeps as many directions as there are rows, and a weight is not a row"
_WEIGHTS = {
    "check_sample_weight_equivalence_on_dense_data": _ROWS,
    "check_sample_weight_equivalence_on_sparse_data": _ROWS,
}
_DRAWN = "the start is drawn from the rows, and repeated rows draw another; from a given start both are equal"
_STARTS = {
    "check_sample_weight_equivalence_on_dense_data": _DRAWN,
    "check_sample_weight_equivalence_on_sparse_data": _DRAWN,
}
_CODES = "the check sets n_clusters, which is n_codes here: k-means by another name, and no clusterer"
_DENSITY = "the check takes whatever has predict_proba for a classifier and reads its classifier tags"
_CELLS = {
    "check_sample_weights_shape": "a weight a cell, shaped like X, is meant and taken",
    **dict.fromkeys(
        ("check_estimator_sparse_array", "check_estimator_sparse_matrix"),
        "predict(X) gives a value for every cell of the rows, (m, d); the check wants one a row",
    ),
}


def _filling(why="", *more):
    """Return checks that no completion model passes; with the reason, also those of weights and `more`."""
    weights = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    return {**_CELLS, **(dict.fromkeys((*weights, *more), why) if why else {})}


WAIVED = {
    "CompressiveSensing": {"check_fit1d": "one signal (d,) is what it measures"},
    "PCA": _WEIGHTS,
    "PPCA": _WEIGHTS,
    "PCABasis": _WEIGHTS,
    "FactorAnalysis": _WEIGHTS,
    "MixtureOfPPCA": {"check_estimator_sparse_array": _DENSITY, "check_estimator_sparse_matrix": _DENSITY},
    "KMeans": _STARTS,
    "KMedoids": _STARTS,
    "VectorQuantizer": {**_STARTS, "check_clustering": _CODES, "check_clustering(readonly_memmap=True)": _CODES},
    "Mixture": {"check_sample_weight_equivalence_on_dense_data": _DRAWN},
    "KSVD": {"check_sample_weight_equivalence_on_dense_data": _DRAWN},
    "OnlineDictionary": {"check_sample_weight_equivalence_on_dense_data": _DRAWN},
    "MeanImpute": _filling(),
    "ALS": _filling('reg="auto" puts known cells aside, and a weight is not a cell'),
    "Biases": _filling("a row has one bias and one pseudo-count, whatever its weight; two rows have two"),
    "Neighborhood": _filling("its biases are shrunk row by row, and a similarity counts the rows two columns share"),
    "SVDImpute": _filling("n_components=None follows from how many cells are known, and a weight is not a cell"),
    "SVP": _filling("n_components=None follows from how many cells are known, and a weight is not a cell"),
    "SoftImpute": _filling("the nuclear norm grows with every row, and a weight is not a row"),
    "SVT": _filling(
        "known cells are met exactly, so that none can count more: weights that differ are refused",
        "check_sample_weights_not_overwritten",
    ),
    "GradientFactorization": _filling("steps are made row by row from a start drawn for each; a weight is no row"),
    "SVDPlusPlus": _filling("which cells are known changes the fit, too, and a weight adds no cell"),
    "NMF": {"check_sample_weights_shape": _CELLS["check_sample_weights_shape"]},
    "Factorization": {
        "check_sample_weights_shape": _CELLS["check_sample_weights_shape"],
        **dict.fromkeys(
            ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"),
            "n_components=None takes as many as there are columns: the fit is exact, in whichever of many ways",
        ),
    },
    "EASE": _filling("the ridge is chosen by leaving out rows, and a row that is there twice is not left out"),
    "Popularity": _filling(),
    "ImplicitALS": _filling("weights multiply counts, while the cells that were not seen keep weight 1"),
}
MORE = ["CompressiveSensing"]  # learns a shape alone, and has no part in the other suites
QUICK_PARAMS = {
    "VectorQuantizer": {"n_codes": 3},  # the tables have fewer rows than a codebook of 256 needs
    "SVDPlusPlus": {"max_iter": 10},  # its hundreds of sweeps on tables without noise prove nothing more
    "LinearAutoencoder": {"max_iter": 10},  # nor do its thousands
}


@parametrize_with_checks(
    [getattr(twofold, name)(**QUICK_PARAMS.get(name, {})) for name in [*dict.fromkeys(c.model for c in MODELS), *MORE]],
    expected_failed_checks=lambda model: WAIVED.get(type(model).__name__, {}),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
