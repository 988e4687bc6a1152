"""A network or a generator trained on images or rows."""

from twofold.analyses.train.analysis import train
from twofold.analyses.train.answer import Training

__all__ = ["Training", "train"]
