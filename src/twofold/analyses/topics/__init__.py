"""The topics of documents."""

from twofold.analyses.topics.analysis import topics

__all__ = ["topics"]
