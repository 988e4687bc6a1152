"""python -m bench [family|event ...] [--repeats N] [--quick] [--record] [--list]"""

from __future__ import annotations

import argparse
import os
import pkgutil
import signal
import sys
from datetime import datetime
from importlib import import_module
from pathlib import Path

from rich.console import Console
from threadpoolctl import threadpool_limits

from bench import harness, machine, report

HERE = Path(__file__).parent


def equal_threads() -> None:
    """All contestants, whatever they are made of, get one thread a core; libraries loaded later read the variables."""
    for name in ("OMP", "OPENBLAS", "MKL", "RAYON", "NUMBA"):
        os.environ.setdefault(f"{name}_NUM_THREADS", str(machine.threads()))
    threadpool_limits(machine.threads())


def event_modules() -> list[str]:
    """Every file named family_event."""
    return sorted(found.name for found in pkgutil.iter_modules([str(HERE)]) if "_" in found.name.strip("_"))


def select_events(wanted: list[str]) -> list[str]:
    """Return the events that the command line names, by whole name or by family."""
    known = event_modules()
    for word in wanted:
        if not any(name == word or name.startswith(word + "_") for name in known):
            sys.exit(f'bench: no family or event is called "{word}". There are: {", ".join(known)}.')
    return [name for name in known if not wanted or any(name == w or name.startswith(w + "_") for w in wanted)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure twofold beside its peers.")
    parser.add_argument("events", nargs="*", metavar="family|event", help="which to run (default: all)")
    parser.add_argument("--repeats", type=int, default=5, help="timed rounds (default 5)")
    parser.add_argument("--quick", action="store_true", help="small data: checks that all runs, proves no bar")
    parser.add_argument("--record", action="store_true", help="add the results to bench/RESULTS.md")
    parser.add_argument("--list", action="store_true", help="name the events and stop")
    asked = parser.parse_args(arguments)
    names = select_events(asked.events)
    if asked.list:
        for name in names:
            print(f"{name:24}{(import_module(f'bench.{name}').__doc__ or '').strip().splitlines()[0]}")
        return 0
    equal_threads()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a run cut short still deletes its files
    console = Console(width=None if sys.stdout.isatty() else 170)
    date = datetime.now().strftime("%Y-%m-%d %H:%M:%S")
    about, ceilings = machine.describe(), machine.ceilings(asked.quick)
    console.print(about, ceilings)
    if (about["load"] or 0) > 0.5:
        console.print(f"The machine is busy (load {about['load']}): these figures are provisional.", style="yellow")
    outcomes: list[harness.Outcome] = []
    written: list[Path] = []
    for name in names:
        for prepare in import_module(f"bench.{name}").EVENTS:  # one at a time, so that only one's data is alive
            event = prepare(asked.quick)
            if isinstance(event, harness.Missing):
                console.print(f"{event.name}: not run: {event.reason}")
                continue
            with console.status(event.name) as status:
                outcome = harness.run(event, max(1, asked.repeats), status.update)
            del event
            report.show(console, outcome, ceilings)
            outcomes.append(outcome)
            written = report.write(
                HERE / "results", outcomes, about, ceilings, date
            )  # now: a long run may be cut short
    if asked.record:
        report.record(HERE / "RESULTS.md", outcomes, about, date)
    for path in written:
        print(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
