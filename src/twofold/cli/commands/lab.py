"""`twofold lab`: a page on this machine where every method can be watched at work."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Annotated

import typer

from twofold.core.checks import InputError

TAKES = (
    "A file of your own, to begin with: a table, ratings, text, an image, an array. Others can be dropped on the page."
)
PORT = "Port of 127.0.0.1. Default: 8226, or one that is free."


def lab(
    file: Annotated[str | None, typer.Argument(metavar="FILE", help=TAKES, show_default=False)] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, metavar="N", help=PORT)] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
) -> None:
    missing = [package for package in ("fastapi", "uvicorn", "websockets") if find_spec(package) is None]
    if missing:
        raise InputError(f"the lab needs {', '.join(missing)}: pip install 'twofold[lab]'")
    if file is not None and not os.path.isfile(file.partition("::")[0]):
        from twofold.io.tables.read import missing_message

        raise InputError(
            missing_message(file) if not os.path.isdir(file) else f"{file} is a folder. Name a file in it."
        )
    from twofold.lab.serve import serve

    serve(file, port, not no_browser)
