"""Groups, hard and soft: k-means, coresets, mixtures."""

from twofold.clusters.gaussian_mixture import GaussianMixture
from twofold.clusters.kmeans import KMeans

__all__ = ["GaussianMixture", "KMeans"]
