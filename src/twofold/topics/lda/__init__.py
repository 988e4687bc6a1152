"""Latent Dirichlet allocation."""

from twofold.topics.lda.lda import LatentDirichletAllocation

__all__ = ["LatentDirichletAllocation"]
