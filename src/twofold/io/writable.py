"""Whether a file can be written, asked before anything is computed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from twofold.core.checks import InputError


def check_writable(path: str | os.PathLike, *, force: bool = False, inputs: Sequence[str | os.PathLike] = ()) -> None:
    """Refuse, in one line, a file that could not or should not be written.

    Parameters
    ----------
    path : str or path
    force : bool, default=False
        Whether a file that exists may be replaced.
    inputs : sequence of str or path
        Files that are read, and must not be replaced even by force; ``file.db::table`` means the file.

    Raises
    ------
    InputError
        If the path is a folder, lies in none, or in one without permission; if it is an input; or if it exists.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder. Name a file in it.")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}. Create it first.")
    try:
        with tempfile.TemporaryFile(dir=path.parent):  # permissions alone do not tell: the disk may be read-only
            pass
    except OSError as error:
        raise InputError(f"{path}: cannot write in {path.parent} ({error.strerror}). Choose another folder.") from None
    if not path.exists():
        return
    if any(Path(os.fspath(one).split("::")[0]).resolve() == path.resolve() for one in inputs):
        raise InputError(f"{path} is the input and would be lost. Choose another name.")
    if not force:
        raise InputError(f"{path} exists. Use ⟨force=True⟩ to replace it, or choose another name.")
