"""A VAE of a .npy file larger than the memory budget, beside the same fit in memory: seconds, CPU seconds, peak memory.

Each fit runs in a process of its own, `python -m bench.deep_stream HOW FILE BUDGET`, which prints one line of JSON.
BENCH_DEEP_GB sets the size of the file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Bar, Contestant, Event, Row, Timed
from bench.linear_stream import _peak, forget

D, K = 784, 8
GIGABYTES, BUDGET = 1.0, "256MB"
MAX_RATIO = 1.2  # of the time in memory


def write_file(path: Path, gigabytes: float) -> None:
    """Rows from 0 to 1 that depend on K numbers each, in single precision."""
    rng = np.random.default_rng(0)
    rows, W = int(gigabytes * 1e9 / 4 / D), rng.standard_normal((K, D))
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, D)})
        for start in range(0, rows, 20_000):
            n = min(20_000, rows - start)
            (1 / (1 + np.exp(-rng.standard_normal((n, K)) @ W))).astype("f4").tofile(file)
        file.flush()
        os.fsync(file.fileno())


def fit_here(how: str, path: str, budget: str) -> None:
    """One epoch in this process, after a small one that loads and compiles everything."""
    import twofold

    small = np.load(path, mmap_mode="r")[:2_000]
    twofold.VAE(max_iter=1, random_state=0).fit(np.array(small))
    before, used, began = _peak(), time.process_time(), time.perf_counter()
    with twofold.config(memory=budget):
        model = twofold.VAE(max_iter=1, random_state=0).fit(path if how == "file" else np.load(path))
    result = {
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - used,
        "memory_mb": _peak() - before,
        "weights": float(sum(np.abs(w, dtype=np.float64).sum() for w in model.weights_.values())),
    }
    print(json.dumps(result))


def stream(quick: bool) -> Event:
    folder = tempfile.TemporaryDirectory(prefix="twofold-bench-")
    size = float(os.environ.get("BENCH_DEEP_GB", GIGABYTES * (0.1 if quick else 1)))
    budget, path = "64MB" if quick else BUDGET, Path(folder.name, "rows.npy")
    write_file(path, size)

    def run(how: str) -> Timed:
        forget(path)
        command = [sys.executable, "-m", "bench.deep_stream", how, str(path), budget]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return Timed(found["seconds"], found)

    def kept(rows: list[Row]) -> bool:
        mine, theirs = (next(row for row in rows if row.ours == ours) for ours in (True, False))
        return mine.median <= MAX_RATIO * theirs.median

    event = Event(
        "deep_stream",
        f"VAE 784-500-500-32 of a .npy of {size:g} GB, an epoch within {budget} beside the same in memory",
        [
            Contestant("from the file", lambda: run("file"), ours=True, warm=lambda: None),
            Contestant("in memory", lambda: run("memory"), warm=lambda: None),
        ],
        quality=lambda value: {"memory MB": value["memory_mb"], "CPU s": value["cpu"], "weights": value["weights"]},
        as_good=lambda a, b: a["weights"] == b["weights"],
        bar=Bar(f"at most {MAX_RATIO} x the time in memory, and the same weights", test=kept),
        budget=600.0,
    )
    event.folder = folder  # type: ignore[attr-defined]  # lives as long as the event
    return event


EVENTS = (stream,)


if __name__ == "__main__":
    fit_here(*sys.argv[1:])
