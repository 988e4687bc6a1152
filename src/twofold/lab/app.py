"""The server of the lab, from its start on a free port of this machine to its end, and the requests of its page.

The page asks for the catalog, data and jobs, and hears of states and frames by one stream.
"""

from __future__ import annotations

import ast
import asyncio
import json
import mimetypes
import os
import secrets
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from uvicorn.protocols.http.h11_impl import H11Protocol

from twofold import __version__
from twofold.core.checks import InputError
from twofold.examples import STORIES
from twofold.lab import frames
from twofold.lab.guard import Guard
from twofold.lab.jobs import Job, Lab
from twofold.lab.worker import DOWNLOADS, FILES
from twofold.web.requests import Refused, explain_errors, read_json

MAX_FIRST_PAUSE = 15.0  # seconds until the first request of a connection is there, after which it is closed


class ImpatientProtocol(H11Protocol):
    """HTTP for a page at hand: a connection that asks for nothing is closed, with a token or without."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.loop.call_later(MAX_FIRST_PAUSE, self.close_unused)

    def close_unused(self) -> None:
        if self.cycle is None and self.transport.get_protocol() is self:
            self.transport.close()


PORT = 8226  # tried first, so that the address stays the same
HOST = "127.0.0.1"
CONFIG: dict[str, Any] = {
    "log_level": "error" if os.environ.get("TWOFOLD_DEBUG") else "critical",
    "access_log": False,
    "server_header": False,
    "http": ImpatientProtocol,  # also where httptools is installed, whose limits are others
    "lifespan": "on",
    "timeout_keep_alive": 15,
    "timeout_graceful_shutdown": 1,
    "h11_max_incomplete_event_size": 2**15,  # bytes of headers
    "ws_max_size": 2**16,  # bytes of one message of a page
    "ws_per_message_deflate": False,  # frames stay on this machine
}
STATIC = Path(__file__).parent / "static"
FRAME = "application/octet-stream"
MAX_UPLOAD_PAUSE = 30.0  # seconds without a byte, after which an upload is refused
MIN_SECONDS_BETWEEN_STATES = 0.1  # of a job that runs
MAX_ROWS = 200  # of one request
for ending in (".js", ".mjs"):  # which some systems take for plain text
    mimetypes.add_type("text/javascript", ending)


def create(lab: Lab, token: str, port: int) -> Guard:
    """Make the application of a lab, behind its guard."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await lab.open()
        yield
        await lab.close()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.lab = lab
    explain_errors(app)
    add_files(app)
    add_data(app, lab)
    add_jobs(app, lab)
    add_stream(app, lab)
    page, limits = (STATIC / "index.html").read_text(encoding="utf-8"), lab.limits
    return Guard(app, token=token, port=port, page=page, body=limits.body, upload=limits.upload_bytes)


def pick(request: dict[str, Any], name: str, kind: type | tuple[type, ...], default: Any) -> Any:
    """Return one part of a request, of the type it must have."""
    value = request.get(name, default)
    if value is default:
        return default
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise Refused(400, f"{name} is of the wrong type.")
    return value


def pick_pace(request: dict[str, Any]) -> float:
    return min(max(float(pick(request, "pace", (int, float), 0.0)), 0.0), 1000.0)


def pick_rows(value: Any) -> list[int]:
    if not isinstance(value, list) or not all(type(one) is int and 0 <= one < 2**31 for one in value):
        raise Refused(400, "Rows are whole numbers from 0.")
    return value


# --- files --------------------------------------------------------------------------------------------------


def read_colors() -> dict[str, list[str]]:
    """Read the colors of the library's figures from their declaration, without importing what draws them."""
    tree = ast.parse((Path(__file__).parents[1] / "plots/style.py").read_text(encoding="utf-8"))
    values: dict[str, Any] = {
        ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)
    }
    groups, low, high = (values[name] for name in ("COLORS", "SEQUENTIAL", "DIVERGING"))
    ramps = {name: ast.literal_eval(ramp.args[1]) for name, ramp in (("sequential", low), ("diverging", high))}
    return {"groups": list(ast.literal_eval(groups)), **ramps}


class PageFiles(StaticFiles):
    """The files of the page, which a browser keeps but asks about each time."""

    def file_response(self, *args: Any, **options: Any) -> Response:
        response = super().file_response(*args, **options)
        response.headers["cache-control"] = "no-cache"
        return response


def add_files(app: FastAPI) -> None:
    """Serve the page itself."""
    files = PageFiles(directory=STATIC)
    app.mount("/static", files)

    @app.get("/")
    async def index(request: Request) -> Response:
        return await files.get_response("index.html", request.scope)

    @app.get("/favicon.ico")
    async def icon(request: Request) -> Response:
        return await files.get_response("icon.svg", request.scope)


# --- data ---------------------------------------------------------------------------------------------------


def add_data(app: FastAPI, lab: Lab) -> None:
    @app.get("/api/jobs/{id}/page")
    async def page(id: str) -> Response:
        job = lab.find(id)
        text = await lab.export(job, await catalog())
        name = f'attachment; filename="{job.method}-{job.data}.html"'
        return Response(text, media_type="text/html", headers={"content-disposition": name})

    @app.get("/api/catalog")
    async def catalog() -> dict[str, Any]:
        def collect() -> dict[str, Any]:
            methods = [one.describe() for one in lab.methods().catalog()]
            stories = [{"id": id, **story._asdict()} for id, story in STORIES.items()]
            return {"version": __version__, "data": lab.listing(), "methods": methods, "stories": stories}

        downloads = [{"id": id, **one._asdict()} for id, one in DOWNLOADS.items()]
        return {**await run_in_threadpool(collect), "downloads": downloads, "colors": read_colors()}

    @app.post("/api/data")
    async def bring(request: Request, name: str = "file", kind: str | None = None) -> dict[str, Any]:
        from twofold.lab.data import KINDS

        if kind is not None and kind not in KINDS:
            raise Refused(400, f"The kind of data is one of {', '.join(KINDS)}.")
        name = display_name(name)
        path = lab.folder / f"upload-{secrets.token_hex(8)}{safe_endings(name)}"
        async with lab.room:
            try:
                await receive_file(request, path)
                return await lab.read(path, name, kind)
            finally:
                path.unlink(missing_ok=True)

    @app.get("/api/data/{id}")
    async def describe(id: str) -> dict[str, Any]:
        return await lab.describe(id)

    @app.get("/api/data/{id}/rows")
    async def rows(id: str, at: str = "") -> dict[str, Any]:
        wanted = [one for one in at.split(",") if one]
        if len(wanted) > MAX_ROWS or not all(one.isascii() and one.isdigit() and len(one) < 10 for one in wanted):
            raise Refused(400, f"Give up to {MAX_ROWS} row numbers, with commas between.")
        return await lab.rows(id, map(int, wanted))


def display_name(name: str) -> str:
    """Return the last part of a file's name without control characters; it is shown, never opened."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return "".join(letter for letter in last if letter.isprintable())[:120] or "file"


def safe_endings(name: str) -> str:
    """Return the endings of a name that say how it is read: letters and digits alone, so that they are safe in a path.

    >>> safe_endings("my.table.CSV.gz"), safe_endings("../../etc/passwd"), safe_endings("a.p/../x")
    ('.csv.gz', '', '')
    """
    parts = [part.lower() for part in name.split(".")[1:]][-2:]
    good = [part.isascii() and part.replace("-", "").isalnum() and len(part) <= 12 for part in parts]
    if not all(good[-1:]):
        return ""
    from twofold.io.open import ENDINGS as PACKED

    packed = len(parts) == 2 and all(good) and f".{parts[-1]}" in PACKED
    return "".join(f".{part}" for part in (parts if packed else parts[-1:]))


async def receive_file(request: Request, path: Path) -> None:
    """Write the body of a request into a file; refuse one that stalls."""
    stream = request.stream().__aiter__()
    with path.open("xb") as file:
        path.chmod(0o600)
        while True:
            try:
                part = await asyncio.wait_for(stream.__anext__(), MAX_UPLOAD_PAUSE)
            except StopAsyncIteration:
                break
            except TimeoutError:
                raise Refused(408, "The file stopped coming. Send it again.") from None
            file.write(part)


# --- jobs ---------------------------------------------------------------------------------------------------


def add_jobs(app: FastAPI, lab: Lab) -> None:
    @app.post("/api/jobs")
    async def submit(request: Request) -> dict[str, str]:
        found = await read_json(request)
        rows = None if found.get("rows") is None else pick_rows(found["rows"])
        await run_in_threadpool(lab.methods)  # the first time, it takes a moment
        job = lab.submit(
            pick(found, "data", str, "none"),
            pick(found, "method", str, ""),
            pick(found, "settings", dict, {}),
            rows,
            pick(found, "paused", bool, False),
            pick_pace(found),
            pick(found, "shown", bool, False),
        )
        return {"id": job.id}

    @app.get("/api/jobs")
    async def jobs() -> list[dict[str, Any]]:
        return [job.state() for job in lab.jobs.values()]

    @app.get("/api/jobs/{id}")
    async def job_state(id: str) -> dict[str, Any]:
        return lab.find(id).state()

    @app.delete("/api/jobs/{id}")
    async def remove(id: str) -> dict[str, str]:
        lab.remove(lab.find(id))
        return {"id": id}

    def add_control(command: str) -> None:
        @app.post(f"/api/jobs/{{id}}/{command}", name=command)
        async def control(id: str) -> dict[str, Any]:
            job = lab.find(id)
            lab.control(job, command)
            return job.state()

    for command in ("pause", "resume", "step", "stop", "cancel"):
        add_control(command)

    @app.post("/api/jobs/{id}/pace")
    async def pace(id: str, request: Request) -> dict[str, Any]:
        job = lab.find(id)
        lab.control(job, "pace", pick_pace(await read_json(request)))
        return job.state()

    @app.get("/api/jobs/{id}/frames/{index}")
    async def frame(id: str, index: int) -> Response:
        return Response(lab.frame(lab.find(id), index), media_type=FRAME)

    @app.post("/api/jobs/{id}/ask")
    async def ask(id: str, request: Request) -> Response:
        answer = await lab.ask(lab.find(id), await read_json(request))
        return Response(answer, media_type=FRAME) if isinstance(answer, bytes) else JSONResponse(answer)

    @app.get("/api/jobs/{id}/take/{file}")
    async def take(id: str, file: str) -> Response:
        job = lab.find(id)
        if file not in FILES:
            raise Refused(404, f"There is {', '.join(FILES)} to take away.")
        path = await lab.take(job, file)
        stem = f"{job.method}-{job.data}"
        name = stem + {"model": ".twofold", "python": ".py"}.get(file, "." + file.rpartition(".")[2])
        kind = "text/x-python; charset=utf-8" if file == "python" else FRAME
        return FileResponse(path, media_type=kind, filename=name)

    @app.post("/api/jobs/{id}/labels")
    async def labels(id: str, request: Request) -> Response:
        job = lab.find(id)
        found = await read_json(request)
        ending = found.get("format", "csv")
        if ending not in ("csv", "parquet"):
            raise Refused(400, "The format is csv or parquet.")
        names = {str(label): str(name)[:200] for label, name in pick(found, "names", dict, {}).items()}
        rows = {str(label): pick_rows(at) for label, at in pick(found, "rows", dict, {}).items()}
        path = await lab.labels(job, names, rows, ending)
        gone = BackgroundTask(path.unlink, missing_ok=True)
        return FileResponse(path, media_type=FRAME, filename=f"labels-{job.data}.{ending}", background=gone)


# --- the stream ---------------------------------------------------------------------------------------------


def add_stream(app: FastAPI, lab: Lab) -> None:
    open_streams: set[Stream] = set()

    @app.websocket("/api/stream")
    async def stream(socket: WebSocket) -> None:
        if len(open_streams) >= lab.limits.sockets:
            return await socket.close(1013, "Too many pages are open.")
        await socket.accept()
        one = Stream(socket, lab)
        open_streams.add(one)
        lab.watchers.add(one.notice)
        sending = asyncio.create_task(one.send())
        try:
            await one.listen()
        except (WebSocketDisconnect, RuntimeError, KeyError, ValueError):
            pass
        finally:
            lab.watchers.discard(one.notice)
            for id in one.watched & lab.jobs.keys():
                lab.unwatch(lab.jobs[id], one, left=False)
            open_streams.discard(one)
            sending.cancel()
            with suppress(Exception):
                await socket.close()
        return None


class Stream:
    """Sends one page the states and the newest frames of the jobs that it shows, as fast as it takes them."""

    def __init__(self, socket: WebSocket, lab: Lab):
        self.socket, self.lab = socket, lab
        self.watched: set[str] = set()
        self.unsent_frames: dict[str, None] = {}
        self.unsent_states: dict[str, None] = {}
        self.started: set[str] = set()  # jobs whose first frame was sent
        self.last_sent: dict[str, tuple[str, float]] = {}  # the last status sent, and when
        self.wake = asyncio.Event()

    def notice(self, job: Job, frame: bytes | None) -> None:
        if job.id in self.watched:
            self.unsent_states[job.id] = None
            if frame is not None:
                self.unsent_frames[job.id] = None
            self.wake.set()

    async def listen(self) -> None:
        """Read which jobs the page shows."""
        while True:
            message = json.loads(await self.socket.receive_text())
            wanted = message.get("watch") if isinstance(message, dict) else None
            if not isinstance(wanted, list):
                continue
            now = {one for one in wanted[:16] if isinstance(one, str) and one in self.lab.jobs}
            self.started &= now
            self.last_sent = {id: when for id, when in self.last_sent.items() if id in now}
            added, gone, self.watched = now - self.watched, self.watched - now, now
            for id in added:
                self.lab.watch(self.lab.jobs[id], self)
            for id in gone & self.lab.jobs.keys():
                self.lab.unwatch(self.lab.jobs[id], self, left=True)
            self.unsent_frames |= dict.fromkeys(one for one in added if self.lab.jobs[one].kept)
            self.unsent_states |= dict.fromkeys(added)
            self.wake.set()

    async def send(self) -> None:
        with suppress(WebSocketDisconnect, RuntimeError):
            while True:
                await self.wake.wait()
                self.wake.clear()
                await self.send_states()
                while self.unsent_frames:
                    id = next(iter(self.unsent_frames))
                    del self.unsent_frames[id]
                    await self.send_frame(id)

    async def send_states(self) -> None:
        """Send states that changed; those of a job that goes on running wait a little."""
        later = []
        for id in list(self.unsent_states):
            del self.unsent_states[id]
            job = self.lab.jobs.get(id)
            if job is None:
                await self.socket.send_text(json.dumps({"removed": id}))
                continue
            status, when = self.last_sent.get(id, ("", 0.0))
            if status == job.status == "running" and time.monotonic() - when < MIN_SECONDS_BETWEEN_STATES:
                later.append(id)
                continue
            await self.socket.send_text(json.dumps({"state": job.state(brief=id in self.last_sent)}))
            self.last_sent[id] = job.status, time.monotonic()
        if later:
            self.unsent_states |= dict.fromkeys(later)
            asyncio.get_running_loop().call_later(MIN_SECONDS_BETWEEN_STATES, self.wake.set)

    async def send_frame(self, id: str) -> None:
        job = self.lab.jobs.get(id)
        if job is None or id not in self.watched:
            return
        if job.kept:
            await self.socket.send_bytes(job.newest if id in self.started else frames.merge(job.first, job.newest))
            self.started.add(id)


# --- from start to end --------------------------------------------------------------------------------------


def bind(port: int | None) -> socket.socket:
    """Bind a socket of this machine alone: to the given port, else to the usual one, else to any that is free."""
    for number in (PORT, 0) if port is None else (port,):
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if os.name == "posix":  # a port stays blocked for a moment after a lab was closed
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, number))
        except OSError as error:
            listening.close()
            if port is not None:
                raise InputError(
                    f"⟨port={port}⟩: it cannot be used ({error.strerror}). Name another, or none: a free one is found."
                ) from None
        else:
            return listening
    raise InputError("no port of 127.0.0.1 is free for the lab. Close other programs and try again.")


def serve(file: str | None = None, port: int | None = None, browser: bool = True) -> None:
    """Serve the lab until Ctrl-C; `file` is read first, and the page opens with it."""
    listening = bind(port)
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(24)
    lab = Lab()
    config = uvicorn.Config(create(lab, token, port), **CONFIG)
    address = f"http://{HOST}:{port}/?token={token}" + ("#data=file" if file else "")
    try:
        asyncio.run(run_server(uvicorn.Server(config), listening, lab, file, address, browser))
    except KeyboardInterrupt:  # how the lab is closed
        print("lab: closed", file=sys.stderr)
    finally:
        listening.close()
        lab.discard()


async def run_server(
    server: Any, listening: socket.socket, lab: Lab, file: str | None, address: str, browser: bool
) -> None:
    """Run the server from its start to its end; print the address once it answers."""
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.005)
    try:
        if file is not None and server.started:
            await lab.read(Path(file), Path(file.partition("::")[0]).name, id="file")
        if server.started:
            print(f"lab: {address}  (Ctrl-C closes it)", flush=True)
            if browser:
                threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    except Refused as error:
        server.should_exit = True
        await serving
        raise InputError(str(error)) from None
    await serving
