"""New images or rows drawn from a model."""

from twofold.analyses.generate.analysis import generate
from twofold.analyses.generate.answer import Samples

__all__ = ["Samples", "generate"]
