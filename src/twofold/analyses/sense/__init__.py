"""An image or signals recovered from few random measurements."""

from twofold.analyses.sense.analysis import KINDS, SIGNALS, SensedImage, SensedSignals, Sensing, is_table, sense

__all__ = ["KINDS", "SIGNALS", "SensedImage", "SensedSignals", "Sensing", "is_table", "sense"]
