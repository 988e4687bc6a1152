"""The holes of an image filled."""

from twofold.analyses.inpaint.analysis import inpaint
from twofold.analyses.inpaint.answer import Inpainted
from twofold.analyses.inpaint.holes import find_holes, without_holes

__all__ = ["Inpainted", "find_holes", "inpaint", "without_holes"]
