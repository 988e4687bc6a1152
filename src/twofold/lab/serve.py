"""Starting the lab: a free port of this machine, a token, uvicorn, and the browser."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twofold.core.checks import InputError

if TYPE_CHECKING:
    from twofold.lab.jobs import Lab

PORT = 8226  # tried first, so that the address stays the same
HOST = "127.0.0.1"
CONFIG: dict[str, Any] = {
    "log_level": "error" if os.environ.get("TWOFOLD_DEBUG") else "critical",
    "access_log": False,
    "server_header": False,
    "lifespan": "on",
    "timeout_keep_alive": 15,
    "timeout_graceful_shutdown": 1,
    "h11_max_incomplete_event_size": 2**15,  # bytes of headers
    "ws_max_size": 2**16,  # bytes of one message of a page
    "ws_per_message_deflate": False,  # frames stay on this machine
}


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
    import uvicorn

    from twofold.lab.app import create
    from twofold.lab.jobs import Lab

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
    from twofold.lab.jobs import Refused

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
