"""The way of an answer: check where results go, call the analysis, write files, print notes and results."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from twofold.analyses.common.answer import DRAWN, WIDTH, Answer, console
from twofold.analyses.common.targets import check_targets
from twofold.cli.progress import show_progress
from twofold.core.checks import InputError
from twofold.core.printable import escape
from twofold.core.progress import doing
from twofold.core.spelling import spell_parameters


class Output(NamedTuple):
    """Where an answer goes."""

    out: list[Path]
    save: Path | None = None
    as_json: bool = False
    force: bool = False
    quiet: bool = False
    compare: Path | None = None  # the figure of an answer that is an image itself
    safe_csv: bool = False

    @property
    def files(self) -> list[Path]:
        return [*self.out, *([self.save] if self.save else [])]

    @property
    def figure(self) -> dict[str, Any]:
        """The option of `save` for the figure, if one is wanted."""
        return {"compare": self.compare} if self.compare else {}


def run(analysis: Callable[[], Answer], output: Output, kind: type[Answer], inputs: Sequence[str] = ()) -> None:
    """Call the analysis and deliver its answer; an output that cannot be written is refused before."""
    if output.save is not None and output.save.suffix != ".twofold":
        raise InputError(f"--save {output.save}: a model file ends in .twofold. Name it so, or use -o for results.")
    check_targets(output.out, [ending for ending in kind.endings if ending != ".twofold"], output.force, inputs)
    check_targets(kind.list_files(output.files), kind.endings, output.force, inputs)
    check_targets([*output.figure.values()], DRAWN, output.force, inputs)
    if output.compare in output.files:
        raise InputError(f"{output.compare} is named twice. Give each output its own file.")
    with show_progress(output.quiet):
        answer = analysis()
    if answer.hint and not (output.files or output.figure):
        answer.notes.append(f"nothing is written; {spell_parameters(answer.hint)}")
    deliver(answer, output)


def deliver(answer: Answer, output: Output) -> None:
    """Files written, notes to stderr, the answer to stdout."""
    answer.safe_csv = output.safe_csv
    with show_progress(output.quiet), doing("writing"):
        answer.save(*output.files, **output.figure, force=True)  # looked at before the fit
    say(answer.notes, output.quiet)
    written = [str(path) for path in (*answer.list_files(output.files), *output.figure.values())]
    if output.as_json:
        print_json(answer.to_dict() | {"written": written})
        return
    stdout().print(answer)
    say([f"wrote {', '.join(written)}"] if written else [], output.quiet)


def say(notes: Iterable[str], quiet: bool = False) -> None:
    """Choices made on the user's behalf: one line each, on stderr."""
    if not quiet:
        stderr = console(stderr=True, soft_wrap=True)
        for note in notes:
            stderr.print(f"· {note}", style="dim")


def stdout() -> Console:
    """The console for results. Markup is off: column names may hold square brackets."""
    return console(width=None if sys.stdout.isatty() else WIDTH)


def print_json(value: Any) -> None:
    print(escape(json.dumps(value, ensure_ascii=False, indent=2)))
