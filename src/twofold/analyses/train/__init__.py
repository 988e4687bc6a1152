"""A network or a generator trained on images or rows."""

from twofold.analyses.train.analysis import train
from twofold.analyses.train.answer import Training
from twofold.analyses.train.models import KINDS

__all__ = ["KINDS", "Training", "train"]
