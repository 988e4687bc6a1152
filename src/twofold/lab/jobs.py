"""Jobs: each runs in a process of its own, bounded in number, memory and time; one that dies says why.

Everything here happens in the event loop of the server, but for one thread a process that waits for its messages. A
process that is warm already waits for the next job, so that its first picture comes at once; the clerk answers
questions about data; and files that users bring are read in a process that has nothing else to lose.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import multiprocessing
import os
import queue
import secrets
import shutil
import signal
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twofold.core.checks import InputError
from twofold.lab import frames
from twofold.lab.data import BUNDLED
from twofold.lab.worker import main

ALIVE = ("waiting", "running", "paused")


@dataclass(frozen=True)
class Limits:
    """What the lab may take of the machine."""

    jobs: int = 8  # with a process of their own
    running: int = 2
    spares: int = 2  # warm processes that wait for a job
    memory: int = 2_000_000_000  # bytes of one process
    seconds: float = 600.0  # of running
    idle: float = 600.0  # seconds after which a finished job's process ends
    records: int = 40  # jobs that are remembered
    kept: int = 200  # frames of a job
    kept_bytes: int = 64_000_000
    points: int = 4000  # of the curve
    uploads: int = 20
    upload_bytes: int = 64_000_000
    reading: float = 60.0  # seconds for a file
    answer: float = 10.0  # seconds for a question
    sockets: int = 64
    body: int = 4_000_000  # bytes of a request that is no file


class Refused(Exception):
    """A request that cannot be met: a status and one sentence."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


class Process:
    """A worker process, as the server sees it."""

    def __init__(self, folder: Path, memory: int, catalog: str):
        self.loop = asyncio.get_running_loop()
        self.numbers = itertools.count()
        self.asked: dict[int, asyncio.Future[Any]] = {}
        self.on_message: Callable[[dict[str, Any]], None] = lambda message: None
        self.on_frame: Callable[[bytes], None] = lambda frame: None
        self.on_ready: Callable[[], None] = lambda: None
        self.on_end: Callable[[], None] = lambda: None
        self.ready, self.reason, self.over = False, "", False
        self.settled = asyncio.Event()  # it is ready, or no more
        self.pipe, theirs = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=main, args=(theirs, str(folder), memory, catalog), daemon=True)
        self.out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()  # what is to be said: the loop never waits
        threading.Thread(target=self.live, args=(theirs,), daemon=True).start()
        threading.Thread(target=self.speak, daemon=True).start()

    def live(self, theirs: Any) -> None:
        """In a thread: start the process, pass on what it sends, and see it end."""
        if hasattr(signal, "pthread_sigmask"):  # Ctrl-C is for the server, which ends its children itself
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with _STARTING:
                _CONTEXT.set_forkserver_preload(["twofold.lab.warm"])
                self.process.start()
            theirs.close()
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
            self.loop.call_soon_threadsafe(self.end)

    def speak(self) -> None:
        """In a thread: pass on what the process is told."""
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
                self.settled.set()
                self.on_ready()
            else:
                self.on_message(message)

    def reply(self, n: int, answer: Any) -> None:
        future = self.asked.pop(n, None)
        if future is not None and not future.done():
            future.set_exception(answer) if isinstance(answer, Exception) else future.set_result(answer)

    def end(self) -> None:
        self.over = True
        self.settled.set()
        self.out.put(None)
        for n in list(self.asked):
            self.reply(n, Refused(500, self.why()))
        self.on_end()

    def why(self) -> str:
        """Why the process is no more."""
        code = self.process.exitcode
        if self.reason:
            return self.reason
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
            cause = "; perhaps the machine ran out of memory" if -code == 9 else ""
            return f"Its process was ended from outside ({name}){cause}. Start it again."
        return f"Its process ended before its work (exit code {code}). Start it again."

    def send(self, **message: Any) -> None:
        """Tell it something."""
        self.out.put(json.dumps(message).encode())

    async def call(self, seconds: float, **message: Any) -> Any:
        """Tell it something and wait for its reply, so many seconds once it is ready."""
        await self.settled.wait()
        if self.over:
            raise Refused(500, self.why())
        if len(self.asked) >= 16:
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
        """Bytes that it holds, where the system tells."""
        try:
            return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError):
            return 0


_STARTING = threading.Lock()  # processes are started one at a time
# Forked from a process that has imported what they need, where forking is safe; elsewhere each imports it.
_CONTEXT: Any = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")


@dataclass
class Job:
    """One run: what was asked for, what has come of it."""

    id: str
    data: str
    method: str
    settings: dict[str, Any]
    rows: list[int] | None
    objective_name: str
    status: str = "waiting"
    message: str = ""
    seconds: float = 0.0
    emitted: int = 0
    sweep: int = 0
    pace: float = 0.0
    sweeps: list[int] = field(default_factory=list)
    objective: list[float | None] = field(default_factory=list)
    kept: dict[int, bytes] = field(default_factory=dict)
    process: Process | None = None
    alone: float = field(default_factory=time.monotonic)  # since when nobody has asked it anything
    since: float = 0.0  # when it last began to run
    spent: float = 0.0  # seconds of running before that
    paused: bool = False
    leaving: asyncio.Task[Any] | None = None  # its process writes what can be taken away, and ends

    @property
    def first(self) -> bytes | None:
        return next(iter(self.kept.values()), None)

    @property
    def newest(self) -> bytes | None:
        return next(reversed(self.kept.values()), None)

    @property
    def asleep(self) -> bool:
        """Whether its process is only there to be asked."""
        return self.process is not None and self.status not in ALIVE

    def state(self, brief: bool = False) -> dict[str, Any]:
        """What the page knows of it; `brief` is without what it asked for, which may be long and does not change."""
        asked = {} if brief else {"settings": self.settings, "rows": self.rows}
        return asked | {
            "id": self.id, "data": self.data, "method": self.method,
            "status": self.status, "message": self.message, "sweep": self.sweep, "frames": self.emitted,
            "kept": list(self.kept), "seconds": round(self.seconds, 3), "pace": self.pace, "sweeps": self.sweeps,
            "objective": self.objective, "objective_name": self.objective_name, "open": self.process is not None,
        }  # fmt: skip

    def ran(self) -> float:
        """Seconds of running, as the clock on the wall has it."""
        return self.spent + (time.monotonic() - self.since if self.status == "running" else 0.0)

    def turn(self, status: str, message: str = "") -> None:
        self.spent = self.ran()
        self.since = time.monotonic()
        self.status, self.message = status, message

    def keep(self, index: int, frame: bytes, most: int, most_bytes: int) -> None:
        """Keep a frame; if there are too many, every second one goes, but not the first and the newest."""
        self.kept[index] = frame
        while len(self.kept) > 2 and (len(self.kept) > most or sum(map(len, self.kept.values())) > most_bytes):
            for at in list(self.kept)[1:-1:2]:
                del self.kept[at]


class Lab:
    """All jobs and all data of one server."""

    def __init__(self, limits: Limits | None = None, catalog: str = "twofold.lab.methods"):
        self.limits, self.catalog = limits or Limits(), catalog
        self.folder = Path(tempfile.mkdtemp(prefix="twofold-lab-"))
        self.jobs: dict[str, Job] = {}
        self.uploads: dict[str, dict[str, Any]] = {}
        self.watchers: set[Callable[[Job, bytes | None], None]] = set()
        self.spares: list[Process] = []
        self.clerk: Process | None = None
        self.preparer: Process | None = None
        self.reader: Process | None = None  # that reads users' files, one after the other
        self.reading, self.waiting = asyncio.Lock(), 0
        self.tasks: set[asyncio.Task[Any]] = set()
        self.closed = False

    # ---- processes ---------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Start the warm processes and the watch over them; the catalog is soon asked for."""
        self.fill()
        threading.Thread(target=self.methods, daemon=True).start()
        self.later(self.watch())
        self.later(self.prepare())

    async def prepare(self) -> None:
        """Documents take seconds to gather: it is done before they are asked for, when all else is ready."""
        while len([one for one in self.spares if one.ready]) < self.limits.spares:
            await asyncio.sleep(0.2)
        process = self.preparer = self.start()
        with suppress(Refused):
            await process.call(120, do="prepare", id="docstrings")
        process.kill()

    def later(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def start(self) -> Process:
        return Process(self.folder, self.limits.memory, self.catalog)

    def fill(self) -> None:
        """Have warm processes waiting, as many as there should be; one gets ready after the other."""
        self.spares = [one for one in self.spares if not one.over]
        if len(self.spares) < self.limits.spares and all(one.ready for one in self.spares) and not self.closed:
            self.spares.append(self.start())
            self.spares[-1].on_ready = self.fill

    def spare(self) -> Process:
        """A process for a job: the one that is most ready."""
        self.spares = [one for one in self.spares if not one.over] or [self.start()]
        chosen = next((one for one in self.spares if one.ready), self.spares[0])
        self.spares.remove(chosen)
        asyncio.get_running_loop().call_later(1.0, self.fill)  # the job's first picture comes first
        return chosen

    def helper(self) -> Process:
        """The process that answers for data."""
        if self.clerk is None or self.clerk.over:
            self.clerk = self.spare()
        return self.clerk

    async def watch(self) -> None:
        """End what takes too much memory or time, and what nobody asks any more."""
        most, longest = self.limits.memory, self.limits.seconds
        while True:
            await asyncio.sleep(0.25)
            for job in list(self.jobs.values()):
                if job.process is None:
                    continue
                if job.process.memory() > most:
                    job.process.kill(
                        f"It took more than {most / 1e9:.1f} GB of memory. Choose fewer rows, or a smaller model."
                    )
                elif job.status == "running" and job.ran() > longest:
                    job.process.kill(f"It ran for {longest:.0f} s, the longest a job may. Choose fewer rows or sweeps.")
                elif job.asleep and time.monotonic() - job.alone > self.limits.idle:
                    self.put_away(job)
            if self.reader is not None and self.reader.memory() > most:
                self.reader.kill(f"Reading it took more than {most / 1e9:.1f} GB of memory. Cut it into parts.")

    async def close(self) -> None:
        """End every process and remove every file."""
        self.closed = True
        for task in list(self.tasks):
            task.cancel()
        every = [*self.spares, *(one for one in (self.reader, self.clerk, self.preparer) if one is not None)]
        every += [job.process for job in self.jobs.values() if job.process is not None]
        for one in every:
            one.on_end = lambda: None
            one.kill("The lab was closed.")
        for one in every:
            with suppress(OSError):
                one.pipe.close()
        self.discard()

    def discard(self) -> None:
        """Remove every file."""
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- jobs --------------------------------------------------------------------------------------------------

    def find(self, id: str) -> Job:
        if id not in self.jobs:
            raise Refused(404, "There is no such job; it may have been left behind by an earlier lab.")
        return self.jobs[id]

    def methods(self) -> Any:
        """The module that lists the methods."""
        import importlib

        return importlib.import_module(self.catalog)

    def submit(
        self,
        data: str,
        method: str,
        settings: dict[str, Any],
        rows: list[int] | None = None,
        paused: bool = False,
        pace: float = 0.0,
    ) -> Job:
        """A new job, which runs as soon as there is room."""
        try:
            found = self.methods().find(method)
            chosen = found.check(settings)
        except InputError as error:
            raise Refused(400, str(error)) from None
        kind = self.kind_of(data)
        if kind not in found.kinds:
            raise Refused(400, f"{found.title} takes {' or '.join(found.kinds)}, and this data is {kind}.")
        if rows is not None and (len(rows) < 2 or min(rows) < 0):
            raise Refused(400, "Choose two rows or more.")
        self.make_room()
        job = Job(secrets.token_hex(6), data, method, chosen, rows, found.objective, pace=pace, paused=paused)
        self.jobs[job.id] = job
        self.forget()
        self.schedule()
        return job

    def make_room(self) -> None:
        """Close the oldest finished jobs if there are too many with a process."""
        open_jobs = [job for job in self.jobs.values() if job.process is not None or job.status == "waiting"]
        asleep = [job for job in open_jobs if job.asleep]
        while len(open_jobs) >= self.limits.jobs and asleep:
            oldest = asleep.pop(0)
            open_jobs.remove(oldest)
            self.put_away(oldest)
        if len(open_jobs) >= self.limits.jobs:
            raise Refused(429, f"{len(open_jobs)} jobs are under way, the most there may be. Cancel one.")

    def forget(self) -> None:
        """Remember only so many of the jobs that are over."""
        over = [job for job in self.jobs.values() if job.process is None and job.status not in ALIVE]
        for job in over[: max(0, len(self.jobs) - self.limits.records)]:
            self.remove(job)

    def schedule(self) -> None:
        """Start what waits, as far as there is room."""
        running = sum(job.status == "running" for job in self.jobs.values())
        for job in list(self.jobs.values()):
            if job.status == "waiting" and running < self.limits.running:
                self.begin(job)
                running += 1

    def begin(self, job: Job) -> None:
        process = job.process = self.spare()
        process.on_frame = lambda frame: self.take_frame(job, frame)
        process.on_message = lambda message: self.take_message(job, message)
        process.on_end = lambda: self.take_end(job, process)
        if job.paused:
            process.send(do="pause")
        if job.pace:
            process.send(do="pace", pace=job.pace)
        process.send(do="run", job=job.id, data=job.data, method=job.method, settings=job.settings, rows=job.rows)
        self.turn(job, "paused" if job.paused else "running")

    def turn(self, job: Job, status: str, message: str = "") -> None:
        job.turn(status, message)
        job.alone = time.monotonic()
        self.tell(job)
        if not self.closed:
            self.schedule()

    def tell(self, job: Job, frame: bytes | None = None) -> None:
        for watcher in list(self.watchers):
            watcher(job, frame)

    def take_frame(self, job: Job, frame: bytes) -> None:
        header, _ = frames.decode(frame)
        job.sweep = header["sweep"]
        job.keep(header["index"], frame, self.limits.kept, self.limits.kept_bytes)
        self.tell(job, frame)

    def take_message(self, job: Job, message: dict[str, Any]) -> None:
        job.seconds = message.get("seconds", job.seconds)
        for sweep, value in message.get("curve", ()):
            if value is None:
                continue
            if job.sweeps and job.sweeps[-1] == sweep:  # the last frame shows the sweep before it once more
                job.sweeps.pop()
                job.objective.pop()
            job.sweeps.append(sweep)
            job.objective.append(value)
        if len(job.sweeps) > self.limits.points:
            job.sweeps, job.objective = job.sweeps[::2], job.objective[::2]
        job.emitted = message.get("emitted", job.emitted)
        if "status" in message and job.status in ALIVE:
            self.turn(job, message["status"], message["message"])
        else:
            self.tell(job)

    def take_end(self, job: Job, process: Process) -> None:
        if job.process is process:
            job.process = None
        if job.status in ALIVE:
            self.turn(job, "failed", process.why())
        else:
            self.tell(job)

    def control(self, job: Job, what: str, pace: float = 0.0) -> None:
        """Pause, resume, step, pace, cancel."""
        if what == "pace":
            job.pace = pace
            if job.process is not None:
                job.process.send(do="pace", pace=pace)
            return self.tell(job)
        if job.status not in ALIVE:
            raise Refused(409, f"The job is {job.status} and can no longer be told to {what}.")
        if what == "cancel":
            process = job.process
            self.turn(job, "cancelled", "Cancelled.")
            if process is not None:
                process.send(do="cancel")
                asyncio.get_running_loop().call_later(2.0, process.kill)
        elif job.status == "waiting":
            job.paused = what != "resume"
        elif what == "step":
            if job.status != "paused":
                raise Refused(409, "Only a job that is paused can take a step. Pause it.")
            assert job.process is not None
            job.process.send(do="step")
        elif job.process is not None:
            job.process.send(do=what)
            self.turn(job, "paused" if what == "pause" else "running")
        return None

    def frame(self, job: Job, index: int) -> bytes:
        if index not in job.kept or job.first is None:
            raise Refused(404, f"Frame {index} is not kept.")
        return frames.merge(job.first, job.kept[index])

    def newest(self, job: Job) -> bytes | None:
        return None if job.newest is None or job.first is None else frames.merge(job.first, job.newest)

    async def ask(self, job: Job, question: dict[str, Any]) -> Any:
        if job.status in ALIVE:
            raise Refused(409, "The job is still at work; it answers when it is done.")
        if job.process is None or job.status != "done":
            raise Refused(410, "The process of this job has ended. Run it again to ask it.")
        job.alone = time.monotonic()
        return await job.process.call(self.limits.answer, do="ask", question=question)

    async def take(self, job: Job, what: str) -> Path:
        """A file to take away; the process writes it, or has written it before it was put away."""
        path = self.folder / job.id / what
        if job.status != "done":
            raise Refused(409, f"The job is {job.status}; there is something to take away when it is done.")
        if not path.is_file():
            if job.leaving is not None:
                await job.leaving
            if job.process is None:
                if path.is_file():
                    return path
                raise Refused(404, "The job has nothing of this kind.")
            job.alone = time.monotonic()
            await job.process.call(self.limits.answer * 3, do="take", what=what)
        return path

    def put_away(self, job: Job) -> None:
        """End the process of a finished job; what can be taken away is written before."""
        process, job.process = job.process, None

        async def leave(process: Process) -> None:
            with suppress(Refused):
                await process.call(self.limits.answer * 3, do="put_away")
            process.kill()

        if process is not None:
            job.leaving = self.later(leave(process))

    def remove(self, job: Job) -> None:
        del self.jobs[job.id]
        if job.process is not None:
            job.process.on_end = lambda: None
            job.process.kill()
        shutil.rmtree(self.folder / job.id, ignore_errors=True)
        job.turn("cancelled", "Removed.")
        self.tell(job)
        self.schedule()

    # ---- data --------------------------------------------------------------------------------------------------

    def kind_of(self, id: str) -> str:
        if id == "none":
            return "none"
        if id in BUNDLED:
            return BUNDLED[id].kind
        if id in self.uploads:
            return self.uploads[id]["kind"]
        raise Refused(404, "There is no such data in this lab. Bring the file again.")

    def listing(self) -> list[dict[str, Any]]:
        """All data, one's own first."""
        parts = ("id", "name", "kind", "about", "shape")
        own = [{part: one[part] for part in parts} for one in self.uploads.values()]
        bundled = [
            {"id": id, "name": one.name, "kind": one.kind, "about": one.about, "shape": one.shape}
            for id, one in BUNDLED.items()
        ]
        return own + bundled

    async def read(self, path: Path, name: str, kind: str | None = None, id: str | None = None) -> dict[str, Any]:
        """A file that lies at a path of ours, read in a process that has nothing else to lose."""
        if self.waiting >= 4:
            raise Refused(429, "Other files are still being read. Wait for them.")
        id = id or f"own-{secrets.token_hex(6)}"
        self.waiting += 1
        try:
            async with self.reading:
                reader = self.reader = self.spare() if self.reader is None or self.reader.over else self.reader
                said = await reader.call(self.limits.reading, do="read", path=str(path), name=name, id=id, kind=kind)
        except Refused as error:
            if error.status != 400 and self.reader is not None:  # it died, or takes too long
                self.reader.kill()
                self.reader = None
            raise Refused(400, str(error)) from None
        finally:
            self.waiting -= 1
        self.uploads[id] = said
        while len(self.uploads) > self.limits.uploads:
            oldest = next(iter(self.uploads))
            del self.uploads[oldest]
            shutil.rmtree(self.folder / oldest, ignore_errors=True)
        return said

    async def describe(self, id: str) -> dict[str, Any]:
        self.kind_of(id)
        return self.uploads[id] if id in self.uploads else await self.helper().call(30, do="describe", id=id)

    async def rows(self, id: str, at: Iterable[int]) -> dict[str, Any]:
        self.kind_of(id)
        return await self.helper().call(30, do="rows", id=id, at=list(at))

    async def labels(self, job: Job, names: dict[str, str], rows: dict[str, list[int]], ending: str) -> Path:
        """The data of a job with a column of names."""
        file = f"labels-{secrets.token_hex(6)}.{ending}"
        await self.helper().call(30, do="labels", id=job.data, names=names, rows=rows, file=file)
        return self.folder / file
