"""Processes killed with -9 while they save, and two that save to one target: what is there is always whole.

A target holds the version it had or the new one, and what a killed process left beside it goes with the next writing.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import twofold
from tests.attack.child import run
from twofold.core.data.csr_folder import open_csr, write_csr
from twofold.core.files import atomic

SIZE = 200_000  # numbers in a version of a file: enough to be met in the middle


def vectors(version: int) -> Any:
    return twofold.WordVectors.of([str(i) for i in range(2000)], np.full((2000, 100), version + 1.0))


def table(version: int) -> Any:
    import polars as pl

    return pl.DataFrame({"a": np.full(SIZE, version), "b": np.arange(SIZE)})


def whole(values: Any, size: int = SIZE) -> int:
    """The version that values of one version are of."""
    values = np.asarray(values)
    if len(values) != size or values.min() != values.max():
        raise AssertionError(f"{len(values)} of {size} values, {values.min()} to {values.max()}")
    return int(values[0])


def read_table(path: Path) -> int:
    import polars as pl

    return whole((pl.read_csv(path) if path.suffix == ".csv" else pl.read_parquet(path))["a"].to_numpy())


def write_folder(path: Path, version: int) -> None:
    write_csr(path, [sparse.csr_array(np.full((400, 250), version + 1.0))])


def read_folder(path: Path) -> int:
    _, data, _, _ = open_csr(path)
    return whole(data.read(0, data.length), 100_000) - 1


WAYS: dict[str, tuple[Callable[[Path, int], Any], Callable[[Path], int]]] = {
    "model.twofold": (
        lambda path, version: vectors(version).save(path),
        lambda path: whole(twofold.load(path).vectors_.ravel()) - 1,
    ),
    "table.csv": (lambda path, version: atomic.write_all({path: table(version).write_csv}), read_table),
    "table.parquet": (lambda path, version: atomic.write_all({path: table(version).write_parquet}), read_table),
    "bytes": (
        lambda path, version: atomic.write_bytes(path, np.full(SIZE, version).tobytes()),
        lambda path: whole(np.frombuffer(path.read_bytes(), dtype=np.int64)),
    ),
    "folder.csr": (write_folder, read_folder),
}


def write_on(path: Path, way: str, first: int, step: int = 1, versions: int = 10**6) -> int:
    """One version after the other, by a child of this process."""
    pid = os.fork()
    if pid == 0:
        try:
            for version in range(first, first + step * versions, step):
                WAYS[way][0](path, version)
        except BaseException as error:
            path.with_name("error").write_text(repr(error))
        os._exit(0)
    return pid


def require_whole(path: Path, way: str, oldest: int, newest: int) -> None:
    """Require that the file holds a version between these."""
    version = WAYS[way][1](path)
    if not oldest <= version <= newest:
        raise AssertionError(f"version {version}, not {oldest} to {newest}")


def finish(path: Path, way: str) -> None:
    WAYS[way][0](path, 7)
    require_whole(path, way, 7, 7)
    left = sorted(one.name for one in path.parent.iterdir() if one.name != path.name)
    if left:
        raise AssertionError(f"{left} left")


def attack(count: int, pairs: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """So many kills, the kinds of file in turn; then this many pairs of writers of one target."""
    rng = np.random.default_rng(seed)
    for tried in range(count):
        way = list(WAYS)[tried % len(WAYS)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, way)
            yield f"{way}, killed", kill_writers(path, way, float(rng.uniform(0.0, 0.25)))
    for way in list(WAYS)[:pairs]:
        with tempfile.TemporaryDirectory() as folder:
            yield f"{way}, written by two", write_by_two(Path(folder, way), way)


def kill_writers(path: Path, way: str, after: float) -> str:
    """Version 0 is there; a child that writes others is killed; the next writing leaves nothing but its own."""
    said = run(lambda: WAYS[way][0](path, 0))
    pid = write_on(path, way, 1)
    time.sleep(after)
    wait_for(lambda: any(one.name != path.name for one in path.parent.iterdir()), 60)
    time.sleep(after / 50)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    for ask in (lambda: require_whole(path, way, 0, 10**6), lambda: finish(path, way)):
        said = run(ask) if said == "done" else said
    return "" if said == "done" else said


def write_by_two(path: Path, way: str) -> str:
    """Odd versions and even ones, by two processes: one of them at all times, and at the end the last of one."""
    pids = [write_on(path, way, first, 2, 20) for first in (0, 1)]
    wait_for(path.exists, 20)
    said = "done"
    while pids:
        if not path.is_dir():  # reading a folder is several steps, and each may meet another version
            looked = run(lambda: require_whole(path, way, 0, 39))
            said = looked if said == "done" else said
        pids = [pid for pid in pids if os.waitpid(pid, os.WNOHANG) == (0, 0)]
    said = run(lambda: require_whole(path, way, 38, 39)) if said == "done" else said
    error = path.with_name("error")
    said = error.read_text() if error.exists() else said
    said = run(lambda: finish(path, way)) if said == "done" else said
    return "" if said == "done" else said


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)
