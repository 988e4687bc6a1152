"""A streamed fit keeps to its budget, whatever the size of the file."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

ROWS, COLUMNS = 200_000, 100  # 160 MB
SCRIPT = """
import sys
import numpy as np
import twofold

def peak():  # ru_maxrss would begin at the peak of the process that started this one
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024

path, budget, name = sys.argv[1:]
make = {"PCA": lambda: twofold.PCA(5), "PPCA": lambda: twofold.PPCA(5, solver="em", max_iter=2, random_state=0)}[name]
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


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
@pytest.mark.parametrize(
    "file, model", [("big.npy", "PCA"), ("big.npy", "PPCA"), ("big_f.npy", "PCA"), ("big.parquet", "PCA")]
)
def test_a_streamed_fit_keeps_to_its_budget(folder, file, model):
    command = [sys.executable, "-c", SCRIPT, str(folder / file), "64MB", model]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) <= 64, done.stdout
