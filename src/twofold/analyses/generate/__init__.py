"""New images or rows drawn from a model."""

from twofold.analyses.generate.analysis import Samples, generate

__all__ = ["Samples", "generate"]
