"""Folders that are deleted with the object that needs them, at the latest when the process ends."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path


class TemporaryFolder:
    """A new folder, which is gone when this object is."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="twofold-"))
        self.delete = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
