"""What this machine is, and what it can do: matrix products, memory traffic."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version

import numpy as np

PACKAGES = (
    "twofold",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "polars",
    "ppca-py",
    "ppca-rs",
    "pyppca",
    "faiss-cpu",
    "cmfrec",
    "implicit",
    "scikit-surprise",
    "fancyimpute",
    "libmf",
    "tomotopy",
    "gensim",
    "spams-bin",
    "dictlearn",
    "ksvd",
)


def threads() -> int:
    """The cores this process may use; every contestant gets as many threads."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def describe() -> dict:
    """Processor, cores, memory and library versions; nothing that names the machine or its owner."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "threads": threads(),
        "memory_gb": round(_memory_bytes() / 1e9, 1),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def best_seconds(run: Callable[[], object], repeats: int = 5) -> float:
    """The shortest of some runs after one warm-up: a ceiling is what the machine reaches undisturbed."""
    run()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def gemm_gflops(dtype: type, size: int = 2048) -> float:
    """Multiply-adds counted as two, in 1e9 a second, of a square matrix product on all threads."""
    A: np.ndarray = np.random.default_rng(0).standard_normal((size, size)).astype(dtype)
    out = np.empty_like(A)
    return 2 * size**3 / best_seconds(lambda: np.matmul(A, A, out=out)) / 1e9


def bandwidth_gbs(megabytes: int = 512) -> tuple[float, float]:
    """Memory traffic in GB/s on all threads: reading (a sum) and copying (read plus write counted)."""
    n = threads()
    source = np.ones(megabytes * 2**20 // 8)
    target = np.empty_like(source)
    parts = list(zip(np.array_split(source, n), np.array_split(target, n), strict=True))
    with ThreadPoolExecutor(n) as pool:
        read = best_seconds(lambda: list(pool.map(lambda pair: pair[0].sum(), parts)))
        copy = best_seconds(lambda: list(pool.map(lambda pair: np.copyto(pair[1], pair[0]), parts)))
    return source.nbytes / read / 1e9, 2 * source.nbytes / copy / 1e9


def ceilings(quick: bool = False) -> dict[str, float]:
    """The limits every event is held against, measured in the same run."""
    size, megabytes = (1024, 128) if quick else (2048, 512)
    read, copy = bandwidth_gbs(megabytes)
    return {
        "gemm_float64_gflops": gemm_gflops(np.float64, size),
        "gemm_float32_gflops": gemm_gflops(np.float32, size),
        "read_gbs": read,
        "copy_gbs": copy,
    }
