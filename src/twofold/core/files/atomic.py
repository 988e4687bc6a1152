"""Files that appear whole or not at all.

A file is written under a temporary name in its own folder, forced to disk, and renamed: a crash, a full disk or Ctrl-C
leaves what was there before. An operating system's refusal comes out as an OSError that names the file asked for.
What a killed process left under a temporary name is cleared by the next writer of the same file.
"""

from __future__ import annotations

import ctypes
import errno
import glob
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from twofold.core.checks import InputError
from twofold.core.types import PathLike

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Writer = Callable[[Path], Any]


def write_bytes(path: PathLike, data: bytes) -> None:
    """Write a file of these bytes."""
    with replacing(path) as draft:
        draft.write_bytes(data)


def write_text(path: PathLike, text: str) -> None:
    """Write a file of this text, as UTF-8."""
    write_bytes(path, text.encode())


def write_all(writers: Mapping[Path, Writer]) -> None:
    """Call a writer with a temporary path for each file, then move all into place: an error leaves none of them."""
    with ExitStack() as stack:
        drafts = {path: stack.enter_context(replacing(path)) for path in writers}
        for path, write in writers.items():
            with _naming(path, drafts[path]):
                write(drafts[path])


@contextmanager
def replacing(path: PathLike, durable: bool = True) -> Iterator[Path]:
    """A temporary path, with the ending of `path`, that becomes `path` if the block succeeds and goes away if not.

    Where it is not `durable`, the disk is not waited for: for files that are of no use once the process has ended.
    """
    final = _target(path)
    if final.is_dir():
        raise InputError(f"Cannot write {path}: it is a folder. Name a file in it.")
    _clear(final)
    with _lock_draft(path, final, lambda draft: draft.touch(exist_ok=False)) as draft:
        mode = draft.stat().st_mode  # what this user's new files get; some writers would leave it private
        yield draft
        draft.chmod(mode)
        if durable:
            _sync(draft)
        os.replace(draft, final)
    if not durable:
        return
    with suppress(OSError):  # some systems cannot sync a folder; the file itself is safe by now
        _sync(final.parent)


@contextmanager
def replacing_folder(path: PathLike) -> Iterator[Path]:
    """The same for a folder: a new one that takes the place of `path` if the block succeeds."""
    final = _target(path)
    _clear(final)
    with _lock_draft(path, final, Path.mkdir) as draft:
        yield draft
        for file in draft.iterdir():
            _sync(file)
        if not final.exists():
            os.replace(draft, final)
        elif not _exchange(draft, final):
            aside = _draft(final)
            os.replace(final, aside)
            try:
                os.replace(draft, final)
            except OSError:
                os.replace(aside, final)
                raise
            shutil.rmtree(aside, ignore_errors=True)


def _exchange(first: Path, second: Path) -> bool:
    """Two paths change places at one stroke, so that neither is missing at any time; False where that cannot be."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # a system other than Linux
        return False
    here = -100  # AT_FDCWD: paths as they are
    return rename(here, os.fsencode(first), here, os.fsencode(second), ctypes.c_uint(2)) == 0  # RENAME_EXCHANGE


def _target(path: PathLike) -> Path:
    final = Path(os.path.realpath(path))  # through a link, so that the link stays one
    if not final.parent.is_dir():
        raise InputError(f"Cannot write {path}: the folder {final.parent} does not exist. Create it first.")
    return final


def _draft(final: Path) -> Path:
    return final.with_name(f".{final.stem[:100]}.{secrets.token_hex(6)}.part{final.suffix[:20]}")


@contextmanager
def _lock_draft(path: PathLike, final: Path, make: Callable[[Path], Any]) -> Iterator[Path]:
    """A new draft, locked while the block lasts by a lock that ends with this process; nothing of it is left behind."""
    draft = _draft(final)
    with _naming(path, draft):
        make(draft)
        try:
            while (lock := _lock(draft)) is None:  # cleared by another writer before it was locked
                make(draft)
            try:
                yield draft
            finally:
                os.close(lock) if lock >= 0 else None
        finally:
            with suppress(OSError):
                shutil.rmtree(draft) if draft.is_dir() else draft.unlink(missing_ok=True)


def _lock(draft: Path) -> int | None:
    """A locked handle of the draft; -1 where files cannot be locked, None if it is gone."""
    if fcntl is None:
        return -1
    try:
        handle = os.open(draft, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with suppress(OSError):  # a file system without locks
        fcntl.flock(handle, fcntl.LOCK_EX)
    if not draft.exists():
        os.close(handle)
        return None
    return handle


def _clear(final: Path) -> None:
    """Remove drafts of this file that no process holds: theirs was killed."""
    if fcntl is None:
        return
    for left in final.parent.glob(f".{glob.escape(final.stem[:100])}.*.part{glob.escape(final.suffix[:20])}"):
        with suppress(OSError):
            handle = os.open(left, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            finally:
                os.close(handle)


@contextmanager
def _naming(path: PathLike, draft: Path) -> Iterator[None]:
    """Turn a refusal of the operating system, whatever library met it, into an OSError that names the file."""
    try:
        yield
    except Exception as error:
        told = re.search(r"\(os error (\d+)\)", str(error))  # how libraries written in Rust say it
        if told:
            raise OSError(int(told[1]), os.strerror(int(told[1])), os.fspath(path)) from error
        if isinstance(error, OSError) and (error.filename is None or str(error.filename).startswith(str(draft))):
            if error.errno is None:  # NumPy, of a file it could not write to its end
                raise OSError(errno.EIO, str(error), os.fspath(path)) from error
            error.filename, error.filename2 = os.fspath(path), None
        raise


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
