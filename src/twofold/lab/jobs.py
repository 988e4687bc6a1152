"""Jobs and data of one server: each job runs in a process of its own, bounded in number, memory and time.

One more process answers questions about data, and files of users are read in a separate process, so that a crash loses
nothing else.
"""

from __future__ import annotations

import asyncio
import importlib
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twofold.core.checks import InputError
from twofold.examples import EXAMPLES
from twofold.lab import export, frames
from twofold.lab.process import Pool, Process
from twofold.web.requests import Refused

ALIVE = ("waiting", "running", "paused")
MAX_FILES = 4  # of users, that are received or wait to be read; others are not received before there is room
READY = ("done", "stopped")  # with a result: a stopped fit keeps what it has


@dataclass(frozen=True)
class Limits:
    """Limits of the lab on this machine."""

    jobs: int = 8  # with a process of their own
    running: int = 2
    spares: int = 2  # warm processes that wait for a job
    memory: int = 2_000_000_000  # bytes of one process
    seconds: float = 600.0  # of running
    unseen: float = 8.0  # seconds after which a job ends that no page shows any more, long enough to load a page again
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
    idle_since: float = field(default_factory=time.monotonic)  # the last question or change of status
    since: float = 0.0  # when it last began to run
    spent: float = 0.0  # seconds of running before that
    paused: bool = False
    leaving: asyncio.Task[Any] | None = None  # its process writes what can be taken away, and ends
    seen_by: set[Any] = field(default_factory=set)  # the streams of pages that show it
    unseen_since: float | None = None  # when the last of them went away

    @property
    def first(self) -> bytes:
        return next(iter(self.kept.values()))

    @property
    def newest(self) -> bytes:
        return next(reversed(self.kept.values()))

    @property
    def is_idle(self) -> bool:
        """True if its process only waits for questions."""
        return self.process is not None and self.status not in ALIVE

    def state(self, brief: bool = False) -> dict[str, Any]:
        """Return the state for the page; `brief` leaves out settings and rows, which may be long and do not change."""
        request = {} if brief else {"settings": self.settings, "rows": self.rows}
        return request | {
            "id": self.id, "data": self.data, "method": self.method,
            "status": self.status, "message": self.message, "sweep": self.sweep, "frames": self.emitted,
            "kept": list(self.kept), "seconds": round(self.seconds, 3), "pace": self.pace, "sweeps": self.sweeps,
            "objective": self.objective, "objective_name": self.objective_name, "open": self.process is not None,
            "live": self.status in ALIVE, "ready": self.status in READY,
        }  # fmt: skip

    def running_seconds(self) -> float:
        return self.spent + (time.monotonic() - self.since if self.status == "running" else 0.0)

    def unseen_seconds(self) -> float:
        return 0.0 if self.unseen_since is None else time.monotonic() - self.unseen_since

    def set_status(self, status: str, message: str = "") -> None:
        self.spent = self.running_seconds()
        self.since = time.monotonic()
        self.status, self.message = status, message

    def keep(self, index: int, frame: bytes, limits: Limits) -> None:
        """Keep a frame; if there are too many, drop every second one, but not the first and the newest."""
        self.kept[index] = frame
        while len(self.kept) > 2 and (
            len(self.kept) > limits.kept or sum(map(len, self.kept.values())) > limits.kept_bytes
        ):
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
        self.pool = Pool(self.folder, self.limits.spares, self.limits.memory, catalog)
        self.data_process: Process | None = None  # answers questions about data
        self.preparer: Process | None = None  # makes the example that takes seconds
        self.reader: Process | None = None  # reads users' files, one after the other
        self.reading, self.room = asyncio.Lock(), asyncio.Semaphore(MAX_FILES)
        self.tasks: set[asyncio.Task[Any]] = set()

    # ---- processes ---------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Start the warm processes and the check of their limits; the catalog is soon asked for."""
        self.pool.fill()
        threading.Thread(target=self.methods, daemon=True).start()
        self.later(self.enforce_limits())
        self.later(self.prepare())

    async def prepare(self) -> None:
        """Gather the documents, which takes seconds, when all else is ready and before a page asks for them."""
        while not self.pool.is_full():
            await asyncio.sleep(0.2)
        process = self.preparer = self.pool.start()
        with suppress(Refused):
            await process.call(120, do="prepare", id="docstrings")
        process.kill()

    def later(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def find_data_process(self) -> Process:
        """Return the process that answers for data."""
        if self.data_process is None or self.data_process.ended:
            self.data_process = self.pool.take()
        return self.data_process

    async def enforce_limits(self) -> None:
        """End processes that take too much memory or time, and those that are idle for long."""
        memory, seconds = self.limits.memory, self.limits.seconds
        taken = f"{memory / 1e9:.1f} GB"
        while True:
            await asyncio.sleep(0.25)
            for job in list(self.jobs.values()):
                if job.process is None and job.status != "waiting":
                    continue
                if job.process is not None and job.process.memory() > memory:
                    job.process.kill(f"It took more than {taken} of memory. Choose fewer rows, or a smaller model.")
                elif job.process is not None and job.status == "running" and job.running_seconds() > seconds:
                    job.process.kill(f"It ran for {seconds:.0f} s, the longest a job may. Choose fewer rows or sweeps.")
                elif job.status in ALIVE and job.unseen_seconds() > self.limits.unseen:
                    self.control(job, "cancel")
                elif job.is_idle and time.monotonic() - job.idle_since > self.limits.idle:
                    self.put_away(job)
            if self.reader is not None and self.reader.memory() > memory:
                self.reader.kill(f"Reading it took more than {taken} of memory. Cut it into parts.")

    async def close(self) -> None:
        """End every process and remove every file."""
        self.pool.closed = True
        for task in list(self.tasks):
            task.cancel()
        single = (self.reader, self.data_process, self.preparer)
        every = [*self.pool.spares, *single, *(job.process for job in self.jobs.values())]
        for one in filter(None, every):
            one.on_end = lambda: None
            one.kill("The lab was closed.")
        for one in filter(None, every):
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
        """Return the module that lists the methods."""
        return importlib.import_module(self.catalog)

    def submit(
        self,
        data: str,
        method: str,
        settings: dict[str, Any],
        rows: list[int] | None = None,
        paused: bool = False,
        pace: float = 0.0,
        shown: bool = False,
    ) -> Job:
        """Make a job, which runs as soon as there is room; one that is to be `shown` ends if no page shows it."""
        try:
            found = self.methods().find(method)
            chosen = found.check(settings)
        except InputError as error:
            raise Refused(400, str(error)) from None
        entry = self.entry_of(data)
        if reason := found.reason_against(entry):
            raise Refused(400, f"{found.title}: {entry['name']} {reason}.")
        if rows is not None and (len(rows) < 2 or min(rows) < 0):
            raise Refused(400, "Choose two rows or more.")
        self.make_room()
        job = Job(secrets.token_hex(6), data, method, chosen, rows, found.objective, pace=pace, paused=paused)
        job.unseen_since = time.monotonic() if shown else None
        self.jobs[job.id] = job
        self.forget()
        self.schedule()
        return job

    def make_room(self) -> None:
        """Close the oldest finished jobs if there are too many with a process, then those that no page shows."""
        unseen = [job for job in self.jobs.values() if job.status in ALIVE and job.unseen_since is not None]
        open_jobs = [job for job in self.jobs.values() if job.process is not None or job.status == "waiting"]
        idle = [job for job in open_jobs if job.is_idle]
        while len(open_jobs) >= self.limits.jobs and idle:
            oldest = idle.pop(0)
            open_jobs.remove(oldest)
            self.put_away(oldest)
        for job in unseen[: max(0, len(open_jobs) - self.limits.jobs + 1)]:
            open_jobs.remove(job)
            self.control(job, "cancel")
        if len(open_jobs) >= self.limits.jobs:
            raise Refused(429, f"{len(open_jobs)} jobs are under way, the most there may be. Cancel one.")

    def forget(self) -> None:
        """Remove the oldest jobs without a process beyond the limit."""
        ended = [job for job in self.jobs.values() if job.process is None and job.status not in ALIVE]
        for job in ended[: max(0, len(self.jobs) - self.limits.records)]:
            self.remove(job)

    def schedule(self) -> None:
        """Start jobs that wait, as far as there is room."""
        running = sum(job.status == "running" for job in self.jobs.values())
        for job in list(self.jobs.values()):
            if job.status == "waiting" and running < self.limits.running:
                self.start(job)
                running += 1

    def start(self, job: Job) -> None:
        process = job.process = self.pool.take()
        process.on_frame = lambda frame: self.take_frame(job, frame)
        process.on_message = lambda message: self.take_message(job, message)
        process.on_end = lambda: self.take_end(job, process)
        if job.paused:
            process.send(do="pause")
        if job.pace:
            process.send(do="pace", pace=job.pace)
        process.send(do="run", job=job.id, data=job.data, method=job.method, settings=job.settings, rows=job.rows)
        self.set_status(job, "paused" if job.paused else "running")

    def set_status(self, job: Job, status: str, message: str = "") -> None:
        job.set_status(status, message)
        job.idle_since = time.monotonic()
        self.notify(job)
        if not self.pool.closed:
            self.schedule()

    def watch(self, job: Job, page: Any) -> None:
        job.seen_by.add(page)
        job.unseen_since = None

    def unwatch(self, job: Job, page: Any, left: bool) -> None:
        """Take away a page; a job that no page shows any more ends, at once if the page `left` it for another one."""
        job.seen_by.discard(page)
        if not job.seen_by and job.status in ALIVE:
            job.unseen_since = time.monotonic()
            if left:
                self.control(job, "cancel")

    def notify(self, job: Job, frame: bytes | None = None) -> None:
        for watcher in list(self.watchers):
            watcher(job, frame)

    def take_frame(self, job: Job, frame: bytes) -> None:
        header, _ = frames.decode(frame)
        job.sweep = header["sweep"]
        job.keep(header["index"], frame, self.limits)
        self.notify(job, frame)

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
            self.set_status(job, message["status"], message["message"])
        else:
            self.notify(job)

    def take_end(self, job: Job, process: Process) -> None:
        if job.process is process:
            job.process = None
        if job.status in ALIVE:
            self.set_status(job, "failed", process.explain_end())
        else:
            self.notify(job)

    def control(self, job: Job, command: str, pace: float = 0.0) -> None:
        """Pause, resume, step, pace, stop or cancel a job; one that has ended, which a page may not know, stays so.

        A job that is stopped keeps what it has fitted so far; one that is cancelled keeps its frames alone.
        """
        if command == "pace":
            job.pace = pace
            if job.process is not None:
                job.process.send(do="pace", pace=pace)
            return self.notify(job)
        if job.status not in ALIVE:
            return None
        process = job.process
        if command == "cancel" or (command == "stop" and not job.emitted):
            self.set_status(job, "cancelled", "Cancelled.")
            if process is not None:
                process.send(do="cancel")
                asyncio.get_running_loop().call_later(2.0, process.kill)
        elif process is None:
            job.paused = command != "resume"
        elif command in ("step", "stop"):
            process.send(do=command)
            if job.status != ("paused" if command == "step" else "running"):
                self.set_status(job, "paused" if command == "step" else "running")
        else:
            process.send(do=command)
            self.set_status(job, "paused" if command == "pause" else "running")
        return None

    def frame(self, job: Job, index: int) -> bytes:
        """Return a frame, or the last one kept before it: the page may not know yet which are left."""
        if not 0 <= index < job.emitted or not job.kept:
            raise Refused(404, f"There is no frame {index}.")
        return frames.merge(job.first, job.kept[max(at for at in job.kept if at <= index)])

    async def ask(self, job: Job, question: dict[str, Any]) -> Any:
        if job.status in ALIVE:
            raise Refused(409, "The job is still at work; it answers when it is done.")
        if job.process is None or job.status not in READY:
            raise Refused(410, "The process of this job has ended. Run it again to ask it.")
        job.idle_since = time.monotonic()
        return await job.process.call(self.limits.answer, do="ask", question=question)

    async def take(self, job: Job, file: str) -> Path:
        """Return a file to download; the process writes it, or has written it before it was put away."""
        path = self.folder / job.id / file
        if job.status not in READY:
            raise Refused(409, f"The job is {job.status}; there is something to take away when it is done.")
        if job.leaving is not None:
            await job.leaving
        if not path.is_file():
            if job.process is None:
                raise Refused(404, "The job has nothing of this kind.")
            job.idle_since = time.monotonic()
            await job.process.call(self.limits.answer * 3, do="take", file=file)
        return path

    async def export(self, job: Job, catalog: dict[str, Any]) -> str:
        """Write a run as one page that plays without a server; of very many frames some are left out."""
        if job.status in ALIVE or not job.kept:
            raise Refused(409, f"The job is {job.status}; a file of it can be written when it is done.")
        kept, most = list(job.kept), export.MAX_BYTES
        while sum(len(job.kept[index]) for index in kept) > most and len(kept) > 2:
            kept = [*kept[:-1:2], kept[-1]]
        one = {part: [one for one in catalog[part] if one["id"] == getattr(job, name)]
               for part, name in (("data", "data"), ("methods", "method"))}  # fmt: skip
        state = job.state() | {"kept": kept, "open": False}
        answers: dict[str, Any] = {"/api/catalog": {**catalog, **one, "stories": []}, "/api/jobs": [state]}
        answers[f"/api/data/{job.data}"] = await self.describe(job.data)
        with suppress(Refused):
            script = await self.take(job, "python")
            answers[f"/api/jobs/{job.id}/take/python"] = script.read_text(encoding="utf-8")
        frames = {f"/api/jobs/{job.id}/frames/{index}": self.frame(job, index) for index in kept}
        return export.write_page(answers, frames, f"data={job.data}&method={job.method}&job={job.id}&at={kept[0]}")

    def put_away(self, job: Job) -> None:
        """End the process of a finished job, once it has written all files to download."""
        process, job.process = job.process, None

        async def leave(process: Process) -> None:
            with suppress(Refused):
                await process.call(self.limits.answer * 3, do="put_away")
            process.kill()

        if process is not None:
            job.leaving = self.later(leave(process))
            self.notify(job)

    def remove(self, job: Job) -> None:
        del self.jobs[job.id]
        if job.process is not None:
            job.process.on_end = lambda: None
            job.process.kill()
        shutil.rmtree(self.folder / job.id, ignore_errors=True)
        job.set_status("cancelled", "Removed.")
        self.notify(job)
        self.schedule()

    # ---- data --------------------------------------------------------------------------------------------------

    def entry_of(self, id: str) -> dict[str, Any]:
        """Return what is known of data without reading it."""
        found = self.uploads.get(id) or EXAMPLES.get(id)
        if found is None:
            raise Refused(404, "There is no such data in this lab. Bring the file again.")
        return found if isinstance(found, dict) else {"id": id, **found.describe()}

    def listing(self) -> list[dict[str, Any]]:
        """List all data, the user's own first, with the methods that cannot take it and the one to start with."""
        parts = ("id", "name", "kind", "about", "shape", "blanks", "classes", "notes", "own", "unfit", "start")
        entries = (self.with_methods(self.entry_of(id)) for id in (*self.uploads, *EXAMPLES))
        return [{part: entry[part] for part in parts} for entry in entries]

    def with_methods(self, entry: dict[str, Any]) -> dict[str, Any]:
        methods = self.methods().catalog()
        reasons = {one.id: one.reason_against(entry) for one in methods}
        able = [one.id for one in methods if not reasons[one.id]]
        start = next((id for id in self.methods().STARTS.get(entry["kind"], ()) if id in able), next(iter(able), ""))
        unfit = {id: reason for id, reason in reasons.items() if reason}
        own = entry["id"] in self.uploads
        return entry | {"own": own, "unfit": unfit, "start": start}

    async def read(self, path: Path, name: str, kind: str | None = None, id: str | None = None) -> dict[str, Any]:
        """Read a file that lies at a path of ours, in a separate process."""
        id = id or f"own-{secrets.token_hex(6)}"
        try:
            async with self.reading:
                reader = self.reader = self.pool.take() if self.reader is None or self.reader.ended else self.reader
                file = {"path": str(path), "name": name, "id": id, "kind": kind}
                description = await reader.call(self.limits.reading, do="read", **file)
        except Refused as error:
            if error.status != 400 and self.reader is not None:  # it crashed, or takes too long
                self.reader.kill()
                self.reader = None
            raise Refused(400, str(error)) from None
        self.uploads[id] = description
        shown = {job.data for job in self.jobs.values() if job.seen_by or job.status in ALIVE}
        unused = [one for one in self.uploads if one not in shown and one != id]
        for oldest in unused[: max(0, len(self.uploads) - self.limits.uploads)]:
            del self.uploads[oldest]
            shutil.rmtree(self.folder / oldest, ignore_errors=True)
        return self.with_methods(description)

    async def describe(self, id: str) -> dict[str, Any]:
        self.entry_of(id)
        return self.uploads[id] if id in self.uploads else await self.find_data_process().call(30, do="describe", id=id)

    async def rows(self, id: str, at: Iterable[int]) -> dict[str, Any]:
        self.entry_of(id)
        return await self.find_data_process().call(30, do="rows", id=id, at=list(at))

    async def labels(self, job: Job, names: dict[str, str], rows: dict[str, list[int]], ending: str) -> Path:
        """Write the data of a job with a column of names."""
        file = f"labels-{secrets.token_hex(6)}.{ending}"
        await self.find_data_process().call(30, do="labels", id=job.data, names=names, rows=rows, file=file)
        return self.folder / file
