"""The folder of a partition: how its files are written and read, so that each appears whole and a missing or damaged
one is one clear error."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from twofold.core.checks import InputError
from twofold.core.files.atomic import replacing
from twofold.core.files.headers import reads_headers

DAMAGED = (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)


def write_arrays(path: Path, **arrays: Any) -> None:
    """Arrays by name in one file."""
    with replacing(path, durable=False) as draft:
        np.savez(draft, **arrays)


@reads_headers
def read_arrays(path: Path, *names: str) -> list[np.ndarray]:
    """Some of the arrays in a file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return [file[name] for name in names]
    except FileNotFoundError:
        raise InputError(missing_message(path)) from None
    except DAMAGED as why:
        raise InputError(
            f"{path} is damaged or truncated ({why}). Delete {path.parent.parent} and start again."
        ) from None


def write_array(path: Path, array: np.ndarray) -> None:
    with replacing(path, durable=False) as draft, open(draft, "wb") as file:
        np.lib.format.write_array(file, array, allow_pickle=False)


def read_run(path: Path, dtype: np.dtype, start: int, stop: int) -> np.ndarray:
    """Records start..stop of a file of nothing else."""
    try:
        found = np.fromfile(path, dtype, stop - start, offset=start * dtype.itemsize)
    except FileNotFoundError:
        raise InputError(missing_message(path)) from None
    if len(found) < stop - start:
        raise InputError(f"{path} is truncated: it ends before its last record. Delete its folder and start again.")
    return found


def missing_message(path: Path) -> str:
    folder = path.parent.parent
    what = f"the folder {folder} is gone" if not folder.is_dir() else f"{path} is missing"
    return (
        f"{what}, which holds partitioned ratings and factors. Every worker must see the folder for as long as the fit "
        "lasts: give PartitionedRatings one on a disk they share, and partition again."
    )
