"""The noise of an image or of signals removed."""

from twofold.analyses.denoise.analysis import denoise
from twofold.analyses.denoise.answer import Denoised, DenoisedSignals

__all__ = ["Denoised", "DenoisedSignals", "denoise"]
