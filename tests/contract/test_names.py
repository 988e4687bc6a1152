"""One word, one meaning: parameters that models share stand in the table of CONTRIBUTING.md."""

import inspect
import re
from collections import Counter
from pathlib import Path

import twofold

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"


def parameters(name):
    return inspect.signature(getattr(twofold, name)).parameters


def section():
    return PAGE.read_text().split("## One word, one meaning\n")[1].split("\n## ")[0]


def rows():
    """Parameter ↦ (meaning, where it differs)."""
    return {
        name: (said, apart) for name, said, apart in re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) ?\|$", section(), re.M)
    }


def shared():
    used = Counter(parameter for name in twofold._MODELS for parameter in parameters(name))
    return {parameter for parameter, count in used.items() if count > 1}


def test_every_shared_parameter_has_a_row_and_every_row_a_parameter():
    assert shared() == set(rows())


def test_rows_are_in_order_and_say_something():
    table = rows()
    assert list(table) == sorted(table)
    for name, (said, apart) in table.items():
        assert len(said) > 10 or apart, f"the row of {name} does not say what it means"


def test_a_row_that_tells_models_apart_names_models_that_have_the_parameter():
    for name, (_, apart) in rows().items():
        for model in re.findall(r"`([A-Z]\w+)`", apart):
            assert name in parameters(model), f"{model} has no {name}"
