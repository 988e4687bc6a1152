"""The outcome of a run: a table on the terminal, one Markdown and one JSON file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.harness import Outcome, Row, quality_columns


def figure(value: float) -> str:
    """Four digits, six for large numbers; scientific where that is shorter."""
    return f"{value:.6g}" if abs(value) >= 10 else f"{value:.4g}"


def cells(outcome: Outcome, row: Row, columns: list[str]) -> list[str]:
    """One line of the table."""
    if row.missing:
        return [row.contestant, "", "", "", *("" for _ in columns), f"not available: {row.missing}"]
    spread = f"{figure(min(row.seconds))} to {figure(max(row.seconds))} ({len(row.seconds)})"
    figures = [figure(row.quality[name]) if name in row.quality else "" for name in columns]
    remarks = [row.note, "" if row.equal else "less good: not compared", "" if row.counts else "for information"]
    ratio = f"{outcome.ratio(row):.2f}"
    return [row.contestant, figure(row.median), spread, ratio, *figures, "; ".join(r for r in remarks if r)]


def heads(columns: list[str]) -> list[str]:
    return ["contestant", "seconds", "min to max (runs)", "ratio", *columns, "remarks"]


def verdict(outcome: Outcome, ceilings: dict[str, float]) -> str:
    """The bar, whether it is met, and how near the machine's limit ours is."""
    bar, met, rival = outcome.event.bar, outcome.met(), outcome.rival()
    parts = []
    if bar is not None:
        parts.append(f"bar: {bar.text}: {'not decided' if met is None else 'met' if met else 'MISSED'}")
    if rival is not None:
        parts.append(f"closest peer of equal quality: {rival.contestant}, {outcome.ratio(rival):.2f} x our time")
    share = outcome.share_of_limit(ceilings)
    if share is not None:
        parts.append(f"ours at {100 * share:.0f} % of this machine's limit")
    return "; ".join(parts)


def show(console: Console, outcome: Outcome, ceilings: dict[str, float]) -> None:
    """Print one event."""
    columns = quality_columns(outcome.rows)
    table = Table(title=f"{outcome.event.name}: {outcome.event.title}", title_justify="left", caption_justify="left")
    for at, head in enumerate(heads(columns)):
        table.add_column(head, justify="left" if at in (0, len(columns) + 4) else "right")
    for row in outcome.rows:
        table.add_row(*cells(outcome, row, columns), style="bold" if row.ours else None)
    table.caption = "\n".join([verdict(outcome, ceilings), *outcome.event.notes])
    console.print(table)


def markdown(outcomes: list[Outcome], machine: dict, ceilings: dict[str, float], date: str) -> str:
    """The whole run as one Markdown page."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    lines = [
        f"# Benchmark of {date}",
        "",
        f"{machine['cpu']}, {machine['cores']} cores, {machine['threads']} threads for everyone, "
        f"{machine['memory_gb']} GB, load {machine['load']} at the start, "
        f"{machine['system']}, Python {machine['python']}; {versions}.",
        f"Matrix product {ceilings['gemm_float64_gflops']:.0f} GFLOP/s in float64, "
        f"{ceilings['gemm_float32_gflops']:.0f} in float32; memory {ceilings['read_gbs']:.1f} GB/s read, "
        f"{ceilings['copy_gbs']:.1f} GB/s copied. "
        "Ratios are a peer's median over that of our fastest entry as good as it: above 1, ours is faster.",
    ]
    for outcome in outcomes:
        columns = quality_columns(outcome.rows)
        head = heads(columns)
        lines += ["", f"## {outcome.event.name}: {outcome.event.title}", "", verdict(outcome, ceilings), ""]
        lines += [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
        lines += [f"| {' | '.join(cells(outcome, row, columns))} |" for row in outcome.rows]
        lines += [f"\n{note}" for note in outcome.event.notes]
    return "\n".join(lines) + "\n"


def as_json(outcomes: list[Outcome], machine: dict, ceilings: dict[str, float], date: str) -> dict[str, Any]:
    """The whole run as plain data."""
    return {
        "date": date,
        "machine": machine,
        "ceilings": ceilings,
        "events": [
            {
                "name": outcome.event.name,
                "title": outcome.event.title,
                "bar": None if outcome.event.bar is None else outcome.event.bar.text,
                "met": outcome.met(),
                "share_of_limit": outcome.share_of_limit(ceilings),
                "notes": outcome.event.notes,
                "rows": [_row_json(outcome, row) for row in outcome.rows],
            }
            for outcome in outcomes
        ],
    }


def _row_json(outcome: Outcome, row: Row) -> dict[str, Any]:
    if row.missing:
        return {"contestant": row.contestant, "not_available": row.missing}
    return {
        "contestant": row.contestant,
        "ours": row.ours,
        "seconds": row.seconds,
        "median": row.median,
        "ratio": outcome.ratio(row),
        "quality": row.quality,
        "equal_quality": row.equal,
        "counts": row.counts,
        "note": row.note,
    }


def write(folder: Path, outcomes: list[Outcome], machine: dict, ceilings: dict[str, float], date: str) -> list[Path]:
    """Both files, named by the date."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = date.replace(":", "").replace(" ", "-")
    pages = {
        ".md": markdown(outcomes, machine, ceilings, date),
        ".json": json.dumps(as_json(outcomes, machine, ceilings, date), indent=1),
    }
    for ending, text in pages.items():
        (folder / (stem + ending)).write_text(text, encoding="utf-8")
    return [folder / (stem + ending) for ending in pages]


def record(path: Path, outcomes: list[Outcome], machine: dict, date: str) -> None:
    """Add a row an event to the history in the repository."""
    rows = []
    for outcome in outcomes:
        rival, met = outcome.rival(), outcome.met()
        peer = ("", "") if rival is None else (rival.contestant, f"{outcome.ratio(rival):.2f}")
        bar = {None: "", True: "met", False: "missed"}[met]
        about = f"{machine['cpu']}, {machine['threads']} threads"
        entries = [date[:10], outcome.event.name, figure(outcome.ours().median), *peer, bar, about]
        rows.append(f"| {' | '.join(entries)} |\n")
    with path.open("a", encoding="utf-8") as file:
        file.writelines(rows)
