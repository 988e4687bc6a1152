"""The command itself: quick to start, and every failure is one line with the right exit code."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module

import pytest

from twofold.core.checks import InputError

HEAVY = {"numpy", "polars", "sklearn", "scipy", "scipy.stats", "pandas", "matplotlib", "numba", "torch", "dask"}
REDUCE = import_module("twofold.analyses.reduce.analysis")  # the attribute `reduce` of the package is the function


def start(*command, **options):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=600, **options)


def test_help_names_every_verb_and_imports_nothing_heavy():
    """Of the command it imports none of these, of a verb those alone that read tables."""
    code = (
        "import contextlib, io, sys\nfrom twofold.cli.app import ANALYSES, OTHERS, main\n"
        "def ask(*words):\n    sys.argv = ['twofold', *words, '--help']\n"
        "    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):\n        main()\n"
        f"    return out.getvalue(), sorted({HEAVY!r} & set(sys.modules))\n"
        "shown, heavy = ask()\nprint(all(verb in shown for verb in (*ANALYSES, *OTHERS)), heavy)\n"
        "print(*{name for verb in (*ANALYSES, *OTHERS) for name in ask(verb)[1]})"
    )
    run = start("-c", code)
    whole, verbs = run.stdout.splitlines()[-2:]
    assert whole == "True []", run.stdout + run.stderr
    assert set(verbs.split()) <= {"numpy", "polars", "scipy", "scipy.sparse"}


def test_a_verb_imports_what_it_needs(people):
    """Its help needs no numerical library, and its work none of those that scikit-learn imports beside its own."""
    program = (
        "import sys\nfrom twofold.cli.app import main\nsys.argv = ['twofold', 'reduce', *sys.argv[1:]]\n"
        "try: main()\nfinally: print(sorted({'sklearn', 'numba', 'pandas', 'scipy.stats._stats_py', 'matplotlib',"
        " 'sklearn.cluster', 'torch', 'dask'} & set(sys.modules)))"
    )
    for arguments, expected in [(["--help"], "[]"), (["people.csv"], "['numba', 'sklearn']")]:
        done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
        assert done.stdout.splitlines()[-1] == expected, done.stderr


def test_scikit_learn_finds_what_is_put_off_when_it_is_used():
    program = (
        "from twofold.cli.imports import import_scikit_learn\nimport_scikit_learn()\nimport sys\n"
        "from scipy.stats import chi2, rankdata\nassert 'scipy.stats._stats_py' not in sys.modules\n"
        "print(rankdata([3, 1]).tolist(), round(float(chi2.ppf(0.5, 2)), 3))\nimport scipy.stats\n"
        "print(scipy.stats.norm.cdf(0), 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["[2.0,", "1.0]", "1.386", "0.5", "False"], done.stderr


def test_python_dash_m_is_the_same_command(folder):
    run = start("-m", "twofold", "reduce", "missing.csv")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "twofold: missing.csv does not exist. Check the name and the folder.\n"


def test_standard_input_and_a_closed_pipe(people):
    command = f"cat people.csv | {sys.executable} -m twofold reduce - -k 5 -q | head -1"
    run = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=600)
    assert run.stdout.startswith("standard input: 60 rows")
    assert "Traceback" not in run.stderr


def test_progress_goes_to_a_terminal_on_stderr_only(people):
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "twofold", "reduce", "people.csv", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave) as run:
        os.close(slave)
        shown = b""
        try:
            while part := os.read(master, 65536):  # while it runs: a full terminal would stop it
                shown += part
        except OSError:
            pass  # the terminal is closed
        printed = run.stdout.read()
    os.close(master)
    assert run.returncode == 0, shown
    assert json.loads(printed)["rows"] == 60
    assert b"starting" in shown


def test_the_help_of_a_verb_is_that_of_its_function(twofold):
    for verb in ("reduce", "cluster", "inspect"):
        result = twofold(verb, "--help")
        assert result.exit_code == 0 and "--json" in result.stdout


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("reduse x.csv", '"reduce"'),
        ("reduce", "--help"),
        ("reduce x.csv --nonsense", "--help"),
        ("reduce x --seed a", "--help"),
    ],
)
def test_a_wrong_command_line_is_one_line(twofold, command, word):
    result = twofold(*command.split())
    assert result.exit_code == 2 and len(result.stderr.splitlines()) == 1
    assert "--help" in result.stderr and word in result.stderr


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

    monkeypatch.setattr(REDUCE, "as_table", fail)
    result = twofold("reduce", "x.csv")
    assert result.exit_code == code
    assert word in result.stderr and len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("sign", "code", "word"), [(signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "interrupted")]
)
@pytest.mark.parametrize("swallowed", [False, True], ids=["raised", "replaced by a library"])
def test_signals_end_a_verb_with_a_line(twofold, monkeypatch, sign, code, word, swallowed):
    def work(*args, **options):
        try:
            signal.raise_signal(sign)
        except KeyboardInterrupt:
            if swallowed:
                raise ValueError("not a valid format") from None
            raise

    before = signal.getsignal(sign)
    monkeypatch.setattr(REDUCE, "as_table", work)
    result = twofold("reduce", "x.csv")
    assert result.exit_code == code and result.stderr == f"twofold: {word}.\n"
    assert signal.getsignal(sign) == before


def test_a_signal_in_a_callback_is_not_lost(twofold, monkeypatch, capfd):
    """Callbacks of a compiler print an exception and go on."""
    callback = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))

    def work(*args, **options):
        callback()
        time.sleep(60)

    monkeypatch.setattr(REDUCE, "as_table", work)
    start = time.monotonic()
    result = twofold("reduce", "x.csv")
    assert result.exit_code == 130 and result.stderr == "twofold: interrupted.\n"
    assert time.monotonic() - start < 50 and "ignored" not in capfd.readouterr().err


def test_debug_shows_where(twofold, monkeypatch):
    monkeypatch.setenv("TWOFOLD_DEBUG", "1")
    assert isinstance(twofold("reduce", "missing.csv").error, InputError)
