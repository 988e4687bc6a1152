"""The blanks of a table, filled."""

from twofold.analyses.complete.analysis import complete

__all__ = ["complete"]
