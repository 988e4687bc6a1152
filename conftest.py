"""Doctests: `np` is at hand, files land in a temporary folder, and modules of extras that are missing are left out.
What is drawn, examples and seeds that nobody gave, is the same in every run, whichever tests ran before; and examples
take the time they take. A busy machine fails no test. What several test processes need compiled, one compiles.
"""

from __future__ import annotations

import gc
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

gc.disable()  # until the tests are collected: what they are made of stays, and is not looked through again and again

settings.register_profile(
    "suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("suite")


@pytest.fixture(scope="session", autouse=True)
def _compile_once() -> None:
    """While one test process compiles a kernel, the others, and workers, wait for it and read it from the cache."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        from twofold.core.engine.tasks import compile_once

        compile_once()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    np.random.seed(0)  # noqa: NPY002 (where random_state=None draws from)


@pytest.fixture(autouse=True)
def _doctest_surroundings(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("doctest_namespace")["np"] = np
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
