"""Lines, planes and Gaussians: PCA and its probabilistic kin."""

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
