"""Probabilistic latent semantic analysis."""

from twofold.topics.plsa.plsa import PLSA

__all__ = ["PLSA"]
