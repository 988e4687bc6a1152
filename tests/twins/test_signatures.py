"""docs/guide/from-scikit-learn.md has a row for each difference to classes of scikit-learn, and no other rows."""

from __future__ import annotations

import inspect
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.cluster
import sklearn.decomposition
import sklearn.mixture
import sklearn.neural_network

import twofold
from twofold.core.estimator import INSTEAD

PAGE = Path(__file__).parents[2] / "docs/guide/from-scikit-learn.md"
THEIRS = [
    sklearn.decomposition.PCA,
    sklearn.decomposition.FactorAnalysis,
    sklearn.decomposition.NMF,
    sklearn.decomposition.LatentDirichletAllocation,
    sklearn.decomposition.SparseCoder,
    sklearn.cluster.KMeans,
    sklearn.mixture.GaussianMixture,
    sklearn.neural_network.MLPClassifier,
    sklearn.neural_network.MLPRegressor,
]
TWINS = [pytest.param(cls, id=cls.__name__) for cls in THEIRS]


def parameters_of(cls: type) -> dict[str, Any]:
    return {name: p.default for name, p in inspect.signature(cls).parameters.items()}


def fit_both(theirs: type) -> tuple[Any, Any]:
    """Their model and ours, fitted to one small table with labels."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(60, 6)))
    y = (X[:, 0] > 0.5).astype(int)
    given = (np.eye(6),) if theirs.__name__ == "SparseCoder" else ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return theirs(*given).fit(X, y), getattr(twofold, theirs.__name__)(*given).fit(X, y)


def members_of(model: Any) -> set[str]:
    return {name for name in dir(model) if not name.startswith("_")} - parameters_of(type(model)).keys()


def table_rows() -> set[tuple[str, str]]:
    """(class, name) of every row of the page's tables; "all" for every class."""
    rows = re.findall(r"^\| (all|`\w+`) \| ((?:`\w+`(?:, )?)+) \|", PAGE.read_text(encoding="utf-8"), re.M)
    return {(cls.strip("`"), name) for cls, names in rows for name in re.findall(r"\w+", names)}


def differences(theirs: type) -> set[str]:
    """Parameters that ours lacks or starts otherwise, members of a fitted model that ours lacks."""
    a, b = parameters_of(theirs), parameters_of(getattr(twofold, theirs.__name__))
    fitted, ours = fit_both(theirs)
    return {name for name in a if name not in b or a[name] != b[name]} | (
        members_of(fitted) - members_of(ours) - b.keys()
    )


@pytest.mark.parametrize("theirs", TWINS)
def test_whatever_differs_is_in_the_table(theirs: type) -> None:
    rows = table_rows()
    told = {name for cls, name in rows if cls in ("all", theirs.__name__)}
    assert differences(theirs) - told == set()


@pytest.mark.parametrize("theirs", TWINS)
def test_the_table_names_nothing_that_is_alike(theirs: type) -> None:
    assert {name for cls, name in table_rows() if cls == theirs.__name__} - differences(theirs) == set()


@pytest.mark.parametrize("theirs", TWINS)
def test_a_parameter_we_lack_is_refused_with_what_to_do_instead(theirs: type) -> None:
    ours = getattr(twofold, theirs.__name__)
    given = {"dictionary": np.eye(3)} if "dictionary" in parameters_of(ours) else {}
    for name in parameters_of(theirs).keys() - parameters_of(ours).keys():
        message = ours._instead.get(name, INSTEAD.get(name))
        assert message and len(message) < 150 and message.endswith("."), f"{name} has no remedy"
        with pytest.raises(TypeError, match=re.escape(message)):
            ours(**given, **{name: None})


@pytest.mark.parametrize("theirs", TWINS)
def test_positional_parameters_are_the_same(theirs: type) -> None:
    def positional(cls: type) -> list[str]:
        return [n for n, p in inspect.signature(cls).parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]

    ours = positional(getattr(twofold, theirs.__name__))
    assert ours[: len(positional(theirs))] == positional(theirs)
