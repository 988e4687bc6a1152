"""Vectors of words from text."""

from twofold.analyses.embed.analysis import embed

__all__ = ["embed"]
