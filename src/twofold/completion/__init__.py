"""Tables with holes, and recommenders."""

from typing import TYPE_CHECKING, Any

import twofold

if TYPE_CHECKING:
    from twofold.completion.als import ALS
    from twofold.completion.biases import Biases
    from twofold.completion.column_impute import ColumnImpute
    from twofold.completion.ease import EASE
    from twofold.completion.forest_impute import ForestImpute
    from twofold.completion.gradient_factorization import GradientFactorization
    from twofold.completion.implicit_als import ImplicitALS
    from twofold.completion.mean_impute import MeanImpute
    from twofold.completion.neighborhood import Neighborhood
    from twofold.completion.partitioned.ratings import PartitionedRatings
    from twofold.completion.popularity import Popularity
    from twofold.completion.recommender.recommender import Recommender
    from twofold.completion.recovery import recovery_report
    from twofold.completion.soft_impute import SoftImpute
    from twofold.completion.svd_impute import SVDImpute
    from twofold.completion.svd_plus_plus import SVDPlusPlus
    from twofold.completion.svp import SVP
    from twofold.completion.svt import SVT

__all__ = [
    "ALS",
    "EASE",
    "SVP",
    "SVT",
    "Biases",
    "ColumnImpute",
    "ForestImpute",
    "GradientFactorization",
    "ImplicitALS",
    "MeanImpute",
    "Neighborhood",
    "PartitionedRatings",
    "Popularity",
    "Recommender",
    "SVDImpute",
    "SVDPlusPlus",
    "SoftImpute",
    "recovery_report",
]


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first used: a verb that needs one model does not wait for all."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "recovery_report":
        from twofold.completion.recovery import recovery_report

        return recovery_report
    return getattr(twofold, name)


def __dir__() -> list[str]:
    return sorted(__all__)
