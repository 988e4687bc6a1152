"""Long commands that get SIGINT or SIGTERM in the middle: they end soon, with a line, and leave nothing behind."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.attack.command import Command, fault, make_data, snapshot
from tests.attack.command_line import array_file, picture

PROMPT = 15.0  # seconds after a signal in which a command has ended, on a busy machine
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143}
LONG = {
    "reduce": ["reduce", "wide.npy", "-k", "parallel", "-o", "out.csv", "--save", "out.twofold"],
    "cluster": ["cluster", "many.csv", "-o", "out.csv", "-o", "out.html", "--save", "out.twofold"],
    "complete": ["complete", "holes.csv", "-o", "out.csv", "--save", "out.twofold"],
    "recommend": ["recommend", "ratings.csv", "-o", "out.csv", "--save", "out.twofold"],
    "topics": ["topics", "texts.txt", "-o", "out.csv", "--save", "out.twofold"],
    "embed": ["embed", "texts.txt", "--epochs", "500", "-o", "out.bin", "--save", "out.twofold"],
    "train": ["train", "vae", "images.npy", "--epochs", "500", "--save", "out.twofold"],
    "generate": ["generate", "mixture.twofold", "-n", "30000000", "-o", "out.npy"],
    "denoise": ["denoise", "photo.png", "-o", "out.png"],
    "compress": ["compress", "large.png", "-o", "out.tfi"],
    "inpaint": ["inpaint", "photo.png", "--mask", "mask.png", "-o", "out.png"],
    "sense": ["sense", "photo.png", "--simulate", "-o", "out.png"],
    "apply": ["apply", "mixture.twofold", "many.csv", "-o", "out.csv"],
    "words": ["words", "vectors.txt", "export", "out.png"],
    "tour": ["tour", "-o", "out.html"],
}


def build(folder: Path) -> None:
    """Data that keeps each verb busy for a few seconds."""
    import polars as pl

    import twofold

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 16)) + 4 * rng.normal(size=(6, 16))[rng.integers(6, size=40_000)]
    pl.DataFrame(X).write_csv(folder / "many.csv")
    (folder / "wide.npy").write_bytes(array_file(rng.normal(size=(3000, 400))))
    holes = rng.normal(size=(3000, 6)) @ rng.normal(size=(6, 40)) + rng.normal(size=(3000, 40))
    holes[rng.random(holes.shape) < 0.2] = np.nan
    pl.DataFrame(holes).fill_nan(None).write_csv(folder / "holes.csv")
    users, items = rng.integers(2000, size=60_000), (rng.random(60_000) ** 2 * 500).astype(int)
    pl.DataFrame({"user": users, "item": items, "rating": rng.integers(1, 6, 60_000)}).write_csv(folder / "ratings.csv")
    letters = np.array(list("abcdefghijklmnopqrst"))
    words = np.array(["".join(letters[[i // 400 % 20, i // 20 % 20, i % 20, i % 7, i % 11]]) for i in range(3000)])
    drawn = words[(rng.random((3000, 80)) ** 3 * 3000).astype(int)]
    (folder / "texts.txt").write_text("\n".join(" ".join(line) for line in drawn))
    (folder / "images.npy").write_bytes(array_file(rng.random((3000, 16, 16)).astype(np.float32)))
    twofold.GaussianMixture(6, random_state=0, max_iter=5).fit(X[:2000]).save(folder / "mixture.twofold")
    for name, side in (("photo", 256), ("mask", 256), ("large", 700)):
        (folder / f"{name}.png").write_bytes(picture("L", (side, side)))
    lines = [" ".join([word, *map(str, rng.normal(size=50))]) for word in words]
    (folder / "vectors.txt").write_text("\n".join(["3000 50", *lines]))


def attack(quick: bool, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Every long verb with each signal; quickly, some of them with one."""
    rng = np.random.default_rng(seed)
    with make_data(build) as folder:
        for i, verb in enumerate(("cluster", "train") if quick else LONG):
            for sign in [list(SIGNALS)[i % 2]] if quick else SIGNALS:
                yield f"{verb}, {sign.name}", interrupt(verb, sign, folder, float(rng.uniform(0.3, 3.0)))


def interrupt(verb: str, sign: signal.Signals, folder: Path, after: float) -> str:
    """Start it, signal it in the middle, see how it ends."""
    before = snapshot(folder)
    for _ in range(6):
        command = Command(LONG[verb], folder)
        time.sleep(after)
        if command.running():
            break
        ended = command.wait()
        if ended.code != 0:
            return f"fails by itself: {ended.err[-200:]}"
        for name in snapshot(folder).keys() - before.keys():
            (folder / name).unlink()
        after /= 3
    else:
        return "is over before a signal can reach it"
    command.send(sign)
    ended = command.wait(PROMPT)
    if command.kill_leftovers():
        return "a process is left"
    wrong = fault(ended, (SIGNALS[sign],))
    new = sorted(snapshot(folder).keys() - before.keys())
    for name in new:
        (folder / name).unlink()
    last = (ended.err.strip().splitlines() or [""])[-1]
    if not wrong and last not in ("twofold: interrupted.", "twofold: terminated."):
        return f"its last line is {last!r}"
    return wrong or (f"{new} left" if new else "")
