"""`twofold lab`: a page on this machine where every method can be watched at work."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Annotated

from cyclopts import Parameter

from twofold.cli.options import option
from twofold.core.checks import InputError

TAKES = (
    "A file of your own, to begin with: a table, ratings, text, an image, an array; or a folder of texts. Other files "
    "can be dropped on the page."
)
PORT = "Port of 127.0.0.1. Default: 8226, or one that is free."


def lab(
    file: Annotated[str | None, Parameter(help=TAKES)] = None,
    /,
    *,
    port: Annotated[int | None, option("--port", text=PORT, unit="N")] = None,
    no_browser: Annotated[bool, option("--no-browser", text="Only print the address.")] = False,
) -> None:
    """Watch every method work, on your own data, in the browser."""
    if port is not None and not 1 <= port <= 65535:
        raise InputError(f"--port {port}: give a number from 1 to 65535.")
    missing = [package for package in ("fastapi", "uvicorn", "websockets") if find_spec(package) is None]
    if missing:
        raise InputError(f"the lab needs {', '.join(missing)}: pip install 'twofold[lab]'")
    if file is not None and not os.path.exists(file.partition("::")[0]):
        from twofold.io.tables.read import missing_message

        raise InputError(missing_message(file))
    from twofold.lab.app import serve

    serve(file, port, not no_browser)
