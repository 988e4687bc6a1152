"""--workers and --cluster: streamed files are read by worker processes, with the figures of one process."""

import json

import numpy as np
import pytest

pytest.importorskip("distributed")


@pytest.fixture
def parts(folder):
    """A folder of arrays of 3 MB in all."""
    (folder / "parts").mkdir()
    X = np.random.default_rng(0).normal(size=(40_000, 10)) @ np.random.default_rng(1).normal(size=(10, 10))
    for i, part in enumerate(np.array_split(X, 3)):
        np.save(folder / "parts" / f"{i}.npy", part)
    return folder / "parts"


def run_json(twofold, *args):
    found = twofold("--memory", "2MB", *args, "--json")
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout), found.stderr


@pytest.fixture
def at_rest():
    """The memory budget as it was."""
    from twofold.core.config import config

    with config(memory="1GB"):
        yield


def test_a_folder_is_streamed_and_a_cluster_gives_the_same_answer(twofold, parts, processes, at_rest):
    here, said = run_json(twofold, "reduce", "parts", "-k", 2)
    assert "3 files are read in blocks as one table" in said
    address = processes(1).scheduler_address
    there, said = run_json(twofold, "reduce", "parts", "-k", 2, "--cluster", address)
    for answer in (here, there):
        answer.pop("seconds"), answer.pop("notes")
    assert here == there and f"tasks were done by the workers of {address}" in said


def test_a_small_table_says_that_it_was_fitted_here(twofold, folder):
    np.save(folder / "small.npy", np.random.default_rng(0).normal(size=(50, 3)))
    found = twofold("cluster", "small.npy", "-k", 2, "--workers", 1)
    assert found.exit_code == 0 and "the workers had nothing to do" in found.stderr


def test_addresses_and_workers_that_cannot_be(twofold, folder):
    np.save(folder / "small.npy", np.ones((50, 3)))
    found = twofold("reduce", "small.npy", "--cluster", "tcp://127.0.0.1:1", "--workers", 2)
    assert found.exit_code != 0 and "Give one of the two" in str(found.exception) + found.output
