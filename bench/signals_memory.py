"""A photograph of 12 megapixels is denoised in a process of its own: seconds and peak memory.

That process is `python -m bench.signals_memory FILE RESULT`, which prints one line of JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.harness import Bar, Contestant, Event, Row, Timed
from bench.linear_stream import _peak as peak
from twofold.datasets.bundled import photographs
from twofold.metrics import psnr

SIGMA, MAX_SECONDS = 10.0, 900.0


def photograph(h: int, w: int) -> tuple[np.ndarray, np.ndarray]:
    """A large one, of a small one and its mirror images, and the same with noise."""
    tile = photographs().china
    clean = np.pad(tile, ((0, h - len(tile)), (0, w - tile.shape[1]), (0, 0)), mode="symmetric")
    noise = np.random.default_rng(0).standard_normal(clean.shape, dtype=np.float32)
    return clean, np.clip(np.rint(clean + np.float32(SIGMA) * noise), 0, 255).astype(np.uint8)


def child(path: str, result: str) -> None:
    """Warm up on a corner, denoise the whole, and say what it took."""
    from twofold.signals import denoise_image

    image = np.load(path)
    denoise_image(image[:64, :64].copy(), SIGMA, random_state=0)
    before = peak()
    began, worked = time.perf_counter(), time.process_time()
    found = denoise_image(image, random_state=0)
    report = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - worked}
    report |= {"before_mb": before, "peak_mb": peak()}
    np.save(result, found)
    print(json.dumps(report))


def in_a_process(path: Path, result: Path) -> Timed:
    command = [sys.executable, "-m", "bench.signals_memory", str(path), str(result)]
    here = Path(__file__).parent.parent
    done = subprocess.run(command, capture_output=True, text=True, cwd=here, timeout=MAX_SECONDS)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    report = json.loads(done.stdout.splitlines()[-1])
    return Timed(report["seconds"], report)


def memory(quick: bool) -> Event:
    h, w = (600, 800) if quick else (3000, 4000)
    clean, noisy = photograph(h, w)
    folder = tempfile.TemporaryDirectory(prefix="twofold-bench-")
    path, result = Path(folder.name) / "noisy.npy", Path(folder.name) / "denoised.npy"
    np.save(path, noisy)

    def quality(report: dict) -> dict[str, float]:
        return {
            "PSNR before": psnr(clean, noisy, 255.0),
            "PSNR": psnr(clean, np.load(result), 255.0),
            "before MB": report["before_mb"],
            "peak MB": report["peak_mb"],
            "CPU seconds": report["cpu"],
        }

    def small_enough(rows: list[Row]) -> bool:
        return rows[0].quality["peak MB"] < 1000

    return Event(
        "signals_memory",
        f"denoise_image of a colored photograph, {h} x {w}, uint8, noise of {SIGMA:g}, which it has to estimate",
        [Contestant("twofold", lambda: in_a_process(path, result), ours=True, warm=lambda: None)],
        quality=quality,
        as_good=lambda a, b: a["PSNR"] >= b["PSNR"],
        bar=Bar("peak memory of the process under 1 GB", test=small_enough),
        repeats=1,
        close=folder.cleanup,
        notes=[
            "peak MB is the largest resident set of the process, with the interpreter, libraries and the picture "
            "(before MB: after a warm-up on a corner)."
        ],
    )


EVENTS = (memory,)

if __name__ == "__main__":
    child(*sys.argv[1:])
