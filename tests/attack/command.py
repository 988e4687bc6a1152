"""The command `twofold` in a forked child: its imports are done once, here, so that a hundred commands are quick.

Nothing may be computed in this process: threads that polars or torch had started would be missing in the children.
"""

from __future__ import annotations

import importlib
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from tests.attack.child import run
from twofold.cli.app import ANALYSES, OTHERS, main

MEMORY = 6 * 2**30  # bytes a command may take beyond what this process has


class Ended(NamedTuple):
    """What became of a command."""

    code: int  # as a shell says it: 128 + n for signal n; -1 if it had to be killed
    out: str
    err: str
    seconds: float  # from its start, or from the signal it was sent


@cache
def warm() -> None:
    """Import what the verbs import."""
    others = ("twofold.cli.command", "matplotlib.pyplot", "twofold.tour.page", "twofold.plots.style")
    verbs = [f"twofold.analyses.{verb}" for verb in ANALYSES] + [f"twofold.cli.verbs.{verb}" for verb in OTHERS]
    for module in (*verbs, *others, "twofold.deep._train"):
        importlib.import_module(module)


class Command:
    """A command that has been started."""

    def __init__(
        self,
        args: Sequence[str],
        folder: Path,
        stdin: bytes = b"",
        memory: int = MEMORY,
        limits: Mapping[int, int] | None = None,
        before: Callable[[], Any] | None = None,
        out: str = "",
    ):
        warm()
        self.kept = tempfile.TemporaryDirectory(prefix="attack-")
        self.paths = [Path(self.kept.name, name) for name in ("in", "out", "err")]
        self.paths[0].write_bytes(stdin)
        self.start = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            self._run(list(args), folder, memory, limits or {}, before, out)

    def _run(
        self, args: list[str], folder: Path, memory: int, limits: Mapping[int, int], before: Any, out: str
    ) -> NoReturn:
        """The command itself, in the child."""
        code = 70
        try:
            os.setsid()
            for sign in (signal.SIGINT, signal.SIGTERM):
                signal.signal(sign, signal.default_int_handler if sign == signal.SIGINT else signal.SIG_DFL)
            os.dup2(os.open(self.paths[0], os.O_RDONLY), 0)
            os.dup2(os.open(out or self.paths[1], os.O_WRONLY | os.O_CREAT, 0o600), 1)
            os.dup2(os.open(self.paths[2], os.O_WRONLY | os.O_CREAT, 0o600), 2)
            os.chdir(folder)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            most = _size() + memory
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            for what, bound in limits.items():
                resource.setrlimit(what, (bound, bound))
            if before:
                before()
            main(args)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException:
            traceback.print_exc()
        finally:
            try:
                sys.stdout.flush()
            except OSError:
                code = code or 71
            sys.stderr.flush()
            threading._shutdown()  # type: ignore[attr-defined]  # as at the end of every Python: wait for threads
            os._exit(code)

    def running(self) -> bool:
        """Tell whether it has not ended; wait() still returns its end."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def send(self, sign: int) -> None:
        self.start = time.monotonic()
        os.kill(self.pid, sign)

    def wait(self, seconds: float = 60.0) -> Ended:
        """Its end; a command that takes longer is killed."""
        killed = False
        while self.running():
            if time.monotonic() - self.start > seconds:
                os.kill(self.pid, signal.SIGKILL)
                killed = True
            time.sleep(0.005)
        took = time.monotonic() - self.start
        _, status = os.waitpid(self.pid, 0)
        code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        out, err = (path.read_bytes().decode("utf-8", "replace") if path.exists() else "" for path in self.paths[1:])
        self.kept.cleanup()
        return Ended(-1 if killed else code, out, err, took)

    def kill_leftovers(self) -> bool:
        """Kill processes it started that live on; tell whether there were any."""
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        os.killpg(self.pid, signal.SIGKILL)
        return True


def _size() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def twofold(*args: str, folder: Path, seconds: float = 60.0, **options: Any) -> Ended:
    """Run one command to its end."""
    return Command(args, folder, **options).wait(seconds)


def fault(ended: Ended, codes: Sequence[int] = (0, 2)) -> str:
    """Return the fault of a command's end, "" if there is none."""
    said = ended.out + ended.err
    if ended.code == -1:
        return f"hangs: {ended.err[-100:]}"
    if "Traceback" in said or "internal error" in said:
        return said[-500:].replace("\n", " | ")
    if ended.code not in codes:
        return f"exit code {ended.code}: {ended.err[-200:]}"
    odd = sorted({c for c in said if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or c in BIDI})
    if odd:
        return f"control characters {odd} on the terminal"
    if ended.code != 0 and not (ended.err.strip() or ended.out.strip()):
        return f"exit code {ended.code} without a word"
    if ended.code == 2 and ended.err.strip() and not ended.err.strip().splitlines()[-1].startswith("twofold"):
        return f"the last line is {ended.err.strip().splitlines()[-1]!r}"
    return ""


BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Every plain file below a folder: when it was written, and its size."""
    files = ((path, path.stat()) for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): (about.st_mtime_ns, about.st_size) for path, about in files}


@contextmanager
def make_data(build: Callable[[Path], object]) -> Iterator[Path]:
    """A folder with what `build` writes; a child runs it, so that this process starts no threads."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        said = run(lambda: build(folder))
        if said != "done":
            raise RuntimeError(f"the data cannot be made: {said}")
        yield folder
