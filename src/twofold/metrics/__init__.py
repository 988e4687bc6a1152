"""Measures that scikit-learn lacks; what it has (RMSE, ARI, NMI, silhouette, ...) is used from there."""

from twofold.metrics.image import psnr
from twofold.metrics.ranking import (
    coverage,
    map_at_k,
    mrr_at_k,
    ndcg_at_k,
    novelty,
    precision_at_k,
    recall_at_k,
)

__all__ = ["coverage", "map_at_k", "mrr_at_k", "ndcg_at_k", "novelty", "precision_at_k", "psnr", "recall_at_k"]
