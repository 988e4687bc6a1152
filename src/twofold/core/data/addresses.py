"""Files elsewhere: `https://`, `s3://` and whatever else fsspec knows, copied to a temporary folder."""

from __future__ import annotations

import os
import re
import shutil
from typing import Any

from twofold.core.checks import InputError, reason_of
from twofold.core.data.temporary import TemporaryFolder
from twofold.core.types import PathLike

ADDRESS = re.compile(r"[a-z][a-z0-9+]+://")  # a drive letter is shorter
_folders: dict[str, TemporaryFolder] = {}  # by address; deleted when the process ends


def fetch_address(path: Any) -> Any:
    """The path of a copy, where `path` is an address; else `path` itself. An address is copied once in a process."""
    address = os.fspath(path) if isinstance(path, (str, os.PathLike)) else ""
    if not ADDRESS.match(address):
        return path
    name = address.rstrip("/").rpartition("/")[2].partition("?")[0] or "data"
    if address not in _folders:
        folder = TemporaryFolder()
        copy_file(address, folder.path / name)
        _folders[address] = folder
    return str(_folders[address].path / name)


def copy_file(address: str, target: PathLike) -> None:
    """Copy what is at an address to a file."""
    try:
        import fsspec
    except ImportError:
        raise InputError(
            f'{address} is an address, and those need fsspec: pip install "twofold[remote]". Or download the file.'
        ) from None
    try:
        with fsspec.open(address, "rb") as source, open(target, "wb") as out:
            shutil.copyfileobj(source, out, 2**20)
    except ImportError as error:
        raise InputError(f"{address} cannot be read yet: {error}.") from None
    except Exception as error:  # of any protocol, each with exceptions of its own
        raise InputError(f"{address} cannot be fetched ({reason_of(error)}). Check it, or download the file.") from None
