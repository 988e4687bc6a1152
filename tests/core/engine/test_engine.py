"""The engine: four verbs whose results never depend on who runs them."""

import threading
import time
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from twofold import config
from twofold.core.data.blocks import Rows, as_blocks
from twofold.core.engine import local
from twofold.core.engine.local import Engine, Tree, add, engine_for, single_blas, stack_results


class Sums(NamedTuple):
    total: np.ndarray
    rows: float


def sums(X, scale):
    return Sums(X.sum(axis=0) * scale, float(len(X)))


@pytest.fixture
def blocks(small_blocks):
    return as_blocks(np.random.default_rng(0).normal(size=(900, 5)) * 1e3)


@given(count=st.integers(1, 40), height=st.integers(0, 3))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_aligned_runs_summed_elsewhere_do_not_change_the_tree(count, height):
    pair = lambda a, b: f"({a}{b})"  # noqa: E731  (not associative, so any other order shows)
    leaves = [chr(65 + i) for i in range(count)]
    whole = Tree(pair)
    for leaf in leaves:
        whole.push(leaf)
    parts, size = Tree(pair), 2**height
    for at in range(0, count, size):
        node = Tree(pair)
        for leaf in leaves[at : at + size]:
            node.push(leaf)
        parts.push(node.result(), height)
    assert whole.result() == parts.result()


@given(count=st.integers(1, 200))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_the_tree_keeps_few_sums_alive(count):
    tree = Tree(lambda a, b: a + b)
    for i in range(count):
        tree.push(i)
        assert len(tree.stack) <= count.bit_length()
    assert tree.result() == count * (count - 1) // 2


def test_add_goes_through_tuples():
    a = (np.ones(2), Sums(np.zeros(3), 1.0), 2)
    b = (np.ones(2), Sums(np.ones(3), 2.0), 3)
    one, two, three = add(a, b)
    assert np.array_equal(one, [2, 2]) and three == 5
    assert isinstance(two, Sums) and two.rows == 3.0 and np.array_equal(two.total, np.ones(3))


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("memory", ["2MB", "1GB"])
def test_reduce_has_the_same_bits_whoever_runs_it(blocks, threads, memory):
    engine = Engine()
    run = lambda: engine.reduce(add, engine.map(sums, blocks, engine.broadcast(0.1)))  # noqa: E731
    with config(threads=1):
        expected = run()
    with config(threads=threads, memory=memory):
        found = run()
    assert found.total.tobytes() == expected.total.tobytes() and found.rows == 900


def test_reduce_is_the_sum(blocks):
    engine = Engine()
    found = engine.reduce(add, engine.map(sums, blocks, engine.broadcast(1.0)))
    np.testing.assert_allclose(found.total, blocks.source.read(0, 900).sum(axis=0))


def test_gather_keeps_the_order(blocks):
    def slow_first(X, at):
        time.sleep(0.02 if at == 0 else 0)
        return X[:, 0] + 0

    engine = Engine()
    with config(threads=3):
        found = engine.gather(engine.map(slow_first, blocks, Rows(range(len(blocks)))))
        streamed = list(engine.stream(engine.map(slow_first, blocks, Rows(range(len(blocks))))))
    assert np.array_equal(stack_results(found), blocks.source.read(0, 900)[:, 0])
    assert np.array_equal(stack_results(streamed), stack_results(found))


def test_rows_state_is_kept_beside_its_block(blocks):
    engine = Engine()
    step = lambda X, kept: (kept + len(X), float(kept))  # noqa: E731
    kept = Rows([0] * len(blocks))
    for _ in range(3):
        kept, total = engine.reduce(add, engine.map(step, blocks, kept), keep=True)
    assert list(kept) == [3 * n for n in np.diff(blocks.bounds)]
    assert total == 2 * 900


def test_an_error_in_a_block_reaches_the_caller(blocks):
    def fail(X, at):
        if at == 4:
            raise ValueError("block 4")
        return 0.0

    engine = Engine()
    for threads in (1, 2):
        with config(threads=threads), pytest.raises(ValueError, match="block 4"):
            engine.reduce(add, engine.map(fail, blocks, Rows(range(len(blocks)))))


def test_no_more_blocks_are_in_work_than_memory_allows():
    blocks = as_blocks(np.zeros((600_000, 10)))  # twelve blocks of 4 MB
    lock, alive, most = threading.Lock(), [0], [0]

    def count(X):
        with lock:
            alive[0] += 1
            most[0] = max(most[0], alive[0])
            if alive[0] > 1:
                met.set()
        met.wait(patience)  # for another block, however busy the machine is
        with lock:
            alive[0] -= 1
        return 0.0

    def most_at_once(**settings):
        nonlocal met
        most[0], met = 0, threading.Event()
        with config(**settings):
            Engine().reduce(add, Engine().map(count, blocks))
        return most[0]

    met, patience = threading.Event(), 60.0
    assert 1 < most_at_once(threads=4, memory="1GB") <= 4
    patience = 0.002
    assert most_at_once(threads=4, memory="8MB") == 1
    assert most_at_once(threads=1, memory="1GB") == 1


def test_blas_keeps_to_one_thread_inside_and_is_restored():
    def threads():
        pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
        ours = [pool for pool in pools if "numpy" in pool["filepath"] or "scipy" in pool["filepath"]]
        return {pool["num_threads"] for pool in ours or pools}  # other packages may bring a BLAS of their own

    with threadpool_limits(2, user_api="blas"):
        with single_blas():
            with single_blas():
                pass
            assert threads() == {1}
        assert threads() == {2}


def test_local_data_has_the_local_engine(blocks):
    assert type(engine_for(blocks)) is Engine


def test_a_cluster_gives_the_local_bits(small_blocks, clusters):
    da = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    X = np.random.default_rng(0).normal(size=(900, 5)) * 1e3
    local, lazy = as_blocks(X), as_blocks(da.from_array(X, chunks=(77, 2)))
    engine = Engine()
    expected = engine.reduce(add, engine.map(sums, local, engine.broadcast(0.1)))
    with distributed.Client(clusters(3)):
        there = engine_for(lazy)
        assert type(there) is not Engine
        found = there.reduce(add, there.map(sums, lazy, there.broadcast(0.1)))
        assert found.total.tobytes() == expected.total.tobytes() and isinstance(found, Sums)
        gathered = stack_results(there.gather(there.map(_first, lazy)))
        streamed = stack_results(list(there.stream(there.map(_first, lazy))))
        kept, total = Rows([0] * len(lazy)), 0.0
        for _ in range(3):
            kept, total = there.reduce(add, there.map(_count, lazy, kept), keep=True)
    assert np.array_equal(gathered, X[:, 0]) and np.array_equal(streamed, X[:, 0]) and total == 2 * 900
    assert type(engine_for(lazy)) is Engine  # the client is gone


def test_few_blocks_are_ahead_of_who_takes_them_from_a_cluster(small_blocks, clusters, tmp_path):
    distributed = pytest.importorskip("distributed")
    from twofold.core.engine.dask import DaskEngine

    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(64_000, 5)))
    blocks = as_blocks(tmp_path / "x.npy")
    with distributed.Client(clusters(3)), config(memory="1MiB"):
        engine = engine_for(blocks)
        before, ahead = DaskEngine.tasks, []
        for i, _ in enumerate(engine.stream(engine.map(_first, blocks))):
            ahead.append(DaskEngine.tasks - before - i // 32)  # a task has 32 blocks here at most
    assert len(ahead) == len(blocks) > 3 * 32 and max(ahead[:32]) <= 2 * 3 < DaskEngine.tasks - before


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_chosen_rows_are_chosen_by_the_workers(small_blocks, clusters, kind):
    da = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 5)) * (rng.random((900, 5)) < 0.5)
    chosen = rng.random(900) < 0.3
    chosen[150:700] = False  # blocks of which nothing is left
    engine, local = Engine(), as_blocks(kind(X))
    expected = engine.gather(engine.map(_add_rows, local.where(chosen)))
    with distributed.Client(clusters(3)):
        blocks = as_blocks(da.from_array(X, chunks=(77, 5)).map_blocks(kind))
        there = engine_for(blocks)
        there.gather(there.map(_add_rows, blocks))
        some = blocks.where(chosen)
        assert type(engine_for(some)) is type(there) and type(there) is not Engine
        for _ in range(2):  # made, and found again
            found = there.gather(there.map(_add_rows, some))
            assert [rows.tobytes() for rows in found] == [rows.tobytes() for rows in expected]
        assert np.array_equal(some[1].sum(axis=1), found[1])
    assert len(expected) < len(local)


def _add_rows(X):
    return np.asarray(X.sum(axis=1)).ravel()


def test_a_dask_array_without_a_client_says_once_that_it_is_computed_here(caplog):
    da = pytest.importorskip("dask.array")
    from twofold.core.engine import dask_sources

    dask_sources._say_local.cache_clear()
    for _ in range(2):
        assert type(engine_for(as_blocks(da.ones((9, 2))))) is Engine
    assert sum("no dask client is in force" in record.getMessage() for record in caplog.records) == 1


def _first(X):
    return X[:, 0] + 0


def _count(X, kept):
    return kept + len(X), float(kept)


def test_a_cluster_s_error_reaches_the_caller(small_blocks, clusters):
    da = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    lazy = as_blocks(da.from_array(np.ones((900, 5)), chunks=(77, 2)))
    with distributed.Client(clusters(3)):
        there = engine_for(lazy)
        with pytest.raises(ValueError, match="no good"):
            there.reduce(add, there.map(_fail, lazy))


def _fail(X):
    raise ValueError("no good")


def test_no_thread_of_a_pool_is_started_later_where_ctrl_c_could_meet_it():
    def running():
        return {thread for thread in threading.enumerate() if thread.name.startswith("twofold")}

    before = running()
    pool = local._pool(7)
    started = running() - before
    assert len(started) == 7
    pool.submit(int).result()
    assert running() - before == started
    local._pools.pop(7).shutdown()
