"""GloVe and PMI vectors of Wikipedia's English: GloVe's epochs against the original C program, then both judged."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench import machine
from bench.harness import Bar, Contestant, Event, Missing, Row, Timed
from bench.words_count import article_file
from bench.words_skip_gram import Questions, Trained
from twofold import Cooccurrence, GloVe, PMIEmbedding, WordVectors, datasets
from twofold.core.checks import InputError

DIMENSIONS, WINDOW, X_MAX, MIN_COUNT = 50, 15, 10.0, 5
QUOTED, COSTS = 45.0, (0.0678, 0.0500, 0.0441)  # an epoch of GloVe's C program on two cores of the same kind
PROGRAM = "GloVe's C program"


class Epochs(NamedTuple):
    """What each epoch cost, and the vectors after the last (not of the C program)."""

    costs: list[float]
    vectors: WordVectors | None


def costs_of(made: Epochs) -> dict[str, float]:
    return {f"cost {t}": made.costs[t - 1] for t in (1, 2, 3)}


def no_dearer(a: dict[str, float], b: dict[str, float]) -> bool:
    return a["cost 3"] <= 1.005 * b["cost 3"]


def ours(pairs: Cooccurrence, epochs: int) -> Timed:
    """Seconds an epoch, the dealing of the pairs (the C program's shuffle) left out, as the C program's are."""
    model = GloVe(DIMENSIONS, x_max=X_MAX, max_iter=epochs, random_state=0).fit(pairs)
    return Timed(model.history_["seconds"][-1] / epochs, Epochs(model.history_["objective"], model.vectors_))


def program(pairs: Cooccurrence, folder: Path, epochs: int) -> Contestant | Missing:
    """The original, if it is installed; it takes pairs in the order of its file, so they are shuffled before."""
    if not shutil.which("glove"):
        quoted = ", ".join(f"{cost:.4f}" for cost in COSTS)
        return Missing(PROGRAM, f"glove is not on the PATH; quoted: {QUOTED:g} s an epoch, cost {quoted}")
    cells = np.dtype([("i", "<i4"), ("j", "<i4"), ("x", "<f8")])
    table: Any = pairs.counts_.tocoo()
    order = np.random.default_rng(0).permutation(table.nnz)
    made = np.empty(table.nnz, cells)
    made["i"], made["j"], made["x"] = table.row[order] + 1, table.col[order] + 1, table.data[order]
    made.tofile(folder / "pairs.bin")
    lines = zip(pairs.vocabulary_.words_, pairs.vocabulary_.counts_, strict=True)
    (folder / "vocab.txt").write_text("".join(f"{word} {count}\n" for word, count in lines))

    def run() -> Timed:
        options = {
            "input-file": "pairs.bin", "vocab-file": "vocab.txt", "save-file": "vectors", "vector-size": DIMENSIONS,
            "x-max": X_MAX, "iter": epochs, "threads": machine.threads(), "verbose": 2,
        }  # fmt: skip
        command = ["glove", *(str(part) for name, value in options.items() for part in (f"-{name}", value))]
        began = time.perf_counter()
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        seconds = (time.perf_counter() - began) / epochs
        return Timed(seconds, Epochs([float(cost) for cost in re.findall(r"cost: ([\d.]+)", done.stderr)], None))

    return Contestant(PROGRAM, run, warm=lambda: None)


def epochs(quick: bool) -> Event | Missing:
    folder = tempfile.TemporaryDirectory(prefix="twofold-bench-")
    path = article_file(Path(folder.name), quick)
    if isinstance(path, Missing):
        return path._replace(name="words_glove epochs")
    pairs = Cooccurrence(window=WINDOW, min_count=MIN_COUNT).fit(path)
    small = Cooccurrence(window=WINDOW, min_count=MIN_COUNT).fit(path.read_text()[:1_000_000].splitlines())

    def good_enough(rows: list[Row]) -> bool:
        """As fast as the C program and no dearer: as measured in this run, or else as quoted for the whole file."""
        own = next(row for row in rows if row.ours)
        measured = [row for row in rows if row.contestant == PROGRAM and row.seconds]
        if measured:
            return own.median <= measured[0].median and no_dearer(own.quality, measured[0].quality)
        return not quick and own.median <= QUOTED and no_dearer(own.quality, {"cost 3": COSTS[2]})

    return Event(
        "words_glove epochs",
        f"GloVe, an epoch of {pairs.counts_.nnz:,} pairs of wikipedia_en: {DIMENSIONS} numbers, window {WINDOW}, "
        f"x_max {X_MAX:g}, words seen {MIN_COUNT} times",
        [
            Contestant("twofold", lambda: ours(pairs, 3), ours=True, warm=lambda: ours(small, 3)),
            program(pairs, Path(folder.name), 3),
        ],
        quality=costs_of,
        as_good=no_dearer,
        bar=Bar("1 x the speed of GloVe's C program, at no higher cost", test=good_enough),
        budget=60.0,
        close=folder.cleanup,
        notes=[
            "Cost: the mean of ½ f (gap)² over the pairs, each as it was when its turn came; seconds are an epoch's.",
            f"Quoted of the C program, on two cores of the same kind: {QUOTED:g} s an epoch, after 24 s to shuffle.",
            f"{machine.threads()} threads, which do not change a bit of ours.",
        ],
    )


# ---- how good the vectors are ----------------------------------------------------------------------------------


def time_fit(model: Any, pairs: Cooccurrence) -> Timed:
    began = time.perf_counter()
    model.fit(pairs)
    seconds = time.perf_counter() - began
    return Timed(seconds, Trained(model.vectors_, seconds))


def judge_event(quick: bool) -> Event | Missing:
    folder = tempfile.TemporaryDirectory(prefix="twofold-bench-")
    path = article_file(Path(folder.name), quick)
    if isinstance(path, Missing):
        return path._replace(name="words_glove vectors")
    try:
        datasets.fetch("words")
    except InputError as why:
        return Missing("words_glove vectors", str(why))
    folder_of = datasets.fetch("wikipedia_en").path.parent.parent / "words"
    asked = Questions(*(folder_of / name for name in ("questions-words.txt", "EN-WS-353-ALL.txt", "EN-SIMLEX-999.txt")))
    tables = {
        window: Cooccurrence(window=window, min_count=MIN_COUNT).fit(path, to=Path(folder.name) / f"pairs{window}.csr")
        for window in (5, 15)
    }
    few = 3 if quick else 15

    def glove(k: int) -> Timed:
        return time_fit(GloVe(k, x_max=X_MAX, max_iter=few, random_state=0), tables[15])

    models = {
        f"GloVe, {DIMENSIONS} numbers, {few} epochs": lambda: glove(DIMENSIONS),
        f"GloVe, 100 numbers, {few} epochs": lambda: glove(100),
        "PMI, 100 numbers": lambda: time_fit(PMIEmbedding(100, random_state=0), tables[5]),
    }
    return Event(
        "words_glove vectors",
        "vectors of wikipedia_en from its counted pairs: analogies solved, agreement with people",
        [Contestant(name, fit, ours=True, warm=lambda: None) for name, fit in models.items()],
        quality=asked.quality,
        as_good=lambda a, b: True,
        repeats=1,
        close=folder.cleanup,
        notes=["Counting is left out. GloVe's window is 15, that of PMI 5: the settings each is known by."],
    )


EVENTS = (epochs, judge_event)
