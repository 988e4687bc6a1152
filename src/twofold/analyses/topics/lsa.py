"""Latent semantic analysis of documents: directions in which they differ, with words at both ends of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl
import scipy.sparse as sp

import twofold
from twofold.analyses.common.answer import Answer, Grid, count
from twofold.analyses.common.tables import warnings_as_notes
from twofold.core.seeds import generator
from twofold.io.documents import Documents
from twofold.text.snippets import cut, snippet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRIED = (3, 5, 8, 12, 18, 26, 40)
MAX_SAMPLE = 2_000  # documents by which the number is chosen, or that are held out
MIN_DOCUMENTS = 20  # of which some can be held out
WORDS_PER_END = 6
FIGURE_COLORS, FIGURE_WORDS = 8, 10  # of each direction
LINE_CHARACTERS = 68  # of a document


@dataclass(kw_only=True, repr=False, eq=False)
class AboutDocuments(Answer):
    """What answers about documents and their words share."""

    documents: Documents
    vocabulary: np.ndarray  # (d,) words
    counts: Any  # (n,d) CSR, in memory or on disk

    beside: ClassVar[tuple[str, ...]] = ("words",)

    @property
    def heading(self) -> str:
        n, d = self.counts.shape
        return f"{self.source}: {n:,} documents, {int(self.counts.sum()):,} words ({d:,} different)"

    def tabulate(self, names: list[pl.Series], figures: dict[str, np.ndarray]) -> pl.DataFrame:
        """Columns that name the documents, and figures of them; a name that is a figure's is said to be given."""
        return pl.DataFrame([c.alias(f"{c.name} (given)") if c.name in figures else c for c in names]).with_columns(
            **figures
        )

    def tabulate_words(self, columns: dict[str, np.ndarray]) -> pl.DataFrame:
        """The words and their counts, the most frequent first, beside other columns."""
        total = np.asarray(self.counts.sum(axis=0)).ravel().astype(np.int64)
        frame = pl.DataFrame({"word": [str(word) for word in self.vocabulary], "count": total} | columns)
        return frame.sort("count", descending=True, maintain_order=True)

    def facts(self) -> dict[str, Any]:
        n, d = self.counts.shape
        return {"documents": n, "tokens": int(self.counts.sum()), "words": d}


@dataclass(kw_only=True, repr=False, eq=False)
class Directions(AboutDocuments):
    """Directions of documents and words, the strongest first; their signs are by convention."""

    codes: np.ndarray  # (n,k)

    @property
    def k(self) -> int:
        return self.codes.shape[1]

    @property
    def outcome(self) -> str:
        return f"{count(self.k, 'direction')} by LSA"

    @cached_property
    def table(self) -> pl.DataFrame:
        """Names of the documents, and where each lies along every direction."""
        own = self.documents
        names = [own.ids] if own.titles is None or own.titles.name == own.ids.name else [own.ids, own.titles]
        return self.tabulate(names, {f"direction_{c + 1}": self.codes[:, c] for c in range(self.k)})

    @cached_property
    def words(self) -> pl.DataFrame:
        """The words with their counts, and the weight of each in each direction."""
        return self.tabulate_words({f"direction_{c + 1}": self.model.components_[c] for c in range(self.k)})

    def ends(self, c: int) -> tuple[list[str], list[str]]:
        """The words with the largest weights in direction c, and those with the smallest, if below zero."""
        weights = self.model.components_[c]
        order = np.argsort(-weights, kind="stable")
        above, below = order[:WORDS_PER_END], order[::-1][:WORDS_PER_END]
        most_below = 0.2 * weights.max()  # a direction that all words share has one end alone
        return (
            [str(self.vocabulary[j]) for j in above if weights[j] > 0],
            [str(self.vocabulary[j]) for j in below if weights[j] < -most_below],
        )

    def grids(self) -> list[Grid]:
        shares = self.model.explained_variance_ratio_
        rows = []
        for c in range(self.k):
            above, below = self.ends(c)
            own = self.farthest(c, above)
            words = " ".join(above) + (f"\n− {' '.join(below)}" if below else "")
            rows.append([str(c + 1), f"{shares[c]:.1%}", float(shares[c] / shares.max()), f"{words}\n· {own}"])
        head = ["direction", "share", "", "words at its ends, and the document farthest along it"]
        return [Grid(head, rows, right=(1,), most=10, rest="directions")]

    def farthest(self, c: int, words: Sequence[str]) -> str:
        """The document farthest along direction c: its name, if it has one, or the part of it that says most."""
        own, i = self.documents, int(self.codes[:, c].argmax())
        if own.named or own.titles is not None:
            return cut(own.call(i), LINE_CHARACTERS)
        return add_snippet(f"{own.ids.name} {own.ids[i]}", own.texts[i], words)

    def lines(self) -> list[str]:
        if not self.figures:
            return ["held out: nothing"]
        own, plain, n = self.figures["kept"], self.baseline["kept"], self.figures["documents"]
        return [f"held out: of {n:,} documents not fitted {own:.1%} is kept, by one direction alone {plain:.1%}"]

    def facts(self) -> dict[str, Any]:
        shares = self.model.explained_variance_ratio_
        names = ("direction", "share", "above", "below")
        parts = [dict(zip(names, (c + 1, shares[c], *self.ends(c)), strict=True)) for c in range(self.k)]
        return super().facts() | {"model": "LSA", "n_directions": self.k, "directions": parts}

    def plot(self) -> Figure:
        """Documents along the second and third direction (the first is what all share), colored by the strongest."""
        from twofold.plots.models.topics import documents_figure

        first = 1 if self.k > 2 else 0
        pair = [first, min(first + 1, self.k - 1)]
        main = np.abs(self.codes[:, first : first + FIGURE_COLORS]).argmax(axis=1) + first
        groups = [f"{c + 1:>2} {' '.join(self.ends(c)[0][:3])}" for c in main]
        at, Z = self.codes[:, pair], self.model.components_[pair].T
        strong = np.unique(np.argsort(-np.abs(Z), axis=0, kind="stable")[:FIGURE_WORDS])
        places = Z * (np.abs(at).max() / max(float(np.abs(Z).max()), 1e-300))
        return documents_figure(at, groups, {str(self.vocabulary[j]): places[j] for j in strong})


def add_snippet(name: str, text: str, words: Sequence[str]) -> str:
    """A document's name and the part of it that has most of the words, of which the first weigh most."""
    rank = {word: 1.0 / (3 + r) for r, word in enumerate(words)}
    return f"{name}: {snippet(text, rank, LINE_CHARACTERS - len(name) - 2)}"


def find_directions(
    documents: Documents, X: sp.csr_array, bag: Any, k: int | None, chosen: dict, seed: int
) -> Directions:
    """Fit LSA to counts X (n,d); how many directions, if it is not said, is chosen by words held out."""
    X, notes = X.astype(np.float64), documents.notes
    some = X[np.sort(generator(seed, 2).permutation(X.shape[0])[:MAX_SAMPLE])]
    sizes = [size for size in TRIED if size <= min(some.shape) // 2]
    if k is None and (len(sizes) < 2 or some.shape[0] < MIN_DOCUMENTS):
        k = min(TRIED[0], *X.shape)
        notes.append(f"{k} directions: too few documents to choose by; ⟨n_topics⟩ sets another number")
    with warnings_as_notes(notes):
        if k is None:
            found = twofold.select(twofold.LSA(random_state=seed), some, random_state=seed, n_components=sizes)
            k = int(found.best_params["n_components"])
            notes.append(
                f"{k} directions: of {', '.join(map(str, sizes))} tried, by words held out; ⟨n_topics⟩ sets another"
            )
        model = twofold.LSA(k, random_state=seed).fit(X)
        figures, baseline = measure(X, k, seed, notes)
    model.bag_of_words_ = bag
    return Directions(
        source=documents.source,
        model=model,
        figures=figures,
        baseline=baseline,
        notes=notes,
        chosen=chosen | {"n_topics": k},
        documents=documents,
        vocabulary=bag.vocabulary_,
        counts=X,
        codes=np.asarray(model.transform(X)),
    )


def measure(X: sp.csr_array, k: int, seed: int, notes: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of a tenth of the documents: the share of their squared length that directions of the others keep."""
    rows = generator(seed, 3).permutation(np.flatnonzero(np.diff(X.indptr) > 0))
    if len(rows) < MIN_DOCUMENTS:
        notes.append(f"too few documents ({len(rows)}) to hold any out")
        return {}, {}
    tenth = min(len(rows) // 10, MAX_SAMPLE)
    test, train = X[rows[:tenth]], X[rows[tenth:]]
    own, one = (
        float((twofold.LSA(min(size, *train.shape), random_state=seed).fit(train).transform(test) ** 2).sum() / tenth)
        for size in (k, 1)
    )
    figures = {"what": "share of the squared length that is kept in documents not fitted", "documents": tenth}
    return figures | {"kept": own}, {"method": "one direction alone", "kept": one}
