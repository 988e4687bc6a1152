"""Fits killed with -9 at any moment: with their checkpoint they end with the bits of an undisturbed fit."""

from __future__ import annotations

import os
import pickle
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import twofold
from tests.attack.child import run
from tests.callbacks import Quiet
from tests.contract.helpers import differences
from tests.contract.registry import MODELS, swept, table, with_holes

SWEEPS = 12
LINES = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog met on a mat"] * 40
WORDS = ("SkipGram", "GloVe")
SECONDS_BETWEEN_KILLS = 0.01  # seconds a sweep takes at least, so that most kills meet a fit in the middle


class Slow(Quiet):
    """A callback that takes its time."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        time.sleep(SECONDS_BETWEEN_KILLS)


def fits() -> dict[str, tuple[Callable[[], Any], Any]]:
    """Return how to make each estimator that sweeps, and what to fit it to; one setting of a class after the other."""
    X, _ = table(2000)
    found: dict[str, tuple[Callable[[], Any], Any]] = {}
    for case in MODELS:
        if case.iterative and case.model not in found:
            data = swept(case, with_holes(X) if case.nan else X)
            found[case.model] = (lambda case=case: case(max_iter=SWEEPS, tol=0.0), data)
    found["KMeans"] = (lambda: twofold.KMeans(12, n_init=1, max_iter=SWEEPS, tol=0.0, random_state=0), noise())
    for name in WORDS:
        found[name] = (lambda name=name: getattr(twofold, name)(4, max_iter=SWEEPS, random_state=0), LINES)
    return found


def noise() -> np.ndarray:
    """Rows without clusters, on which k-means takes many sweeps."""
    return np.random.default_rng(0).random((4000, 8))


def fit(name: str, checkpoint: Path | None, to: Path) -> None:
    """Fit in this process, and keep the model as a pickle of our own."""
    make, data = fits()[name]
    model = make()
    if checkpoint is not None:
        model.set_callbacks(twofold.Checkpoint(checkpoint), Slow())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data)
    model.set_callbacks()
    draft = to.with_suffix(".draft")
    draft.write_bytes(pickle.dumps(model))
    os.replace(draft, to)


def compare(first_model: Path, other: Path) -> None:
    found = differences(pickle.loads(first_model.read_bytes()), pickle.loads(other.read_bytes()))
    wrong = [what for what in found if "words_per_second" not in what]  # a clock
    if wrong:
        raise AssertionError(f"other bits in {wrong}")


def attack(count: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """So many kills that met a fit in the middle, estimators in turn."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as made:
        folder, names = Path(made), list(fits())
        for tried in range(count):
            name = names[tried % len(names)]
            wrong = kill_fit(name, folder, rng)
            if wrong is not None:  # a kill met it in the middle
                yield f"{name}, killed", wrong


def kill_fit(name: str, folder: Path, rng: np.random.Generator) -> str | None:
    """Kill until a kill leaves a checkpoint, at most this many times; then finish, and compare."""
    whole, resumed, checkpoint = folder / f"{name}.whole", folder / "resumed", folder / f"{name}.checkpoint"
    said = "done" if whole.exists() else run(lambda: fit(name, None, whole))
    for _ in range(20):
        pid = os.fork()
        if pid == 0:
            try:
                fit(name, checkpoint, resumed)
            finally:
                os._exit(0)
        end = time.monotonic() + 60
        while not checkpoint.exists() and not resumed.exists() and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(float(rng.uniform(0, SWEEPS * SECONDS_BETWEEN_KILLS)))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        if checkpoint.exists():
            break
        resumed.unlink(missing_ok=True)
    else:
        return None
    resumed.unlink(missing_ok=True)
    for ask in (lambda: fit(name, checkpoint, resumed), lambda: compare(whole, resumed)):
        said = run(ask) if said == "done" else said
    left = [path.name for path in folder.iterdir() if path.suffix != ".whole" and path != resumed]
    resumed.unlink(missing_ok=True)
    checkpoint.unlink(missing_ok=True)
    return said if said != "done" else f"{left} left" if left else ""
