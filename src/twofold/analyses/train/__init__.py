"""A network or a generator trained on images or rows."""

from twofold.analyses.train.analysis import KINDS, Training, train

__all__ = ["KINDS", "Training", "train"]
