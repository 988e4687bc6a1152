"""The command of an analysis: its options follow from the declaration of the analysis, the rest is what verbs share.

twofold VERB INPUT  →  arguments  →  analyses.VERB(...)  →  an Answer  →  stdout, files
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter as Option

from twofold.analyses.common.analysis import answers_of, plan_files
from twofold.analyses.common.answer import Answer
from twofold.cli import options
from twofold.cli.deliver import Output, run
from twofold.cli.imports import import_scikit_learn
from twofold.core.checks import InputError
from twofold.core.declaration import REQUIRED, Parameter, read_parameters
from twofold.core.spelling import Speller, parameters_spelled_by, spell_parameters

Analysis = Callable[..., Answer]
SCALARS = {bool: bool, int: int, float: float}


def option_name(parameter: Parameter) -> str:
    """The name of a parameter's option that help texts and messages use: the first."""
    if parameter.default is REQUIRED:
        return parameter.flag.unit or parameter.name.upper()
    return (*parameter.flag.names, f"--{parameter.name.replace('_', '-')}")[0]


def speller_for(parameters: Mapping[str, Parameter]) -> Speller:
    """Spell the parameters of an analysis, and of the estimators that it fits, as options."""
    names = {"out": "-o"} | {p.name: option_name(p) for p in parameters.values()}
    names |= {p.flag.sets: option_name(p) for p in parameters.values() if p.flag.sets}

    def spell(name: str, value: str | None) -> str:
        if name not in names or value in ("True", "False"):
            return options.spell_option(name, value)
        return names[name] if value is None else f"{names[name]} {shlex.quote(value)}"

    return spell


def declare_option(parameter: Parameter, speller: Speller) -> inspect.Parameter:
    """The option or argument of the command line for one parameter of an analysis."""
    flag = parameter.flag
    members = parameter.type if isinstance(parameter.type, tuple) else (parameter.type,)
    kind: Any = next((SCALARS[member] for member in members if member in SCALARS), str)
    if flag.parse or len(members) > 1:
        kind = str if flag.parse or str in members else kind
    text = describe(parameter, speller)
    if parameter.default is REQUIRED:
        how = Option(help=text, allow_leading_hyphen=False)
        many = inspect.Parameter.POSITIONAL_ONLY
        return inspect.Parameter(
            flag.unit or parameter.name, many, annotation=Annotated[list[str] if flag.many else str, how]
        )
    names = flag.names or (option_name(parameter),)
    if any(getattr(member, "__origin__", member) in (Sequence, list) for member in members):
        kind = list[str]
    two_way = kind is bool and parameter.default is None
    how = Option(
        name=names,
        help=text,
        negative=None if two_way else (),
        allow_leading_hyphen=kind is not bool,
        show_default=False,
    )
    if not any(name.startswith("--") for name in names):
        how = Option(name=names, help=text, negative=(), allow_leading_hyphen=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(parameter.name, keyword, default=None, annotation=Annotated[kind | None, how])


def describe(parameter: Parameter, speller: Speller) -> str:
    """The help line of a parameter: its meaning in the docstring, its choices, its default."""
    parts = [spell_parameters(parameter.meaning, speller)]
    if parameter.choices:
        parts.append(f"[{', '.join(map(str, parameter.choices))}]")
    default = parameter.default
    if default is not False and default not in (REQUIRED, None, ()):  # 0 is a default, and equal to False
        parts.append(f"[default: {default:g}]" if isinstance(default, float) else f"[default: {default}]")
    return " ".join(parts)


def shared_options(analyze: Analysis) -> dict[str, inspect.Parameter]:
    """Options that say where the answer goes and which cluster reads, by the names of the fields of `Output`."""
    kinds = answers_of(analyze)
    endings = tuple(dict.fromkeys(ending for kind in kinds for ending in kind.endings))
    found: dict[str, tuple[Any, Any]] = {}
    if analyze.streams:  # type: ignore[attr-defined]
        found |= {"cluster": (options.Cluster, None), "workers": (options.Workers, None)}
    found["out"] = (Annotated[list[Path] | None, options.out(endings)], None)
    if ".twofold" in endings:
        found["save"] = (options.Save, None)
    if any(kind.compares for kind in kinds):
        found["compare"] = (options.Compare, None)
    if ".csv" in endings:
        found["safe_csv"] = (options.SafeCsv, False)
    found |= {"as_json": (options.AsJson, False), "force": (options.Force, False), "quiet": (options.Quiet, False)}
    keyword = inspect.Parameter.KEYWORD_ONLY
    return {n: inspect.Parameter(n, keyword, default=default, annotation=a) for n, (a, default) in found.items()}


def make_command(analyze: Analysis) -> Callable[..., None]:
    """The function that cyclopts calls for a verb, with a signature made of the analysis' own parameters."""
    parameters = {name: p for name, p in read_parameters(analyze).items() if name != "progress"}
    speller = speller_for(parameters)
    own = {name: declare_option(p, speller) for name, p in parameters.items()}
    shared = shared_options(analyze)

    def verb(*inputs: Any, **given: Any) -> None:
        import_scikit_learn()
        required = [name for name, p in parameters.items() if p.default is REQUIRED]
        arguments = dict(zip(required, map(options.restore_dash, inputs), strict=True))
        where = {name: given.pop(name, p.default) for name, p in shared.items()}
        machines = {name: where.pop(name, None) for name in ("cluster", "workers")}
        given = {name: value for name, value in given.items() if value is not None}
        with parameters_spelled_by(speller), on_cluster(**machines) as notes:
            for name, value in given.items():
                if parameters[name].flag.parse:
                    given[name] = parameters[name].flag.parse(value)  # type: ignore[misc]
            output = Output(**{**where, "out": where["out"] or []})
            source = list(arguments.values())[-1]
            kind = next(kind for kind in answers_of(analyze) if kind.fits(source))
            texts = [one for value in (*arguments.values(), *given.values()) for one in as_list(value)]

            def work() -> Answer:
                with plan_files(output.files):
                    answer = analyze(*arguments.values(), **given)
                answer.notes += notes()
                return answer

            run(work, output, kind, [one for one in texts if isinstance(one, str)])

    verb.__doc__ = (inspect.getdoc(analyze) or "").partition("\n")[0]
    verb.__name__ = analyze.__name__
    verb.__signature__ = inspect.Signature([*own.values(), *shared.values()])  # type: ignore[attr-defined]
    verb.__annotations__ = {}
    return verb


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@contextmanager
def on_cluster(cluster: str | None = None, workers: int | None = None) -> Iterator[Callable[[], list[str]]]:
    """A cluster in force while a verb runs, if one is asked for; the value lists, afterwards, the workers."""
    if cluster is None and workers is None:
        yield list
        return
    if cluster is not None and workers is not None:
        raise InputError("--cluster and --workers: workers belong to the cluster at that address. Give one of the two.")
    if workers is not None and workers < 1:
        raise InputError(f"--workers {workers}: give a number of at least 1.")
    try:
        from twofold.core.engine.dask import DaskEngine, connect
    except ImportError:
        raise InputError("--cluster and --workers need dask: pip install 'twofold[dask]'") from None
    before = DaskEngine.tasks
    with connect(cluster, workers) as where:

        def notes() -> list[str]:
            done = DaskEngine.tasks - before
            if done:
                return [f"{done:,} tasks were done by {where}"]
            return ["the data fits in memory and was not streamed: the workers had nothing to do"]

        yield notes
