"""Co-occurrence counts."""

from twofold.words.cooccurrence.cooccurrence import Cooccurrence

__all__ = ["Cooccurrence"]
