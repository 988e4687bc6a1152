"""Time against the number of rows, over two decades, of every family that streams: the slope is 1 if time is linear.

Data is written to disk, and every fit reads it from there (from the system's cache, once it has been read). A fit makes
the same number of sweeps whatever the size, from a start that is given or drawn, and was warmed up on the smallest.
BENCH_SLOPES names the families to run, separated by commas; BENCH_DATA a folder in which their data stays.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse

from bench.harness import Bar, Contestant, Event, Row, Timed

STEPS = 10.0 ** np.array([0, 0.5, 1, 1.5, 2])
MIN_SECONDS, ROUNDS = 0.3, 3  # seconds that the fits of one size take together at least, and their number at most
ROOM = 0.1  # what the slope may be off
D, K = 64, 16  # columns and components of dense tables
WORDS, LENGTH, TOPICS = 5_000, 80, 20  # of sparse ones: columns, draws in a row, components
PIECE = 20_000


class Family(NamedTuple):
    """One that streams: how its data is written, and how it is fitted."""

    name: str
    rows: int  # of the smallest
    write: Callable[[Path, int], Any]
    fit: Callable[[Any], Any]
    unit: str = "rows"


# ---- data --------------------------------------------------------------------------------------------------------


def write_dense(folder: Path, n: int) -> Path:
    """Rows around centers, in float32."""
    path, rng = folder / f"dense{n}.npy", np.random.default_rng(n)
    if path.exists():
        return path
    centers = rng.standard_normal((K, D), dtype=np.float32)
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (n, D)})
        for start in range(0, n, PIECE):
            m = min(PIECE, n - start)
            (centers[rng.integers(0, K, m)] + rng.standard_normal((m, D), dtype=np.float32)).tofile(file)
    return path


def draw_words(rng: np.random.Generator, count: int) -> np.ndarray:
    """Draw numbers of words whose frequencies fall as in a language, for at most PIECE documents at a time."""
    topic = rng.integers(0, TOPICS, (count, 1))
    ranks = np.exp(rng.random((count, LENGTH)) * np.log(WORDS)).astype(np.int64) - 1
    return (ranks * np.where(rng.random((count, LENGTH)) < 0.5, 1, 1 + 2 * topic)) % WORDS


def count_words(n: int) -> Iterator[sparse.csr_array]:
    for start in range(0, n, PIECE):
        m = min(PIECE, n - start)
        words = draw_words(np.random.default_rng([n, start]), m)
        rows = np.repeat(np.arange(m), LENGTH)
        yield sparse.coo_array((np.ones(words.size, np.float32), (rows, words.ravel())), shape=(m, WORDS)).tocsr()


def write_counts(folder: Path, n: int) -> Path:
    from twofold.core.data.csr_folder import write_csr

    path = folder / f"counts{n}.csr"
    if not path.exists():
        write_csr(path, count_words(n))
    return path


def write_text(folder: Path, n: int) -> Path:
    """As many documents, a line each."""
    path, names = folder / f"text{n}.txt", np.array([f"w{to_letters(i)}" for i in range(WORDS)])
    if not path.exists():
        with open(path, "w") as file:
            for start in range(0, n, PIECE):
                words = draw_words(np.random.default_rng([n, start]), min(PIECE, n - start))
                file.writelines(" ".join(line) + "\n" for line in names[words])
    return path


def to_letters(i: int) -> str:
    return "".join("abcdefghij"[int(digit)] for digit in str(i))


def write_ratings(folder: Path, n: int) -> Path:
    """Users with a hundred ratings each on average, of 5,000 items whatever the number of users."""
    rng, path = np.random.default_rng(n), folder / f"ratings{n}"
    if path.exists():
        return path
    path.mkdir()
    users, items = max(1, n // 100), 5_000
    for p, start in enumerate(range(0, n, 1_000_000)):
        m = min(1_000_000, n - start)
        i, j = (users * rng.random(m) ** 1.5).astype(np.int64), (items * rng.random(m) ** 2).astype(np.int64)
        x = np.clip(np.round(2 * (3.5 + rng.standard_normal(m))) / 2, 0.5, 5).astype(np.float32)
        pl.DataFrame({"user": i, "item": j, "rating": x}).write_parquet(path / f"{p:04}.parquet")
    return path


def partition(folder: Path, n: int) -> Any:
    from twofold import PartitionedRatings

    made = folder / f"parts{n}"
    return PartitionedRatings(None if made.exists() else write_ratings(folder, n), made)


# ---- fits --------------------------------------------------------------------------------------------------------


def start(k: int, d: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((k, d)).astype(np.float32)


def write_partition(ratings: Path) -> Any:
    from twofold import PartitionedRatings

    with tempfile.TemporaryDirectory(prefix="twofold-bench-") as to:
        return PartitionedRatings(ratings, Path(to) / "parts").shape


def count_pairs(text: Path) -> Any:
    from twofold import Cooccurrence

    with tempfile.TemporaryDirectory(prefix="twofold-bench-") as to:
        return Cooccurrence(window=5, min_count=1).fit(text, to=Path(to) / "pairs.csr").counts_


def count_texts(text: Path) -> Any:
    from twofold import BagOfWords

    with tempfile.TemporaryDirectory(prefix="twofold-bench-") as to:
        return BagOfWords(stop_words=None).fit_transform(text, to=Path(to) / "counts.csr")


def families() -> list[Family]:
    import twofold
    from twofold.clusters import coreset

    def lda(method: str, **more: Any) -> Callable[[Any], Any]:
        options = {"doc_topic_prior": 0.1, "learning_method": method, "tol": 0, "random_state": 0, **more}
        return lambda X: twofold.LatentDirichletAllocation(TOPICS, **options).fit(X)

    def fit_mixture(X: Any) -> Any:
        given = {"weights_init": np.full(K, 1 / K), "means_init": start(K, D), "precisions_init": [np.eye(D)] * K}
        return twofold.GaussianMixture(K, max_iter=2, tol=0, random_state=0, **given).fit(X)

    def fit_kmeans(X: Any) -> Any:
        return twofold.KMeans(4 * K, init=start(4 * K, D), n_init=1, max_iter=10, tol=0).fit(X)

    def fit_dictionary(X: Any) -> Any:
        model = twofold.OnlineDictionary(2 * D, n_nonzero=4, init=start(2 * D, D), max_iter=1, tol=0, random_state=0)
        return model.fit(X)

    def fit_als(parts: Any) -> Any:
        return twofold.ALS(K, reg=0.05, max_iter=3, tol=0, random_state=0).fit(parts)

    def fit_nmf(X: Any) -> Any:
        return twofold.NMF(TOPICS, init="random", max_iter=5, tol=0, random_state=0).fit(X)

    def fit_plsa(X: Any) -> Any:
        return twofold.PLSA(TOPICS, init="random", max_iter=1, tol=0, random_state=0).fit(X)

    return [
        Family("PCA", 200_000, write_dense, lambda X: twofold.PCA(K, random_state=0).fit(X)),
        Family("KMeans, 10 sweeps", 50_000, write_dense, fit_kmeans),
        Family("GaussianMixture, 2 sweeps", 20_000, write_dense, fit_mixture),
        Family("coreset", 200_000, write_dense, lambda X: coreset(X, 10_000, random_state=0)),
        Family("OnlineDictionary, 1 epoch", 20_000, write_dense, fit_dictionary),
        Family("LSA", 5_000, write_counts, lambda X: twofold.LSA(TOPICS, random_state=0).fit(X)),
        Family("NMF, 5 sweeps", 30_000, write_counts, fit_nmf),
        Family("PLSA, 1 sweep", 30_000, write_counts, fit_plsa),
        Family("LDA scvb0, 3 sweeps", 5_000, write_counts, lda("scvb0", max_iter=3)),
        Family("LDA online, 1 epoch", 2_000, write_counts, lda("online", max_iter=1)),
        Family("ALS, 3 sweeps", 300_000, partition, fit_als, "ratings"),
        Family("PartitionedRatings", 300_000, write_ratings, write_partition, "ratings"),
        Family("BagOfWords", 20_000, write_text, count_texts, "texts"),
        Family("Cooccurrence", 10_000, write_text, count_pairs, "texts"),
    ]


# ---- measuring ---------------------------------------------------------------------------------------------------


def time_fits(fit: Callable[[Any], Any], X: Any) -> list[float]:
    """Seconds of each fit: three, or one that takes long enough by itself."""
    seconds: list[float] = []
    while not seconds or (sum(seconds) < MIN_SECONDS * ROUNDS and len(seconds) < 10 * ROUNDS):
        began = time.perf_counter()
        fit(X)
        seconds.append(time.perf_counter() - began)
    return seconds


def open_folder() -> Any:
    kept = os.environ.get("BENCH_DATA")
    return nullcontext(kept) if kept else tempfile.TemporaryDirectory(prefix="twofold-bench-")


def measure(family: Family, steps: np.ndarray) -> Timed:
    """Fit tables of growing size; the slope is that of log seconds against log rows."""
    sizes = [int(family.rows * step) for step in steps]
    medians, spreads = [], []
    with open_folder() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in sizes:
            data = family.write(Path(folder), n)
            if n == sizes[0]:
                family.fit(data)  # imports, compiled kernels, threads
            seconds = time_fits(family.fit, data)
            medians.append(float(np.median(seconds)))
            spreads.append((max(seconds) - min(seconds)) / medians[-1])
    n, t = np.log(sizes), np.log(medians)
    slope = float(np.polyfit(n, t, 1)[0])
    return Timed(medians[-1], {"slope": slope, "sizes": sizes, "medians": medians, "spreads": spreads})


def slopes(quick: bool) -> Event:
    steps = STEPS[:3] if quick else STEPS
    wanted = os.environ.get("BENCH_SLOPES", "")
    chosen = [f for f in families() if not wanted or any(f.name.startswith(w) for w in wanted.split(","))]

    def quality(report: dict[str, Any]) -> dict[str, float]:
        lines = zip(report["sizes"], report["medians"], strict=True)
        local = np.diff(np.log(report["medians"])) / np.diff(np.log(report["sizes"]))
        return {
            "slope": report["slope"],
            "least of neighbors": float(local.min()),
            "largest": float(local.max()),
            **{f"{step:.3g} n": seconds for step, (_, seconds) in zip(steps, lines, strict=True)},
            "spread": max(report["spreads"]),
        }

    def linear(rows: list[Row]) -> bool:
        return all(abs(row.quality["slope"] - 1) <= ROOM for row in rows)

    return Event(
        "scale_slopes",
        f"time against the size of what is read from disk, {steps[-1]:g} times apart",
        [
            Contestant(
                f"{f.name}, n = {f.rows:,} {f.unit}",
                lambda f=f: measure(f, steps),
                ours=True,
                warm=lambda: None,
            )
            for f in chosen
        ],
        quality=quality,
        as_good=lambda a, b: True,
        bar=Bar(f"slopes within 1 ± {ROOM:g}", test=linear),
        repeats=1,
        notes=[
            f"Dense tables have {D} columns in float32; sparse ones {WORDS:,} words, {LENGTH} draws a row, "
            f"{TOPICS} components. Columns are seconds of a fit of n, 3.16 n, … rows: medians.",
            "spread: the largest less the smallest of the fits of one size over their median, at worst.",
        ],
    )


EVENTS = (slopes,)
