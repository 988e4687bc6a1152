"""Choosing sizes, settings and models."""

from twofold.model_selection.criteria import CRITERIA, heldout_score
from twofold.model_selection.select import select
from twofold.model_selection.selection import Selection

__all__ = ["CRITERIA", "Selection", "heldout_score", "select"]
