"""Indices are checked once and refused by name. The attacks beside this file are run by `make soak`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import twofold
from twofold.core import checks
from twofold.core.data import blocks


@pytest.mark.parametrize("name", ["PCA", "KMeans", "NMF", "LatentDirichletAllocation", "ALS", "ImplicitALS"])
def test_indices_are_checked_once_a_fit_and_not_once_a_sweep(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes, check = [], checks.check_sparse
    for module in (checks, blocks):
        monkeypatch.setattr(module, "check_sparse", lambda X, *name: (shapes.append(X.shape), check(X, *name)))
    X = sparse.random_array((60, 12), density=0.4, format="csr", rng=np.random.default_rng(0))
    getattr(twofold, name)(2).fit(X)
    assert shapes == [X.shape]


def test_the_refusal_names_the_place_and_guesses_the_reason() -> None:
    X = sparse.random_array((6, 40), density=0.5, format="csr", rng=np.random.default_rng(0))
    X.indices[:] = X.indices + 1
    X.indices[X.indptr[3]] = 40
    with pytest.raises(twofold.InputError, match=r"column 40 of row \d.*40 columns, 0 to 39. Do your ids start at 1\?"):
        twofold.KMeans(2).fit(X)
