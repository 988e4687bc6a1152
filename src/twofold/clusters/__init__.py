"""Groups, hard and soft: k-means, coresets, codebooks, mixtures."""

from twofold.clusters.coreset import CoresetStream, coreset, coreset_size
from twofold.clusters.kmeans.kmeans import KMeans
from twofold.clusters.kmedoids import KMedoids
from twofold.clusters.mixtures.components import Bernoulli, Gaussian, Multinomial, Poisson, ProbabilisticPCA
from twofold.clusters.mixtures.gaussian_mixture import GaussianMixture
from twofold.clusters.mixtures.mixture import Mixture
from twofold.clusters.nearest_rows import NearestRows
from twofold.clusters.vector_quantizer import VectorQuantizer, palette

__all__ = [
    "Bernoulli",
    "CoresetStream",
    "Gaussian",
    "GaussianMixture",
    "KMeans",
    "KMedoids",
    "Mixture",
    "Multinomial",
    "NearestRows",
    "Poisson",
    "ProbabilisticPCA",
    "VectorQuantizer",
    "coreset",
    "coreset_size",
    "palette",
]
