"""What a verb does with its options: check where results go, call the analysis, say the notes, write, show.

twofold VERB INPUT  →  options  →  analyses.VERB(...)  →  an Answer  →  stdout, files
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from twofold.analyses._targets import check_targets
from twofold.analyses.answer import WIDTH, Answer
from twofold.analyses.progress import Progress
from twofold.cli._progress import progress
from twofold.core.checks import InputError


class Output(NamedTuple):
    """Where an answer goes."""

    out: list[Path]
    save: Path | None = None
    as_json: bool = False
    force: bool = False
    quiet: bool = False

    @property
    def files(self) -> list[Path]:
        return [*self.out, *([self.save] if self.save else [])]


def run(
    analysis: Callable[[Progress], Answer], output: Output, endings: Sequence[str], inputs: Sequence[str] = ()
) -> None:
    """Call the analysis and deliver its answer; an output that cannot be written is refused before."""
    check_save(output.save)
    out_endings = [ending for ending in endings if ending != ".twofold"]
    check_targets(output.out, out_endings, output.force, inputs)
    check_targets(output.files, endings, output.force, inputs)
    watch = progress(output.quiet)
    answer = analysis(watch)
    deliver(answer, output, watch)


def deliver(answer: Answer, output: Output, watch: Progress) -> None:
    """Notes to stderr, files written, the answer to stdout."""
    say(answer.notes, output.quiet)
    with watch.doing("writing"):
        answer.save(*output.files, force=True)  # looked at before the fit
    written = [str(path) for path in output.files]
    if output.as_json:
        print_json(answer.to_dict() | {"written": written})
        return
    stdout().print(answer)
    say([f"wrote {', '.join(written)}"] if written else [], output.quiet)


def check_save(save: Path | None) -> None:
    if save is not None and save.suffix != ".twofold":
        raise InputError(f"--save {save}: a model file ends in .twofold. Name it so, or use -o for results.")


def say(notes: Iterable[str], quiet: bool = False) -> None:
    """Choices made on the user's behalf: one line each, on stderr."""
    if not quiet:
        console = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)
        for note in notes:
            console.print(f"· {note}", style="dim")


def stdout() -> Console:
    """The console for results. Markup is off: column names may hold square brackets."""
    return Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else WIDTH)


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))
