"""Worker processes as the server sees them: one that is started, told, asked and ended, and a pool of warm ones.

Everything here happens in the event loop of the server, but for two threads a process: one receives its messages, one
sends what it is told, so that the loop never waits.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import multiprocessing
import os
import queue
import signal
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from twofold.lab.worker import main
from twofold.web.requests import Refused

MAX_QUESTIONS = 16  # that wait for an answer of one process
_START_LOCK = threading.Lock()  # processes are started one at a time
# Forked from a process that has imported what they need, where forking is safe; elsewhere each imports it.
_CONTEXT: Any = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")


class Process:
    """A worker process, as the server sees it."""

    def __init__(self, folder: Path, memory: int, catalog: str):
        self.loop, self.limit = asyncio.get_running_loop(), memory
        self.numbers = itertools.count()
        self.asked: dict[int, asyncio.Future[Any]] = {}
        self.on_message: Callable[[dict[str, Any]], None] = lambda message: None
        self.on_frame: Callable[[bytes], None] = lambda frame: None
        self.on_ready: Callable[[], None] = lambda: None
        self.on_end: Callable[[], None] = lambda: None
        self.ready, self.reason, self.ended = False, "", False
        self.started_or_failed = asyncio.Event()
        self.pipe, worker_end = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=main, args=(worker_end, str(folder), memory, catalog), daemon=True)
        self.out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self.run_receiver, args=(worker_end,), daemon=True).start()
        threading.Thread(target=self.run_sender, daemon=True).start()

    def run_receiver(self, worker_end: Any) -> None:
        """Start the process, pass on its messages, and see it end; in a thread of its own."""
        if hasattr(signal, "pthread_sigmask"):  # Ctrl-C is for the server, which ends its children itself
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with _START_LOCK:
                _CONTEXT.set_forkserver_preload(["twofold.lab.warm"])
                self.process.start()
            worker_end.close()
            while True:
                data = self.pipe.recv_bytes()
                self.loop.call_soon_threadsafe(self.receive, data)
        except (EOFError, OSError):
            pass
        except Exception as error:  # it could not be started
            self.reason = " ".join(str(error).split())
        with suppress(ValueError, AssertionError):
            self.process.join(5)
        with suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(self.finish)

    def run_sender(self) -> None:
        """Pass on messages to the process; in a thread of its own."""
        with suppress(OSError, ValueError):
            while (data := self.out.get()) is not None:
                self.pipe.send_bytes(data)

    def receive(self, data: bytes) -> None:
        kind, rest = data[:1], data[1:]
        if kind == b"F":
            self.on_frame(rest)
        elif kind == b"A":
            self.reply(struct.unpack_from("<I", rest)[0], rest[4:])
        else:
            message = json.loads(rest)
            if "n" in message:
                error = message.get("error")
                self.reply(message["n"], Refused(400, error) if error else message["answer"])
            elif "ready" in message:
                self.ready = True
                self.started_or_failed.set()
                self.on_ready()
            else:
                self.on_message(message)

    def reply(self, n: int, answer: Any) -> None:
        future = self.asked.pop(n, None)
        if future is not None and not future.done():
            future.set_exception(answer) if isinstance(answer, Exception) else future.set_result(answer)

    def finish(self) -> None:
        self.ended = True
        self.started_or_failed.set()
        self.out.put(None)
        for n in list(self.asked):
            self.reply(n, Refused(500, self.explain_end()))
        self.on_end()

    def explain_end(self) -> str:
        """Explain why the process has ended."""
        code = self.process.exitcode
        if self.reason:
            return self.reason
        if code is not None and code < 0:
            if -code == signal.SIGABRT and sys.platform == "linux":  # how compiled code ends where memory is refused
                return (
                    f"Its process ended itself, most likely because it needs more than {self.limit / 1e9:.1f} GB of "
                    "memory, the most it may take. Choose fewer rows or columns, or a smaller model."
                )
            name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
            cause = "; perhaps the machine ran out of memory" if -code == 9 else ""
            return f"Its process was ended from outside ({name}){cause}. Start it again."
        return f"Its process ended before its work (exit code {code}). Start it again."

    def send(self, **message: Any) -> None:
        """Send a message."""
        self.out.put(json.dumps(message).encode())

    async def call(self, seconds: float, **message: Any) -> Any:
        """Send a message and wait for the reply, at most `seconds` once the process is ready."""
        await self.started_or_failed.wait()
        if self.ended:
            raise Refused(500, self.explain_end())
        if len(self.asked) >= MAX_QUESTIONS:
            raise Refused(429, "Too many questions at once. Wait for the answers.")
        n = next(self.numbers)
        future = self.asked[n] = self.loop.create_future()
        self.send(n=n, **message)
        try:
            return await asyncio.wait_for(future, seconds)
        except TimeoutError:
            raise Refused(504, f"There was no answer within {seconds:.0f} s.") from None
        finally:
            self.asked.pop(n, None)

    def kill(self, reason: str = "") -> None:
        self.reason = self.reason or reason
        if self.process.pid is not None:
            with suppress(OSError, ValueError, AttributeError):
                self.process.kill()

    def memory(self) -> int:
        """Return the bytes that it holds, 0 where the system does not say."""
        try:
            return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError):
            return 0


class Pool:
    """Warm processes that wait for a job, so that its first picture comes at once."""

    def __init__(self, folder: Path, size: int, memory: int, catalog: str):
        self.folder, self.size, self.memory, self.catalog = folder, size, memory, catalog
        self.spares: list[Process] = []
        self.closed = False

    def start(self) -> Process:
        return Process(self.folder, self.memory, self.catalog)

    def fill(self) -> None:
        """Start warm processes up to the size of the pool; one gets ready after the other."""
        self.spares = [one for one in self.spares if not one.ended]
        if len(self.spares) < self.size and all(one.ready for one in self.spares) and not self.closed:
            self.spares.append(self.start())
            self.spares[-1].on_ready = self.fill

    def is_full(self) -> bool:
        return len([one for one in self.spares if one.ready]) >= self.size

    def take(self) -> Process:
        """Take the process that is most ready."""
        self.spares = [one for one in self.spares if not one.ended] or [self.start()]
        chosen = next((one for one in self.spares if one.ready), self.spares[0])
        self.spares.remove(chosen)
        asyncio.get_running_loop().call_later(1.0, self.fill)  # the job's first picture comes first
        return chosen
