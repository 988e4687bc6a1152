"""Two halves of Wikipedia's English, vectors learned apart: one turn, and the most frequent words find themselves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import orthogonal_procrustes

from bench.harness import Bar, Contestant, Event, Missing, Row, optional
from twofold import SkipGram, WordVectors, datasets
from twofold.core.checks import InputError
from twofold.words import align

DIMENSIONS, EPOCHS, MIN_COUNT = 100, 5, 10
FREQUENT, GIVEN = 5500, 11  # the words asked are the most frequent; one in so many is told to match, and not asked
FIRST, MIN_SELF_MATCH = 1000, 95.0  # % of the most frequent that find themselves


class Halves(NamedTuple):
    """Vectors of the two halves, and the words that both have, the most frequent first."""

    one: WordVectors
    other: WordVectors
    given: list[str]
    asked: list[str]

    def quality(self, answers: list[str]) -> dict[str, float]:
        hits = np.array([word == answer for word, answer in zip(self.asked, answers, strict=True)])
        shares = {f"of {len(hits):,} %": hits.mean(), f"of the first {FIRST:,} %": hits[:FIRST].mean()}
        return {name: 100 * float(share) for name, share in shares.items()}


def halves(quick: bool) -> Halves | Missing:
    """Every other article, and the rest; nothing is shared but the language."""
    try:
        lines = [line for line in datasets.fetch("wikipedia_en").documents if line]
    except InputError as why:
        return Missing("words_align wikipedia_en", str(why))
    lines = lines[: len(lines) // 8] if quick else lines
    one, other = (
        SkipGram(DIMENSIONS, max_iter=EPOCHS, min_count=MIN_COUNT, random_state=seed).fit(lines[seed::2]).vectors_
        for seed in (0, 1)
    )
    both = [word for word in one if word in other][:FREQUENT]
    given = both[GIVEN // 2 :: GIVEN]
    told = set(given)
    return Halves(one, other, given, [word for word in both if word not in told])


def ours(data: Halves, refine: int, method: str) -> list[str]:
    found = align(data.one, data.other, [(word, word) for word in data.given], refine=refine)
    return [answer[0][0] for answer in found.translate(data.asked, 1, method=method)]


def plain(data: Halves) -> list[str]:
    """SciPy's Procrustes and the nearest word by cosine, in a few lines."""
    X, Y = (v.vectors_ / np.linalg.norm(v.vectors_, axis=1, keepdims=True) for v in (data.one, data.other))
    rows, cols = ([v.place(word) for word in data.given] for v in (data.one, data.other))
    turn, _ = orthogonal_procrustes(X[rows], Y[cols])
    asked = X[[data.one.place(word) for word in data.asked]] @ turn
    return [str(data.other.words[at]) for at in (asked @ Y.T).argmax(axis=1)]


def gensim_entry(data: Halves, few: Halves) -> Contestant:
    from gensim.models import KeyedVectors
    from gensim.models.translation_matrix import TranslationMatrix

    def as_keyed_vectors(v: WordVectors) -> Any:
        out = KeyedVectors(v.vectors_.shape[1])
        out.add_vectors(v.words.tolist(), v.vectors_)
        return out

    def run(data: Halves) -> list[str]:
        one, other = as_keyed_vectors(data.one), as_keyed_vectors(data.other)
        model = TranslationMatrix(one, other, [(word, word) for word in data.given])
        found = model.translate(data.asked, topn=1, source_lang_vec=one, target_lang_vec=other)
        return [found[word][0] for word in data.asked]

    return Contestant("gensim", lambda: run(data), warm=lambda: run(few), note="any matrix, by least squares")


def as_good(a: dict[str, float], b: dict[str, float]) -> bool:
    return all(a[name] >= b[name] - 0.5 for name in a)


def enough(rows: list[Row]) -> bool:
    """Our first entry has found enough of the most frequent words, and no peer has found more of any."""
    mine, *_ = (row.quality for row in rows if row.ours and row.seconds)
    peers = [row.quality for row in rows if not row.ours and row.seconds]
    return mine[f"of the first {FIRST:,} %"] >= MIN_SELF_MATCH and all(
        mine[k] >= peer[k] for peer in peers for k in mine
    )


def wikipedia(quick: bool) -> Event | Missing:
    data = halves(quick)
    if isinstance(data, Missing):
        return data
    few = data._replace(asked=data.asked[:20])

    def entry(name: str, refine: int, method: str, **more: Any) -> Contestant:
        return Contestant(name, lambda: ours(data, refine, method), True, warm=lambda: ours(few, 0, method), **more)

    return Event(
        "words_align wikipedia_en",
        f"two halves of Wikipedia, {len(data.one):,} and {len(data.other):,} words, {len(data.given)} pairs given",
        [
            entry("twofold", 5, "csls"),
            entry("twofold, not refined", 0, "csls"),
            entry("twofold, nearest", 0, "nearest", counts=False),
            Contestant("SciPy and NumPy", lambda: plain(data), warm=lambda: plain(few), note="Procrustes, cosines"),
            optional("gensim", "gensim", lambda: gensim_entry(data, few)),
        ],
        quality=data.quality,
        as_good=as_good,
        bar=Bar(
            f"{MIN_SELF_MATCH:g} % of the {FIRST:,} most frequent find themselves, and no peer finds more", test=enough
        ),
        notes=[
            f"Skip-gram, D = {DIMENSIONS}, {EPOCHS} epochs, on every other article and on the rest.",
            f"One in {GIVEN} of the {FREQUENT:,} most frequent words of both is given, with itself as pair; the others "
            "are asked, and all words may be answers.",
        ],
        repeats=1,
    )


EVENTS = (wikipedia,)
