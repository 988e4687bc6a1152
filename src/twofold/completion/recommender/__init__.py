"""Recommenders: user and item ids around any completion model."""

from twofold.completion.recommender.recommender import Recommender

__all__ = ["Recommender"]
