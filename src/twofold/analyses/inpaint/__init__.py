"""The holes of an image filled."""

from twofold.analyses.inpaint.analysis import Inpainted, find_holes, inpaint, without_holes

__all__ = ["Inpainted", "find_holes", "inpaint", "without_holes"]
