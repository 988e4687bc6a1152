"""An image or signals recovered from few random measurements."""

from twofold.analyses.sense.analysis import sense
from twofold.analyses.sense.answer import SensedImage, SensedSignals, Sensing

__all__ = ["SensedImage", "SensedSignals", "Sensing", "sense"]
