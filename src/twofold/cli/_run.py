"""What a verb does with its options: check where results go, call the analysis, say the notes, write, show.

twofold VERB INPUT  →  options  →  analyses.VERB(...)  →  an Answer  →  stdout, files
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from rich.console import Console

from twofold.analyses.common.answer import DRAWN, WIDTH, Answer, console
from twofold.analyses.common.images import ComparedAnswer
from twofold.analyses.common.targets import check_targets
from twofold.cli import _options as options
from twofold.cli.progress import show_progress
from twofold.core.checks import InputError
from twofold.core.printable import escape
from twofold.core.progress import doing
from twofold.core.spelling import parameters_spelled_by


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


def command(
    kind: type[Answer], result: str = "Result file", hint: str = "", streams: bool = False
) -> Callable[[Callable[..., Answer]], Callable[..., None]]:
    """Decorates a verb, a function of its own options that returns an answer of this kind.

    Added are the options that say where the answer goes, -o, --save, --safe-csv, --json, --force, --quiet, and, if the
    function takes ``**reading``, those that say how a table is read: --missing, --drop, --columns. No file that an
    option names is overwritten. `out` and `save`, if they are
    parameters, get the files of -o and --save. `hint` says how to keep the result, when no file is asked for. A verb
    that `streams` large files can have them read by the workers of a cluster: --cluster, --workers.
    """
    shared = {
        "out": (Annotated[list[Path] | None, options.out(kind.endings, result)], None),
        **({"save": (options.Save, None)} if ".twofold" in kind.endings else {}),
        **({"compare": (options.Compare, None)} if issubclass(kind, ComparedAnswer) else {}),
        **({"safe_csv": (options.SafeCsv, False)} if ".csv" in kind.endings else {}),
        "as_json": (options.AsJson, False),
        "force": (options.Force, False),
        "quiet": (options.Quiet, False),
    }
    machines = {"cluster": options.Cluster, "workers": options.Workers} if streams else {}

    def decorate(function: Callable[..., Answer]) -> Callable[..., None]:
        own = inspect.signature(function, eval_str=True).parameters
        named = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [p for p in own.values() if p.kind is named and p.name not in ("out", "save")]
        reading = options.READING if "reading" in own else {}
        parameters += [inspect.Parameter(n, named, default=None, annotation=a) for n, a in reading.items()]
        parameters += [inspect.Parameter(n, named, default=None, annotation=a) for n, a in machines.items()]
        parameters += [inspect.Parameter(n, named, default=d, annotation=a) for n, (a, d) in shared.items()]

        def verb(**given: Any) -> None:
            where = {name: given.pop(name) for name in shared}
            asked = {name: given.pop(name) for name in machines}
            given |= {name: given[name] or () for name in reading}
            output = Output(where.pop("out") or [], **where)
            values = [one for value in given.values() for one in (value if isinstance(value, list) else [value])]
            inputs = [one for one in values if isinstance(one, str)]  # a text that names an output names a file to keep
            given |= {name: value for name, value in (("out", output.out), ("save", output.save)) if name in own}
            with on_cluster(**asked) as notes:

                def analysis() -> Answer:
                    answer = function(**given)
                    answer.notes += notes()
                    return answer

                run(analysis, output, kind, inputs, hint)

        verb.__doc__, verb.__name__ = function.__doc__, function.__name__
        verb.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        verb.__annotations__ = {}
        return verb

    return decorate


@contextmanager
def on_cluster(cluster: str | None = None, workers: int | None = None) -> Iterator[Callable[[], list[str]]]:
    """A cluster in force while a verb runs, if one is asked for; what is given says, afterwards, who worked."""
    if cluster is None and workers is None:
        yield list
        return
    if cluster is not None and workers is not None:
        raise InputError("--cluster and --workers: workers belong to the cluster at that address. Give one of the two.")
    try:
        from twofold.core.engine.dask import DaskEngine, connected
    except ImportError:
        raise InputError("--cluster and --workers need dask: pip install 'twofold[dask]'") from None
    before = DaskEngine.tasks
    with connected(cluster, workers) as where:

        def notes() -> list[str]:
            done = DaskEngine.tasks - before
            if done:
                return [f"{done:,} tasks were done by {where}"]
            return ["the data fits in memory and was not streamed: the workers had nothing to do"]

        yield notes


def run(
    analysis: Callable[[], Answer],
    output: Output,
    kind: type[Answer],
    inputs: Sequence[str] = (),
    hint: str = "",
) -> None:
    """Call the analysis and deliver its answer; an output that cannot be written is refused before.

    `hint` says how to keep the result, when no file is asked for.
    """
    if output.save is not None and output.save.suffix != ".twofold":
        raise InputError(f"--save {output.save}: a model file ends in .twofold. Name it so, or use -o for results.")
    check_targets(output.out, [ending for ending in kind.endings if ending != ".twofold"], output.force, inputs)
    check_targets(kind.written(output.files), kind.endings, output.force, inputs)
    check_targets([*output.figure.values()], DRAWN, output.force, inputs)
    if output.compare in output.files:
        raise InputError(f"{output.compare} is named twice. Give each output its own file.")
    with show_progress(output.quiet), parameters_spelled_by(options.spell_option):
        answer = analysis()
    if hint and not (output.files or output.figure):
        answer.notes.append(hint)
    deliver(answer, output)


def deliver(answer: Answer, output: Output) -> None:
    """Files written, notes to stderr, the answer to stdout."""
    answer.safe_csv = output.safe_csv
    with show_progress(output.quiet), doing("writing"):
        answer.save(*output.files, **output.figure, force=True)  # looked at before the fit
    say(answer.notes, output.quiet)
    written = [str(path) for path in (*answer.written(output.files), *output.figure.values())]
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
