"""Whether a file can be written, asked before anything is computed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from twofold.core.checks import InputError


def check_writable(path: str | os.PathLike, *, force: bool = False, inputs: Sequence[str | os.PathLike] = ()) -> None:
    """Refuse a path that is a folder, lies in none or in one without permission, is one of the `inputs`, or exists.

    Only the last may be forced. An input ``file.db::table`` means the file.
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
