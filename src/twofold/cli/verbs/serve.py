"""`twofold serve`: fitted models as a service over HTTP."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Annotated

from cyclopts import Parameter

from twofold.cli.options import option
from twofold.core.checks import InputError

TAKES = "Fitted models (.twofold), under the names of their files or as name=FILE."
DOCKERFILE = """\
FROM python:3.12-slim
RUN pip install --no-cache-dir 'twofold[serve]' && useradd --create-home twofold
USER twofold
WORKDIR /models
COPY {files} /models/
EXPOSE {port}
HEALTHCHECK CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:{port}/readyz')"]
# Give the token when the container starts: docker run -e TWOFOLD_TOKEN=... -p {port}:{port} IMAGE
CMD ["twofold", "serve", {arguments}, "--host", "0.0.0.0", "--port", "{port}"]
"""


def serve(
    *models: Annotated[str, Parameter(help=TAKES)],
    host: Annotated[str, option("--host", text="Address to listen to. Default: 127.0.0.1.", unit="HOST")] = "127.0.0.1",
    port: Annotated[int, option("--port", text="Port. Default: 8000; 0 finds a free one.", unit="N")] = 8000,
    token: Annotated[
        str | None,
        option(
            "--token", text="Token that requests must bear. Default: that of TWOFOLD_TOKEN, else none.", unit="TOKEN"
        ),
    ] = None,
    workers: Annotated[int, option("--workers", text="Processes. Default: 1.", unit="N")] = 1,
    batch_window: Annotated[
        float,
        option("--batch-window", text="Milliseconds in which requests are gathered, to 5. Default: 1.", unit="MS"),
    ] = 1.0,
    deadline: Annotated[float, option("--deadline", text="Seconds of one request. Default: 10.", unit="S")] = 10.0,
    dockerfile: Annotated[bool, option("--dockerfile", text="Print a Dockerfile for these models and end.")] = False,
) -> None:
    """Serve fitted models over HTTP."""
    if not models:
        raise InputError("which model? Give a fitted one: twofold serve model.twofold")
    for name, value, low, high in (
        ("port", port, 0, 65535),
        ("workers", workers, 1, 64),
        ("batch-window", batch_window, 0, 5),
    ):
        if not low <= value <= high:
            raise InputError(f"--{name} {value:g}: give a number from {low} to {high}.")
    if not 0 < deadline <= 3600:
        raise InputError(f"--deadline {deadline:g}: give seconds above 0, at most 3600.")
    missing = [package for package in ("fastapi", "uvicorn", "prometheus_client") if find_spec(package) is None]
    if missing:
        raise InputError(f"serve needs {', '.join(missing)}: pip install 'twofold[serve]'")
    from twofold.io.tables.read import missing_message
    from twofold.serve.models import name_models

    named = name_models(list(models))
    for path in named.values():
        if not path.is_file():
            raise InputError(
                missing_message(os.fspath(path)) if not path.is_dir() else f"{path} is a folder. Name a file in it."
            )
    if dockerfile:
        arguments = ", ".join(f'"{name}=/models/{path.name}"' for name, path in named.items())
        print(DOCKERFILE.format(files=" ".join(map(os.fspath, named.values())), arguments=arguments, port=port), end="")
        return
    from twofold.serve.app import Settings, run

    token = os.environ.get("TWOFOLD_TOKEN", "") if token is None else token
    if host not in ("127.0.0.1", "localhost", "::1") and not token:
        raise InputError(f"--host {host} lets other machines ask: give a --token, or set TWOFOLD_TOKEN.")
    paths = {name: os.path.abspath(path) for name, path in named.items()}
    run(Settings(paths, host, port, token, batch_window / 1000, deadline=deadline), workers)
