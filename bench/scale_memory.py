"""The peak memory of streaming fits within config(memory=): dense .npy, Parquet and a folder of CSR, three budgets.

Each fit runs in a process of its own, `python -m bench.scale_memory MODEL FILE BUDGET`, which prints one line of JSON.
BENCH_MEMORY_GB sets the size of the .npy file of the second event: SPEC asks for 20 GB within 1 GB.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

from bench.harness import Bar, Contestant, Event, Row, Timed
from bench.linear_stream import _peak, forget

BUDGETS = ("64MB", "256MB", "1GB")
D, K, WORDS = 64, 16, 5_000
GIGABYTES = 4.0  # what BENCH_MEMORY_GB changes
PATIENCE = 400.0


def fit(model: str, X: Any) -> Any:
    """A fit of two sweeps, or one that needs but one pass."""
    import twofold

    if model == "PCA":
        return twofold.PCA(K, random_state=0).fit(X)
    if model == "KMeans":
        d = X.shape[1] if isinstance(X, np.ndarray) else D
        start = np.random.default_rng(0).standard_normal((K, d)).astype(np.float32)
        return twofold.KMeans(K, init=start, n_init=1, max_iter=1, tol=0).fit(X)
    options = {"tol": 0, "max_iter": 2, "random_state": 0}
    if model == "NMF":
        return twofold.NMF(K, init="random", **options).fit(X)
    return twofold.LatentDirichletAllocation(K, doc_topic_prior=0.1, **options).fit(X)


def child(model: str, path: str, budget: str) -> None:
    """Warm up in memory, fit the file within the budget, and say what it took."""
    import twofold

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    dense = model in ("PCA", "KMeans")
    small = rng.random((2000, D)) if dense else sparse.random_array((2000, WORDS), density=0.01, format="csr", rng=rng)
    fit(model, small.astype(np.float32))
    if path.endswith(".parquet"):
        pl.scan_parquet(path).head(1).collect()
    before = _peak()
    began = time.perf_counter()
    with twofold.config(memory=budget):
        fit(model, path)
    print(json.dumps({"seconds": time.perf_counter() - began, "before": before, "peak": _peak()}))


def in_a_process(model: str, path: Path, budget: str) -> Timed:
    if path.is_file():
        forget(path)
    command = [sys.executable, "-m", "bench.scale_memory", model, str(path), budget]
    here = Path(__file__).parent.parent
    done = subprocess.run(command, capture_output=True, text=True, cwd=here, timeout=PATIENCE, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    report = json.loads(done.stdout.splitlines()[-1]) | {"budget": budget, "path": path}
    return Timed(report["seconds"], report)


def write_rows(path: Path, rows: int) -> None:
    """Rows in float32: normal numbers of a million rows, turned by a column each time they come again."""
    some = np.random.default_rng(0).standard_normal((min(rows, 1_000_000), D), dtype=np.float32)
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, D)})
        for turn, start in enumerate(range(0, rows, len(some))):
            np.ascontiguousarray(np.roll(some[: rows - start], turn, axis=1)).tofile(file)
        file.flush()
        os.fsync(file.fileno())


def quality(report: dict[str, Any]) -> dict[str, float]:
    from twofold.core.config import parse_bytes

    path = report["path"]
    size = sum(p.stat().st_size for p in path.iterdir()) if path.is_dir() else path.stat().st_size
    return {
        "file MB": size / 1e6,
        "budget MB": parse_bytes(report["budget"]) / 1e6,
        "more at peak MB": report["peak"] - report["before"],
        "before MB": report["before"],
        "peak MB": report["peak"],
    }


def within(rows: list[Row]) -> bool:
    return all(row.quality["more at peak MB"] <= row.quality["budget MB"] for row in rows)


def entry(name: str, model: str, path: Path, budget: str) -> Contestant:
    return Contestant(name, lambda: in_a_process(model, path, budget), ours=True, warm=lambda: None)


NOTE = "More at peak: the largest resident set of the process less that after a warm-up on a small table in memory."


def budgets(quick: bool) -> Event:
    from bench.scale_slopes import write_counts

    made = tempfile.TemporaryDirectory(prefix="twofold-bench-")
    folder, rows = Path(made.name), 200_000 if quick else 4_000_000
    write_rows(folder / "rows.npy", rows)
    X = np.load(folder / "rows.npy", mmap_mode="r")
    frame = pl.DataFrame({f"c{j}": np.asarray(X[: rows // 2, j]) for j in range(D)})
    frame.write_parquet(folder / "rows.parquet")
    del frame
    counts = write_counts(folder, rows // 10)
    jobs = [
        *((".npy", model, folder / "rows.npy") for model in ("PCA", "KMeans")),
        *((".parquet", model, folder / "rows.parquet") for model in ("PCA", "KMeans")),
        *((".csr", model, counts) for model in ("NMF", "LDA")),
    ]
    return Event(
        "scale_memory budgets",
        "peak memory of streaming fits within config(memory=)",
        [entry(f"{model}, {kind}, {budget}", model, path, budget) for kind, model, path in jobs for budget in BUDGETS],
        quality=quality,
        as_good=lambda a, b: True,
        bar=Bar("no more memory at the peak than the budget", test=within),
        repeats=1,
        close=made.cleanup,
        notes=[NOTE],
    )


def one_file(quick: bool) -> Event:
    gigabytes = float(os.environ.get("BENCH_MEMORY_GB", 0.2 if quick else GIGABYTES))
    made = tempfile.TemporaryDirectory(prefix="twofold-bench-")
    path = Path(made.name) / "large.npy"
    write_rows(path, int(gigabytes * 1e9 / 4 / D))
    budget = "512MB"

    def small(rows: list[Row]) -> bool:
        return all(row.quality["peak MB"] <= 1000 for row in rows)

    return Event(
        "scale_memory file",
        f"a .npy file of {gigabytes:g} GB within 1 GB: one pass each, memory='{budget}'",
        [entry(model, model, path, budget) for model in ("PCA", "KMeans")],
        quality=lambda report: quality(report) | {"GB/s": gigabytes / report["seconds"]},
        as_good=lambda a, b: True,
        bar=Bar("the whole process within 1 GB", test=small),
        repeats=1,
        close=made.cleanup,
        notes=[NOTE, "The file's pages were dropped from the system's cache before each fit."],
    )


EVENTS = (budgets, one_file)

if __name__ == "__main__":
    child(*sys.argv[1:])
