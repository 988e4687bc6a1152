"""Compiled inner loops: arrays and scalars in, arrays out, and nothing else.

Kernels are serial and release the GIL; the engine runs them on threads. Each has a plain NumPy twin in the tests.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numba
from numba.misc.appdirs import AppDirs

settings: Any = numba.config


def find_cache() -> None:
    """Choose a folder for compiled kernels that this user can write to: beside the source, in the user's own folder,
    or else in a temporary folder of this process. Other folders are not safe, because the files are code."""
    if settings.CACHE_DIR:
        return
    beside, own = Path(__file__).parent / "__pycache__", Path(AppDirs(appname="numba", appauthor=False).user_cache_dir)
    if can_write(beside) or can_write(own):
        return
    settings.CACHE_DIR = tempfile.mkdtemp(prefix="twofold-kernels-")
    atexit.register(_remove, settings.CACHE_DIR, os.getpid())


def can_write(folder: Path) -> bool:
    """True if a folder can be written to or created."""
    while not os.path.exists(folder) and folder != folder.parent:  # also False if access to the parent is denied
        folder = folder.parent
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def _remove(folder: str, pid: int) -> None:
    if os.getpid() == pid:  # not in a forked child
        shutil.rmtree(folder, ignore_errors=True)


find_cache()
