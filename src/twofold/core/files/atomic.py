"""Files that appear whole or not at all.

A file is written under a temporary name in its own folder, forced to disk, and renamed: a crash, a full disk or Ctrl-C
leaves what was there before. An operating system's refusal comes out as an OSError that names the file asked for.
What a killed process left under a temporary name is cleared by whoever writes the same file next.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import secrets
import shutil
import time
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
RECENT = 60.0  # seconds in which a draft is not touched, held or not: its process may be about to take hold of it


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
def replacing(path: PathLike) -> Iterator[Path]:
    """A temporary path, with the ending of `path`, that becomes `path` if the block succeeds and goes away if not."""
    final = _target(path)
    if final.is_dir():
        raise InputError(f"Cannot write {path}: it is a folder. Name a file in it.")
    _clear(final)
    draft = _draft(final)
    with _naming(path, draft):
        try:
            draft.touch(exist_ok=False)
            mode = draft.stat().st_mode  # what this user's new files get; some writers would leave it private
            with _held(draft):
                yield draft
            draft.chmod(mode)
            _sync(draft)
            os.replace(draft, final)
        except BaseException:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise
    with suppress(OSError):  # some systems cannot sync a folder; the file itself is safe by now
        _sync(final.parent)


@contextmanager
def replacing_folder(path: PathLike) -> Iterator[Path]:
    """The same for a folder: a new one that takes the place of `path` if the block succeeds.

    A former folder is moved aside first, deleted last, and put back if the new one cannot take its place.
    """
    final = _target(path)
    _clear(final)
    draft, aside = _draft(final), _draft(final)
    with _naming(path, draft):
        try:
            draft.mkdir()
            with _held(draft):
                yield draft
            for file in draft.iterdir():
                _sync(file)
            if final.exists():
                os.replace(final, aside)
            try:
                os.replace(draft, final)
            except OSError:
                if aside.exists():
                    os.replace(aside, final)
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(aside, ignore_errors=True)


def _target(path: PathLike) -> Path:
    final = Path(os.path.realpath(path))  # through a link, so that the link stays one
    if not final.parent.is_dir():
        raise InputError(f"Cannot write {path}: the folder {final.parent} does not exist. Create it first.")
    return final


def _draft(final: Path) -> Path:
    return final.with_name(f".{final.stem[:100]}.{secrets.token_hex(6)}.part{final.suffix[:20]}")


@contextmanager
def _held(draft: Path) -> Iterator[bool]:
    """Whether the draft could be locked, by a lock that ends with this process; True where there is no such lock."""
    if fcntl is None:
        yield True
        return
    handle = os.open(draft, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine = True
        except OSError:
            mine = False
        yield mine
    finally:
        os.close(handle)


def _clear(final: Path) -> None:
    """Remove drafts of this file that nobody holds any more: their process was killed."""
    if fcntl is None:
        return
    for left in final.parent.glob(f".{glob.escape(final.stem[:100])}.*.part{glob.escape(final.suffix[:20])}"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime < RECENT:
                continue
            with _held(left) as dead:
                if dead:
                    shutil.rmtree(left) if left.is_dir() else left.unlink()


@contextmanager
def _naming(path: PathLike, draft: Path) -> Iterator[None]:
    """What the operating system refuses is an OSError that names the file asked for, whatever library met it."""
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
