"""What several suites share: blocks small enough that small data has many, and clusters that live in this process."""

import pytest


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 4 KiB, so that a few hundred rows are cut a dozen times."""
    from twofold.core.data.sources import base

    monkeypatch.setattr(base, "BLOCK_BYTES", 4 * 2**10)


def _cluster(workers):
    distributed = pytest.importorskip("distributed")
    return distributed.LocalCluster(
        processes=False, n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    )  # port 0: whichever is free


@pytest.fixture(scope="session")
def clusters():
    """A function workers → cluster; each size is started once a session."""
    started = {}

    def get(workers):
        if workers not in started:
            started[workers] = _cluster(workers)
        return started[workers]

    yield get
    for cluster in started.values():
        cluster.close()
