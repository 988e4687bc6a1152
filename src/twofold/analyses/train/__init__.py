"""Networks and generators, trained on images or tables."""

from twofold.analyses.train.analysis import train

__all__ = ["train"]
