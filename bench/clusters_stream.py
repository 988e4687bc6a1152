"""k-means of a .npy file larger than the memory budget, in a process of its own: seconds, inertia, peak memory.

That process is `python -m bench.clusters_stream CONTESTANT FILE SMALL_FILE START`, which prints one line of JSON.
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
from sklearn.cluster import kmeans_plusplus

from bench.clusters_kmeans import as_good, inertia, quietly
from bench.harness import Bar, Contestant, Event, Row, Timed
from bench.linear_stream import MAX_SECONDS, _peak, forget

K, D, SWEEPS, M = 50, 64, 5, 20_000
GIGABYTES = 1.0  # what BENCH_CLUSTER_GB changes
MEMORY = 256  # MB


def write_file(path: Path, gigabytes: float) -> int:
    """Rows around K centers that overlap, chunk by chunk, in float32; returns their number."""
    rng = np.random.default_rng(0)
    rows = int(gigabytes * 1e9 / 4 / D)
    centers = rng.standard_normal((K, D), dtype=np.float32)
    with open(path, "wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (rows, D)}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, rows, 100_000):
            n = min(100_000, rows - start)
            (centers[rng.integers(0, K, n)] + rng.standard_normal((n, D), dtype=np.float32)).tofile(file)
        file.flush()
        os.fsync(file.fileno())
    return rows


def fit_here(peer: str, path: str, start: np.ndarray) -> Any:
    """Run one contestant's fit in this process."""
    if peer.startswith("twofold"):
        import twofold
        from twofold.clusters import coreset

        with twofold.config(memory=f"{MEMORY}MB"):
            if peer == "twofold-lloyd":
                return twofold.KMeans(K, init=start, n_init=1, max_iter=SWEEPS, tol=0).fit(path)
            points, weights = coreset(path, M, random_state=0)
            return twofold.KMeans(K, n_init=1, random_state=0).fit(points, sample_weight=weights)
    from sklearn.cluster import KMeans, MiniBatchKMeans

    X = np.load(path, mmap_mode="r")
    if peer == "lloyd":
        return KMeans(K, init=start, n_init=1, max_iter=SWEEPS, tol=0).fit(X)
    model = MiniBatchKMeans(K, init=start, n_init=1, random_state=0)
    with open(path, "rb", buffering=0) as file:  # read, not mapped: mapped pages would count as its memory
        file.seek(X.offset)
        for begin in range(0, len(X), 20_000):
            rows = min(20_000, len(X) - begin)
            model.partial_fit(np.fromfile(file, X.dtype, rows * D).reshape(rows, D))
    return model


def same_bits(path: str, start: np.ndarray) -> bool:
    """True if streaming a file gives the bits of clustering its rows in memory."""
    from twofold import KMeans

    streamed, held = (KMeans(K, init=start, n_init=1, max_iter=SWEEPS, tol=0).fit(X) for X in (path, np.load(path)))
    return np.array_equal(streamed.labels_, held.labels_) and bool(
        streamed.cluster_centers_.tobytes() == held.cluster_centers_.tobytes() and streamed.inertia_ == held.inertia_
    )


def child(peer: str, path: str, small: str, start_file: str) -> None:
    """Warm up on a small file, fit the large one, and print time and memory."""
    start = np.load(start_file)
    quietly(lambda: fit_here(peer, small, start))
    before = _peak()
    began = time.perf_counter()
    model = quietly(lambda: fit_here(peer, path, start))
    report = {
        "seconds": time.perf_counter() - began,
        "before_mb": before,
        "peak_mb": _peak(),
        "centers": model.cluster_centers_.tolist(),
    }
    if peer == "twofold-lloyd":  # after the memory was read: this holds a file
        report["same_bits"] = quietly(lambda: same_bits(small, start))
    print(json.dumps(report))


def in_a_process(peer: str, path: Path, small: Path, start: Path) -> Timed:
    forget(path)
    command = [sys.executable, "-m", "bench.clusters_stream", peer, str(path), str(small), str(start)]
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
    gigabytes = float(os.environ.get("BENCH_CLUSTER_GB", 0.1 if quick else GIGABYTES))
    folder = tempfile.TemporaryDirectory(prefix="twofold-bench-")
    path, small, start = (Path(folder.name) / f"{name}.npy" for name in ("large", "small", "start"))
    write_file(small, 0.02)
    rows = write_file(path, gigabytes)
    np.save(start, kmeans_plusplus(np.load(small)[:20_000], K, random_state=0)[0])

    def quality(report: dict) -> dict[str, float]:
        figures = {
            "inertia": inertia(np.load(path, mmap_mode="r"), np.array(report["centers"])),
            "before MB": report["before_mb"],
            "peak MB": report["peak_mb"],
        }
        return figures | ({"same bits": float(report["same_bits"])} if "same_bits" in report else {})

    def entry(name: str, peer: str, **more: Any) -> Contestant:
        return Contestant(name, lambda: in_a_process(peer, path, small, start), warm=lambda: None, **more)

    def within(rows: list[Row]) -> bool:
        own = [row.quality for row in rows if row.ours]
        small_enough = all(figures["peak MB"] - figures["before MB"] <= MEMORY for figures in own)
        return small_enough and all(figures.get("same bits", 1.0) == 1.0 for figures in own)

    return Event(
        "clusters_stream",
        f"k-means of a {gigabytes:g} GB .npy file ({rows:,} x {D}, float32), k = {K}, within memory='{MEMORY}MB'",
        [
            entry("twofold", "twofold-lloyd", ours=True, note=f"{SWEEPS} sweeps from the given start"),
            entry("twofold, coreset", "twofold-coreset", ours=True, counts=False, note=f"{M:,} rows drawn"),
            entry("scikit-learn lloyd on a memmap", "lloyd", note=f"{SWEEPS} sweeps from the given start"),
            entry("scikit-learn MiniBatchKMeans", "minibatch", counts=False, note="one pass"),
        ],
        quality=quality,
        as_good=as_good,
        bar=Bar(f"at most {MEMORY} MB more at the peak than before, and the bits of a fit in memory", test=within),
        repeats=1,
        close=folder.cleanup,
        notes=[
            "Every fit runs in a fresh process, after a warm-up on a 20 MB file, with the large file's pages dropped "
            "from the system's cache; peak MB is its largest resident set (before MB: after the warm-up).",
            "Pages that a memmap touches count as resident although the system may take them back. "
            "same bits: labels, centers and inertia of the small file, streamed and in memory, are equal bit for bit.",
        ],
    )


EVENTS = (stream,)

if __name__ == "__main__":
    child(*sys.argv[1:])
