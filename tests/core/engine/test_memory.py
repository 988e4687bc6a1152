"""A streamed fit keeps to its budget, whatever the size of the file."""

import gc
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import twofold
from twofold.core.data import kept_rows
from twofold.core.data.csr_folder import write_csr
from twofold.core.data.kept_rows import KeptRows, Place
from twofold.core.engine.local import Tree, add, stack_results, stack_rows

on_linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
soak = pytest.mark.soak
BATCHED = [("npy", "KMeans"), ("csr", "LDA")]
ROWS, COLUMNS = 200_000, 100  # 160 MB
SCRIPT = """
import sys
import numpy as np
import twofold

def peak():  # ru_maxrss would begin at the peak of the process that started this one
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024

path, budget, name = sys.argv[1:]
few = {"tol": 0, "random_state": 0}
make = {
    "PCA": lambda: twofold.PCA(5),
    "PPCA": lambda: twofold.PPCA(5, solver="em", max_iter=2, random_state=0),
    "NMF": lambda: twofold.NMF(16, init="random", solver="mu", max_iter=1, **few),
    "KMeans": lambda: twofold.KMeans(4, init="k-means||", n_init=1, max_iter=1, **few),
    "LDA": lambda: twofold.LatentDirichletAllocation(
        40, learning_method="online", batch_size=100, doc_topic_prior=0.1, max_iter=1, **few
    ),
}[name]
import warnings; warnings.simplefilter("ignore")
with twofold.config(threads=2, memory=budget):
    make().fit(sys.argv[1].replace("big", "small"))  # libraries loaded, kernels compiled
    before = peak()
    make().fit(path)
print(peak() - before)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same kind of table, small and big, in three formats."""
    folder = tmp_path_factory.mktemp("streamed")
    X = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
    for name, part in (("small", X[:1000]), ("big", X)):
        np.save(folder / f"{name}.npy", part)
        np.save(folder / f"{name}_f.npy", np.asfortranarray(part))
        pl.DataFrame(part).write_parquet(folder / f"{name}.parquet", row_group_size=20_000, compression="lz4")
    yield folder
    for path in folder.iterdir():
        path.unlink()


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    """A table whose rows are as short as what models keep of them, and counts for many mini-batches."""
    folder, rng = tmp_path_factory.mktemp("narrow"), np.random.default_rng(0)
    X = rng.random((800_000, 16), dtype=np.float32)  # 51 MB
    counts = sparse.random_array((20_000, 2_000), density=0.002, format="csr", rng=rng, dtype=np.float32)
    for name, rows, documents in (("small", 1000, 300), ("big", len(X), counts.shape[0])):
        np.save(folder / f"{name}.npy", X[:rows])
        write_csr(folder / f"{name}.csr", [counts[:documents]])
    yield folder
    shutil.rmtree(folder)


def peak_of(path, budget, model):
    """Megabytes that a fit takes at its peak beyond those of a small one."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(path), budget, model], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@on_linux
@pytest.mark.parametrize(
    "file, model", [("big.npy", "NMF"), *(pytest.param(f"big.{end}", m, marks=soak) for end, m in BATCHED)]
)
def test_what_blocks_and_batches_keep_is_in_the_budget(narrow, file, model):
    # Held in memory: codes of 51 MB, and those of the sweep before; 200 batches of topics, 0.64 MB each.
    assert peak_of(narrow / file, "32MB", model) <= 40


@on_linux
@pytest.mark.parametrize(
    "file, model",
    [
        ("big.parquet", "PCA"),
        *(pytest.param(*case, marks=soak) for case in (("big.npy", "PCA"), ("big.npy", "PPCA"), ("big_f.npy", "PCA"))),
    ],
)
def test_a_streamed_fit_keeps_to_its_budget(folder, file, model):
    assert peak_of(folder / file, "64MB", model) <= 64


def items(rng, count=20):
    """What blocks keep: tuples of arrays of several kinds, and nothing."""
    some = [(rng.random((5_000, 8)), rng.integers(0, 9, 5_000).astype(np.int32), np.asfortranarray(rng.random((9, 7))))]
    return [None, *(some[0] if i % 3 == 0 else (rng.random(20_000, dtype=np.float32),) for i in range(count))]


def test_kept_rows_come_back_from_the_disk_as_they_were():
    rng, former = np.random.default_rng(0), kept_rows._bytes_kept
    given = items(rng)
    with twofold.config(memory="2MB"):
        kept = KeptRows()
        for item in given:
            kept.append(item)
    there = [isinstance(list.__getitem__(kept, i), Place) for i in range(len(kept))]
    assert any(there) and not all(there)
    assert kept_rows._bytes_kept - former <= 500_000  # a quarter of the budget
    for found in (list(kept), list(kept.local()), kept[:], [kept[i] for i in range(len(kept))]):
        for a, b in zip(given, found, strict=True):
            assert (a is None) == (b is None)
            for x, y in zip(a or (), b or (), strict=True):
                assert x.dtype == y.dtype and np.array_equal(x, y) and y.flags.writeable and y.flags.aligned
                assert x.flags.c_contiguous == y.flags.c_contiguous
    del kept
    gc.collect()
    assert kept_rows._bytes_kept == former


def test_sums_that_wait_on_disk_are_the_same_to_the_last_bit():
    rng = np.random.default_rng(1)
    parts = [(rng.standard_normal((300, 100)), float(rng.standard_normal())) for _ in range(45)]
    with twofold.config(memory="2MB"):
        trees = [Tree(add), Tree(add, spills=True)]
        for tree in trees:
            for array, number in parts:
                tree.push((array.copy(), number))
        assert any(isinstance(value, Place) for _, value in trees[1].stack)
        (a, x), (b, y) = (tree.result() for tree in trees)
    assert np.array_equal(a, b) and x == y


def test_rows_stacked_as_they_come_are_those_stacked_at_once():
    rng = np.random.default_rng(2)
    blocks = [rng.random((m, 3)) for m in (4, 1, 7)]
    cases = [blocks, [(b, b[:, 0].astype("f4")) for b in blocks], [sparse.csr_array(b) for b in blocks], blocks[:1]]
    for case in cases:
        n = sum(len(b) for b in blocks[: len(case)])
        for a, b in zip(_arrays(stack_rows(iter(case), n)), _arrays(stack_results(case)), strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)


def _arrays(found):
    found = found if isinstance(found, tuple) else (found,)
    return [a.toarray() if sparse.issparse(a) else a for a in found]
