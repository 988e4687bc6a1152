"""The command, run in this process."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

import pytest

from twofold.cli.app import main
from twofold.core.config import config


class Result(NamedTuple):
    """The end of a command: `error` is an exception that left it, which only TWOFOLD_DEBUG allows."""

    exit_code: int
    stdout: str
    stderr: str
    error: BaseException | None


def run_twofold(*argv: object, stdin: str = "") -> Result:
    """Run the command in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    code, error = 1, None
    budget = config(memory=config().memory)  # restored, as --memory sets it for the process
    with budget, pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        try:
            main([str(arg) for arg in argv])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException as raised:
            error = raised
    return Result(code, *(stream.buffer.getvalue().decode() for stream in (out, err)), error)
