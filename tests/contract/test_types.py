"""What an editor shows: public signatures have types, and a user's program is checked against them."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import twofold
from twofold.core.estimator import Model

MODELS = [pytest.param(cls, id=name) for name in twofold._MODELS if issubclass(cls := getattr(twofold, name), Model)]
TYPES = {
    "X": ("Table", "Table | DataLoader", "Documents"),
    "corpus": ("Documents",),
    "sample_weight": ("Weights",),
    "random_state": ("Seed",),
}
PROGRAM = """
import numpy as np
from twofold import KMeans, PCA, load

X = np.random.default_rng(0).normal(size=(20, 3))
codes = PCA(2).fit(X).transform("table.parquet")
reveal_type(KMeans(3, random_state=0).fit(X))
reveal_type(KMeans(3).fit(X).predict)
PCA(2).fit(print)  # wrong: a function is no table
KMeans("three")  # wrong: a word is no number
PCA(2, color="red")  # wrong: no such parameter
"""


@pytest.mark.parametrize("cls", MODELS)
def test_public_methods_say_what_they_take(cls: type) -> None:
    for name, method in inspect.getmembers(cls, inspect.isfunction):
        if (name.startswith("_") and name != "__init__") or not method.__module__.startswith("twofold"):
            continue
        for parameter in list(inspect.signature(method).parameters.values())[1:]:
            assert parameter.annotation is not parameter.empty, f"{name}({parameter.name})"
            if parameter.name in TYPES:
                assert str(parameter.annotation).removesuffix(" | None") in TYPES[parameter.name], (
                    f"{name}({parameter})"
                )


@pytest.mark.parametrize("name", [name for name in twofold._HOMES if inspect.isclass(getattr(twofold, name))])
def test_an_editor_knows_documented_attributes(name: str) -> None:
    cls = getattr(twofold, name)
    section = re.search(r"\n    Attributes\n    -+\n(.*?)(?=\n    \w[^\n]*\n    --|\Z)", cls.__doc__ or "", re.DOTALL)
    heads = re.findall(r"^    ([\w, ]+) : ", section[1], re.MULTILINE) if section else []
    declared = {name for base in cls.__mro__ for name in vars(base).get("__annotations__", {})}
    bases = [base for base in cls.__mro__ if base.__module__.startswith("twofold")]
    source = "".join(inspect.getsource(base) for base in bases)
    for attribute in [name for head in heads for name in head.split(", ")]:
        assigned = re.search(rf"self\.{attribute}\b(?=[^=\n(]*=[^=])", source)  # which an editor sees, too
        assert attribute in declared or hasattr(cls, attribute) or assigned, attribute


@pytest.mark.soak  # `make lint` runs it, once mypy has checked the library
def test_a_users_program_is_checked(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    root = Path(__file__).parents[2]  # with its settings, what `make lint` has found about the library is still known
    mypy = [sys.executable, "-m", "mypy", "--no-error-summary", f"--config-file={root / 'pyproject.toml'}"]
    mypy.append(f"--cache-dir={root / '.mypy_cache'}")
    said = subprocess.run([*mypy, str(program)], capture_output=True, text=True, timeout=300, cwd=tmp_path).stdout
    lines = {
        int(line.split(":")[1]): line for line in said.splitlines() if "program.py" in line and "defined in" not in line
    }
    assert lines.keys() == {7, 8, 9, 10, 11}, said
    assert "KMeans" in lines[7] and "ndarray" in lines[8]
    assert "arg-type" in lines[9] and "arg-type" in lines[10] and "call-arg" in lines[11]


def test_a_checker_sees_every_public_name() -> None:
    text = Path(twofold.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    for name, home in twofold._HOMES.items():
        assert re.search(rf"from {re.escape(home)} import [^\n]*\(?[^)]*\b{name} as {name}\b", text), name
    for name in twofold._MODULES:
        assert f"{name} as {name}" in text, name
