"""One, two and four Dask workers, and threads, on the same data: first and second fit, and bytes moved a sweep.

The fits run in a process of their own, `python -m bench.scale_workers MODEL FOLDER WORKERS` (0: threads), which prints
one line of JSON. BENCH_WORKERS names the models to run, separated by commas.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from bench import machine
from bench.harness import Bar, Contestant, Event, Row, Timed
from bench.scale_als import Traffic, least_bytes
from bench.scale_slopes import TOPICS, WORDS, D, K, start, write_counts, write_dense, write_ratings

CROWDS = (0, 1, 2, 4)
SWEEPS = 6
MAX_SECONDS = 200.0


def make_model(name: str) -> Any:
    import twofold

    options: dict[str, Any] = {"max_iter": SWEEPS, "tol": 0, "random_state": 0}
    if name == "PCA":
        return twofold.PCA(K, random_state=0)
    if name == "KMeans":
        return twofold.KMeans(4 * K, init=start(4 * K, D), n_init=1, **options)
    return twofold.NMF(TOPICS, init="random", **options) if name == "NMF" else twofold.ALS(K, reg=0.05, **options)


def state_bytes(name: str, workers: int, parts: Any) -> float:
    """Return the least bytes that a sweep must move: the state to every worker, and a sum of each back to one."""
    if name == "ALS":
        return least_bytes(parts, K + 1, parts.dtype.itemsize, workers)
    if name == "PCA":  # one pass: the sum and the products of columns, in double precision
        return 8.0 * (workers - 1) * (D * D + D)
    if name == "KMeans":  # centers there; sums and counts back
        return (workers - 1) * (4.0 * 4 * K * D + 8.0 * 4 * K * (D + 1))
    return (workers - 1) * (4.0 * TOPICS * WORDS + 8.0 * TOPICS * (WORDS + TOPICS))  # NMF: Z there; UᵀX and UᵀU back


def child(name: str, folder: str, count: str) -> None:
    """Fit twice, and say what it took."""
    warnings.simplefilter("ignore")
    place, workers, report = Path(folder), int(count), {}
    with ExitStack() as stack:
        client = None
        if workers:
            from distributed import Client, LocalCluster

            began = time.perf_counter()
            options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "silence_logs": 50}
            client = stack.enter_context(Client(stack.enter_context(LocalCluster(n_workers=workers, **options))))
            report["start"] = time.perf_counter() - began
        data: Any = next(place.iterdir())
        if name == "ALS":
            from twofold import PartitionedRatings

            data = PartitionedRatings(None, data)
        for call in ("first", "seconds"):
            model = make_model(name)
            began = time.perf_counter()
            model.fit(data)
            report[call] = time.perf_counter() - began
        if client is not None:
            traffic, model = Traffic(client), make_model(name)
            before = traffic.count()
            model.set_callbacks(traffic).fit(data)
            after = traffic.after or [traffic.count()]
            report["moved"] = float(np.median(np.diff(after))) if len(after) > 2 else float(after[-1] - before)
            report["least"] = state_bytes(name, workers, data)
    print(json.dumps(report))


def in_a_process(name: str, folder: Path, workers: int) -> Timed:
    command = [sys.executable, "-m", "bench.scale_workers", name, str(folder), str(workers)]
    here = Path(__file__).parent.parent
    done = subprocess.run(command, capture_output=True, text=True, cwd=here, timeout=MAX_SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    report = json.loads(done.stdout.splitlines()[-1])
    return Timed(report["seconds"], report)


def crowds(name: str, rows: int, quick: bool) -> Event:
    made = tempfile.TemporaryDirectory(prefix="twofold-bench-")
    folder, n = Path(made.name), rows // 20 if quick else rows
    if name == "ALS":
        from twofold import PartitionedRatings

        with tempfile.TemporaryDirectory(prefix="twofold-bench-") as raw:
            PartitionedRatings(write_ratings(Path(raw), n), folder / "parts")
    else:
        {"PCA": write_dense, "KMeans": write_dense, "NMF": write_counts}[name](folder, n)

    what = "ratings" if name == "ALS" else "rows"

    def quality(report: dict[str, float]) -> dict[str, float]:
        figures = {"first s": report["first"]}
        if "moved" in report:
            figures |= {"s to start": report["start"], "MB a sweep": report["moved"] / 1e6}
            figures["at least"] = report["least"] / 1e6
        return figures

    def entry(workers: int) -> Contestant:
        label = f"{workers} Dask workers" if workers else f"{machine.threads()} threads"
        return Contestant(label, lambda: in_a_process(name, folder, workers), ours=True, warm=lambda: None)

    def near(rows: list[Row]) -> bool:
        threads, pair = rows[0], next(row for row in rows if row.contestant.startswith("2 Dask"))
        return pair.median <= 1.5 * threads.median + 1

    return Event(
        f"scale_workers {name}",
        f"{name} of {n:,} {what} in files, {1 if name == 'PCA' else SWEEPS} sweeps, on {os.cpu_count()} cores",
        [entry(workers) for workers in CROWDS],
        quality=quality,
        as_good=lambda a, b: True,
        bar=Bar("two workers take at most half as long again as two threads, and a second", test=near),
        repeats=1,
        close=made.cleanup,
        notes=[
            "Seconds are those of the second fit. The first also imports the library and loads its compiled kernels in "
            "every worker.",
            f"On {os.cpu_count()} cores, {CROWDS[-1]} workers of one thread share them: what they show is the price of "
            "more tasks and more copies, not speed. All workers are on one machine: bytes are counted, no network is "
            "waited for.",
            "MB a sweep: what workers sent to each other, by their own logs; what the client sends and gets is not in "
            "it. At least: the state to all workers but the one that has it, their sums back to one.",
        ],
    )


SIZES = {"PCA": 4_000_000, "KMeans": 1_500_000, "NMF": 400_000, "ALS": 5_000_000}
EVENTS = tuple(
    (lambda quick, name=name: crowds(name, SIZES[name], quick))
    for name in os.environ.get("BENCH_WORKERS", ",".join(SIZES)).split(",")
)

if __name__ == "__main__":
    child(*sys.argv[1:])
