"""Doctests: `np` is at hand, files land in a temporary folder, and modules of extras that are missing are left out."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

_EXTRAS = {
    "distributed": "src/twofold/core/engine/dask.py",
    "torch": "src/twofold/deep/*",
    "fastapi": "src/twofold/lab/*",
}
collect_ignore_glob = [place for package, place in _EXTRAS.items() if find_spec(package) is None]


@pytest.fixture(autouse=True)
def _doctest_surroundings(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("doctest_namespace")["np"] = np
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
