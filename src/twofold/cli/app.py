"""The command `twofold`: one table of verbs, each loaded only when it is called.

The verbs of ANALYSES are functions of `twofold.analyses`; their options and help follow from their declarations. The
verbs of OTHERS are functions in `twofold.cli.verbs`.
Exit codes: 0 done, 2 bad input (one line says where and what to do), 130 interrupted by Ctrl-C, 143 ended by SIGTERM,
1 a fault of ours.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from _thread import interrupt_main
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter

import twofold
from twofold.cli.options import DASH, protect_dash, spell_option
from twofold.core.spelling import parameters_spelled_by

ANALYSES = (
    "reduce", "cluster", "complete", "recommend", "topics", "embed", "compress", "denoise", "inpaint", "sense", "train",
    "generate", "apply",
)  # fmt: skip
OTHERS = ("words", "inspect", "tour", "lab", "serve")
LOOK = "look"  # stands before the file where no verb does
ABOUT = (
    "Find the hidden structure in tables, ratings, text, words, signals and images. Every verb works on your own file "
    "without options."
)


def summarize(verb: str) -> str:
    """The first line of a verb's docstring, read from its file: importing every verb takes seconds."""
    folder = Path(twofold.__file__).parent
    places = f"analyses/{verb}/analysis.py", f"analyses/{verb}.py", f"cli/verbs/{verb}.py"
    file = next(folder / place for place in places if (folder / place).is_file())
    body = file.read_text(encoding="utf-8").partition(f"\ndef {verb}(")[2]
    return body.partition('"""')[2].partition("\n")[0].removesuffix('"""')


def load(verb: str) -> Any:
    """The function that does the work of a verb."""
    if verb in (*OTHERS, LOOK):
        return getattr(importlib.import_module(f"twofold.cli.verbs.{verb}"), verb)
    from twofold import analyses
    from twofold.cli.command import make_command

    return make_command(getattr(analyses, verb))


def make_app(verb: str | None) -> App:
    """The command line, of which only `verb` is loaded."""
    style: dict[str, Any] = {
        "help_flags": ("--help", "-h"),
        "help_format": "plaintext",
        "suppress_keyboard_interrupt": False,
    }
    app = App(
        name="twofold", help=ABOUT, version=f"twofold {twofold.__version__}", version_flags=("--version",),
        help_epilogue="twofold VERB --help shows what a verb takes, twofold FILE what is in a file.",
        usage="twofold VERB INPUT [OPTIONS]", **style,
    )  # fmt: skip
    for name in (*ANALYSES, *OTHERS):
        if name == verb:
            app.command(load(name), name=name, **style)
        else:
            app.command(App(name=name, help=summarize(name), **style))

    if verb == LOOK:
        app.command(load(LOOK), name=LOOK, show=False, **style)

    @app.meta.default
    def launch(
        *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
        memory: Annotated[str, Parameter(help="Memory that data may take, such as 4GB.", group="Options")] = "1GB",
    ) -> Any:
        if memory != "1GB":
            from twofold.core.config import config

            config(memory=memory)
        return app(tokens, exit_on_error=False, print_error=False, result_action="return_value")

    app.meta.suppress_keyboard_interrupt = False  # Ctrl-C is told apart from SIGTERM below
    return app


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command line, and end the process with its exit code."""
    tokens = [protect_dash(token) for token in (sys.argv[1:] if argv is None else argv)]
    verb = next((token for token in tokens if token in (*ANALYSES, *OTHERS)), None)
    code = 0
    if verb is None and tokens and names_file(tokens[0]):
        verb, tokens = LOOK, [LOOK, *tokens]
    try:
        with end_by_signals(), parameters_spelled_by(spell_option):
            run = make_app(verb).meta
            run(tokens or ["--help"], exit_on_error=False, print_error=False, result_action="return_value")
    except BrokenPipeError:  # the reader of our output has gone, as in `twofold ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except (Exception, KeyboardInterrupt) as error:
        if os.environ.get("TWOFOLD_DEBUG"):
            raise
        code, message = explain(error, verb)
        if message:
            from twofold.core.printable import printable

            print(printable(message), file=sys.stderr)
    sys.exit(code)


def names_file(token: str) -> bool:
    """Tell whether the first word is no verb but a file, a folder, a pattern or standard input."""
    path = Path(token.partition("::")[0])
    return token == DASH or (token[:1] != "-" and (path.exists() or bool(path.suffix) or len(path.parts) > 1))


class Terminated(KeyboardInterrupt):
    """SIGTERM came: the work ends as with Ctrl-C, so that nothing half-written stays."""


@contextmanager
def end_by_signals() -> Iterator[None]:
    """In the block, SIGTERM ends the work as Ctrl-C does, and what a library makes of either is no error of its own."""
    came: list[signal.Signals] = []

    def end(number: int, frame: Any) -> None:
        came.append(signal.Signals(number))
        raise KeyboardInterrupt

    def repeat(number: signal.Signals) -> None:
        if hasattr(signal, "pthread_kill"):  # also wakes a main thread that waits for something
            signal.pthread_kill(threading.main_thread().ident or 0, number)
        else:
            interrupt_main(number)

    def again(lost: Any) -> None:
        if came and isinstance(lost.exc_value, KeyboardInterrupt):  # it came in a callback, which cannot pass it on
            threading.Timer(0.05, repeat, [came[-1]]).start()
        else:
            sys.__unraisablehook__(lost)

    if threading.current_thread() is not threading.main_thread():  # handlers are for main threads alone
        yield
        return
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    hook, sys.unraisablehook = sys.unraisablehook, again
    try:
        yield
    except BaseException:
        if not came:
            raise
        raise (Terminated if signal.SIGTERM in came else KeyboardInterrupt) from None
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def explain(error: BaseException, verb: str | None = None) -> tuple[int, str]:
    """Exit code and one line for anything that went wrong."""
    if isinstance(error, Terminated):
        return 143, "twofold: terminated."
    if isinstance(error, KeyboardInterrupt):
        return 130, "twofold: interrupted."
    if isinstance(error, CycloptsError):  # the command line itself is wrong
        command = f"twofold {verb}" if verb else "twofold"
        return 2, f"{command}: {one_line(error)} Try {command} --help."
    from twofold.core.checks import InputError, ModelFileError

    if isinstance(error, (InputError, ModelFileError)):
        return 2, f"twofold: {one_line(error)}"
    if isinstance(error, OSError) and error.strerror:
        where = "the output" if error.filename is None else error.filename
        return 2, f"twofold: {where}: {error.strerror}."
    if isinstance(error, MemoryError):
        why = f"the data does not fit in memory ({one_line(error)})"
        return 2, f"twofold: {why}. Save it as a .npy file, which is streamed."
    fault = f"{type(error).__name__}: {one_line(error)}"
    return 1, f"twofold: internal error, {fault} Set TWOFOLD_DEBUG=1 to see where."


def one_line(text: object) -> str:
    return " ".join(str(text).split())
