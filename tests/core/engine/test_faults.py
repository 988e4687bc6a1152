"""A cluster of real processes to which things happen in the middle of a fit: the same bits, or one clear error."""

import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import twofold
from tests.attack.disk import fill, mount
from tests.callbacks import Quiet
from tests.conftest import start_processes
from tests.contract.helpers import differences

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
Status = distributed.Status

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
soak = pytest.mark.soak
SWEEPS = {"max_iter": 20, "tol": 0}
MODELS = {
    "KMeans": lambda: twofold.KMeans(7, n_init=1, random_state=0, **SWEEPS),
    "NMF": lambda: twofold.NMF(3, random_state=0, **SWEEPS),  # its rows' factor stays on the workers
    "PLSA": lambda: twofold.PLSA(3, random_state=0, max_iter=20, tol=0),
    "GaussianMixture": lambda: twofold.GaussianMixture(3, random_state=0, **SWEEPS),
}
X = np.random.default_rng(0).gamma(1.0, size=(1200, 8))  # 19 blocks in 6 chunks
EXPECTED = {}


@pytest.fixture(scope="module")
def clusters():
    """The cluster in use and its client, as a list: one that does not recover is replaced."""
    found = []
    yield found
    close(found)


def close(found):
    while found:
        with suppress(KeyError, TimeoutError):  # distributed looks for workers that were killed here
            found.pop().close()


def is_whole(cluster, seconds=20):
    """Return whether all workers and their nannies run, soon. A nanny that is starting a worker starts no other if that
    one is killed, and one whose worker was too slow to start gives up.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        nannies = cluster.workers.values()
        if len(cluster.scheduler.workers) == len(nannies) >= 2 and all(n.status == Status.running for n in nannies):
            return True
        time.sleep(0.01)
    return False


@pytest.fixture
def client(clusters, small_blocks):
    if clusters and not is_whole(clusters[0]):
        close(clusters)
    if not clusters:
        clusters.append(start_processes(2))
        clusters.append(distributed.Client(clusters[0]))
    clusters[1].wait_for_workers(2)
    return clusters[1]


def fit_expected(name):
    if name not in EXPECTED:
        EXPECTED[name] = MODELS[name]().fit(X)
    return EXPECTED[name]


def lazy():
    return da.from_array(X, chunks=(200, 8))


class At(Quiet):
    """Do something at the beginning of a sweep."""

    def __init__(self, sweep, do):
        self.sweep, self.do, self.seen, self.done = sweep, do, 0, False

    def on_fit_task_begin(self, estimator, context):
        if context.parent is not None:
            self.seen += 1
            if self.seen == self.sweep:
                self.do()
                self.done = True


def disturb(name, do, sweep=4, data=None):
    """A fit in which something happens at the beginning of a sweep."""
    at = At(sweep, do)
    found = MODELS[name]().set_callbacks(at).fit(lazy() if data is None else data)
    assert at.done
    return found


def kill(client, worker=0):
    pids = client.run(os.getpid)
    os.kill(pids[sorted(pids)[worker]], signal.SIGKILL)


def kill_in_sweep(client, killers):
    """Kill a worker as soon as it has been given tasks."""
    pids = client.run(os.getpid)
    address = sorted(pids)[0]

    def wait():
        end = time.monotonic() + 20
        while not client.cluster.scheduler.workers[address].processing and time.monotonic() < end:
            time.sleep(1e-4)
        os.kill(pids[address], signal.SIGKILL)

    killers.append(threading.Thread(target=wait))
    killers[-1].start()


KILLED = [*((name, 0) for name in MODELS if name != "NMF"), ("KMeans", 2**18)]


@pytest.mark.parametrize(("name", "part"), [("NMF", 0), *(pytest.param(*case, marks=soak) for case in KILLED)])
def test_a_worker_killed_in_a_sweep(client, name, part, monkeypatch):
    from twofold.core.engine import dask as engine

    monkeypatch.setattr(engine, "INLINE_BYTES", part)  # 0: states are tasks, what blocks keep stays with the workers
    killers = []
    assert not differences(fit_expected(name), disturb(name, lambda: kill_in_sweep(client, killers)))
    killers[0].join()


@soak
def test_a_worker_killed_between_sweeps_when_rows_came_back(client, monkeypatch):
    from twofold.core.engine import dask as engine

    monkeypatch.setattr(engine, "INLINE_BYTES", 0)
    monkeypatch.setattr(engine, "SWEEPS_PER_RECIPE", 3)  # the recipe of what blocks keep begins at the client again
    assert not differences(fit_expected("NMF"), disturb("NMF", lambda: kill(client), sweep=9))


@soak
def test_the_recipe_of_what_blocks_keep_is_bounded(client, monkeypatch):
    from twofold.core.engine import dask as engine

    monkeypatch.setattr(engine, "INLINE_BYTES", 0)
    monkeypatch.setattr(engine, "SWEEPS_PER_RECIPE", 4)
    tasks = []
    model = MODELS["NMF"]()
    watch = [At(sweep, lambda: tasks.append(len(client.cluster.scheduler.tasks))) for sweep in range(2, 19)]
    model.set_callbacks(*watch).fit(da.from_array(X[:750], chunks=(250, 8)))
    assert len(tasks) == 17 and min(tasks[8:]) < max(tasks[:8])  # it would grow from sweep to sweep


@soak
def test_a_task_that_is_blamed_for_the_death_of_workers_is_tried_again(client, monkeypatch):
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    killers = []
    assert not differences(fit_expected("NMF"), disturb("NMF", lambda: kill_in_sweep(client, killers)))
    killers[0].join()


@soak
@pytest.mark.parametrize("count", [twofold.Vocabulary(min_count=2), twofold.Cooccurrence(min_count=2, max_size=500)])
def test_a_worker_killed_while_words_are_counted(client, count, tmp_path, monkeypatch):
    from twofold.io import documents

    monkeypatch.setattr(documents, "BLOCK_BYTES", 4000)
    rng, text, killers = np.random.default_rng(0), tmp_path / "text.txt", []
    text.write_text("\n".join(" ".join(f"w{i}" for i in rng.zipf(1.5, 12)) for _ in range(1500)))
    wanted = clone(count).fit(text.read_text().splitlines())
    kill_in_sweep(client, killers)
    found = clone(count).fit(text)
    killers[0].join()
    assert not differences(wanted, found)


def _die(block):
    os.kill(os.getpid(), signal.SIGKILL)


@soak
def test_a_task_that_kills_its_workers_ends_the_fit(client, monkeypatch):
    from twofold.core.engine import dask as engine

    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    monkeypatch.setattr(engine, "MAX_RETRIES", 1)
    with pytest.raises(RuntimeError, match=r"too many workers died with the same task.* The usual cause is memory"):
        twofold.PCA(2).fit(lazy().rechunk(1200).map_blocks(_die, dtype=float, meta=np.empty((0, 0))))


@soak
def test_a_slow_worker(client):
    pid = next(iter(client.run(os.getpid).values()))
    os.kill(pid, signal.SIGSTOP)
    waker = threading.Timer(1.0, os.kill, (pid, signal.SIGCONT))
    waker.start()
    try:
        assert not differences(fit_expected("KMeans"), MODELS["KMeans"]().fit(lazy()))
    finally:
        waker.join()


@soak
def test_a_worker_joins(client):
    def join():
        client.cluster.scale(3)
        client.wait_for_workers(3, timeout=300)

    assert not differences(fit_expected("NMF"), disturb("NMF", join))


@soak
def test_a_nanny_restarts_its_worker(client):
    restart = lambda: client.restart_workers([sorted(client.nthreads())[0]], timeout=300)  # noqa: E731
    assert not differences(fit_expected("PLSA"), disturb("PLSA", restart))


@soak
@pytest.mark.parametrize("name", ["GaussianMixture", "KSVD", "NMF"])
def test_arrays_that_were_persisted(client, name):
    make = MODELS.get(name, lambda: twofold.KSVD(5, n_nonzero=1, max_iter=3, random_state=0))
    assert not differences(make().fit(X), make().fit(lazy().persist()))


def test_data_without_a_recipe_is_refused_when_it_is_lost(client):
    address = sorted(client.nthreads())[0]
    parts = [client.scatter(part, workers=[address], hash=False) for part in np.split(X, 6)]
    array = da.concatenate([da.from_delayed(part, (200, 8), float) for part in parts])
    with pytest.raises(ConnectionError, match="lost what cannot be computed again"):
        disturb("KMeans", lambda: client.restart_workers([address], timeout=300), data=array)


@pytest.mark.parametrize("kind", ["npy", pytest.param("parquet", marks=soak)])
def test_a_file_that_is_cut_off_is_named_by_the_worker(client, kind, tmp_path):
    for i, part in enumerate(np.split(X, 3)):
        path = tmp_path / f"part{i}.{kind}"
        np.save(path, part) if kind == "npy" else pl.DataFrame(part).write_parquet(path)
    with pytest.raises(twofold.InputError, match=rf"part2\.{kind}"):
        disturb("KMeans", lambda: path.write_bytes(path.read_bytes()[:3000]), data=tmp_path)
    np.save(path, X[800:]) if kind == "npy" else pl.DataFrame(X[800:]).write_parquet(path)
    assert not differences(fit_expected("KMeans"), MODELS["KMeans"]().fit(tmp_path))


SCHEDULER = """
import asyncio, sys
from distributed import Scheduler, Worker
async def live():
    async with Scheduler(port=0, dashboard_address=":0") as scheduler, Worker(scheduler.address, nthreads=1):
        print(scheduler.address, flush=True)
        await scheduler.finished()
asyncio.run(live())
"""


@soak
def test_the_scheduler_is_gone_and_another_goes_on(small_blocks, tmp_path):
    def start():
        process = subprocess.Popen([sys.executable, "-c", SCHEDULER], stdout=subprocess.PIPE, text=True)
        return process, distributed.Client(process.stdout.readline().strip())

    def lose():
        process.kill()
        process.wait()

    path = tmp_path / "nmf.checkpoint"
    process, client = start()
    with client, pytest.raises(ConnectionError, match=r"is gone\. Connect to another"):
        MODELS["NMF"]().set_callbacks(twofold.Checkpoint(path), At(6, lose)).fit(lazy())
    process, client = start()
    with client:
        rest = At(1, lambda: None)
        found = MODELS["NMF"]().set_callbacks(twofold.Checkpoint(path), rest).fit(lazy())
    lose()
    assert rest.seen == 15 and not differences(fit_expected("NMF"), found)


def _limit_files(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


@soak
def test_the_disk_is_full_when_a_checkpoint_is_written(client, tmp_path):
    with mount("size=512k") as disk:
        folder = tmp_path if disk is None else disk
        path = folder / "nmf.checkpoint"
        full = (lambda: _limit_files(700)) if disk is None else (lambda: fill(folder))
        try:
            with pytest.raises(OSError, match=r"(No space left on device|File too large).*nmf.checkpoint"):
                MODELS["NMF"]().set_callbacks(twofold.Checkpoint(path), At(6, full)).fit(lazy())
        finally:
            _limit_files(resource.RLIM_INFINITY)
        (folder / "filler").unlink(missing_ok=True)
        rest = At(1, lambda: None)
        found = MODELS["NMF"]().set_callbacks(twofold.Checkpoint(path), rest).fit(lazy())
        assert rest.seen == 15 and not differences(fit_expected("NMF"), found)


@soak
def test_the_disk_is_full_when_workers_spill(small_blocks, tmp_path, monkeypatch):
    import dask

    from twofold.core.engine import dask as engine

    monkeypatch.setattr(engine, "INLINE_BYTES", 0)
    at_once = {"distributed.worker.memory.target": 2e-5, "distributed.worker.memory.spill": False}
    with (
        dask.config.set(at_once),
        start_processes(1, memory_limit="1GiB", local_directory=str(tmp_path)) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(_limit_files, 700)
        with pytest.raises(OSError, match=r"is full\. Give them more memory"):
            MODELS["NMF"]().fit(lazy())
        client.run(_limit_files, resource.RLIM_INFINITY)
        assert not differences(fit_expected("NMF"), MODELS["NMF"]().fit(lazy()))


@soak
def test_the_disk_is_full_when_workers_write_blocks_of_ratings(client, tmp_path):
    rng = np.random.default_rng(0)
    rows = {"user": rng.integers(0, 300, 20_000), "item": rng.integers(0, 90, 20_000), "rating": rng.random(20_000)}
    pl.DataFrame(rows).write_parquet(tmp_path / "rows.parquet")
    client.run(_limit_files, 30_000)
    try:
        with pytest.raises(OSError, match=r"File too large.*kept"):
            twofold.PartitionedRatings(tmp_path / "rows.parquet", tmp_path / "kept")
    finally:
        client.run(_limit_files, resource.RLIM_INFINITY)
    assert not (tmp_path / "kept").exists()
    parts = twofold.PartitionedRatings(tmp_path / "rows.parquet", tmp_path / "kept")
    assert parts.n_ratings == len(pl.DataFrame(rows).unique(["user", "item"]))


@soak
def test_blocks_done_by_workers_are_told(client, tmp_path):
    from twofold.core.progress import report_to

    np.save(tmp_path / "x.npy", X)
    labels = []
    face = SimpleNamespace(report=lambda done, total, label="": labels.append(label))
    with report_to(face):
        MODELS["KMeans"]().fit(tmp_path / "x.npy")
    done = [re.fullmatch(r".*: (\d+) of (\d+) blocks", label) for label in labels]
    assert any(found and found[1] == found[2] for found in done)
