"""The quality of word vectors: analogies, and agreement with human judgments of similarity.

    accuracy     share of questions "a is to b as c is to d" whose best word, a, b, c left out, is d
    Spearman, Pearson   between the cosines of pairs of words and human scores

Case is ignored; the first of several spellings in the vocabulary represents all. Questions and pairs with a word that
has no vector are skipped and counted; `accuracy_of_all` counts skipped questions as wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import stats

from twofold.core.checks import InputError
from twofold.io.documents import number_lines
from twofold.words._nearest import Excluded, normalize_rows, solve_questions

NO_SECTION = "all"  # questions before the first section


class AnalogyScore(NamedTuple):
    """Results of analogy questions."""

    accuracy: float  # of the questions asked
    accuracy_of_all: float  # of all: skipped ones count as wrong
    correct: int
    asked: int
    skipped: int  # because a word is not in the vocabulary
    semantic: float  # accuracy of those asked, in sections whose names do not start with "gram"
    syntactic: float  # and in those whose names do
    sections: pl.DataFrame  # section, kind, accuracy, accuracy_of_all, correct, asked, skipped


class SimilarityScore(NamedTuple):
    """Agreement of cosines with human scores."""

    spearman: float  # correlation of ranks
    pearson: float  # of values
    asked: int
    skipped: int  # because a word is not in the vocabulary


class Spellings(NamedTuple):
    """Groups of words that differ by case only."""

    group: dict[str, int]  # folded spelling ↦ group, in the order of first members
    first: np.ndarray  # (G,) the word that represents a group
    of: np.ndarray  # (V,) the group of each word
    starts: np.ndarray  # (G+1,) where each group's members start in
    members: np.ndarray  # (V,)

    def places(self, words: list[str]) -> list[int]:
        return [self.group.get(word.casefold(), -1) for word in words]

    def exclude(self, groups: np.ndarray) -> Excluded:
        """For each row of groups (m,p), all their members."""
        sizes = np.diff(self.starts)[groups]  # (m,p)
        ends = np.cumsum(sizes)
        jump = self.starts[groups].ravel() - (ends - sizes.ravel())
        at = np.arange(ends[-1] if len(ends) else 0) + np.repeat(jump, sizes.ravel())
        return Excluded(np.concatenate([[0], np.cumsum(sizes.sum(axis=1))]).astype(np.int64), self.members[at])


def spellings(words: np.ndarray) -> Spellings:
    group: dict[str, int] = {}
    of = np.array([group.setdefault(word.casefold(), len(group)) for word in words.tolist()], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=len(group)))]).astype(np.int64)
    members = np.argsort(of, kind="stable")
    return Spellings(group, members[starts[:-1]], of, starts, members)


def solve_analogies(
    words: np.ndarray, W: np.ndarray, norms: np.ndarray, path: Any, vocabulary: int | None, method: str
) -> AnalogyScore:
    """Solve the questions of a file with words and vectors (V,k)."""
    if vocabulary is not None and (not isinstance(vocabulary, Integral) or vocabulary < 1):
        raise InputError(f"vocabulary={vocabulary!r} must be a whole number of at least 1, or None for all words.")
    words, W, norms = words[:vocabulary], W[:vocabulary], norms[:vocabulary]
    known = spellings(words)
    sections, of, questions = _read_questions(path, known)
    asked = np.all(questions >= 0, axis=1)
    quads = questions[asked]
    left = known.exclude(quads[:, :3])
    best = solve_questions(known.first[quads[:, :3]], W, norms, 1, left, method).words[:, 0]
    correct = np.zeros_like(asked)
    correct[asked] = (best >= 0) & (known.of[best] == quads[:, 3])
    return _analogy_score(sections, of, asked, correct)


def _read_questions(path: Any, known: Spellings) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The sections' names, the section of each question, and its four words as groups (m,4), -1 where unknown."""
    sections: list[str] = []
    of: list[int] = []
    questions: list[list[int]] = []
    for number, line in _lines(path):
        fields = line.split()
        if line.startswith(":"):
            sections.append(line[1:].strip() or f"section {len(sections) + 1}")
            continue
        if len(fields) != 4:
            raise InputError(
                f"{os.fspath(path)}, line {number} has {len(fields)} words; a question has four: a b c d, a is to b as "
                'c is to d. The names of sections start with ":".'
            )
        if not sections:
            sections.append(NO_SECTION)
        of.append(len(sections) - 1)
        questions.append(known.places(fields))
    if not questions:
        raise InputError(f"{os.fspath(path)} has no questions in it. A line is one: a b c d, a is to b as c is to d.")
    return sections, np.array(of), np.array(questions, dtype=np.int64)


def _analogy_score(sections: list[str], of: np.ndarray, asked: np.ndarray, correct: np.ndarray) -> AnalogyScore:
    n, m, hit = (np.bincount(of, weights=w, minlength=len(sections)).astype(int) for w in (of >= 0, asked, correct))
    syntactic = np.array([name.casefold().startswith("gram") for name in sections])
    table = pl.DataFrame(
        {
            "section": sections,
            "kind": np.where(syntactic, "syntactic", "semantic").tolist(),
            "accuracy": [share(*pair) for pair in zip(hit, m, strict=True)],
            "accuracy_of_all": [share(*pair) for pair in zip(hit, n, strict=True)],
            "correct": hit,
            "asked": m,
            "skipped": n - m,
        }
    )
    total, done, right = int(n.sum()), int(m.sum()), int(hit.sum())
    semantic, syntax = (share(hit[kind].sum(), m[kind].sum()) for kind in (~syntactic, syntactic))
    return AnalogyScore(share(right, done), share(right, total), right, done, total - done, semantic, syntax, table)


def share(part: Any, whole: Any) -> float:
    """part/whole, or NaN if the whole is 0."""
    return float(part) / float(whole) if whole else float("nan")


def compare_similarities(words: np.ndarray, W: np.ndarray, norms: np.ndarray, path: Any) -> SimilarityScore:
    """Compare the cosines of a file's pairs with its scores."""
    known = spellings(words)
    places, scores = _read_pairs(path, known)
    asked = (places >= 0).all(axis=1)
    a, b = known.first[places[asked]].T
    x, y = (normalize_rows(W[at].astype(np.float64), norms[at]) for at in (a, b))
    cosine = np.einsum("ij,ij->i", x, y)
    scores = scores[asked]
    varies = len(scores) > 1 and np.ptp(scores) > 0 and np.ptp(cosine) > 0  # else no correlation is defined
    spearman = float(stats.spearmanr(cosine, scores).statistic) if varies else float("nan")
    pearson = float(stats.pearsonr(cosine, scores).statistic) if varies else float("nan")
    return SimilarityScore(spearman, pearson, int(asked.sum()), int((~asked).sum()))


def _read_pairs(path: Any, known: Spellings) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of words as groups (m,2), -1 where unknown, and the scores (m,); a header line is skipped."""
    places: list[list[int]] = []
    figures: list[float] = []
    started = False
    for number, line in _lines(path):
        fields = [field.strip() for field in line.split("\t" if "\t" in line else "," if "," in line else None)]
        figure = _figure(fields[2]) if len(fields) > 2 else None
        if figure is None and not started and len(fields) > 2:
            started = True
            continue
        started = True
        if figure is None:
            raise InputError(
                f"{os.fspath(path)}, line {number} is {line[:40]!r}; a pair is two words and a number, with tabs, "
                "commas or spaces between."
            )
        places.append(known.places(fields[:2]))
        figures.append(figure)
    if not figures:
        raise InputError(f"{os.fspath(path)} has no pairs in it. A line is one: two words and a number.")
    return np.array(places, dtype=np.int64), np.array(figures)


def _figure(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _lines(path: Any) -> Iterator[tuple[int, str]]:
    """The lines of a file that are neither empty nor a comment, with their numbers."""
    if not isinstance(path, (str, os.PathLike)) or os.path.isdir(path):
        raise InputError(f"{path!r} is not the path of a file.")
    for number, line in number_lines(path):
        if line.strip() and not line.startswith("#"):
            yield number, line.strip()
