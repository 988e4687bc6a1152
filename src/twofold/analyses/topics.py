"""What `twofold topics` does between reading and writing: count, choose, fit, measure, find telling documents."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from twofold.analyses._tables import warnings_as_notes
from twofold.analyses._topic_models import fit, mixtures_of, reorder
from twofold.analyses._topic_number import choose_number, held_out
from twofold.analyses._topic_words import counted
from twofold.cli._console import waiting
from twofold.core.checks import InputError
from twofold.io.dates import in_periods
from twofold.io.documents import Documents

FEWEST = 4  # documents
TOP = 10  # words that stand for a topic
TELLING = 3  # documents that do
COPY = 0.7  # cosine of two documents' counts from which one is taken for a copy of the other
SETTLED = 25.0  # words from which a document's mixture is taken at its word


@dataclass
class Topics:
    """Fitted topics and what is worth telling about them; topic 0 is the one most talked about."""

    documents: Documents
    kind: str
    model: Any
    words: np.ndarray  # (d,)
    counts: sp.csr_array  # (n,d)
    topics: np.ndarray  # (k,d) rows sum to one
    mixtures: np.ndarray  # (n,k) rows sum to one
    shares: np.ndarray  # (k,) of all words
    choice: dict[str, Any] | None  # ks, perplexities, coherences, best
    tested: dict[str, Any]
    telling: list[list[int]] = field(default_factory=list)  # documents, for each topic
    over_time: tuple[np.ndarray, np.ndarray, str] | None = None  # periods (t,), shares (t,k), what a period is
    seconds: float = 0.0

    @property
    def notes(self) -> list[str]:
        return self.documents.notes

    @property
    def k(self) -> int:
        return len(self.shares)

    def top(self, c: int, most: int = TOP) -> list[str]:
        """The words that tell topic c best: probable in it, and more so than in all documents."""
        order = np.argsort(-self.telling_words[c], kind="stable")[:most]
        return [str(self.words[j]) for j in order if self.topics[c, j] > 0]

    @cached_property
    def telling_words(self) -> np.ndarray:
        """(k,d) p(j|c) log p(j|c) / p(j): what each word adds to the divergence of a topic from all text."""
        overall = self.shares @ self.topics
        lift = np.divide(self.topics, overall, out=np.ones_like(self.topics), where=self.topics > 0)
        return self.topics * np.log(lift)


def analyse(
    documents: Documents,
    kind: str,
    k: int | None,
    stop_words: str | None,
    seed: int,
    quiet: bool = True,
) -> Topics:
    """Topics of some documents; how many is chosen unless told, and what they are worth seen on documents held out."""
    start = time.perf_counter()
    notes = documents.notes
    check_enough(documents)
    with waiting("counting words", quiet):
        X, words = counted(documents, stop_words, notes)
    if k is not None and k > min(X.shape):
        raise InputError(f"-k {k}: there are {X.shape[0]} documents and {X.shape[1]} words, so at most {min(X.shape)}.")
    choice = None
    if k is None:
        with waiting("trying numbers of topics", quiet), warnings_as_notes([]):
            k, choice = choose_number(kind, X, seed, notes)
    with waiting("fitting without a tenth of the documents", quiet), warnings_as_notes([]):
        tested = held_out(kind, X, k, seed, notes)
    with warnings_as_notes(notes):
        model, topics = fit(kind, X, k, seed, quiet)
        mixtures = mixtures_of(kind, model, X)
    lengths = np.asarray(X.sum(axis=1)).ravel()
    shares = lengths @ mixtures / lengths.sum()
    order = np.argsort(-shares, kind="stable")
    reorder(model, order, words)
    found = Topics(documents, kind, model, words, X, topics[order], mixtures[:, order], shares[order], choice, tested)
    found.telling = [telling(found, c, lengths) for c in range(found.k)]
    if documents.dates is not None:
        found.over_time = prevalence(documents.dates, found.mixtures, lengths, notes)
    found.seconds = time.perf_counter() - start
    return found


def check_enough(documents: Documents) -> None:
    n = len(documents.texts)
    if n < FEWEST:
        raise InputError(
            f"{documents.source} holds {n} document{'s' if n != 1 else ''}; topics are what several have in common, so "
            f"give at least {FEWEST}. (Of one file each line is a document, of a folder each file.)"
        )


def telling(found: Topics, c: int, lengths: np.ndarray) -> list[int]:
    """The documents most about topic c; short ones, of which little is known, come later, and copies not at all."""
    score = found.mixtures[:, c] * lengths / (lengths + SETTLED)
    order = np.argsort(-score, kind="stable")[: 20 * TELLING]
    rows = found.counts[order].astype(np.float64)
    norm = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    alike = (rows @ rows.T).toarray() / np.maximum(np.outer(norm, norm), 1e-300)
    out: list[int] = []
    for i in range(len(order)):
        if norm[i] > 0 and all(alike[i, j] < COPY for j in out):
            out.append(i)
        if len(out) == TELLING:
            break
    return [int(order[i]) for i in out]


def prevalence(
    dates: np.ndarray, mixtures: np.ndarray, lengths: np.ndarray, notes: list[str]
) -> tuple[np.ndarray, np.ndarray, str] | None:
    """The share of each topic in the words of each period; NaN where a period has none."""
    blank = int(np.isnat(dates).sum())
    if blank:
        notes.append(f"{blank:,} document{'s' if blank > 1 else ''} without a date: not in the picture over time")
    if blank == len(dates):
        return None
    starts, period, name = in_periods(dates)
    if len(starts) < 3:
        notes.append(f"all dates lie within {len(starts)} {name}{'s' if len(starts) > 1 else ''}: no picture over time")
        return None
    own = period >= 0
    sums = np.zeros((len(starts), mixtures.shape[1]))
    np.add.at(sums, period[own], lengths[own, None] * mixtures[own])
    total = sums.sum(axis=1, keepdims=True)
    return starts, np.where(total > 0, sums / np.where(total > 0, total, 1.0), np.nan), name
