"""What several suites share: blocks small enough that small data has many, and clusters of threads or processes."""

import gc

import pytest

# What runs in one test process, because it shares what takes long to make, and is not a file of its own.
TOGETHER = {
    "contract/test_bits.py": "workers",
    "text/test_text_tasks.py": "workers",
    "core/engine/test_budget.py": "workers",
    "cli/test_cluster_options.py": "workers",
    "tour/": "tour",
}
# What takes longest comes first, so that no test process is left with one of them when the others are done.
LONG = (
    "workers",
    "core/engine/test_faults.py",
    "lab/test_page.py",
    "contract/test_sklearn_checks.py",
    "contract/test_promises.py",
    "tour",
    "contract/test_select.py",
    "completion/partitioned/test_partitioned.py",
    "docs/test_pages.py",
    "contract/test_checkpoint.py",
    "contract/test_progress.py",
    "contract/test_refusals.py",
)


def group_of(nodeid):
    """The file of a test, or what that is tested together with."""
    file = nodeid.partition("::")[0].removeprefix("tests/")
    return next((group for start, group in TOGETHER.items() if file.startswith(start)), file)


def pytest_collection_modifyitems(items):
    order = {group: at for at, group in enumerate(LONG)}
    items.sort(key=lambda item: order.get(group_of(item.nodeid), len(LONG)))


def pytest_collection_finish():
    gc.freeze()  # thousands of tests that stay to the end: the collector need not look at them again and again


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadFileScheduling

    class Groups(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

    return Groups(config, log)


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


def start_processes(workers, **options):
    """A cluster whose workers are processes with nannies, forked from one that has imported what they need."""
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    from distributed.utils import get_mp_context

    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload(["tests.preload"])
        return distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50, **options
        )


@pytest.fixture(scope="session")
def processes():
    """A function workers → cluster of that many processes; each size is started once a session."""
    started = {}

    def get(workers):
        if workers not in started:
            started[workers] = start_processes(workers)
        return started[workers]

    yield get
    for cluster in started.values():
        cluster.close()


@pytest.fixture(scope="session")
def client_of(processes):
    """A function workers → client of that many processes, to be used with `as_current`; each is connected once."""
    distributed = pytest.importorskip("distributed")
    connected = {}

    def get(workers):
        if workers not in connected:
            connected[workers] = distributed.Client(processes(workers), set_as_default=False)
        return connected[workers]

    yield get
    for client in connected.values():
        client.close()
