"""The holes of an image filled."""

from twofold.analyses.inpaint.analysis import inpaint

__all__ = ["inpaint"]
