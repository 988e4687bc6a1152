"""How many topics in 20 Newsgroups: `select` over 10 to 200, its curve and error bars beside coherence, within minutes.

python -m bench select_lda            the curve is printed as it is found; --quick takes a tenth of the documents
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from typing import Any, ClassVar

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from bench.harness import Bar, Contestant, Event, Missing, Row
from bench.topics_lda import newsgroups
from twofold import LatentDirichletAllocation, select
from twofold.model_selection import Selection
from twofold.topics import topic_coherence

SIZES = (10, 20, 30, 50, 70, 100, 140, 200)
MINUTES = 15.0


class Watched(LatentDirichletAllocation):
    """LDA that notes, each time it is judged, the coherence (NPMI) of its topics on the documents held out."""

    coherence: ClassVar[dict[int, list[float]]] = defaultdict(list)

    def heldout_score(self, X: Any, *arguments: Any, **more: Any) -> float:
        self.coherence[len(self.components_)].append(float(np.nanmean(topic_coherence(self, X))))
        return super().heldout_score(X, *arguments, **more)


def choose(X: sparse.csr_array, sizes: tuple[int, ...], seconds: float) -> tuple[Selection, dict[int, float]]:
    """The selection, and the mean coherence of each size over its folds."""
    Watched.coherence.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = select(Watched, X, criterion="heldout", n_components=sizes, random_state=0, time=seconds)
    return found, {k: float(np.mean(values)) for k, values in Watched.coherence.items()}


def show(result: Selection, coherence: dict[int, float], console: Console) -> None:
    """The curve as a table, and what was chosen."""
    table = Table("topics", "log p(hidden word)", "behind the best", "perplexity", "coherence", "folds", "seconds")
    for row in result.table.iter_rows(named=True):
        k, score = row["n_components"], row["heldout"]
        if score is None:
            table.add_row(str(k), row["note"] or "")
            continue
        behind = f"{row['behind']:.4f} ± {row['behind_error']:.4f}"
        figures = f"{score:.4f} ± {row['heldout_error']:.4f}", behind, f"{np.exp(-score):,.0f}", f"{coherence[k]:.3f}"
        mark = "*" if k == result.best_params["n_components"] else ""
        table.add_row(f"{k}{mark}", *figures, str(row["folds"]), f"{row['seconds']:.1f}")
    console.print(table)
    console.print(str(result))


def is_within_budget(rows: list[Row]) -> bool:
    return all(row.quality["seconds"] <= 1.1 * row.quality["budget"] for row in rows if row.seconds)


def newsgroups20(quick: bool) -> Event | Missing:
    data = newsgroups(quick)
    if isinstance(data, Missing):
        return data
    X, seconds = data[0], 60.0 if quick else 60.0 * MINUTES
    sizes = SIZES[::2] if quick else SIZES

    def run() -> tuple[Selection, dict[int, float]]:
        found = choose(X, sizes, seconds)
        show(*found, Console(stderr=True))
        return found

    def quality(result: tuple[Selection, dict[int, float]]) -> dict[str, float]:
        found, coherence = result
        k = found.best_params["n_components"]
        spent = float(found.table["seconds"].sum())
        return {"topics": k, "coherence": coherence[k], "seconds": spent, "budget": seconds}

    return Event(
        "select_lda newsgroups20",
        f"how many topics in 20 Newsgroups, {X.shape[0]:,} documents, of {', '.join(map(str, sizes))}",
        [Contestant("twofold.select", run, ours=True, warm=lambda: choose(X[:300], (2, 3), 10.0))],
        quality=quality,
        as_good=lambda a, b: True,
        bar=Bar("within its time budget, the last fit included", test=is_within_budget),
        budget=seconds,
        notes=["Half of the vocabulary is hidden from new documents, the other half tells their topics: five folds."],
    )


EVENTS = (newsgroups20,)
