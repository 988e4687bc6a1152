"""Signature and docstring of an analysis are its only declaration: help, checks, code, lab and reference follow."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest

from tests.cli.helpers import run_twofold
from twofold import analyses
from twofold.analyses.common.analysis import Data, Reading, Seed, analysis
from twofold.analyses.common.answer import Answer
from twofold.cli import app
from twofold.cli.command import make_command, option_name, speller_for
from twofold.core.checks import InputError
from twofold.core.declaration import REQUIRED, Flag, read_meanings, read_parameters
from twofold.core.spelling import spell_parameters
from twofold.lab.methods.setting import control_of

VERBS = app.ANALYSES


def read_help(verb: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The help of a verb, one line an option."""
    monkeypatch.setenv("COLUMNS", "3000")
    result = run_twofold(verb, "--help")
    assert result.exit_code == 0, result.stderr
    return " ".join(result.stdout.split())


def check_faces(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every parameter: meaning, choices and default of the declaration are in the help, the lab and the reference."""
    analyze = getattr(analyses, verb)
    parameters = {name: p for name, p in read_parameters(analyze).items() if name != "progress"}
    shown, speller = read_help(verb, monkeypatch), speller_for(parameters)
    for name, own in parameters.items():
        assert own.meaning, f"{verb}: {name} has no meaning"
        line = [spell_parameters(own.meaning, speller)]
        line += [f"[{', '.join(own.choices)}]"] if own.choices else []
        if own.default is not False and own.default not in (REQUIRED, None, ()):
            line += [f"[default: {own.default:g}]" if isinstance(own.default, float) else f"[default: {own.default}]"]
        line += ["[required]"] if own.default is REQUIRED else []
        text = " ".join(line)
        assert text in shown and f"{text} [" not in shown, name
        assert option_name(own) in shown
        assert name in read_meanings(analyze)  # what help() and the reference show
        declared = control_of(analyze, name)
        assert declared.about == spell_parameters(own.meaning, lambda name, value: name.replace("_", " "))
        assert set(own.choices) <= set(declared.choices)


@pytest.mark.parametrize("verb", VERBS)
def test_help_lab_and_reference_say_what_the_docstring_says(verb, monkeypatch):
    check_faces(verb, monkeypatch)


@pytest.mark.parametrize("verb", VERBS)
def test_the_docstring_explains_parameters_of_the_signature_and_no_others(verb):
    function = getattr(analyses, verb)
    assert set(read_meanings(function)) == {*read_parameters(function)}
    assert len(inspect.getdoc(function).partition("\n")[0]) < 120


@pytest.mark.parametrize("verb", VERBS)
def test_a_value_that_is_no_choice_is_refused_by_the_declaration(verb):
    for own in read_parameters(getattr(analyses, verb)).values():
        if own.choices:
            with pytest.raises(InputError, match=re.escape(f"{own.name}='nonsense': choose {own.choices[0]}")):
                own.check("nonsense")
            for choice in own.choices:
                own.check(choice)
        if own.flag.min is not None:
            with pytest.raises(InputError, match=f"{own.name}=.*: give a number"):
                own.check(own.flag.min - 1)
            own.check(own.flag.min)


@dataclass(kw_only=True, repr=False, eq=False)
class Found(Answer):
    """An answer with nothing in it."""


def declare(sentence: str, default: str, largest: int):
    """An analysis whose docstring, default and limit are given."""

    def find(
        data: Data,
        count: Annotated[int | None, Flag("-c", "--count", max=largest)] = None,
        *,
        way: Literal["short", "long"] = default,  # type: ignore[assignment]
        seed: Seed = 0,
    ) -> Found:
        return Found(source=str(data), chosen={"count": 7})

    find.__doc__ = (
        f"Find something.\n\nParameters\n----------\ndata\n    A file.\ncount\n    {sentence}\nway\n    See `count`."
    )
    find.__annotations__ = {**find.__annotations__, "count": Annotated[int | None, Flag("-c", "--count", max=largest)]}
    find.__globals__["Found"] = Found
    return analysis()(find)


@pytest.mark.parametrize(("sentence", "default", "largest"), [("How many.", "short", 5), ("The number.", "long", 9)])
def test_all_follows_a_change_of_the_declaration(monkeypatch, sentence, default, largest):
    find = declare(sentence, default, largest)
    monkeypatch.setitem(vars(analyses), "find", find)
    monkeypatch.setattr(app, "load", lambda verb: make_command(find))
    monkeypatch.setattr(app, "ANALYSES", ("find",))
    monkeypatch.setattr(app, "OTHERS", ())
    shown = read_help("find", monkeypatch)
    assert sentence in shown and f"See -c. [short, long] [default: {default}]" in shown
    assert control_of(find, "count").about == sentence and control_of(find, "way").default == default
    assert sentence in find.__doc__ and "Seed of all random numbers." in find.__doc__
    assert find("x.csv").code.splitlines()[2] == f"answer = analyses.find('x.csv', count=7, way='{default}', seed=0)"
    find("x.csv", largest)
    with pytest.raises(InputError, match=f"count={largest + 1}: give a number of at most {largest}"):
        find("x.csv", largest + 1)
    assert f"-c {largest + 1}: give a number" in run_twofold("find", "x.csv", "-c", largest + 1).stderr
    with pytest.raises(TypeError, match='Did you mean "count"'):
        find("x.csv", counts=3)


def test_how_a_table_is_read_is_declared_once():
    for verb in VERBS:
        shared = set(Reading.__annotations__) & set(read_parameters(getattr(analyses, verb)))
        if verb != "recommend":  # whose blanks mean no rating
            for name in shared:
                assert read_meanings(Reading)[name] == read_meanings(getattr(analyses, verb))[name]
