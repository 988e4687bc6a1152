"""A saved model on new data."""

from twofold.analyses.apply.analysis import apply

__all__ = ["apply"]
