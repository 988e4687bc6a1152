"""Alignment of two spaces of word vectors."""

from twofold.words.alignment.alignment import Alignment, align

__all__ = ["Alignment", "align"]
