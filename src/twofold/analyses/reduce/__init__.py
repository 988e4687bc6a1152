"""The main directions of a table."""

from twofold.analyses.reduce.analysis import reduce

__all__ = ["reduce"]
