"""An image or signals recovered from few random measurements."""

from twofold.analyses.sense.analysis import sense
from twofold.analyses.sense.answer import SensedImage, SensedSignals, Sensing
from twofold.analyses.sense.models import KINDS
from twofold.analyses.sense.read import is_table

SIGNALS = (".csv", ".tsv", ".parquet", ".npy")

__all__ = ["KINDS", "SIGNALS", "SensedImage", "SensedSignals", "Sensing", "is_table", "sense"]
