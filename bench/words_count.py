"""Pairs of words in Wikipedia's English, from the file to the table; and a gigabyte of it in half of one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from scipy import sparse

import twofold
from bench import machine
from bench.harness import Bar, Contestant, Event, Missing, Row, Timed
from bench.linear_stream import _peak
from twofold import Cooccurrence, datasets
from twofold.core.checks import InputError
from twofold.core.data.blocks import as_blocks

WINDOW, MIN_COUNT = 15, 5
QUOTED = 1.7 + 26.0  # seconds of GloVe's vocab_count and cooccur for the whole file, on two cores of the same kind
GLOVE = "GloVe's C programs"
BUDGET = 512  # MB


def article_file(folder: Path, quick: bool) -> Path | Missing:
    """The articles as plain text, one a line."""
    try:
        documents = datasets.fetch("wikipedia_en").documents
    except InputError as why:
        return Missing("words_count", str(why))
    path = folder / "articles.txt"
    path.write_text("\n".join(documents[: 300 if quick else None]) + "\n")
    return path


def ours(path: Path, to: Path | None = None) -> sparse.csr_array:
    found = Cooccurrence(window=WINDOW, min_count=MIN_COUNT).fit(path, to=to).counts_
    return found if to is None else sparse.vstack(list(as_blocks(found)), format="csr")


def a_distance_at_a_time(path: Path) -> sparse.csr_array:
    """The same table by NumPy and SciPy: shifted arrays of ids, added up as sparse matrices."""
    lines = path.read_text().splitlines()
    counts = Counter(word for line in lines for word in line.split())
    ranked = sorted((word for word, n in counts.items() if n >= MIN_COUNT), key=lambda word: (-counts[word], word))
    ids = {word: at for at, word in enumerate(ranked)}
    rows = [[ids[word] for word in line.split() if word in ids] for line in lines]
    line = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    tokens = np.concatenate([np.array(row, np.int32) for row in rows])
    total = sparse.csr_array((len(ids), len(ids)))
    for d in range(1, WINDOW + 1):
        near = line[d:] == line[:-d]
        i, j = tokens[d:][near], tokens[:-d][near]
        total = total + sparse.coo_array((np.full(len(i), 1 / d), (i, j)), shape=total.shape).tocsr()
    return sparse.csr_array(total + total.T)


def glove_entry(path: Path, folder: Path) -> Contestant | Missing:
    """The original programs, if they are installed; they take what they are given apart at white space alone."""
    if not (shutil.which("vocab_count") and shutil.which("cooccur")):
        return Missing(
            GLOVE, f"vocab_count and cooccur are not on the PATH; quoted: {QUOTED:g} s, then 24 s to shuffle"
        )

    def run() -> Timed:
        words, table = folder / "vocab.txt", folder / "cooccurrence.bin"
        options = ["-verbose", "0", "-memory", "4.0"]
        began = time.perf_counter()
        with open(path, "rb") as text, open(words, "wb") as out:
            subprocess.run(
                ["vocab_count", "-min-count", str(MIN_COUNT), "-verbose", "0"], stdin=text, stdout=out, check=True
            )
        command = ["cooccur", *options, "-vocab-file", words, "-window-size", str(WINDOW)]
        with open(path, "rb") as text, open(table, "wb") as out:
            subprocess.run(command, stdin=text, stdout=out, check=True, cwd=folder)
        seconds = time.perf_counter() - began
        cells = np.fromfile(table, np.dtype([("i", "<i4"), ("j", "<i4"), ("x", "<f8")]))
        V = int(cells["i"].max())
        return Timed(seconds, sparse.coo_array((cells["x"], (cells["i"] - 1, cells["j"] - 1)), shape=(V, V)).tocsr())

    return Contestant(GLOVE, run, note="to a file of cells, not yet shuffled")


def counting(quick: bool) -> Event | Missing:
    folder = tempfile.TemporaryDirectory(prefix="twofold-bench-")
    path = article_file(Path(folder.name), quick)
    if isinstance(path, Missing):
        return path
    small = Path(folder.name) / "small.txt"
    small.write_text(path.read_text()[:2_000_000])

    def fast_enough(rows: list[Row]) -> bool:
        """Twice as fast as the C programs: those of this run, or else as quoted, which the whole file alone allows."""
        own = min(row.median for row in rows if row.ours and row.counts)
        measured = [row.median for row in rows if row.contestant == GLOVE and row.seconds]
        return 2 * own <= (measured[0] if measured else QUOTED) and (bool(measured) or not quick)

    return Event(
        "words_count",
        f"pairs of words at most {WINDOW} apart in wikipedia_en, of words that occur {MIN_COUNT} times",
        [
            Contestant("twofold", lambda: ours(path), ours=True, warm=lambda: ours(small)),
            Contestant(
                "twofold, to disk", lambda: ours(path, Path(folder.name) / "pairs.csr"), ours=True, counts=False,
                warm=lambda: ours(small), note="the table is written, then read",
            ),
            glove_entry(path, Path(folder.name)),
            Contestant("SciPy, by distances", lambda: a_distance_at_a_time(path), warm=lambda: None, counts=False),
        ],
        quality=lambda X: {"pairs": float(X.nnz), "total": float(X.sum(dtype=np.float64))},
        as_good=lambda a, b: a["pairs"] == b["pairs"] and abs(a["total"] / b["total"] - 1) < 1e-6,
        bar=Bar("2 x the speed of GloVe's C programs, vocabulary included", test=fast_enough),
        close=folder.cleanup,
        budget=60.0,
        notes=[f"{machine.threads()} threads for twofold; the others use one."],
    )  # fmt: skip


# ---- larger than memory ----------------------------------------------------------------------------------------


def child(path: str, small: str, to: str) -> None:
    """Count one file within the budget, and tell how much memory that took."""
    with twofold.config(memory=f"{BUDGET}MB"):
        Cooccurrence(window=WINDOW, min_count=MIN_COUNT).fit(small, to=to)
        before, began = _peak(), time.perf_counter()
        model = Cooccurrence(window=WINDOW, min_count=MIN_COUNT).fit(path, to=to)
        seconds = time.perf_counter() - began
    report = {
        "seconds": seconds,
        "before": before,
        "peak": _peak(),
        "pairs": as_blocks(model.counts_).source.indptr[-1],
    }
    print(json.dumps({key: float(value) for key, value in report.items()}))


def stream(quick: bool) -> Event | Missing:
    gigabytes = float(os.environ.get("BENCH_WORDS_GB", 0.02 if quick else 1.0))
    folder = tempfile.TemporaryDirectory(prefix="twofold-bench-")
    home = Path(folder.name)
    path = article_file(home, quick)
    if isinstance(path, Missing):
        return path
    text = path.read_text()
    (home / "small.txt").write_text(text[:2_000_000])
    with open(home / "large.txt", "w") as file:
        for copy in range(round(gigabytes * 1e9 / len(text))):  # new words with every copy, as in other text
            file.write(re.sub(r"\b(\w{9,})\b", rf"\g<1>{copy}", text))

    def count() -> Timed:
        names = [str(home / name) for name in ("large.txt", "small.txt", "pairs.csr")]
        command = [sys.executable, "-m", "bench.words_count", *names]
        done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent.parent)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        report = json.loads(done.stdout.splitlines()[-1])
        return Timed(report["seconds"], report)

    size = (home / "large.txt").stat().st_size / 1e9
    return Event(
        "words_count stream",
        f"pairs of words in a {size:.2g} GB text within memory='{BUDGET}MB', written to disk",
        [Contestant("twofold", count, ours=True, warm=lambda: None)],
        quality=lambda report: {
            "pairs": report["pairs"], "before MB": report["before"], "peak MB": report["peak"],
            "MB/s": 1000 * size / report["seconds"],
        },
        as_good=lambda a, b: True,
        bar=Bar(
            f"no more than {BUDGET} MB beyond the libraries",
            test=lambda rows: all(row.quality["peak MB"] - row.quality["before MB"] <= BUDGET for row in rows),
        ),
        repeats=1,
        close=folder.cleanup,
        notes=["In a fresh process, after a warm-up on 2 MB of text (before MB). Long words differ from copy to copy."],
    )  # fmt: skip


EVENTS = (counting, stream)

if __name__ == "__main__":
    child(*sys.argv[1:])
