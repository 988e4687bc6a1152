"""python -m tests.attack [--quick]: hostile input of every kind; prints how many were tried and how many were bad.

Bad is whatever is neither a right answer nor a refusal of ours: a crash, a hang, a wrong answer, a foreign exception.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from tests.attack import (
    command_line,
    disk,
    extremes,
    forks,
    index_arrays,
    kills,
    model_files,
    resume,
    signals,
    sparse_arrays,
)


def report(name: str, attempts: Iterable[tuple[str, str]]) -> int:
    tried, bad = 0, 0
    for what, wrong in attempts:
        tried += 1
        if wrong:
            bad += 1
            print(f"  {what}: {wrong[:200]}", flush=True)
    print(f"{name}: {tried} tried, {bad} bad", flush=True)
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything, or less")
    parser.add_argument("only", nargs="*", help="names of attacks, as they are printed")
    given = parser.parse_args()
    share = 10 if given.quick else 1
    attacks = {
        "sparse": lambda: sparse_arrays.attack(1000 // share),
        "indices": index_arrays.attack,
        "forks": lambda: forks.attack(20),
        "extremes": extremes.attack,
        "bytes": lambda: model_files.attack(5000 // share, model_files.spoil_bytes),
        "meaning": lambda: model_files.attack(5000 // share, model_files.spoil_meaning),
        "cli": lambda: command_line.attack(20 if given.quick else 1500),
        "kills": lambda: kills.attack(*(5, 1) if given.quick else (50, len(kills.WAYS))),
        "resume": lambda: resume.attack(5 if given.quick else 100),
        "signals": lambda: signals.attack(given.quick),
        "disk": lambda: disk.attack(9 if given.quick else None),
    }
    return int(
        sum(report(name, attack()) for name, attack in attacks.items() if not given.only or name in given.only) > 0
    )


if __name__ == "__main__":
    raise SystemExit(main())
