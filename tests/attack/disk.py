"""Targets that cannot be written: full disks, limits, permissions. One line, exit code 2, and the old file is kept.

Where this process may mount, disks are full in earnest; where it may not, a limit on the size of files stands for them.
"""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from tests.attack.command import Ended, fault, make_data, twofold
from tests.attack.command_line import NUMBERS, TEXTS, array_file, drop_rights, picture

OLD = b"old"
WRITING = [
    *(["reduce", "numbers.csv", "-o", f"OUT/a{end}"] for end in (".csv", ".tsv", ".parquet", ".npy", ".png", ".html")),
    ["reduce", "numbers.csv", "--save", "OUT/a.twofold"],
    ["cluster", "numbers.csv", "-k", "2", "-o", "OUT/a.csv"],
    ["complete", "holes.csv", "-o", "OUT/a.csv"],
    *(["recommend", "ratings.csv", "--time", "0.1", "-n", "50", "-o", f"OUT/a{end}"] for end in (".csv", ".parquet")),
    *(["topics", "texts.csv", "-k", "2", "-o", f"OUT/a{end}"] for end in (".csv", ".html")),
    *(["embed", "texts.csv", "-k", "30", "--epochs", "1", "-o", f"OUT/a{end}"] for end in (".txt", ".bin", ".parquet")),
    ["words", "vectors.txt", "export", "OUT/a.bin"],
    ["compress", "photo.png", "--psnr", "60", "-o", "OUT/a.tfi"],
    ["denoise", "photo.png", "-o", "OUT/a.png"],
    ["inpaint", "photo.png", "--color", "#000000", "--tolerance", "9", "-o", "OUT/a.tiff"],
    ["sense", "photo.png", "--simulate", "-o", "OUT/a.png"],
    ["train", "autoencoder", "images.npy", "--epochs", "1", "--save", "OUT/a.twofold"],
    ["generate", "mixture.twofold", "-n", "500", "-o", "OUT/a.npy"],
    ["apply", "mixture.twofold", "numbers.csv", "--what", "transform", "-o", "OUT/a.csv"],
]


def build(folder: Path) -> None:
    import twofold

    (folder / "numbers.csv").write_bytes(NUMBERS + NUMBERS[6:] * 20)
    lines = (NUMBERS + NUMBERS[6:] * 20).splitlines()
    (folder / "holes.csv").write_bytes(b"\n".join(line[:-1] if i % 9 == 5 else line for i, line in enumerate(lines)))
    rows = (b"%d,%d,%d\n" % (i % 60, i * i % 41, i % 5 + 1) for i in range(900))
    (folder / "ratings.csv").write_bytes(b"user,item,rating\n" + b"".join(rows))
    (folder / "texts.csv").write_bytes(TEXTS * 10)
    (folder / "photo.png").write_bytes(picture("L", (48, 48)))
    (folder / "images.npy").write_bytes(array_file(np.random.default_rng(0).random((60, 8, 8))))
    vectors = [f"w{i} {' '.join(map(str, range(50)))}" for i in range(100)]
    (folder / "vectors.txt").write_text("\n".join(["100 50", *vectors]))
    X = np.random.default_rng(0).normal(size=(200, 3))
    twofold.GaussianMixture(2, random_state=0, max_iter=3).fit(X).save(folder / "mixture.twofold")


@contextmanager
def mount(options: str) -> Iterator[Path | None]:
    """A small file system of its own, None where that cannot be."""
    with tempfile.TemporaryDirectory() as at:
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", at], capture_output=True, check=False)
        try:
            yield Path(at) if made.returncode == 0 else None
        finally:
            if made.returncode == 0:
                subprocess.run(["umount", "-l", at], check=False)


def fill(folder: Path) -> None:
    with open(folder / "filler", "wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(512))


def attack(count: int | None = None) -> Iterator[tuple[str, str]]:
    """Every way of writing on every disk that takes nothing."""
    with make_data(build) as folder:
        cases = [(name, args) for name in DISKS for args in WRITING]
        for name, args in cases if count is None else cases[:: max(1, len(cases) // count)]:
            yield f"{name}: twofold {' '.join(args)}", DISKS[name](folder, args)
        full = twofold("reduce", "numbers.csv", folder=folder, out="/dev/full")
        yield "standard output on a full disk", fault(full, (2,))


def check_refusal(args: list[str], folder: Path, target: Path, keeps: bool = True, **attempt_options: Any) -> str:
    """Run it with its output in `target`, where an old file is."""
    args = [part.replace("OUT", str(target)) for part in args]
    old = Path(next(part for part in args if part.startswith(str(target))))
    ended = twofold(*args, "--force", folder=folder, **attempt_options)
    return fault(ended, (2,)) or one_line(ended) or (check_kept(old, target) if keeps else "")


def one_line(ended: Ended) -> str:
    lines = [line for line in ended.err.splitlines() if not line.startswith("·")]
    return "" if len(lines) == 1 else f"{len(lines)} lines: {ended.err[-300:]}"


def check_kept(old: Path, target: Path) -> str:
    if old.read_bytes() != OLD:
        return f"the old file is lost: {old.read_bytes()[:40]!r}"
    left = sorted(path.name for path in target.iterdir() if path.name not in (old.name, "filler"))
    return f"{left} left" if left else ""


def put_old(args: list[str], target: Path) -> None:
    name = next(part for part in args if part.startswith("OUT/"))[4:]
    (target / name).write_bytes(OLD)


def on_limit(folder: Path, args: list[str]) -> str:
    with tempfile.TemporaryDirectory() as at:
        put_old(args, Path(at))
        return check_refusal(args, folder, Path(at), limits={resource.RLIMIT_FSIZE: 700}, out=os.devnull)


def on_full(folder: Path, args: list[str], options: str = "size=64k") -> str:
    with mount(options) as at:
        if at is None:
            return on_limit(folder, args)
        put_old(args, at)
        fill(at)
        return check_refusal(args, folder, at)


def without_rights(folder: Path, args: list[str]) -> str:
    with tempfile.TemporaryDirectory() as at:
        target = Path(at)
        put_old(args, target)
        target.chmod(0o555)
        return check_refusal(args, folder, target, before=drop_rights)


def on_read_only(folder: Path, args: list[str]) -> str:
    with mount("size=64k") as at:
        if at is None:
            return without_rights(folder, args)
        put_old(args, at)
        subprocess.run(["mount", "-o", "remount,ro", str(at)], check=True)
        return check_refusal(args, folder, at)


def missing_folder(folder: Path, args: list[str]) -> str:
    with tempfile.TemporaryDirectory() as at:
        wrong = check_refusal(args, folder, Path(at, "no"), keeps=False)
        return wrong or ("something was made" if os.listdir(at) else "")


DISKS: Mapping[str, Callable[[Path, list[str]], str]] = {
    "a limit on sizes": on_limit,
    "a full disk": on_full,
    "a disk without room for names": lambda folder, args: on_full(folder, args, "size=1m,nr_inodes=3"),
    "no permission": without_rights,
    "a disk to read": on_read_only,
    "a missing folder": missing_folder,
}
