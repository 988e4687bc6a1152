"""Groups, hard and soft: k-means, coresets, codebooks, mixtures."""

from twofold.clusters.components import Bernoulli, Gaussian, Multinomial, Poisson, ProbabilisticPCA
from twofold.clusters.coreset import CoresetStream, coreset, coreset_size
from twofold.clusters.gaussian_mixture import GaussianMixture
from twofold.clusters.kmeans import KMeans
from twofold.clusters.mixture import Mixture
from twofold.clusters.vector_quantizer import VectorQuantizer, palette

__all__ = [
    "Bernoulli",
    "CoresetStream",
    "Gaussian",
    "GaussianMixture",
    "KMeans",
    "Mixture",
    "Multinomial",
    "Poisson",
    "ProbabilisticPCA",
    "VectorQuantizer",
    "coreset",
    "coreset_size",
    "palette",
]
