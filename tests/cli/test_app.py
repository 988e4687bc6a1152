"""The command itself: quick to start, and every failure is one line with the right exit code."""

import ctypes
import signal
import subprocess
import sys
import time

import pytest

from twofold.cli import app as application
from twofold.core.checks import InputError

HEAVY = {"numpy", "polars", "sklearn", "scipy", "matplotlib", "numba", "torch", "dask"}


def test_help_names_every_verb_and_imports_nothing_heavy():
    code = (
        "import sys\nfrom twofold.cli.app import main\nsys.argv = ['twofold', '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    code = end.code\n"
        f"print(code, sorted({HEAVY!r} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert run.stdout.splitlines()[-1] == "0 []", run.stdout + run.stderr
    for verb in application.VERBS:
        assert verb in run.stdout


def test_python_dash_m_is_the_same_command(folder):
    run = subprocess.run(
        [sys.executable, "-m", "twofold", "reduce", "missing.csv"], capture_output=True, text=True, timeout=600
    )
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr == "twofold: missing.csv does not exist. Check the name and the folder.\n"


def test_every_verb_that_exists_has_a_function_of_its_name(twofold):
    for verb in ("reduce", "cluster", "inspect"):
        shown = twofold(verb, "--help")
        assert shown.exit_code == 0 and "--json" in shown.stdout


def test_a_wrong_command_line_is_one_line(twofold):
    for args in [("reduse", "x.csv"), ("reduce",), ("reduce", "x.csv", "--nonsense"), ("reduce", "x", "--seed", "a")]:
        result = twofold(*args)
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1 and "--help" in result.stderr
    assert "'reduce'" in twofold("reduse", "x.csv").stderr


@pytest.mark.parametrize(
    ("error", "code", "word"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (InputError("bad\nthing"), 2, "bad thing"),
        (PermissionError(13, "Permission denied", "secret.csv"), 2, "secret.csv: Permission denied"),
        (OSError(28, "No space left on device"), 2, "the output: No space left"),
        (MemoryError("8 TB"), 2, "memory"),
        (ZeroDivisionError("oops"), 1, "TWOFOLD_DEBUG=1"),
    ],
)
def test_exit_codes(twofold, monkeypatch, error, code, word):
    def fail(*args, **options):
        raise error

    monkeypatch.setattr("twofold.cli.commands.reduce.analyze", fail)
    result = twofold("reduce", "x.csv")
    assert result.exit_code == code
    assert word in result.stderr and len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("sign", "code", "word"), [(signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "interrupted")]
)
@pytest.mark.parametrize("swallowed", [False, True], ids=["as it is", "made another error by a library"])
def test_signals_end_a_verb_with_a_line(twofold, monkeypatch, sign, code, word, swallowed):
    def work(*args, **options):
        try:
            signal.raise_signal(sign)
        except KeyboardInterrupt:
            if swallowed:
                raise ValueError("not a valid format") from None
            raise

    before = signal.getsignal(sign)
    monkeypatch.setattr("twofold.cli.commands.reduce.analyze", work)
    result = twofold("reduce", "x.csv")
    assert result.exit_code == code and result.stderr == f"twofold: {word}.\n"
    assert signal.getsignal(sign) == before


def test_a_signal_in_a_callback_is_not_lost(twofold, monkeypatch, capfd):
    """As in those of a compiler, which print what is raised in them and go on."""
    called = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))

    def work(*args, **options):
        called()
        time.sleep(60)

    monkeypatch.setattr("twofold.cli.commands.reduce.analyze", work)
    start = time.monotonic()
    result = twofold("reduce", "x.csv")
    assert result.exit_code == 130 and result.stderr == "twofold: interrupted.\n"
    assert time.monotonic() - start < 50 and "ignored" not in capfd.readouterr().err


def test_debug_shows_where(twofold, monkeypatch):
    monkeypatch.setenv("TWOFOLD_DEBUG", "1")
    result = twofold("reduce", "missing.csv")
    assert isinstance(result.exception, InputError)
