"""scikit-learn's own checks, over every model."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from .registry import MODELS

# Why a check cannot hold, by model; nothing is waived without a reason.
WAIVED: dict[str, dict[str, str]] = {}


@parametrize_with_checks(
    [case() for case in MODELS if case.representative],
    expected_failed_checks=lambda model: WAIVED.get(type(model).__name__, {}),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
