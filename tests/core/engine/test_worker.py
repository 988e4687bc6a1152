"""What a worker process does before its first task."""

import os
import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource
import numpy as np
from twofold.core.engine.tasks import reuse_memory

def count():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(40):
        np.ones(2**17)  # a megabyte: 256 pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

as_dask_has_it = count()
reuse_memory()
count()
print(as_dask_has_it, count())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the limits are those of the GNU C library")
@pytest.mark.parametrize("limit, again", [("65536", True), ("65537", False)])
def test_a_worker_uses_freed_memory_again_unless_somebody_set_another_limit(limit, again):
    environment = {**os.environ, "MALLOC_TRIM_THRESHOLD_": limit}
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, env=environment, check=True)
    before, after = map(int, done.stdout.split())
    assert before > 40 * 100  # pages come anew with every array
    assert (after < 40) == again


COMPILE = """
import numpy as np
from twofold.core.engine.tasks import compile_once
from twofold.kernels.top_k import select_best

compile_once()
items, scores = np.zeros((1, 1), np.int64), np.zeros((1, 1))
print("ready", flush=True)
input()
select_best(np.array([[1.0, 3.0]]), np.zeros(2, np.int64), np.zeros(0, np.int64), items, scores)
print(items[0, 0], sum(select_best.stats.cache_misses.values()))
"""


@pytest.mark.skipif(os.name == "nt", reason="there are no locks of this kind")
def test_a_kernel_that_several_processes_need_is_compiled_by_one(tmp_path):
    environment, pipe = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}, subprocess.PIPE
    command = [sys.executable, "-c", COMPILE]
    started = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) for _ in range(2)]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    for process in started:
        process.stdin.write("\n")
        process.stdin.flush()
    answers = [process.communicate()[0].split() for process in started]
    assert [item for item, _ in answers] == ["1", "1"]
    assert sorted(misses for _, misses in answers) == ["0", "1"]
