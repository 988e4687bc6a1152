"""twofold keeps to scikit-learn's public names; what is private stands in one file."""

import ast
from numbers import Integral, Real
from pathlib import Path

import numpy as np
import pytest
from sklearn.callback import ProgressBar

import twofold
from twofold.core.params import HasMethods, Interval, Options, ParameterError, StrOptions, check_parameters
from twofold.core.sklearn_shim import CallbackSupportMixin, callbacks_of, open_fit

SOURCE = Path(twofold.__file__).parent
SHIM = SOURCE / "core" / "sklearn_shim.py"
PRIVATE = {"_skl_callbacks", "_init_callback_context", "_get_param_names", "_fit_context"}


def private_uses(tree):
    """Imports of private modules and names of scikit-learn, and private attributes of its classes, in a syntax tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            names = []
        yield from (name for name in names if name.split(".")[0] == "sklearn" and "._" in name)
        if isinstance(node, ast.Attribute) and node.attr in PRIVATE:
            yield node.attr
        if isinstance(node, ast.Constant) and node.value in PRIVATE:
            yield node.value


def test_no_private_name_of_scikit_learn_outside_the_shim():
    found = {
        f"{path.relative_to(SOURCE)}: {name}"
        for path in SOURCE.rglob("*.py")
        if path != SHIM
        for name in private_uses(ast.parse(path.read_text()))
    }
    assert not found


@pytest.mark.parametrize(
    "line",
    [
        "import sklearn._config",
        "from sklearn.utils._param_validation import Interval",
        "from sklearn.utils import _safe_indexing",
        "a._skl_callbacks",
        "getattr(a, '_skl_callbacks', [])",
    ],
)
def test_the_search_finds_what_it_looks_for(line):
    assert list(private_uses(ast.parse(line)))


def test_the_shim_finds_the_callbacks_of_this_scikit_learn():
    model, bar = CallbackSupportMixin(), ProgressBar()
    assert callbacks_of(model) == []
    assert callbacks_of(model.set_callbacks(bar)) == [bar]
    assert callbacks_of(model.set_callbacks()) == []


def test_a_scikit_learn_without_the_hooks_is_named(monkeypatch):
    monkeypatch.delattr(CallbackSupportMixin, "_init_callback_context")
    with pytest.raises(ImportError, match="scikit-learn"):
        open_fit(CallbackSupportMixin(), 3)


@pytest.mark.parametrize("kind", [Integral, Real])
@pytest.mark.parametrize("closed", ["left", "right", "both", "neither"])
def test_an_interval_holds_its_closed_ends_and_no_others(kind, closed):
    interval = Interval(kind, 1, 3, closed=closed)
    taken = [interval.accepts(x) for x in (0, 1, 2, 3, 4)]
    assert taken == [False, closed in ("left", "both"), True, closed in ("right", "both"), False]
    assert interval.accepts(np.int32(2)) and interval.accepts(np.float32(2)) is (kind is Real)
    assert not any(interval.accepts(x) for x in (float("nan"), "2", None, [2]))


def test_an_interval_without_a_bound_takes_every_finite_number():
    unbounded = Interval(Real, None, None, closed="neither")
    assert unbounded.accepts(-1e300) and unbounded.accepts(1e300)
    assert not any(unbounded.accepts(x) for x in (float("nan"), float("inf"), float("-inf")))


RIGHT = [
    (Options(Integral, [1, 2]), 2, 3),
    (StrOptions({"b", "a"}), "a", "c"),
    (HasMethods(["fit"]), twofold.PCA(), 1),
    (None, None, 0),
    (str, "a", 1),
    ("boolean", np.True_, 1),
    ("array-like", [1], "text"),
    ("array-like", np.ones(2), 1.5),
    ("random_state", 7, -1),
    ("random_state", np.random.RandomState(0), 1.5),
    ("random_state", None, 2**32),
]


@pytest.mark.parametrize(("item", "right", "wrong"), RIGHT)
def test_a_value_passes_if_one_item_takes_it(item, right, wrong):
    check_parameters({"x": [item]}, {"x": right}, "Thing")
    check_parameters({"x": [bytes, item]}, {"x": right}, "Thing")
    check_parameters({}, {"x": wrong}, "Thing")
    with pytest.raises(ParameterError, match=r"'x' parameter of Thing is .*; it must be"):
        check_parameters({"x": [item]}, {"x": wrong}, "Thing")


def test_a_refusal_names_parameter_value_and_choices():
    with pytest.raises(ValueError, match=r"'n_components' parameter of PPCA is -3; it must be .*an integer >= 1"):
        twofold.PPCA(-3).fit(np.eye(3))
    with pytest.raises(TypeError, match="'sideways'; it must be 'auto' or 'closed' or 'em'"):
        twofold.PPCA(solver="sideways").fit(np.eye(3))
    with pytest.raises(ValueError, match='Did you mean "closed"'):
        twofold.PPCA(solver="close").fit(np.eye(3))
