"""An image or signals in fewer bytes."""

from twofold.analyses.compress.analysis import compress
from twofold.analyses.compress.answer import Compression, SignalCompression, Unpacked, UnpackedSignals

__all__ = ["Compression", "SignalCompression", "Unpacked", "UnpackedSignals", "compress"]
