"""Lines, planes and Gaussians: PCA and its probabilistic kin."""

from typing import TYPE_CHECKING, Any

import twofold

if TYPE_CHECKING:
    from twofold.linear.bayesian_pca import BayesianPCA
    from twofold.linear.factor_analysis import FactorAnalysis
    from twofold.linear.fisher_lda import FisherLDA
    from twofold.linear.linear_autoencoder import LinearAutoencoder
    from twofold.linear.mixture_of_ppca import MixtureOfPPCA
    from twofold.linear.pca import PCA
    from twofold.linear.ppca import PPCA
    from twofold.linear.ppca_classifier import PPCAClassifier

__all__ = [
    "PCA",
    "PPCA",
    "BayesianPCA",
    "FactorAnalysis",
    "FisherLDA",
    "LinearAutoencoder",
    "MixtureOfPPCA",
    "PPCAClassifier",
]


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first used: a verb that needs one model does not wait for all."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(twofold, name)


def __dir__() -> list[str]:
    return sorted(__all__)
