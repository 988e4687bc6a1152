"""scikit-learn's own checks, over every model with its defaults."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import twofold

from .registry import MODELS

# Why a check cannot hold, by model; nothing is waived without a reason.
WAIVED: dict[str, dict[str, str]] = {}


@parametrize_with_checks(
    [getattr(twofold, name)() for name in dict.fromkeys(case.model for case in MODELS)],
    expected_failed_checks=lambda model: WAIVED.get(type(model).__name__, {}),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
