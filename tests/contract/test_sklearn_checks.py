"""scikit-learn's own checks, over every model with its defaults."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import twofold

from .registry import MODELS

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
WAIVED = {
    "PCA": _WEIGHTS,
    "PPCA": _WEIGHTS,
    "FactorAnalysis": _WEIGHTS,
    "MixtureOfPPCA": {"check_estimator_sparse_array": _DENSITY, "check_estimator_sparse_matrix": _DENSITY},
    "KMeans": _STARTS,
    "VectorQuantizer": {**_STARTS, "check_clustering": _CODES, "check_clustering(readonly_memmap=True)": _CODES},
    "Mixture": {"check_sample_weight_equivalence_on_dense_data": _DRAWN},
}
FEW = {"VectorQuantizer": {"n_codes": 3}}  # the checks' tables have fewer rows than a codebook of 256 needs


@parametrize_with_checks(
    [getattr(twofold, name)(**FEW.get(name, {})) for name in dict.fromkeys(case.model for case in MODELS)],
    expected_failed_checks=lambda model: WAIVED.get(type(model).__name__, {}),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
