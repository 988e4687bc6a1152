"""KMeans, PCA, ALS and LDA beside Spark MLlib and Dask-ML, on two workers each: seconds and quality.

A peer runs in an interpreter of its own, which BENCH_SPARK_PYTHON and BENCH_DASKML_PYTHON name (default: the one that
runs this). Everyone has the data in memory before the clock starts and fits it twice; the second fit counts.
BENCH_PEERS names the events to run, separated by commas.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

from bench.clusters_kmeans import inertia, proteins
from bench.completion_als import anime
from bench.harness import Bar, Contestant, Event, Missing, Row, Timed
from bench.peers import time_twice
from bench.scale_als import draw_ratings
from bench.topics_lda import ALPHA, BETA, newsgroups
from twofold import datasets
from twofold.core.checks import InputError
from twofold.core.data.csr_folder import write_csr

WORKERS = 2
MAX_SECONDS = 200.0  # seconds until a contestant is stopped
PYTHONS = {"spark": "BENCH_SPARK_PYTHON", "dask-ml": "BENCH_DASKML_PYTHON"}
PACKAGES = {"spark": "pyspark", "dask-ml": "dask_ml"}
NAMES = {"spark": "Spark MLlib", "dask-ml": "Dask-ML"}

# ---- ours, in a process of its own -------------------------------------------------------------------------------


def fit_here(job: str, folder: str, asked: dict[str, Any]) -> dict[str, np.ndarray]:
    """One fit of ours: on what the folder holds, wherever the client in force computes."""
    import twofold

    k, sweeps = asked["k"], asked["sweeps"]
    if job == "kmeans":
        model = twofold.KMeans(k, n_init=1, max_iter=sweeps, tol=0, random_state=0).fit(asked["X"])
        return {"centers": model.cluster_centers_}
    if job == "pca":
        return {"axes": twofold.PCA(k, random_state=0).fit(asked["X"]).components_}
    if job == "als":
        model = twofold.ALS(k, reg=asked["reg"], max_iter=sweeps, tol=0, random_state=0).fit(asked["X"])
        held = np.load(f"{folder}/held.npz")
        rows, cols = held["user"], held["item"]
        if hasattr(asked["X"], "users"):  # whose rows are those that have ratings
            rows, cols = np.searchsorted(asked["X"].users, rows), np.searchsorted(asked["X"].items, cols)
        return {"at": np.arange(len(rows)), "prediction": model.predict(rows, cols)}
    model = twofold.LatentDirichletAllocation(
        k, doc_topic_prior=ALPHA, topic_word_prior=BETA, tol=0, max_iter=sweeps, random_state=0
    )
    return {"topics": model.fit(asked["X"]).components_}


def open_here(job: str, folder: str, where: str) -> Any:
    """The data in memory: of this process, or of the workers; partitioned ratings are on disk."""
    if job == "als":
        from twofold import PartitionedRatings

        if where == "dask":
            return PartitionedRatings(f"{folder}/table", f"{folder}/parts{os.getpid()}")
        found = pl.read_parquet(f"{folder}/table")
        i, j, x = (found[name].to_numpy() for name in ("user", "item", "rating"))
        return sparse.csr_array((x, (i, j)))
    if job == "lda":
        return f"{folder}/X.csr" if where == "dask" else sparse.load_npz(f"{folder}/X.npz")
    if where == "threads":
        return np.load(f"{folder}/X.npy")
    import dask.array as da
    from distributed import wait

    X = np.load(f"{folder}/X.npy", mmap_mode="r")
    X = da.from_array(X, chunks=(-(-len(X) // (2 * WORKERS)), X.shape[1])).persist()
    wait(X)
    return X


def child(where: str, job: str, folder: str, options: str) -> None:
    """Read, fit twice, and say what it took."""
    warnings.simplefilter("ignore")
    asked = json.loads(options)
    if where == "dask":
        from distributed import Client, LocalCluster

        with (
            LocalCluster(
                n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
            ) as cluster,
            Client(cluster),
        ):
            report = measure_here(where, job, folder, asked)
    else:
        report = measure_here(where, job, folder, asked)
    print(json.dumps(report))


def measure_here(where: str, job: str, folder: str, asked: dict[str, Any]) -> dict[str, float]:
    import twofold

    with twofold.config(threads=WORKERS):
        began = time.perf_counter()
        asked["X"] = open_here(job, folder, where)
        reading = time.perf_counter() - began
        found, seconds = time_twice(lambda: fit_here(job, folder, asked))
    np.savez(f"{folder}/found.npz", **found)
    return {"reading": reading, **seconds}


# ---- everyone ----------------------------------------------------------------------------------------------------


def run_process(command: list[str], folder: Path) -> Timed:
    """The report of a process, and what it found."""
    here = Path(__file__).parent.parent
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=here, timeout=MAX_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"stopped after {MAX_SECONDS:g} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise RuntimeError(
            next((line for line in reversed(lines) if "Error" in line or "Exception" in line), lines[-1])
        )
    report = json.loads(done.stdout.splitlines()[-1])
    with np.load(folder / "found.npz") as found:
        report["found"] = dict(found)
    return Timed(report["seconds"], report)


def our_entries(job: str, folder: Path, asked: dict[str, Any]) -> list[Contestant | Missing]:
    def entry(where: str, name: str, **more: Any) -> Contestant:
        command = [sys.executable, "-m", "bench.scale_peers", where, job, str(folder), json.dumps(asked)]
        return Contestant(name, lambda: run_process(command, folder), ours=True, warm=lambda: None, **more)

    return [
        entry("threads", f"twofold, {WORKERS} threads"),
        entry("dask", f"twofold, {WORKERS} Dask workers", counts=False),
    ]


def peer_entry(peer: str, job: str, folder: Path, asked: dict[str, Any], note: str = "") -> Contestant | Missing:
    """A peer, if its interpreter can import it."""
    python, name = os.environ.get(PYTHONS[peer], sys.executable), NAMES[peer]
    name += f", {note}" if note else ""
    if (
        not Path(python).exists()
        or subprocess.run([python, "-c", f"import {PACKAGES[peer]}"], capture_output=True).returncode
    ):
        return Missing(name, f"{PACKAGES[peer]} cannot be imported; {PYTHONS[peer]} names an interpreter that can")
    options = json.dumps(asked | {"workers": WORKERS})
    command = [python, str(Path(__file__).with_name("peers.py")), peer, job, str(folder), options]
    return Contestant(name, lambda: run_process(command, folder), warm=lambda: None)


def write_table(folder: Path, X: np.ndarray) -> None:
    """Rows as `.npy`, and as Parquet with an array a row, in eight files."""
    np.save(folder / "X.npy", X)
    (folder / "table").mkdir()
    for p, rows in enumerate(np.array_split(X, 4 * WORKERS)):
        column = pl.Series("x", rows, dtype=pl.Array(pl.Float32, X.shape[1])).cast(pl.List(pl.Float32))
        pl.DataFrame({"x": column}).write_parquet(folder / "table" / f"{p}.parquet")


def make_event(
    name: str,
    title: str,
    job: str,
    folder: tempfile.TemporaryDirectory[str],
    entries: list[Contestant | Missing],
    asked: dict[str, Any],
    quality: Callable[[dict[str, np.ndarray]], dict[str, float]],
    as_good: Callable[[dict[str, float], dict[str, float]], bool],
    notes: list[str],
) -> Event | Missing:
    def figures(report: dict[str, Any]) -> dict[str, float]:
        return quality(report["found"]) | {"first s": report["first"], "s to read": report["reading"]}

    def faster(rows: list[Row]) -> bool:
        ours = min((row for row in rows if row.ours), key=lambda row: row.median)
        peers = [row for row in rows if not row.ours and row.seconds]
        good = all(as_good(ours.quality, row.quality) for row in peers)
        return bool(peers) and good and all(row.median >= ours.median for row in peers if row.equal)

    return Event(
        f"scale_peers {name}",
        title,
        our_entries(job, Path(folder.name), asked) + entries,
        quality=figures,
        as_good=as_good,
        bar=Bar("at least as fast as each peer, at no worse quality", test=faster),
        repeats=1,
        close=folder.cleanup,
        notes=[
            "The second of two fits in one process; first s is the first, with all that is loaded or compiled then. "
            "Reading is apart, and so is the start of workers and of Java.",
            *notes,
        ],
    )


def new_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="twofold-bench-")


# ---- events ------------------------------------------------------------------------------------------------------


def kmeans_event(name: str, data_title: str, X: np.ndarray, k: int, sweeps: int) -> Event:
    folder, asked = new_folder(), {"k": k, "sweeps": sweeps}
    place = Path(folder.name)
    write_table(place, X)
    peers = [peer_entry(peer, "kmeans", place, asked) for peer in ("spark", "dask-ml")]
    return make_event(
        name, f"k-means of {data_title}, {len(X):,} x {X.shape[1]}, float32, k = {k}, {sweeps} sweeps", "kmeans",
        folder, peers, asked, lambda result: {"inertia": inertia(X, result["centers"])},
        lambda a, b: a["inertia"] <= 1.02 * b["inertia"],
        ["Everyone draws its own start (k-means++ here, k-means|| there), in the time; hence the room of 2 %."],
    )  # fmt: skip


def explain_variance(X: np.ndarray, axes: np.ndarray) -> float:
    """The share of the variance that lies in the span of the axes."""
    mean = X.mean(axis=0, dtype=np.float64)
    Q = np.linalg.qr(axes.T.astype(np.float64))[0]
    inside = total = 0.0
    for start in range(0, len(X), 50_000):
        part = X[start : start + 50_000] - mean
        inside, total = inside + float(((part @ Q) ** 2).sum()), total + float((part**2).sum())
    return inside / total


def pca_event(name: str, data_title: str, X: np.ndarray, k: int) -> Event:
    folder, asked = new_folder(), {"k": k, "sweeps": 0, "solver": "tsqr"}
    place = Path(folder.name)
    write_table(place, X)
    peers = [
        peer_entry("spark", "pca", place, asked),
        peer_entry("dask-ml", "pca", place, asked, "tsqr"),
        peer_entry("dask-ml", "pca", place, asked | {"solver": "randomized"}, "randomized"),
    ]
    return make_event(
        name, f"PCA of {data_title}, {len(X):,} x {X.shape[1]}, float32, k = {k}", "pca", folder, peers, asked,
        lambda result: {"explained": explain_variance(X, result["axes"])},
        lambda a, b: a["explained"] >= b["explained"] - 1e-3, [],
    )  # fmt: skip


def blobs(quick: bool) -> np.ndarray:
    rng, n = np.random.default_rng(0), 100_000 if quick else 3_000_000
    centers = 2 * rng.standard_normal((64, 32), dtype=np.float32)
    X = rng.standard_normal((n, 32), dtype=np.float32)
    for start in range(0, n, 65536):
        X[start : start + 65536] += centers[rng.integers(0, 64, len(X[start : start + 65536]))]
    return X


def kmeans_proteins(quick: bool) -> Event | Missing:
    X = proteins("scale_peers kmeans-proteins")
    return X if isinstance(X, Missing) else kmeans_event("kmeans-proteins", "kdd_bio", X[:: 10 if quick else 1], 50, 20)


def kmeans_blobs(quick: bool) -> Event | Missing:
    return kmeans_event("kmeans-blobs", "64 blobs", blobs(quick), 64, 10)


def pca_digits(quick: bool) -> Event | Missing:
    try:
        X = datasets.fetch("mnist").train.images[:: 10 if quick else 1]
    except InputError as why:
        return Missing("scale_peers pca-digits", str(why))
    return pca_event("pca-digits", "handwritten digits", X.reshape(len(X), -1).astype(np.float32), 30)


def pca_blobs(quick: bool) -> Event | Missing:
    return pca_event("pca-blobs", "64 blobs", blobs(quick), 10)


def als_event(name: str, data_title: str, cells: tuple[Any, ...], held: tuple[Any, ...], k: int) -> Event:
    folder, asked = new_folder(), {"k": k, "sweeps": 10, "reg": 0.05}
    place = Path(folder.name)
    (place / "table").mkdir()
    for p, at in enumerate(np.array_split(np.arange(len(cells[0])), 4 * WORKERS)):
        i, j, x = (a[at] for a in cells)
        frame = {"user": i.astype(np.int32), "item": j.astype(np.int32), "rating": x.astype(np.float32)}
        pl.DataFrame(frame).write_parquet(place / "table" / f"{p}.parquet")
    seen = [np.isin(held[side], cells[side]) for side in (0, 1)]
    i, j, truth = (a[seen[0] & seen[1]] for a in held)
    np.savez(place / "held.npz", user=i, item=j, rating=truth)
    frame = {"user": i.astype(np.int32), "item": j.astype(np.int32), "at": np.arange(len(i))}
    pl.DataFrame(frame).write_parquet(place / "held.parquet")
    low, high = float(cells[2].min()), float(cells[2].max())

    def rmse(result: dict[str, np.ndarray]) -> dict[str, float]:
        off = np.clip(result["prediction"], low, high) - truth[result["at"]]
        return {"RMSE": float(np.sqrt(np.mean(off.astype(np.float64) ** 2)))}

    return make_event(
        name, f"ALS of {len(cells[0]):,} ratings ({data_title}), k = {k}, 10 sweeps", "als",
        folder, [peer_entry("spark", "als", place, asked)], asked, rmse,
        lambda a, b: a["RMSE"] <= 1.002 * b["RMSE"],
        ["Penalties are scaled by counts in both; ours also has biases. Ours with Dask reads partitioned ratings."],
    )  # fmt: skip


def als_anime(quick: bool) -> Event | Missing:
    found = anime("scale_peers als-anime")
    if isinstance(found, Missing):
        return found
    i, j, x, held = found
    few = slice(None, None, 10 if quick else 1)
    cells, asked = ((i[~held][few], j[~held][few], x[~held][few]), (i[held], j[held], x[held]))
    return als_event("als-anime", "anime", cells, asked, 16)


def als_drawn(quick: bool) -> Event | Missing:
    cells, held = draw_ratings(10**5 if quick else 10**7)
    return als_event("als-drawn", "drawn from a model", cells, held, 16)


def lda_newsgroups(quick: bool) -> Event | Missing:
    found = newsgroups(quick)
    if isinstance(found, Missing):
        return Missing("scale_peers lda-newsgroups", found.reason)
    from twofold.topics.evaluation import perplexity

    (X, test), k, folder = found, 50, new_folder()
    place, ones = Path(folder.name), {"alpha": ALPHA, "beta": BETA, "columns": X.shape[1]}
    sparse.save_npz(place / "X.npz", X)
    write_csr(place / "X.csr", [X])
    (place / "table").mkdir()
    for p, at in enumerate(np.array_split(np.arange(X.shape[0]), 4 * WORKERS)):
        rows = [slice(X.indptr[r], X.indptr[r + 1]) for r in at]
        frame = {"indices": [X.indices[r].tolist() for r in rows], "values": [X.data[r].tolist() for r in rows]}
        pl.DataFrame(frame).write_parquet(place / "table" / f"{p}.parquet")
    few = 4 if quick else 8
    peers = [
        peer_entry("spark", "lda", place, ones | {"k": k, "sweeps": few, "method": "em"}, f"EM, {few} sweeps"),
        peer_entry(
            "spark", "lda", place, ones | {"k": k, "sweeps": 20 * few // 4, "method": "online", "rate": 0.05},
            f"online, {few // 4} epochs",
        ),
    ]  # fmt: skip
    return make_event(
        "lda-newsgroups",
        f"LDA of 20 Newsgroups, {X.shape[0]:,} documents, {X.shape[1]:,} words, {X.sum():,.0f} tokens, k = {k}", "lda",
        folder, peers, {"k": k, "sweeps": 30},
        lambda result: {"perplexity": perplexity(result["topics"], test, alpha=ALPHA)},
        lambda a, b: a["perplexity"] <= 1.005 * b["perplexity"],
        [
            f"α = {ALPHA}, β = {BETA}, held-out perplexity by document completion on the test half, by one evaluator.",
            f"Spark makes {few} sweeps by EM, or {few // 4} epochs online, so that the event ends in minutes.",
        ],
    )  # fmt: skip


ALL = (kmeans_proteins, kmeans_blobs, pca_digits, pca_blobs, als_anime, als_drawn, lda_newsgroups)
EVENTS = tuple(e for e in ALL if e.__name__ in os.environ.get("BENCH_PEERS", e.__name__).split(","))

if __name__ == "__main__":
    child(*sys.argv[1:])
