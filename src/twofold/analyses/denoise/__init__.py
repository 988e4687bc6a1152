"""The noise of an image or of signals removed."""

from twofold.analyses.denoise.analysis import Denoised, DenoisedSignals, denoise

__all__ = ["Denoised", "DenoisedSignals", "denoise"]
