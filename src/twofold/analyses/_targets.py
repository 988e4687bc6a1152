"""Where results may go: checked before anything is computed, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from twofold.core.checks import InputError

Writer = Callable[[Path], Any]


def check_targets(paths: Sequence[Path], endings: Sequence[str], overwrite: bool, inputs: Sequence[str] = ()) -> None:
    """Refuse, before anything is computed, every output that could not or should not be written."""
    for path in paths:
        if path.suffix.lower() not in endings:
            raise InputError(f"{path}: results are written as {', '.join(endings)}; end the name with one of these.")
        if paths.count(path) > 1:
            raise InputError(f"{path} is named twice. Give each output its own file.")
        if path.is_dir():
            raise InputError(f"{path} is a folder. Name a file in it.")
        if path.exists() and any(Path(one.split("::")[0]).resolve() == path.resolve() for one in inputs):
            raise InputError(f"{path} is the input and would be lost. Choose another name.")
        if path.exists() and not overwrite:
            raise InputError(f"{path} exists. Use --force to replace it, or choose another name.")
        check_folder(path)


def check_folder(path: Path) -> None:
    """Try to make a file where the result will be: permissions alone do not tell (read-only disks, full ones)."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}. Create it first.")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InputError(f"{path}: cannot write in {path.parent} ({error.strerror}). Choose another folder.") from None


def write_all(writers: Mapping[Path, Writer]) -> None:
    """Write every file beside its place, then move all into place: either all appear, whole, or none."""
    drafts = {path: path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}") for path in writers}
    try:
        for path, write in writers.items():
            write(drafts[path])
        for path, draft in drafts.items():
            draft.replace(path)
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
