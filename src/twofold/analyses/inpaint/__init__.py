"""The holes of an image filled."""

from twofold.analyses.inpaint.analysis import inpaint
from twofold.analyses.inpaint.answer import Inpainted

__all__ = ["Inpainted", "inpaint"]
