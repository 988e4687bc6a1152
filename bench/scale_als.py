"""ALS of ratings in a folder on two worker processes of 2 GB: seconds a sweep, RMSE, peak memory, bytes moved.

The fit runs in a process of its own, `python -m bench.scale_als FOLDER`, which starts the workers and prints one line
of JSON. BENCH_RATINGS sets how many ratings there are.
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
import polars as pl

from bench.harness import Bar, Contestant, Event, Row, Timed
from bench.linear_stream import _peak

RATINGS = 1e7  # what BENCH_RATINGS changes
PIECE = 1_000_000  # ratings of a file
K, SWEEPS, REG = 16, 5, 0.05
WORKERS, LIMIT, CLIENT = 2, 2000, 1000  # of them, and MB of each and of the client
RANK, NOISE = 8, 0.6
MAX_SECONDS = 7200.0


def sizes(ratings: int) -> tuple[int, int]:
    """Users and items."""
    return max(1000, ratings // 100), max(100, ratings // 1000)


def draw(ratings: int, count: int, seed: int, U: np.ndarray, Z: np.ndarray) -> dict[str, np.ndarray]:
    """Ratings from a model with biases and factors, rounded to half stars; users and items follow power laws."""
    rng, (n, d) = np.random.default_rng([ratings, seed]), sizes(ratings)
    i, j = (n * rng.random(count) ** 1.7).astype(np.int64), (d * rng.random(count) ** 2.5).astype(np.int64)
    i, j = i * 7919 % n, j * 104729 % d  # popular ones are spread over the ids
    x = 3.4 + U[i, -1] + Z[j, -1] + np.einsum("tk,tk->t", U[i, :-1], Z[j, :-1]) + NOISE * rng.standard_normal(count)
    return {"user": i, "item": j, "rating": np.clip(np.round(2 * x) / 2, 0.5, 5.0).astype(np.float32)}


def draw_factors(ratings: int) -> tuple[np.ndarray, np.ndarray]:
    """Factors of users and of items, the last of each its bias."""
    rng = np.random.default_rng(0)
    n, d = sizes(ratings)
    U, Z = (rng.standard_normal((m, RANK + 1), dtype=np.float32) for m in (n, d))
    U *= np.float32(RANK**-0.25)
    Z *= np.float32(0.6 * RANK**-0.25)
    U[:, -1] *= np.float32(0.4 * RANK**0.25)
    return U, Z


def draw_ratings(ratings: int) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Ratings in memory, and others to be predicted."""
    U, Z = draw_factors(ratings)
    cells, held = (draw(ratings, count, seed, U, Z) for count, seed in ((ratings, 0), (ratings // 10, 10**6)))
    return tuple(cells.values()), tuple(held.values())


def write_ratings(folder: Path, ratings: int) -> None:
    """The ratings in files of a million, and others to be predicted."""
    U, Z = draw_factors(ratings)
    (folder / "ratings").mkdir()
    for p in range(-(-ratings // PIECE)):
        cells = draw(ratings, min(PIECE, ratings - p * PIECE), p, U, Z)
        pl.DataFrame(cells).write_parquet(folder / "ratings" / f"{p:04}.parquet")
    np.savez(folder / "held.npz", **draw(ratings, min(100_000, ratings // 10), 10**6, U, Z))


def predict_biases(parts: Any, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """Predict by damped means of items, then of users, in two passes over the shards."""
    from twofold.completion.partitioned._layout import read_cells

    n, d = parts.shape
    total = np.zeros(d)
    counts = np.zeros(d)
    for u in range(len(parts.rows.units)):
        X = read_cells(parts.folder, parts.rows, u, d)
        total += np.bincount(X.indices, X.data, minlength=d)
        counts += np.bincount(X.indices, minlength=d)
    mean = total.sum() / counts.sum()
    of_item = (total - mean * counts) / (counts + 5)
    of_user = np.zeros(n)
    for u, unit in enumerate(parts.rows.units):
        X = read_cells(parts.folder, parts.rows, u, d)
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        left = X.data - mean - of_item[X.indices]
        of_user[unit.first : unit.last] = np.bincount(row, left, minlength=X.shape[0]) / (np.diff(X.indptr) + 10)
    return mean + of_user[rows] + of_item[cols]


def least_bytes(parts: Any, p: int, item: int, workers: int = WORKERS) -> float:
    """Return the least bytes that a sweep must move: the rows that each worker needs, less those that it has."""
    from twofold.completion.partitioned._layout import read_needs

    total = 0.0
    for side, other in ((parts.rows, parts.cols), (parts.cols, parts.rows)):
        for some in np.array_split(np.arange(len(side.units)), workers):
            need = np.zeros(int(other.bounds[-1]), bool)
            for u in some:
                need[read_needs(parts.folder, side.name, int(u))] = True
            total += float(need.sum()) * (1 - 1 / workers) * p * item
    return total


def count_bytes(dask_worker: Any) -> int:
    return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)


class Traffic:
    """A callback that notes how much has been moved by the end of each sweep."""

    def __init__(self, client: Any):
        self.client, self.after = client, list[int]()

    def setup(self, estimator: Any, context: Any) -> None: ...

    def teardown(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        if context.parent is not None:
            self.after.append(self.count())

    def count(self) -> int:
        """Bytes that workers have got from each other until now."""
        return sum(self.client.run(count_bytes).values())


def open_parts(folder: Path) -> Any:
    """The partition, which is made if it is not there."""
    from twofold import PartitionedRatings

    there = (folder / "parts" / "ratings.json").exists()
    return PartitionedRatings(None if there else folder / "ratings", folder / "parts")


def child(arguments: str) -> None:
    """Partition, fit, and print time and memory."""
    import warnings

    from distributed import Client, LocalCluster

    from twofold import ALS

    warnings.simplefilter("ignore")
    folder, report = Path(arguments), {}
    options = {"n_workers": WORKERS, "threads_per_worker": 1, "memory_limit": f"{LIMIT}MB", "dashboard_address": ":0"}
    with LocalCluster(processes=True, **options) as cluster, Client(cluster) as client:
        began = time.perf_counter()
        parts = open_parts(folder)
        report["partition"] = time.perf_counter() - began
        report["partition_mb"] = sorted(client.run(_peak).values())
        traffic = Traffic(client)
        began = time.perf_counter()
        model = ALS(K, reg=REG, max_iter=SWEEPS, tol=0, random_state=0).set_callbacks(traffic).fit(parts)
        report["seconds"] = time.perf_counter() - began
        report["sweep"] = float(np.median(np.diff(model.history_["seconds"], prepend=0.0)))
        report["moved"] = float(np.median(np.diff(traffic.after)))
        report["workers_mb"] = sorted(client.run(_peak).values())
    report["client_mb"] = _peak()
    held = np.load(folder / "held.npz")
    at = [np.searchsorted(ids, held[name]) for ids, name in ((parts.users, "user"), (parts.items, "item"))]
    known = (parts.users[np.minimum(at[0], len(parts.users) - 1)] == held["user"]) & (
        parts.items[np.minimum(at[1], len(parts.items) - 1)] == held["item"]
    )
    rows, cols, x = at[0][known], at[1][known], held["rating"][known]
    report["rmse"] = float(np.sqrt(np.mean((model.predict(rows, cols) - x) ** 2)))
    report["biases"] = float(np.sqrt(np.mean((predict_biases(parts, rows, cols) - x) ** 2)))
    report["least"] = least_bytes(parts, K + 1, parts.dtype.itemsize)
    report["shape"], report["cells"], report["held"] = parts.shape, parts.n_ratings, int(known.sum())
    report["shards"] = [len(parts.rows.units), len(parts.cols.units)]
    print(json.dumps(report))


def in_a_process(folder: Path) -> Timed:
    command = [sys.executable, "-m", "bench.scale_als", str(folder)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parent.parent, timeout=MAX_SECONDS, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    report = json.loads(done.stdout.splitlines()[-1])
    return Timed(report["seconds"], report)


def fit_folder(quick: bool) -> Event:
    ratings = int(float(os.environ.get("BENCH_RATINGS", 1e6 if quick else RATINGS)))
    made = tempfile.TemporaryDirectory(prefix="twofold-bench-")
    folder = Path(made.name)
    write_ratings(folder, ratings)

    def quality(report: dict) -> dict[str, float]:
        return {
            "RMSE": report["rmse"],
            "of biases": report["biases"],
            "s a sweep": report["sweep"],
            "s to partition": report["partition"],
            "largest worker MB": report["workers_mb"][-1],
            "client MB": report["client_mb"],
            "MB moved a sweep": report["moved"] / 1e6,
            "at least": report["least"] / 1e6,
        }

    def within(rows: list[Row]) -> bool:
        own = [row.quality for row in rows if row.ours]
        return all(q["largest worker MB"] <= LIMIT and q["client MB"] <= CLIENT for q in own)

    n, d = sizes(ratings)
    name = f"twofold, {WORKERS} workers"
    return Event(
        "scale_als",
        f"ALS of {ratings:,} ratings in files ({n:,} x {d:,}), k = {K}, {SWEEPS} sweeps, in {WORKERS} x {LIMIT} MB",
        [Contestant(name, lambda: in_a_process(folder), ours=True, warm=lambda: None)],
        quality=quality,
        as_good=lambda a, b: a["RMSE"] <= b["RMSE"],
        bar=Bar(f"no worker over {LIMIT} MB, and the client below {CLIENT} MB", test=within),
        repeats=1,
        close=made.cleanup,
        notes=[
            "The RMSE is that of ratings drawn afresh; beside it, that of damped means of items and users.",
            "At least: factor rows that the cells of a worker need and another one has, if each has a run of shards.",
        ],
    )


EVENTS = (fit_folder,)

if __name__ == "__main__":
    child(*sys.argv[1:])
