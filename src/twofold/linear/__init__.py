"""Lines, planes and Gaussians: PCA and its probabilistic kin."""

from twofold.linear.pca import PCA
from twofold.linear.ppca import PPCA

__all__ = ["PCA", "PPCA"]
