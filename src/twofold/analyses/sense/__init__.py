"""Signals and images from few measurements."""

from twofold.analyses.sense.analysis import sense

__all__ = ["sense"]
