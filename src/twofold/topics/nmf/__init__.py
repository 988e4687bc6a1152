"""Non-negative matrix factorization."""

from twofold.topics.nmf.nmf import NMF

__all__ = ["NMF"]
