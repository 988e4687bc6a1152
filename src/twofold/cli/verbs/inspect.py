"""`twofold inspect`: what a model file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter
from rich.table import Table as Grid

from twofold.analyses.common.answer import bar, count
from twofold.cli import options
from twofold.cli.deliver import print_json, stdout
from twofold.core.checks import ModelFileError
from twofold.core.files import model_file
from twofold.core.history import summarize
from twofold.core.printable import plain
from twofold.io.tables.read import missing_message
from twofold.io.tables.table import quote_names

MAX_BARS = 12  # components with a bar of their own
MAX_NAMES = 8  # columns or classes by name


def inspect(
    model: Annotated[str, Parameter(help="A model file (.twofold), as --save writes it.")],
    /,
    *,
    as_json: options.AsJson = False,
) -> None:
    """Say what a model file holds, and what can be done with it."""
    if not Path(model).is_file():
        raise ModelFileError(missing_message(model))
    about = model_file.describe(model)
    found = model_file.load(model) if about["kind"] == "model" else None
    facts = {
        "file": model,
        **about,
        "in_words": in_words(found),
        "uses": uses(model, found) if found is not None else [],
        "history": summarize(found),
        "components": components(found),
        "clusters": clusters(found),
    }
    print_json(plain(facts)) if as_json else show(facts)


def in_words(model: Any) -> list[str]:
    """Describe what the model was fitted to, in plain words."""
    verb, names = getattr(model, "made_by_", ""), [str(name) for name in getattr(model, "feature_names_in_", [])]
    shape, target = getattr(model, "image_shape_", None), getattr(model, "target_name_", "")
    if shape is not None:
        to = f"images of {' × '.join(map(str, shape))} pixels"
    elif hasattr(model, "n_features_in_"):
        to = count(model.n_features_in_, "column")
        to += f" ({', '.join(names[:MAX_NAMES])}{', ...' if len(names) > MAX_NAMES else ''})" if names else ""
    else:
        to = ""
    by = f"by twofold {verb}" if verb else ""
    said = [" ".join(filter(None, [f"fitted to {to}" if to else "made", by]))] if to or by else []
    if hasattr(model, "classes_"):
        classes = [str(one) for one in model.classes_]
        shown = f"{', '.join(classes[:MAX_NAMES])}{', ...' if len(classes) > MAX_NAMES else ''}"
        what = f"{quote_names([target])}, " if target else ""
        said.append(f"predicts {what}one of {len(classes)} classes: {shown}")
    elif target:
        said.append(f"predicts {quote_names([target])}, a number")
    if type(model).__name__ == "Recommender":
        n, d = model.ratings_.shape
        said.append(f"learnt from {model.ratings_.nnz:,} ratings by {count(n, 'user')} of {count(d, 'item')}")
        called = [name for name in ([] if model.names_ is None else model.names_.tolist()) if name]
        said += [f"knows the names of {count(len(called), 'item')}: {', '.join(called[:3])}, ..."] if called else []
    return said


def uses(file: str, model: Any) -> list[str]:
    """Commands that do something with the model."""
    from twofold.analyses.apply.analysis import CAN, WORD_MODELS, possible, usual

    lines = []
    if type(model).__name__ in WORD_MODELS:
        lines.append(f"twofold words {file} nearest WORD: words with similar contexts")
    if type(model).__name__ == "Recommender":
        lines.append(f"twofold apply {file} RATINGS: what people would like")
    elif hasattr(model, "bag_of_words_"):
        lines.append(f"twofold apply {file} DOCUMENTS: their topics")
    elif any(possible(model, what) for what in CAN):
        lines.append(
            f"twofold apply {file} NEW: {usual(model)} of new {'images' if hasattr(model, 'image_shape_') else 'rows'}"
        )
    if hasattr(model, "sample"):
        lines.append(f"twofold generate {file}: draw new {'images' if hasattr(model, 'image_shape_') else 'rows'}")
    return lines


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
    """Share of the rows, and the columns whose center stands out most, of each cluster of models that have them."""
    sizes = getattr(model, "counts_", getattr(model, "weights_", None))
    centers = getattr(model, "cluster_centers_", getattr(model, "means_", None))
    if sizes is None or centers is None or np.ndim(centers) != 2 or np.shape(sizes) != (len(centers),):
        return None
    names = getattr(model, "feature_names_in_", None)
    shares = np.asarray(sizes, dtype=float) / max(float(np.sum(sizes)), 1e-300)
    middle = shares @ centers
    apart = np.sqrt(shares @ (centers - middle) ** 2)
    out = []
    for share, center in zip(shares, centers, strict=True):
        order = np.argsort(-np.abs(center - middle) / np.maximum(apart, 1e-300), kind="stable")[:4]
        top = {} if names is None else {str(names[j]): float(center[j]) for j in order}
        out.append({"share": float(share), "center": top})
    return out


def show(facts: dict[str, Any]) -> None:
    console = stdout()
    size = facts["bytes"]
    amount = f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
    name = facts.get("class", facts["kind"])
    console.print(f"{facts['file']}: {name}, written by twofold {facts['version']}, {amount}", style="bold")
    for line in facts["in_words"]:
        console.print(line, soft_wrap=True)
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
    if facts["uses"]:
        console.print("\nwhat can be done with it", style="bold")
        for line in facts["uses"]:
            console.print(line, soft_wrap=True)


def pairs(values: dict[str, Any]) -> Grid:
    """Names and values; arrays are already outlined as dtype and shape."""
    grid = Grid(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, min_width=max(map(len, values), default=0))
    grid.add_column(overflow="ellipsis", no_wrap=True)
    for name, value in values.items():
        grid.add_row(name, format_value(value))
    return grid


def format_value(value: Any) -> str:
    """A value in few words: a model within the model by its name and parameters."""
    if isinstance(value, dict) and "class" in value:
        given = ", ".join(f"{name}={format_value(of)}" for name, of in value["params"].items() if of is not None)
        return f"{value['class']}({given})"
    if isinstance(value, dict):
        return ", ".join(f"{name} {format_value(of)}" for name, of in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def strips(parts: list[dict[str, Any]], first: int = 1) -> Grid:
    """A little bar for the share of each component or cluster, numbered as the model does, and what it is made of."""
    grid = Grid(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    largest = max(part["share"] for part in parts) or 1.0
    for c, part in enumerate(parts[:MAX_BARS]):
        if "center" in part:
            words = "  ".join(f"{name} {value:.4g}" for name, value in part["center"].items())
        else:
            words = "  ".join(f"{'+' if w > 0 else '−'}{name}" for name, w in part["weights"].items())
        grid.add_row(str(c + first), f"{part['share']:.1%}", bar(part["share"] / largest, 16), words)
    if len(parts) > MAX_BARS:
        rest = sum(part["share"] for part in parts[MAX_BARS:])
        grid.add_row("...", f"{rest:.1%}", f"in {len(parts) - MAX_BARS} more", "")
    return grid
