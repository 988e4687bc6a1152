"""The command `twofold`: one table of verbs, each loaded only when it is called.

A new verb is a line in VERBS and a module with a function of the verb's name, whose parameters typer reads.
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
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from twofold import __version__

VERBS = {
    "reduce": (
        "twofold.cli.commands.reduce",
        "Find the main directions in a table of numbers (PCA; blanks are fine).",
    ),
    "cluster": (
        "twofold.cli.commands.cluster",
        "Find groups of rows that belong together, and what sets each apart.",
    ),
    "complete": (
        "twofold.cli.commands.complete",
        "Fill the blanks of a table, and leave everything else as it is.",
    ),
    "recommend": (
        "twofold.cli.commands.recommend",
        "Find what people would like, from what they have rated or used.",
    ),
    "topics": (
        "twofold.cli.commands.topics",
        "Find what documents are about: a folder, a file, or a column of text.",
    ),
    "embed": (
        "twofold.cli.commands.embed",
        "Learn vectors of words from text: words used alike lie near each other.",
    ),
    "words": (
        "twofold.cli.commands.words",
        "Ask word vectors: nearest words, analogies, similarity; or export them.",
    ),
    "compress": (
        "twofold.cli.commands.compress",
        "Put an image in fewer bytes, as a .tfi file (for teaching), .webp or .jp2.",
    ),
    "denoise": (
        "twofold.cli.commands.denoise",
        "Take the noise out of an image, by patches learned from itself.",
    ),
    "inpaint": (
        "twofold.cli.commands.inpaint",
        "Fill the holes of an image: painted over, transparent, or under a mask.",
    ),
    "sense": (
        "twofold.cli.commands.sense",
        "Recover an image or signal from fewer random measurements than it has numbers.",
    ),
    "train": (
        "twofold.cli.commands.train",
        "Train a network or a generator on images: vae, gan, pixelcnn, cnn, ...",
    ),
    "generate": (
        "twofold.cli.commands.generate",
        "Draw new images from a model that was trained to make them.",
    ),
    "apply": (
        "twofold.cli.commands.apply",
        "Apply a saved model to new rows, documents, images or ratings.",
    ),
    "inspect": ("twofold.cli.commands.inspect", "Say what a model file holds, and what can be done with it."),
    "tour": ("twofold.cli.commands.tour", "See every family at work on bundled data, as one HTML page."),
    "lab": ("twofold.cli.commands.lab", "Watch every method work, on your own data, in the browser."),
}


def hide_types(parameters: list[Any]) -> list[Any]:
    """In help texts, the types of flags and arguments are left out: nobody types a <bool> or a <list[str]>."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) or parameter.param_type_name == "argument":
            parameter.display_type_rich = lambda ctx: None
    return parameters


class Verb(TyperCommand):
    """One verb."""

    def get_params(self, ctx: Any) -> Any:
        return hide_types(super().get_params(ctx))


class Verbs(TyperGroup):
    """Shows every verb with its help line, imports only the one called, and turns errors into one line."""

    def get_params(self, ctx: Any) -> Any:
        return hide_types(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in VERBS:
            module, line = VERBS[args[0]]
            alone = typer.Typer(add_completion=False)
            alone.command(args[0], help=line, cls=Verb)(getattr(importlib.import_module(module), args[0]))
            self.commands[args[0]] = typer.main.get_command(alone)
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, **options: Any) -> Any:
        code = 0
        try:
            with ended_by_signals():
                options["standalone_mode"] = False  # errors come to us
                code = super().main(*args, **options) or 0
                if code == 130:  # typer has already caught the Ctrl-C
                    raise KeyboardInterrupt
        except BrokenPipeError:  # the reader of our output has gone, as in `twofold ... | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 1
        except (Exception, KeyboardInterrupt) as error:
            if os.environ.get("TWOFOLD_DEBUG"):
                raise
            code, message = explain(error)
            if message:
                from twofold.core.printable import printable

                print(printable(message), file=sys.stderr)
        sys.exit(code)


class Terminated(KeyboardInterrupt):
    """SIGTERM came: the work ends as with Ctrl-C, so that nothing half-written stays."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
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


def explain(error: BaseException) -> tuple[int, str]:
    """Exit code and one line for anything that went wrong."""
    if isinstance(error, Terminated):
        return 143, "twofold: terminated."
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return 130, "twofold: interrupted."
    if hasattr(error, "format_message"):  # the command line itself is wrong
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "twofold"
        message = one_line(error.format_message())
        return 2, f"{where}: {message} Try {where} --help." if message else ""
    from twofold.cli._options import spell_option
    from twofold.core.checks import InputError, ModelFileError

    if isinstance(error, InputError):
        return 2, f"twofold: {one_line(error.render(spell_option))}"
    if isinstance(error, ModelFileError):
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


def show_version(wanted: bool) -> None:
    if wanted:
        print(f"twofold {__version__}")
        raise typer.Exit()


app = typer.Typer(
    cls=Verbs,
    subcommand_metavar="VERB INPUT [OPTIONS]",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Find the hidden structure in tables, ratings, text, words, signals and images. "
    "Every verb works on your own file without options.",
    epilog="twofold VERB --help shows what a verb takes.",
)


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version.")
    ] = False,
    memory: Annotated[
        str,
        typer.Option("--memory", metavar="SIZE", help="Memory that data may take, such as 4GB.", show_default=False),
    ] = "1GB",
) -> None:
    if memory != "1GB":
        from twofold.core.config import config

        config(memory=memory)


def _placeholder() -> None: ...


for _verb, (_, _line) in VERBS.items():
    app.command(_verb, help=_line)(_placeholder)


def main() -> None:
    app(prog_name="twofold")
