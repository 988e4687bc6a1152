"""`twofold inspect`: what a model file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table as Grid

from twofold.cli._console import bar, print_json, stdout
from twofold.core.files import model_file
from twofold.io.tables.read import missing_message

MOST_SHOWN = 12  # components with a bar of their own


def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A .twofold file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    if not Path(model).is_file():
        raise model_file.ModelFileError(missing_message(model))
    about = model_file.describe(model)
    found = model_file.load(model) if about["kind"] == "model" else None
    facts = {
        "file": model,
        **about,
        "history": history(found),
        "components": components(found),
        "clusters": clusters(found),
    }
    print_json(facts) if as_json else show(facts)


def history(model: Any) -> dict[str, Any] | None:
    """Sweeps, seconds, and the objective at both ends."""
    record = getattr(model, "history_", None)
    if not isinstance(record, dict) or not record.get("objective"):
        return None
    objective = record["objective"]
    return {
        "sweeps": len(objective),
        "objective_first": float(objective[0]),
        "objective_last": float(objective[-1]),
        "seconds": float(record.get("seconds", [0.0])[-1]),
        "converged": getattr(model, "converged_", None),
    }


def components(model: Any) -> list[dict[str, Any]] | None:
    """Share of the variance and strongest features of each component, for models that have them."""
    axes, shares = getattr(model, "components_", None), variance_shares(model)
    if axes is None or shares is None or np.ndim(axes) != 2 or np.shape(shares) != (len(axes),):
        return None
    names = getattr(model, "feature_names_in_", None)
    out = []
    for share, weights in zip(shares, axes, strict=True):
        order = np.argsort(-np.abs(weights), kind="stable")[:4]
        top = {} if names is None else {str(names[j]): float(weights[j]) for j in order}
        out.append({"share": float(share), "weights": top})
    return out


def variance_shares(model: Any) -> np.ndarray | None:
    """As the model says, or from its variances, with the noise in the directions left."""
    variance = getattr(model, "explained_variance_", None)
    if hasattr(model, "explained_variance_ratio_") or variance is None:
        return getattr(model, "explained_variance_ratio_", None)
    noise = float(np.mean(getattr(model, "noise_variance_", 0.0)))
    return variance / (np.sum(variance) + noise * (model.n_features_in_ - len(variance)))


def clusters(model: Any) -> list[dict[str, Any]] | None:
    """Share of the rows, and the columns whose centre stands out most, of each cluster of models that have them."""
    sizes = getattr(model, "counts_", getattr(model, "weights_", None))
    centres = getattr(model, "cluster_centers_", getattr(model, "means_", None))
    if sizes is None or centres is None or np.ndim(centres) != 2 or np.shape(sizes) != (len(centres),):
        return None
    names = getattr(model, "feature_names_in_", None)
    shares = np.asarray(sizes, dtype=float) / max(float(np.sum(sizes)), 1e-300)
    middle = shares @ centres
    apart = np.sqrt(shares @ (centres - middle) ** 2)
    out = []
    for share, centre in zip(shares, centres, strict=True):
        order = np.argsort(-np.abs(centre - middle) / np.maximum(apart, 1e-300), kind="stable")[:4]
        top = {} if names is None else {str(names[j]): float(centre[j]) for j in order}
        out.append({"share": float(share), "centre": top})
    return out


def show(facts: dict[str, Any]) -> None:
    console = stdout()
    size = facts["bytes"]
    amount = f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
    name = facts.get("class", facts["kind"])
    console.print(f"{facts['file']}: {name}, written by twofold {facts['version']}, {amount}", style="bold")
    for heading in ("params", "fitted"):
        if facts.get(heading):
            console.print(f"\n{'parameters' if heading == 'params' else 'fitted'}", style="bold")
            console.print(pairs({k: v for k, v in facts[heading].items() if k != "history_"}))
    if facts["history"]:
        h = facts["history"]
        end = {True: "converged", False: "stopped before converging", None: "ended"}[h["converged"]]
        sweeps = "1 sweep" if h["sweeps"] == 1 else f"{h['sweeps']} sweeps"
        console.print("\nhistory", style="bold")
        path = f"objective {h['objective_first']:.6g} → {h['objective_last']:.6g}"
        console.print(f"{sweeps} in {h['seconds']:.3g} s, {end}; {path}", soft_wrap=True)
    if facts["components"]:
        console.print("\ncomponents", style="bold")
        console.print(strips(facts["components"]))
    if facts["clusters"]:
        console.print("\nclusters", style="bold")
        console.print(strips(facts["clusters"], first=0))


def pairs(values: dict[str, Any]) -> Grid:
    """Names and values; arrays are already outlined as dtype and shape."""
    grid = Grid(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, min_width=max(map(len, values), default=0))
    grid.add_column(overflow="ellipsis", no_wrap=True)
    for name, value in values.items():
        grid.add_row(name, said(value))
    return grid


def said(value: Any) -> str:
    """A value in few words: a model within the model by its name and parameters."""
    if isinstance(value, dict) and "class" in value:
        given = ", ".join(f"{name}={said(of)}" for name, of in value["params"].items() if of is not None)
        return f"{value['class']}({given})"
    if isinstance(value, dict):
        return ", ".join(f"{name} {said(of)}" for name, of in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def strips(parts: list[dict[str, Any]], first: int = 1) -> Grid:
    """A little bar for the share of each component or cluster, numbered as the model does, and what it is made of."""
    grid = Grid(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    largest = max(part["share"] for part in parts) or 1.0
    for c, part in enumerate(parts[:MOST_SHOWN]):
        if "centre" in part:
            words = "  ".join(f"{name} {value:.4g}" for name, value in part["centre"].items())
        else:
            words = "  ".join(f"{'+' if w > 0 else '−'}{name}" for name, w in part["weights"].items())
        grid.add_row(str(c + first), f"{part['share']:.1%}", bar(part["share"] / largest, 16), words)
    if len(parts) > MOST_SHOWN:
        rest = sum(part["share"] for part in parts[MOST_SHOWN:])
        grid.add_row("...", f"{rest:.1%}", f"in {len(parts) - MOST_SHOWN} more", "")
    return grid
