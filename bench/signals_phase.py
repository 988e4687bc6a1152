"""Where basis pursuit recovers half of the signals, beside the Donoho-Tanner curve: n = 1000 and n = 200."""

from __future__ import annotations

import numpy as np

from bench.harness import Bar, Contestant, Event, Row
from twofold.signals import PhaseDiagram, donoho_tanner, phase_diagram

DELTA = (0.1, 0.2, 0.5, 0.75)
AROUND = np.linspace(-0.08, 0.08, 9)


def diagram(n: int, trials: int) -> PhaseDiagram:
    rho = donoho_tanner(DELTA)[:, None] + AROUND
    return phase_diagram(n, delta=DELTA, rho=rho, trials=trials, random_state=0)


def quality(result: PhaseDiagram) -> dict[str, float]:
    curve = {f"rho at {d:g}": rho for d, rho in zip(DELTA, result.curve50, strict=True)}
    return curve | {"farthest": float(np.abs(result.curve50 - result.theory).max())}


def near(rows: list[Row]) -> bool:
    return all(row.quality["farthest"] <= 0.02 for row in rows)


def event(n: int, trials: int, bar: Bar | None) -> Event:
    theory = ", ".join(f"{rho:.3f}" for rho in donoho_tanner(DELTA))
    return Event(
        f"signals_phase {n}",
        f"ρ of half recovery at δ = {', '.join(map(str, DELTA))}; n = {n:,}, {len(AROUND)} x {trials} signals each",
        [
            Contestant(
                "twofold basis pursuit",
                lambda: diagram(n, trials),
                ours=True,
                warm=lambda: diagram(50, 2),
            ),
        ],
        quality=quality,
        as_good=lambda a, b: a["farthest"] <= b["farthest"],
        bar=bar,
        repeats=1,
        notes=[
            f"Theory, for n → ∞: {theory}. At finite n the change is spread over about 1/√n, and K is whole: one more "
            f"is {1 / (0.1 * n):.3f} in ρ at δ = 0.1.",
        ],
    )


def large(quick: bool) -> Event:
    bar = Bar("every curve point within 0.02 of Donoho-Tanner", test=near)
    return event(200 if quick else 1000, 20 if quick else 60, None if quick else bar)


def small(quick: bool) -> Event:
    return event(100 if quick else 200, 20 if quick else 400, None)


EVENTS = (large, small)
