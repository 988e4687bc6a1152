"""The memory budget of the client holds on every worker, and changes no bit."""

import threading
import time

import numpy as np
import pytest

import twofold
from tests.contract.helpers import differences
from twofold.core.config import config, within_budget

distributed = pytest.importorskip("distributed")


def read_budget(block):
    return np.array([config().memory, len(block)])


def test_workers_have_the_budget_of_the_client(processes, small_blocks, tmp_path):
    from twofold.core.data.blocks import as_blocks
    from twofold.core.engine.local import engine_for
    from twofold.core.engine.tasks import find_tasks

    np.save(tmp_path / "x.npy", np.ones((700, 8)))
    blocks = as_blocks(tmp_path / "x.npy")
    with distributed.Client(processes(1)), config(memory="77MB"):
        found = engine_for(blocks).gather(engine_for(blocks).map(read_budget, blocks))
        tasks = find_tasks(10)
        assert tasks.gather([tasks.submit(read_budget, [1])])[0][0] == 77e6
    assert {int(budget) for budget, _ in found} == {77_000_000}
    assert sum(rows for _, rows in found) == 700


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_budget_changes_no_bit_on_workers(processes, small_blocks, tmp_path):
    X = np.random.default_rng(0).gamma(1.0, size=(700, 8))
    np.save(tmp_path / "x.npy", X)
    make = lambda: twofold.KMeans(4, n_init=1, max_iter=5, random_state=0)  # noqa: E731
    expected = make().fit(X)
    with distributed.Client(processes(1)):
        for memory in ("1MiB", "4GB"):
            with config(memory=memory):
                assert not differences(expected, make().fit(tmp_path / "x.npy"))


def test_tasks_that_would_take_too_much_together_wait():
    running, most, lock = 0, 0, threading.Lock()

    def work(size):
        nonlocal running, most
        with within_budget(100, size):
            with lock:
                running += size
                most = max(most, running)
            assert config().memory == 100
            time.sleep(0.01)
            with lock:
                running -= size

    before = config().memory
    threads = [threading.Thread(target=work, args=(size,)) for size in (40, 60, 40, 30, 40, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert most <= 100 and config().memory == before
    work(500)  # alone, though it is too large
    assert most == 500


def test_the_client_in_force_is_the_last_one_made_unless_another_is_given(clusters):
    from twofold.core.engine.dask import active_client

    with distributed.Client(clusters(1)) as first, distributed.Client(clusters(3)) as second:
        assert active_client() is second
        with first.as_current():
            assert active_client() is first
        assert active_client() is second
