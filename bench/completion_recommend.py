"""The best items of every user of a 50,000 x 20,000 table, in a process of its own: seconds, peak memory.

That process is `python -m bench.completion_recommend CONTESTANT USERS ITEMS FILE`, which prints one line of JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from bench.harness import Bar, Contestant, Event, Row, Timed, Work
from bench.linear_stream import MAX_SECONDS, _peak

K, N, SEEN = 64, 10, 100
MEMORY = 300.0  # MB more than before: the scores of all users would be 4,000
BATCH = 1000  # users that the peer is asked for at a time
CHECKED = 50  # users whose lists are compared with sorting


def world(users: int, items: int) -> tuple[np.ndarray, np.ndarray, sparse.csr_array]:
    """Random factors in float32, and items that each user has seen."""
    rng = np.random.default_rng(0)
    U, Z = (rng.standard_normal((m, K), dtype=np.float32) for m in (users, items))
    i, j = np.repeat(np.arange(users), SEEN), rng.integers(items, size=users * SEEN)
    X = sparse.csr_array((np.ones(len(i), np.float32), (i, j)), shape=(users, items))
    X.sum_duplicates()
    return U, Z, X


def recommender(U: np.ndarray, Z: np.ndarray, X: sparse.csr_array) -> Any:
    """A recommender as if it had been fitted."""
    from twofold import ImplicitALS, Recommender

    model = ImplicitALS(K).fit(np.eye(K, dtype=np.float32))
    model.row_factors_, model.components_ = U, np.ascontiguousarray(Z.T)
    model.row_bias_, model.column_bias_ = np.zeros(len(U), np.float32), np.zeros(len(Z), np.float32)
    model.n_rows_, model.n_features_in_ = X.shape
    rec = Recommender(model)
    rec.model_, rec.ratings_, rec.implicit_, rec.range_, rec.baseline_ = model, X, True, (1.0, 1.0), None
    rec.users_, rec.items_ = np.arange(X.shape[0]), np.arange(X.shape[1])
    return rec


def asker(peer: str, U: np.ndarray, Z: np.ndarray, X: sparse.csr_array, file: str) -> Callable[[int], np.ndarray]:
    """Return a function that makes the lists of the first n users and returns those of the first few."""
    if peer == "implicit":
        from implicit.cpu.als import AlternatingLeastSquares

        threadpool_limits(1, "blas")  # as it asks for: it has threads of its own
        peer = AlternatingLeastSquares(factors=K)
        peer.user_factors, peer.item_factors, seen = U, Z, sparse.csr_matrix(X)

        def ask(users: int) -> np.ndarray:
            parts = [np.arange(a, min(a + BATCH, users)) for a in range(0, users, BATCH)]
            return np.concatenate([peer.recommend(part, seen[part], N=N)[0] for part in parts])[:CHECKED]

        return ask
    import polars as pl

    rec = recommender(U, Z, X)

    def ours(users: int) -> np.ndarray:
        if users < len(rec.users_):
            return recommender(U[:users], Z, X[:users]).recommend_all(N, path=file)
        if peer == "twofold, file":
            rec.recommend_all(N, path=file)
            first = pl.read_parquet(file, n_rows=CHECKED * N)
        else:
            frames = list(rec.recommend_all(N))
            first = frames[0].head(CHECKED * N)
        return first["item"].to_numpy().reshape(CHECKED, N)

    return ours


def child(peer: str, users: str, items: str, file: str) -> None:
    """Warm up on some users, ask for all, and say what it took."""
    U, Z, X = world(int(users), int(items))
    ask = asker(peer, U, Z, X, file)
    ask(2 * BATCH)
    before = _peak()
    began = time.perf_counter()
    lists = ask(len(U))
    report = {"seconds": time.perf_counter() - began, "before_mb": before, "peak_mb": _peak()}
    S = U[:CHECKED] @ Z.T
    S[X[:CHECKED].nonzero()] = -np.inf
    report["right"] = float((lists == np.argsort(-S, axis=1, kind="stable")[:, :N]).mean())
    print(json.dumps(report))


def in_a_process(peer: str, users: int, items: int, file: Path) -> Timed:
    command = [sys.executable, "-m", "bench.completion_recommend", peer, str(users), str(items), str(file)]
    here = Path(__file__).parent.parent
    done = subprocess.run(command, capture_output=True, text=True, cwd=here, timeout=MAX_SECONDS)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    report = json.loads(done.stdout.splitlines()[-1])
    return Timed(report["seconds"], report)


def recommend(quick: bool) -> Event:
    users, items = (5_000, 4_000) if quick else (50_000, 20_000)
    folder = tempfile.TemporaryDirectory(prefix="twofold-bench-")

    def quality(report: dict) -> dict[str, float]:
        return {"right": report["right"], "before MB": report["before_mb"], "peak MB": report["peak_mb"]}

    def entry(name: str, peer: str, **more: Any) -> Contestant:
        file = Path(folder.name) / "lists.parquet"
        return Contestant(name, lambda: in_a_process(peer, users, items, file), warm=lambda: None, **more)

    def within(rows: list[Row]) -> bool:
        return all(row.quality["peak MB"] - row.quality["before MB"] <= MEMORY for row in rows if row.ours)

    return Event(
        "completion_recommend",
        f"the {N} best unseen items of every user, {users:,} x {items:,}, {K} factors, float32, {SEEN} seen each",
        [
            entry("twofold", "twofold", ours=True, note="frames of ids and scores"),
            entry("twofold, to a Parquet file", "twofold, file", ours=True, counts=False),
            entry("implicit", "implicit", note=f"arrays, {BATCH:,} users at a time"),
        ],
        quality=quality,
        as_good=lambda a, b: a["right"] >= b["right"] - 0.01,
        bar=Bar(f"at most {MEMORY:g} MB more at the peak than before", test=within),
        work=Work(flops=2.0 * users * items * K, bytes=4.0 * users * items, dtype="float32"),
        close=folder.cleanup,
        notes=[
            "Every run is in a fresh process, after a warm-up on 2,000 users; peak MB is its largest resident set "
            f"(before MB: after the warm-up). right: places of the lists of {CHECKED} users that equal a full sort's.",
        ],
    )


EVENTS = (recommend,)

if __name__ == "__main__":
    child(*sys.argv[1:])
