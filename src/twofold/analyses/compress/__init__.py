"""An image or signals in fewer bytes."""

from twofold.analyses.compress.analysis import (
    Compression,
    SignalCompression,
    Unpacked,
    UnpackedSignals,
    compress,
    is_packed,
)

__all__ = ["Compression", "SignalCompression", "Unpacked", "UnpackedSignals", "compress", "is_packed"]
