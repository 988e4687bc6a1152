"""Data that is always at hand, with no download, and readers of the standard sets.

Every function returns a ``Bunch``: a dict whose entries are attributes too.
"""

from twofold.datasets.bundled import digits, docstrings, iris, photographs, signals, table_with_holes, wine
from twofold.datasets.fetch import fetch
from twofold.datasets.synthetic_ratings import ratings

__all__ = [
    "digits", "docstrings", "fetch", "iris", "photographs", "ratings", "signals", "table_with_holes", "wine",
]  # fmt: skip
