"""PCA of a .npy file larger than the memory budget, in a process of its own: seconds, GB/s, peak memory.

That process is `python -m bench.linear_stream CONTESTANT FILE SMALL_FILE`, which prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Bar, Contestant, Event, Row, Timed, Work
from bench.subspace import near

K, D = 10, 100
GIGABYTES = 8.0  # what BENCH_STREAM_GB changes
MAX_SECONDS = 240.0  # seconds until a contestant is stopped


def write_file(path: Path, gigabytes: float) -> tuple[int, np.ndarray, np.ndarray]:
    """Rows with K strong directions, chunk by chunk; returns their number, and the exact axes and variances."""
    rng = np.random.default_rng(0)
    rows = int(gigabytes * 1e9 / 8 / D)
    W, mean = rng.standard_normal((K, D)) * np.linspace(2, 0.5, K)[:, None], rng.standard_normal(D)
    first, second = np.zeros(D), np.zeros((D, D))
    with open(path, "wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (rows, D)}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, rows, 100_000):
            n = min(100_000, rows - start)
            rest = rng.standard_normal((n, K)) @ W + rng.standard_normal((n, D))
            first += rest.sum(axis=0)
            second += rest.T @ rest
            (rest + mean).tofile(file)
        file.flush()
        os.fsync(file.fileno())
    values, axes = np.linalg.eigh(second - np.outer(first, first) / rows)
    return rows, axes[:, -K:], values[-K:] / (rows - 1)


def forget(path: Path) -> None:
    """Ask the system to drop the file's pages from its cache, so that the next reading comes from the disk."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def fit_here(peer: str, path: str) -> Any:
    """Run one contestant's fit in this process."""
    if peer == "twofold":
        import twofold

        with twofold.config(memory="512MB"):
            return twofold.PCA(K, random_state=0).fit(path)
    from sklearn.decomposition import PCA, IncrementalPCA

    X = np.load(path, mmap_mode="r")
    if peer == "covariance_eigh":
        return PCA(K, svd_solver="covariance_eigh").fit(X)
    model = IncrementalPCA(K)
    with open(path, "rb", buffering=0) as file:  # read, not mapped: mapped pages would count as its memory
        file.seek(X.offset)
        for start in range(0, len(X), 20_000):
            rows = min(20_000, len(X) - start)
            model.partial_fit(np.fromfile(file, X.dtype, rows * D).reshape(rows, D), check_input=False)
    return model


def child(peer: str, path: str, small: str) -> None:
    """Warm up on a small file, fit the large one, and print time and memory."""
    fit_here(peer, small)
    before = _peak()
    began = time.perf_counter()
    model = fit_here(peer, path)
    report = {
        "seconds": time.perf_counter() - began,
        "before_mb": before,
        "peak_mb": _peak(),
        "axes": model.components_.tolist(),
        "variance": model.explained_variance_.tolist(),
    }
    print(json.dumps(report))


def _peak() -> float:
    """The most memory this process ever had resident, in MB.

    Linux counts the parent's memory at the fork into ru_maxrss, so there the high-water mark of the process's own
    address space is read instead.
    """
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024 / 1e6
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def in_a_process(peer: str, path: Path, small: Path, cold: bool) -> Timed:
    if cold:
        forget(path)
    command = [sys.executable, "-m", "bench.linear_stream", peer, str(path), str(small)]
    here = Path(__file__).parent.parent
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=here, timeout=MAX_SECONDS)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"stopped after {MAX_SECONDS:g} s") from None
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    report = json.loads(done.stdout.splitlines()[-1])
    return Timed(report["seconds"], report)


def stream(quick: bool) -> Event:
    gigabytes = float(os.environ.get("BENCH_STREAM_GB", 0.5 if quick else GIGABYTES))
    folder = tempfile.TemporaryDirectory(prefix="twofold-bench-")
    path, small = Path(folder.name) / "large.npy", Path(folder.name) / "small.npy"
    write_file(small, 0.01)
    _, axes, variance = write_file(path, gigabytes)

    def quality(report: dict) -> dict[str, float]:
        Z = np.array(report["axes"])
        return {
            "angle": float(np.linalg.norm(axes - Z.T @ (Z @ axes), 2)),
            "variance lost": 1 - sum(report["variance"]) / float(variance.sum()),
            "before MB": report["before_mb"],
            "peak MB": report["peak_mb"],
            "GB/s": gigabytes / report["seconds"],
        }

    def contestant(name: str, peer: str, cold: bool, **more: Any) -> Contestant:
        job = lambda: in_a_process(peer, path, small, cold)  # noqa: E731
        return Contestant(name, job, warm=lambda: None, note="cold cache" if cold else "warm cache", **more)

    def small_enough(rows: list[Row]) -> bool:
        return all(row.quality["peak MB"] < 1000 for row in rows if row.ours)

    return Event(
        "linear_stream",
        f"PCA of a {gigabytes:g} GB .npy file ({D} columns, float64) within memory='512MB', k = {K}",
        [
            contestant("twofold", "twofold", True, ours=True),
            contestant("twofold, again", "twofold", False, ours=True, counts=False),
            contestant("scikit-learn IncrementalPCA", "incremental", True),
            contestant("scikit-learn covariance_eigh on a memmap", "covariance_eigh", True),
        ],
        quality=quality,
        as_good=near(0.01),
        bar=Bar("peak memory of the process under 1 GB", test=small_enough),
        work=Work(flops=gigabytes * 1e9 / 8 * (D + 1), bytes=gigabytes * 1e9),
        repeats=None if quick else 1,
        close=folder.cleanup,
        notes=[
            "Every fit runs in a fresh process, after a warm-up on a 10 MB file; peak MB is its largest resident set, "
            "with the interpreter and libraries (before MB: after the warm-up).",
            "Cold: the file's pages were dropped from the system's cache first (the disk below may have its own). "
            "Pages that a memmap touches count as resident although the system may take them back.",
        ],
    )


EVENTS = (stream,)

if __name__ == "__main__":
    child(*sys.argv[1:])
