"""k-means."""

from twofold.clusters.kmeans.kmeans import KMeans

__all__ = ["KMeans"]
