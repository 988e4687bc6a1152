"""The server of fitted models: its addresses, limits and measurements, from start to end.

POST /models/{name}/{operation}    JSON; rows also as .npy or Arrow
GET  /models, /models/{name}       what there is, and what it can be asked
GET  /healthz, /readyz, /metrics   for operators;   /docs, /openapi.json   for users
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import uvicorn
from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from twofold import __version__
from twofold.core.checks import DAMAGED_ARRAY, InputError
from twofold.core.engine.local import single_blas
from twofold.serve import metrics
from twofold.serve.batches import Batcher
from twofold.serve.models import Loaded, ServedModel
from twofold.serve.operations import Operation, as_plain, check_shape
from twofold.serve.protocol import BoundedProtocol
from twofold.web.requests import Receive, Refused, Scope, Send, explain_errors, limit_body, refuse, same

NPY, ARROW, JSON = "application/x-npy", "application/vnd.apache.arrow.stream", "application/json"
OPEN_PATHS = ("/healthz", "/readyz")  # that need no token
LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")
SETTINGS = "TWOFOLD_SERVE"  # environment variable by which worker processes get their settings
SECONDS_BETWEEN_LOOKS = 1.0  # at the files
ERRORS = {
    401: "The token is missing or wrong", 404: "There is no such model or operation", 413: "The body is too large",
    422: "What is asked does not fit the model; the sentence says why", 503: "The queue is full, or it is not ready",
    504: "There was no answer in time",
}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What a service keeps to."""

    models: dict[str, str]
    host: str = "127.0.0.1"
    port: int = 8000
    token: str = ""
    window: float = 0.001  # seconds in which requests are gathered
    queue: int = 512  # requests that wait
    deadline: float = 10.0  # seconds of one request
    body: int = 32_000_000  # bytes of one request
    body_seconds: float = 20.0  # in which a body must have come


class Gate:
    """The application behind its checks: the token, the name it is called by, the size of bodies."""

    def __init__(self, app: Any, settings: Settings):
        self.app, self.settings = app, settings
        self.local = settings.host in ("127.0.0.1", "localhost", "::1")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = dict(scope["headers"])
        if self.local and headers.get(b"host", b"").decode("latin-1").rpartition(":")[0] not in LOCAL_HOSTS:
            return await refuse(421, "This server answers to 127.0.0.1 and localhost alone.")(scope, receive, send)
        if self.settings.token and scope["path"] not in OPEN_PATHS:
            given = headers.get(b"authorization", b"").decode("latin-1")
            if not same(given, f"Bearer {self.settings.token}"):
                wanted = (
                    "Send the header Authorization: Bearer TOKEN, with the token that this server was started with."
                )
                return await refuse(401, wanted, {"www-authenticate": "Bearer"})(scope, receive, send)
        return await limit_body(self.app, self.settings.body, scope, receive, send)


class Service:
    """The models, and the queue of each."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self.models = {name: ServedModel(name, Path(path)) for name, path in settings.models.items()}
        self.batchers: dict[str, Batcher] = {}
        self.blas = ExitStack()
        self.ready = False

    def open(self) -> None:
        """Start a queue for each model; a loop must be running."""
        for name in self.models:
            limits = {"window": self.settings.window, "queue": self.settings.queue, "deadline": self.settings.deadline}
            self.batchers[name] = Batcher(**limits, on_batch=metrics.record_batch)  # type: ignore[arg-type]
            metrics.observe_queue(name, self.batchers[name])
        self.blas.enter_context(single_blas())  # once, and not for every request
        self.ready = True

    def close(self) -> None:
        self.blas.close()
        for batcher in self.batchers.values():
            batcher.close()

    async def watch(self) -> None:
        """Take up files that change."""
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            for model in self.models.values():
                await run_in_threadpool(model.take_up)

    async def answer(self, name: str, operation: str, request: Request) -> Response:
        """Answer one request of one model."""
        loaded = self.models[name].current
        found = loaded.operations.get(operation)
        if found is None:
            raise Refused(404, f"{name} cannot {operation}. It can {', '.join(loaded.operations)}.")
        body = await read_body(request, self.settings.body_seconds)
        kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if found.by_rows and kind in (NPY, "application/octet-stream", ARROW):
            content = {"rows": await run_in_threadpool(read_array, body, kind)}
        else:
            content = found.read(body)
        key = None
        if found.merged is not None:
            options = {one: value for one, value in content.items() if one != found.merged}
            key = (operation, loaded.version, json.dumps(options, sort_keys=True) if options else "")
        result = await self.batchers[name].ask(key, content, lambda asked: found.answer(loaded.model, asked))
        return write_answer(result, request.headers.get("accept", JSON), loaded)


async def read_body(request: Request, seconds: float) -> bytes:
    """The body of a request; Refused if it does not come in time."""
    try:
        async with asyncio.timeout(seconds):
            return await request.body()
    except TimeoutError:
        raise Refused(408, f"The body did not come within {seconds:g} s. Send it again.") from None


def read_array(body: bytes, kind: str) -> np.ndarray:
    """Rows from .npy or Arrow; nothing in them is executed."""
    try:
        if kind == ARROW:
            return check_shape(pl.read_ipc_stream(io.BytesIO(body)).to_numpy())
        return check_shape(np.load(io.BytesIO(body), allow_pickle=False))
    except (*DAMAGED_ARRAY, pl.exceptions.PolarsError, MemoryError, TypeError) as error:
        raise Refused(422, f"the body is no {'Arrow stream' if kind == ARROW else '.npy array'}: {error}.") from None


def write_answer(result: Any, accept: str, loaded: Loaded) -> Response:
    """An answer as it is wanted: JSON, or an array as .npy or Arrow."""
    headers = {"x-model-version": loaded.version}
    if isinstance(result, np.ndarray) and NPY in accept:
        out = io.BytesIO()
        np.save(out, result, allow_pickle=False)
        return Response(out.getvalue(), media_type=NPY, headers=headers)
    if isinstance(result, np.ndarray) and ARROW in accept:
        out = io.BytesIO()
        columns = result.reshape(len(result), -1)
        pl.DataFrame({f"column_{a}": columns[:, a] for a in range(columns.shape[1])}).write_ipc_stream(out)
        return Response(out.getvalue(), media_type=ARROW, headers=headers)
    text = json.dumps({"result": as_plain(result)}, ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "replace"), media_type=JSON, headers=headers)


# --- addresses ----------------------------------------------------------------------------------------------


def create(settings: Settings) -> Gate:
    """Make the application; the models are loaded at once, so that a wrong file is told before the server starts."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.open()
        watching = asyncio.create_task(service.watch())
        yield
        service.ready = False
        watching.cancel()
        service.close()

    about = "Fitted models of twofold. Each operation takes JSON; rows also come and go as .npy and as Arrow streams."
    app = FastAPI(title="twofold serve", version=__version__, description=about, lifespan=lifespan, redoc_url=None)
    app.state.service = service
    explain_errors(app)
    add_about(app, service)
    for name, model in service.models.items():
        for one in model.current.operations.values():
            add_operation(app, service, name, one)
    return Gate(app, settings)


def add_about(app: FastAPI, service: Service) -> None:
    """Add the addresses that describe the models and measure the service."""

    @app.get("/healthz", summary="Whether the process answers", tags=["service"])
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz", summary="Whether models are warm", tags=["service"], responses={503: {"description": "No"}})
    async def readyz() -> dict[str, str]:
        if not service.ready:
            raise Refused(503, "The models are not ready yet.")
        return {"status": "ready"}

    @app.get("/metrics", summary="Measurements for Prometheus", tags=["service"], response_class=Response)
    async def measurements() -> Response:
        return Response(metrics.write(service.models), media_type=metrics.MEDIA_TYPE)

    @app.get("/models", summary="The models and what they can be asked", tags=["service"])
    async def models() -> list[dict[str, Any]]:
        return [describe(one) for one in service.models.values()]

    def add_model(name: str) -> None:
        @app.get(f"/models/{name}", name=name, summary=f"What {name} can be asked", tags=[name])
        async def model() -> dict[str, Any]:
            return describe(service.models[name])

    for name in service.models:
        add_model(name)


def describe(model: ServedModel) -> dict[str, Any]:
    """A model in one object, with an example of each operation."""
    now = model.current
    examples = {name: one.example for name, one in now.operations.items()}
    return {"name": model.name, "class": type(now.model).__name__, "version": now.version, "operations": examples}


def add_operation(app: FastAPI, service: Service, name: str, operation: Operation) -> None:
    """One address for one operation of a model."""
    schema = operation.fields.model_json_schema(ref_template="#/components/schemas/{model}")
    content: dict[str, Any] = {JSON: {"schema": schema, "example": operation.example}}
    if operation.by_rows:
        content |= {kind: {"schema": {"type": "string", "format": "binary"}} for kind in (NPY, ARROW)}
    shown = {"requestBody": {"required": True, "content": content}}
    answers: dict[int | str, dict[str, Any]] = {
        status: {"description": meaning, "content": {JSON: {"schema": ERROR_SCHEMA}}}
        for status, meaning in {
            400: "The request is no HTTP that is understood",
            408: "The body stopped coming",
            **ERRORS,
        }.items()
    }

    @app.post(
        f"/models/{name}/{operation.name}", name=f"{name} {operation.name}", summary=operation.about.partition(".")[0],
        description=operation.about, tags=[name], openapi_extra=shown, responses=answers, response_class=Response,
    )  # fmt: skip
    @metrics.measure(name, operation.name)
    async def ask(request: Request) -> Response:
        return await service.answer(name, operation.name, request)


ERROR_SCHEMA = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}


# --- from start to end --------------------------------------------------------------------------------------


def create_from_environment() -> Gate:
    """Make the application in a worker process."""
    return create(Settings(**json.loads(os.environ[SETTINGS])))


def bind(host: str, port: int) -> socket.socket:
    """Bind a socket, or say why it cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    if os.name == "posix":  # a port stays blocked for a moment after a server was closed
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise InputError(
            f"⟨port={port}⟩: {host} cannot be listened to ({error.strerror}). Name another port or host."
        ) from None
    return listening


def raise_file_limit() -> None:
    """Let the process have as many connections as the system allows it."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def run(settings: Settings, workers: int = 1) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that have begun are finished."""
    raise_file_limit()
    options: dict[str, Any] = {
        "log_level": "warning", "access_log": False, "server_header": False, "lifespan": "on", "http": BoundedProtocol,
        "timeout_keep_alive": 30, "timeout_graceful_shutdown": int(settings.deadline) + 1, "backlog": 2048,
        "ws": "none",
    }  # fmt: skip
    app = create(settings)  # a wrong file is told before anything listens
    names = ", ".join(f"{name} ({one.current.version})" for name, one in app.app.state.service.models.items())
    listening = bind(settings.host, settings.port)
    address = f"serve: http://{settings.host}:{listening.getsockname()[1]}/docs  {names}"
    try:
        if workers == 1:
            print(f"{address}  (Ctrl-C ends it)", flush=True)
            return uvicorn.Server(uvicorn.Config(app, **options)).run(sockets=[listening])
    finally:
        listening.close()
    os.environ[SETTINGS] = json.dumps(asdict(settings))
    print(f"{address}  {workers} workers  (Ctrl-C ends it)", flush=True)
    many: dict[str, Any] = {"factory": True, "workers": workers, "timeout_worker_healthcheck": 60}
    uvicorn.run("twofold.serve.app:create_from_environment", host=settings.host, port=settings.port, **many, **options)
