"""Run something that may crash, hang or eat memory in a forked child, and tell what became of it."""

from __future__ import annotations

import os
import resource
import select
import signal
import sys
import warnings
from collections.abc import Callable

REFUSED = ("InputError", "ModelFileError", "ParameterError")


def run(call: Callable[[], object], seconds: float = 120.0, memory: int | None = None) -> str:
    """Return the end of call(): "done", the name and message of its exception, "signal 11", or "hangs"."""
    sys.stdout.flush()
    sys.stderr.flush()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        warnings.simplefilter("ignore")
        try:
            call()
            outcome = "done"
        except BaseException as error:
            outcome = f"{type(error).__name__}: {error}"
        os.write(write, outcome.encode("utf-8", "replace")[:60_000])
        os._exit(0)
    os.close(write)
    ready, _, _ = select.select([read], [], [], seconds)
    outcome = os.read(read, 65_536).decode("utf-8", "replace") if ready else ""
    os.close(read)
    if not ready:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if not ready:
        return "hangs"
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else outcome or "no answer"


def is_refused(outcome: str) -> bool:
    """Tell whether the answer is one of our own refusals, which name the place and the remedy."""
    return outcome.startswith(REFUSED)
