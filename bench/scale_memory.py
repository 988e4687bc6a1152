"""The peak memory of streaming fits within config(memory=): dense .npy, Parquet and a folder of CSR, three budgets.

Each fit runs in a process of its own, `python -m bench.scale_memory MODEL FILE BUDGET`, which prints one line of JSON;
those of every family, on data four times the budget, are `python -m bench.scale_memory FAMILY FILE BUDGET SMALL_FILE`.
BENCH_MEMORY_GB sets the size of the .npy file of the second event: SPEC asks for 20 GB within 1 GB. BENCH_FAMILIES
names the families of the third, separated by semicolons, by how their names begin.
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
from functools import partial
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
MAX_SECONDS = 400.0
SHAPES = {"narrow": 20, "wide": 5_000}  # columns of dense tables that every dense model is tried on


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


def dense_fits() -> dict[str, Callable[[Any], Any]]:
    """Models of dense tables, two sweeps each."""
    import twofold
    from twofold import factors
    from twofold.clusters import coreset

    two = {"max_iter": 2, "tol": 0, "random_state": 0}
    return {
        "PCA": lambda X: twofold.PCA(8, svd_solver="randomized", max_iter=2, random_state=0).fit(X),
        "PPCA": lambda X: twofold.PPCA(8, solver="em", **two).fit(X),
        "FactorAnalysis": lambda X: twofold.FactorAnalysis(8, **two).fit(X),
        "NMF": lambda X: twofold.NMF(8, init="random", **two).fit(X),
        "KMeans": lambda X: twofold.KMeans(16, n_init=1, **two).fit(X),
        "GaussianMixture": lambda X: twofold.GaussianMixture(4, covariance_type="diag", **two).fit(X),
        "coreset": lambda X: coreset(X, 2_000, random_state=0),
        "OnlineDictionary": lambda X: twofold.OnlineDictionary(16, n_nonzero=2, max_iter=1, random_state=0).fit(X),
        "Factorization": lambda X: twofold.Factorization(
            8, left=factors.NonNegative(), right=factors.NonNegative(), **two
        ).fit(X),
    }


def sparse_families() -> list[Any]:
    """Those of counts, ratings and texts: the ones whose slopes are measured, and more."""
    import twofold
    from bench.scale_slopes import Family, families, partition, write_text

    two = {"max_iter": 2, "tol": 0, "random_state": 0}
    return [f for f in families() if f.write.__name__ != "write_dense"] + [
        Family("ImplicitALS, 2 sweeps", 0, partition, lambda X: twofold.ImplicitALS(16, **two).fit(X)),
        Family("EASE, 1,000 items", 0, partition, lambda X: twofold.EASE(reg=100.0, max_items=1_000).fit(X)),
        Family("SkipGram, 1 epoch", 0, write_text, lambda X: twofold.SkipGram(16, max_iter=1, random_state=0).fit(X)),
        Family("GloVe, 2 sweeps", 0, write_text, lambda X: twofold.GloVe(16, **two).fit(X)),
    ]


def family_fits() -> dict[str, Callable[[Any], Any]]:
    """Every family that streams, by the name it has in this event."""
    return {f"{model}, {shape}": fit for shape in SHAPES for model, fit in dense_fits().items()} | {
        f.name: f.fit for f in sparse_families()
    }


def child(model: str, path: str, budget: str, warm_up: str | None = None) -> None:
    """Warm up on something small, fit the file within the budget, and say what it took."""
    import twofold

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    if warm_up is not None:
        run, small = family_fits()[model], Path(warm_up)
    else:
        run, dense = partial(fit, model), model in ("PCA", "KMeans")
        small = rng.random((2000, D)) if dense else sparse.random_array((2000, WORDS), density=0.01, rng=rng).tocsr()
        small = small.astype(np.float32)
    run(_open(small))
    if path.endswith(".parquet"):
        pl.scan_parquet(path).head(1).collect()
    before = _peak()
    began = time.perf_counter()
    with twofold.config(memory=budget):
        run(_open(path))
    print(json.dumps({"seconds": time.perf_counter() - began, "before": before, "peak": _peak()}))


def _open(data: Any) -> Any:
    """Partitioned ratings where that is what a folder holds."""
    from twofold import PartitionedRatings

    if isinstance(data, (str, Path)) and (Path(data) / "ratings.json").exists():
        return PartitionedRatings(folder=data)
    return data


def in_a_process(model: str, path: Path, budget: str, *warm_up: str) -> Timed:
    if path.is_file():
        forget(path)
    command = [sys.executable, "-m", "bench.scale_memory", model, str(path), budget, *warm_up]
    here = Path(__file__).parent.parent
    done = subprocess.run(command, capture_output=True, text=True, cwd=here, timeout=MAX_SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    report = json.loads(done.stdout.splitlines()[-1]) | {"budget": budget, "path": path}
    return Timed(report["seconds"], report)


def write_rows(path: Path, rows: int, d: int = D, positive: bool = False) -> None:
    """Rows in float32: normal numbers of some rows, turned by a column each time they come again."""
    some = np.random.default_rng(0).standard_normal((min(rows, 64_000_000 // d), d), dtype=np.float32)
    if positive:
        np.abs(some, out=some)
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, d)})
        for turn, start in enumerate(range(0, rows, len(some))):
            np.ascontiguousarray(np.roll(some[: rows - start], turn, axis=1)).tofile(file)
        file.flush()
        os.fsync(file.fileno())


def quality(report: dict[str, Any]) -> dict[str, float]:
    from twofold.core.config import parse_bytes

    path = report["path"]
    size = sum(p.stat().st_size for p in path.rglob("*")) if path.is_dir() else path.stat().st_size
    return {
        "file MB": size / 1e6,
        "budget MB": parse_bytes(report["budget"]) / 1e6,
        "more at peak MB": report["peak"] - report["before"],
        "before MB": report["before"],
        "peak MB": report["peak"],
    }


def within(rows: list[Row], room: float = 1.0) -> bool:
    return all(row.quality["more at peak MB"] <= room * row.quality["budget MB"] for row in rows)


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
        bar=Bar("memory at the peak within the budget", test=within),
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


def _is_wanted(family: str) -> bool:
    return family.startswith(tuple(os.environ.get("BENCH_FAMILIES", "").split(";")))


def every_family(quick: bool) -> Event:
    """Data of four times the budget for each family."""
    budget = 16 if quick else 64  # MB
    made = tempfile.TemporaryDirectory(prefix="twofold-bench-")
    folder, jobs = Path(made.name), list[tuple[str, Path, Path]]()
    for shape, d in SHAPES.items():
        paths = [folder / f"{name}_{shape}.npy" for name in ("large", "small")]
        for path, rows in zip(paths, (budget * 1_000_000 // d, 2_000), strict=True):
            write_rows(path, rows, d, positive=True)
        jobs += [(f"{model}, {shape}", *paths) for model in dense_fits() if _is_wanted(f"{model}, {shape}")]
    bytes_of = {"write_counts": 600, "partition": 24, "write_ratings": 24, "write_text": 600}  # a row
    for family in sparse_families():
        if _is_wanted(family.name):
            n = 4_000_000 * budget // bytes_of[family.write.__name__]
            large, small = (family.write(folder, rows) for rows in (n, 2_000))
            jobs.append((family.name, *(Path(getattr(data, "folder", data)) for data in (large, small))))

    def run(model: str, path: Path, small: Path) -> Timed:
        return in_a_process(model, path, f"{budget}MB", str(small))

    return Event(
        "scale_memory families",
        f"peak memory of every streaming family on data of four times memory='{budget}MB'",
        [Contestant(job[0], partial(run, *job), ours=True, warm=lambda: None) for job in jobs],
        quality=quality,
        as_good=lambda a, b: True,
        bar=Bar("at most a tenth more memory at the peak than the budget", test=partial(within, room=1.1)),
        repeats=1,
        close=made.cleanup,
        notes=[NOTE, f"narrow: {SHAPES['narrow']} columns; wide: {SHAPES['wide']:,}."],
    )


EVENTS = (budgets, every_family, one_file)

if __name__ == "__main__":
    child(*sys.argv[1:])
