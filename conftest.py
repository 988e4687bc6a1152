"""Doctests: `np` is at hand, files land in a temporary folder, and modules of extras that are missing are left out.
What is drawn, examples and seeds that nobody gave, is the same in every run, whichever tests ran before; and examples
take the time they take. A busy machine fails no test.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

if "PYTEST_XDIST_WORKER" in os.environ:  # test processes share the cores: threads of BLAS and torch would only wait
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

_EXTRAS = {
    "distributed": "src/twofold/core/engine/dask.py",
    "torch": "src/twofold/deep/*",
    "fastapi": "src/twofold/lab/*",
}
collect_ignore_glob = [place for package, place in _EXTRAS.items() if find_spec(package) is None]

settings.register_profile(
    "suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("suite")


def pytest_runtest_setup(item: pytest.Item) -> None:
    np.random.seed(0)  # noqa: NPY002 (where random_state=None draws from)


@pytest.fixture(autouse=True)
def _doctest_surroundings(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("doctest_namespace")["np"] = np
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
