"""Groups of rows that belong together."""

from twofold.analyses.cluster.analysis import cluster

__all__ = ["cluster"]
