"""Where results may go: checked before anything is computed, written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from twofold.core.checks import InputError
from twofold.io.tables.write import check_workbook_writer
from twofold.io.writable import check_writable

Writer = Callable[[Path], Any]


def check_targets(paths: Sequence[Path], endings: Sequence[str], force: bool, inputs: Sequence[str] = ()) -> None:
    """Refuse, before anything is computed, every output that could not or should not be written."""
    for path in paths:
        if path.suffix.lower() not in endings:
            raise InputError(f"{path}: results are written as {', '.join(endings)}; end the name with one of these.")
        if paths.count(path) > 1:
            raise InputError(f"{path} is named twice. Give each output its own file.")
        check_workbook_writer(path)
        check_writable(path, force=force, inputs=inputs)
