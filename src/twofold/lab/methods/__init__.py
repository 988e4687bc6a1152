"""The methods that can be watched: `catalog` lists them, `find` gives one by its id.

Each family has a file; see `method.py` for how to add a method. Estimators are imported when a method runs, not here.
"""

from __future__ import annotations

import difflib
from functools import cache
from importlib.util import find_spec

import twofold
from twofold.core.checks import InputError
from twofold.lab.methods import atoms, clusters, completion, deep, factors, linear, signals, texts
from twofold.lab.methods.method import Cancelled, Data, Method, Result

__all__ = ["STARTS", "Cancelled", "Data", "Method", "Result", "catalog", "find", "preload"]

STARTS = {  # the methods that suit a kind of data, the first that can take it
    "table": ("kmeans", "gaussian_mixture"), "pictures": ("pca",), "picture": ("denoise",), "text": ("lda",),
    "ratings": ("recommender",),
}  # fmt: skip
FAMILIES = (clusters, linear, completion, texts, atoms, signals, deep, factors)


@cache
def catalog() -> tuple[Method, ...]:
    """List all methods whose packages are installed, in the order in which they are offered."""
    classes = [one for family in FAMILIES for one in vars(family).values() if getattr(one, "family", "") and one.id]
    methods = [one() for one in dict.fromkeys(classes)]
    return tuple(method for method in methods if not method.needs or find_spec(method.needs) is not None)


def preload() -> None:
    """Import what runs need, deep learning aside, so that the first picture is quick."""
    for method in catalog():
        if not method.needs and ":" not in method.estimator:
            getattr(twofold, method.estimator)
    twofold.KMeans(2, n_init=1, random_state=0).fit([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])  # loads kernels


def find(id: str) -> Method:
    """Return the method of that id."""
    known = {method.id: method for method in catalog()}
    if id not in known:
        near = difflib.get_close_matches(id, known, 1)
        raise InputError(f"there is no method {id!r}. " + (f"Did you mean {near[0]}?" if near else "See the catalog."))
    return known[id]
