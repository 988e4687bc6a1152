"""The process of one job: it fits, sends frames, and answers questions about the fitted model.

Messages are JSON; two threads share the work. One listens, and does at once what must not wait: pause, step, cancel.
The main one reads, runs and answers, one after the other.

    in   {"do": "run", ...}  {"do": "pause"}  {"do": "ask", "n": 3, ...}
    out  J + JSON                     state, or the reply to message n
         F + frame                    what the page draws
         A + u32 n + frame            a reply that is a frame
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import shutil
import struct
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from twofold.core.printable import plain
from twofold.core.spelling import parameters_spelled_by, spell_in_python
from twofold.lab import frames

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import numpy as np

    from twofold.lab.data import Data

    Arrays = Mapping[str, np.ndarray]

MAX_BYTES_PER_SECOND = 50e6  # of frames; those in between are left out
NICE = 5  # jobs leave the processor to the page
MAX_DATA = 4  # data sets that are held


class Download(NamedTuple):
    """A kind of thing to take away, and its files with what the page calls them."""

    title: str
    files: tuple[tuple[str, str], ...]


DOWNLOADS = {
    "model": Download("Model", (("model", ".twofold"),)),
    "table": Download("Table", (("table.csv", "CSV"), ("table.parquet", "Parquet"))),
    "figure": Download("Figure", (("figure.svg", "SVG"), ("figure.png", "PNG"))),
    "picture": Download("Picture", (("picture.png", "PNG"),)),
    "python": Download("Python", (("python", ".py"),)),
}
FILES = [file for kind in DOWNLOADS.values() for file, _ in kind.files]


class Wire:
    """Sends to the server; both threads use it."""

    def __init__(self, pipe: Connection):
        self.pipe, self.lock = pipe, threading.Lock()

    def send(self, kind: bytes, data: bytes) -> None:
        with self.lock:
            self.pipe.send_bytes(kind + data)

    def send_json(self, **message: Any) -> None:
        self.send(b"J", json.dumps(plain(message)).encode())


class Control:
    """Requests of the listening thread to the run: to wait, to take one step, to end."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.paused, self.steps, self.cancelled, self.stopped, self.pace = False, 0, False, False, 0.0

    def set(self, **requests: Any) -> None:
        with self.changed:
            for name, value in requests.items():
                setattr(self, name, value)
            self.changed.notify_all()

    def step(self) -> None:
        with self.changed:
            self.steps += 1
            self.changed.notify_all()

    def wait(self, since: float) -> None:
        """Wait until pace and pause let the next sweep begin."""
        with self.changed:
            while not (self.cancelled or self.stopped):
                due = since + 1 / self.pace if self.pace > 0 and not self.steps else 0.0
                if self.paused and not self.steps:
                    self.changed.wait()
                elif due > time.monotonic():
                    self.changed.wait(due - time.monotonic())
                else:
                    break
            self.steps = max(0, self.steps - 1)


class Emit:
    """Receives the frames of a method: ``emit(sweep, objective, arrays, meta, final=False)``; True if it is to stop.

    It blocks while the job is paused, and raises `Cancelled` when it is to end. Time spent waiting is not counted.
    """

    def __init__(self, wire: Wire, control: Control, job: str, rows: list[int] | None, cancelled: type[Exception]):
        self.wire, self.control, self.job, self.rows, self.cancelled = wire, control, job, rows, cancelled
        self.index, self.waited, self.due = 0, 0.0, 0.0
        self.begin = self.last = time.monotonic()
        self.unsent: list[tuple[int, float | None]] = []

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begin - self.waited

    def __call__(
        self, sweep: int, objective: float | None, arrays: Arrays, meta: Mapping[str, Any], final: bool = False
    ) -> bool:
        now = time.monotonic()
        if self.control.cancelled:
            raise self.cancelled
        self.unsent.append((int(sweep), None if objective is None else float(objective)))
        if self.index == 0 or final or self.control.paused or now >= self.due:
            header = {"job": self.job, "index": self.index, "sweep": int(sweep), "seconds": self.seconds}
            self.send({**header, "objective": objective, "final": final, "meta": dict(meta)}, arrays)
            self.due = now + sum(array.nbytes for array in arrays.values()) / MAX_BYTES_PER_SECOND
        self.index += 1
        if not final:
            self.control.wait(self.last)
        self.last = time.monotonic()
        self.waited += self.last - now
        if self.control.cancelled:
            raise self.cancelled
        return self.control.stopped

    def send(self, header: dict[str, Any], arrays: Arrays) -> None:
        if self.index == 0 and self.rows is not None:
            arrays = {**arrays, "rows": self.rows_of(arrays.get("rows"))}
            header["meta"]["static"] = [*dict.fromkeys([*header["meta"].get("static", ()), "rows"])]
        self.wire.send_json(curve=self.unsent, emitted=self.index + 1, seconds=header["seconds"])
        self.unsent = []
        self.wire.send(b"F", frames.encode(header, arrays))

    def rows_of(self, within: np.ndarray | None) -> np.ndarray:
        """Return the rows of the whole data that the points are, if the job was given but some rows."""
        import numpy as np

        chosen = np.asarray(self.rows, dtype=np.int32)
        return chosen if within is None else chosen[np.asarray(within, dtype=np.int64)]


def main(pipe: Connection, folder: str, memory: int, catalog: str) -> None:
    """Get ready, then handle messages until the server hangs up; `catalog` is the module that lists the methods."""
    with suppress(OSError, AttributeError):  # which Windows has not
        os.nice(NICE)
    wire, control, work = Wire(pipe), Control(), queue.Queue[dict[str, Any]]()
    threading.Thread(target=listen, args=(wire, control, work, folder), daemon=True).start()
    worker = Worker(wire, control, Path(folder), memory, catalog)
    with suppress(BrokenPipeError, ConnectionResetError):
        worker.methods().preload()
        wire.send_json(ready=True)
        with parameters_spelled_by(worker.spell):
            while worker.handle(work.get()):
                pass


def listen(wire: Wire, control: Control, work: queue.Queue[dict[str, Any]], folder: str) -> None:
    """Receive messages; do at once those that cannot wait. When the server ends, remove its files and end."""
    at_once: dict[str, Callable[[dict[str, Any]], None]] = {
        "pause": lambda message: control.set(paused=True),
        "resume": lambda message: control.set(paused=False, steps=0),
        "step": lambda message: control.step(),
        "cancel": lambda message: control.set(cancelled=True),
        "stop": lambda message: control.set(stopped=True),
        "pace": lambda message: control.set(pace=message["pace"]),
    }
    with suppress(EOFError, OSError):
        while True:
            message = json.loads(wire.pipe.recv_bytes())
            at_once.get(message["do"], work.put)(message)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


class Worker:
    """Handles messages in the main thread."""

    def __init__(self, wire: Wire, control: Control, folder: Path, memory: int, catalog: str):
        self.wire, self.control, self.folder, self.memory, self.catalog = wire, control, folder, memory, catalog
        self.job = ""
        self.limited = False
        self.method: Any = None
        self.result: Any = None

    def methods(self) -> Any:
        """Return the module that lists the methods."""
        return importlib.import_module(self.catalog)

    def spell(self, name: str, value: str | None) -> str:
        """Write a parameter in a message by the label of its control, as in Python if it has none."""
        labels = {one.name: one.label for one in getattr(self.method, "controls", {}).values()}
        if name == "scale" and "standardize" in labels:
            name, value = "standardize", {"True": "yes", "False": "no"}.get(value or "", value)
        if name not in labels:
            return spell_in_python(name, value)
        return labels[name] if value is None else f"{labels[name]} {value}"

    def handle(self, message: dict[str, Any]) -> bool:
        """Handle one message; return False if it was the last."""
        command = message.pop("do")
        if command == "run":
            return self.run(**message)
        n = message.pop("n")
        try:
            answer = getattr(self, command)(**message)
            if isinstance(answer, bytes):
                self.wire.send(b"A", struct.pack("<I", n) + answer)
            else:
                self.wire.send_json(n=n, answer=answer)
        except Exception as error:
            self.wire.send_json(n=n, error=describe_error(error))
        return command != "put_away"

    # ---- a job -------------------------------------------------------------------------------------------------

    def run(self, job: str, data: str, method: str, settings: dict[str, Any], rows: list[int] | None) -> bool:
        """Fit, and stay to be asked; False if there is nothing to ask."""
        limit_memory(self.memory)
        self.job = job
        (self.folder / job).mkdir(mode=0o700, exist_ok=True)
        emit: Emit | None = None
        try:
            self.method = self.methods().find(method)
            cancelled = self.methods().Cancelled
            emit = Emit(self.wire, self.control, job, rows, cancelled)
            with suppress(cancelled):
                self.result = self.method.run(load_data(data, self.folder), settings, emit, rows=rows)
        except Exception as error:
            self.wire.send_json(status="failed", message=describe_error(error))
            return False
        seconds = emit.seconds if emit else 0.0
        if self.result is None:
            self.wire.send_json(status="cancelled", message="", seconds=seconds)
            return False
        self.wire.send_json(status="stopped" if self.control.stopped else "done", message="", seconds=seconds)
        return True

    def ask(self, question: dict[str, Any]) -> Any:
        """Return the method's answer: JSON, or a frame."""
        with warnings.catch_warnings(action="ignore"):  # rows of a view have no names of columns
            answer = self.method.ask(self.result, question)
        if isinstance(answer, tuple):
            arrays, meta = answer
            header = {"job": self.job, "index": -1, "sweep": -1, "seconds": 0.0, "objective": None, "final": True}
            return frames.encode({**header, "meta": meta}, arrays)
        return answer

    def take(self, file: str) -> str:
        """Write one of FILES into the folder of the job."""
        from twofold.analyses.common.answer import frame_writer
        from twofold.core.checks import InputError

        path = self.folder / self.job / file
        if path.is_file():
            return file
        draft = path.with_name(f"draft.{file}")
        part = getattr(self.result, {"python": "script"}.get(file, file.partition(".")[0]), None)
        if part is None:
            raise InputError(f"{self.method.title} has no {file.partition('.')[0]} to take away.")
        if file == "model":
            draft = path.with_name("draft.twofold")
            part.save(draft)
        elif file == "python":
            draft.write_text(part, encoding="utf-8")
        elif file.startswith("table"):
            frame_writer(path.suffix, part)(draft)
        elif file == "picture.png":
            from PIL import Image

            Image.fromarray(part).save(draft)
        else:
            figure = part()
            figure.savefig(draft, dpi=160, bbox_inches="tight")
        os.replace(draft, path)
        return file

    def put_away(self) -> list[str]:
        """Write all files to download, because this process is to end."""
        kept = []
        for file in FILES:
            with suppress(Exception):
                kept.append(self.take(file))
        return kept

    # ---- data --------------------------------------------------------------------------------------------------

    def read(self, path: str, name: str, id: str, kind: str | None) -> dict[str, Any]:
        """Read a user's file and keep it; refuse one that needs too much memory."""
        from twofold.core.config import config
        from twofold.lab import data

        if not self.limited:
            limit_memory(self.memory)
            self.limited = True
        config(memory=self.memory // 4)
        found = data.read(path, name, id, kind)
        data.keep(found, self.folder)
        return found.describe()

    def describe(self, id: str) -> dict[str, Any]:
        return load_data(id, self.folder).describe()

    def rows(self, id: str, at: list[int]) -> dict[str, Any]:
        return load_data(id, self.folder).rows(at)

    def prepare(self, id: str) -> None:
        """Make bundled data that takes seconds to make, once for all jobs."""
        from twofold.lab import data

        if not (self.folder / id / "data.json").is_file():
            data.keep(data.make(id), self.folder)

    def labels(self, id: str, names: dict[str, str], rows: dict[str, list[int]], file: str) -> str:
        """Write the rows with a column of the names that they were given."""
        import polars as pl

        from twofold.analyses.common.answer import frame_writer
        from twofold.core.checks import InputError

        frame: Any = load_data(id, self.folder).frame
        if frame is None:
            raise InputError("This data has no rows to name.")
        if any(i >= len(frame) for at in rows.values() for i in at):
            raise InputError(f"The rows are those from 0 to {len(frame) - 1}.")
        given: list[str | None] = [None] * len(frame)
        for label, at in rows.items():
            for i in at:
                given[i] = names.get(label, label)
        column = "label"
        while column in frame.columns:
            column += "_"
        frame = frame.with_columns(pl.Series(column, given))
        path = self.folder / file
        frame_writer(path.suffix, frame)(path)
        return file


@lru_cache(MAX_DATA)
def load_data(id: str, folder: Path) -> Data:
    from twofold.lab import data

    return data.load(id, folder)


def limit_memory(more: int) -> None:
    """Refuse memory beyond `more` bytes above those in use, where the system can."""
    if sys.platform != "linux":
        return
    import resource

    used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    wanted = used + more
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if hard < 0 else min(wanted, hard), hard))


def describe_error(error: Exception) -> str:
    """Say in one sentence what went wrong."""
    from twofold.core.checks import InputError

    if os.environ.get("TWOFOLD_DEBUG"):
        import traceback

        traceback.print_exc()
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return "It ran out of memory. Choose fewer rows, or a smaller model."
    if isinstance(error, InputError):
        return text
    return f"{type(error).__name__}: {text}"
