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

PORT = 8226  # tried first: an address that stays is one that can be kept
HOST = "127.0.0.1"
CONFIG: dict[str, Any] = {
    "log_level": "error" if os.environ.get("TWOFOLD_DEBUG") else "critical",
    "access_log": False,
    "server_header": False,
    "lifespan": "on",
    "timeout_keep_alive": 15,
    "timeout_graceful_shutdown": 1,
    "h11_max_incomplete_event_size": 2**15,  # bytes of headers
    "ws_max_size": 2**16,  # bytes that a page may say at once
    "ws_per_message_deflate": False,  # frames go through no wire
}


def bind(port: int | None) -> socket.socket:
    """A socket of this machine alone: the port asked for, else the usual one, else any that is free."""
    for wanted in (PORT, 0) if port is None else (port,):
        found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if os.name == "posix":  # a lab that was closed a moment ago does not block its port
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((HOST, wanted))
        except OSError as error:
            found.close()
            if port is not None:
                raise InputError(
                    f"--port {port}: it cannot be used ({error.strerror}). Name another, or none: a free one is found."
                ) from None
        else:
            return found
    raise InputError("no port of 127.0.0.1 is free for the lab. Close other programs and try again.")


def serve(file: str | None = None, port: int | None = None, browser: bool = True) -> None:
    """Serve the lab until Ctrl-C; `file` is read first, and is then the data that is chosen."""
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
        asyncio.run(live(uvicorn.Server(config), listening, lab, file, address, browser))
    except KeyboardInterrupt:  # how the lab is closed
        print("lab: closed", file=sys.stderr)
    finally:
        listening.close()
        lab.discard()


async def live(server: Any, listening: socket.socket, lab: Lab, file: str | None, address: str, browser: bool) -> None:
    """The server, from its start to its end; the address is told once it answers."""
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
