"""What `twofold recommend` does between reading and writing: fit, measure on ratings held out, list."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from twofold import Recommender
from twofold.analyses._tables import warnings_as_notes
from twofold.cli._console import progress, waiting
from twofold.completion.recommender._ids import place, places
from twofold.core.checks import InputError
from twofold.io.ratings import Ratings

MOST_TESTED = 3_000_000  # ratings up to which a second fit, for the figures, is quick
LISTED = 5_000  # users whose lists say what is recommended most
EXAMPLES = 3  # users shown when none is asked for
REASONS = 3  # rated items named for each recommendation
TEST = 0.1  # of the ratings
_PAIR = re.compile(r"(.+?)\s*:\s*([+-]?\d+(?:\.\d+)?)\s*(?:,\s*|$)")


@dataclass
class Listing:
    """The recommendations for one person."""

    who: str
    frame: pl.DataFrame  # item, score
    reasons: list[list[tuple[Any, float]]]  # for each item, the rated items that carried it and their shares


@dataclass
class Recommending:
    """A fitted recommender and what is worth telling about it."""

    source: str
    model: Recommender
    n: int
    names: dict[Any, str]
    listings: list[Listing]
    often: list[tuple[Any, int]]  # items and in how many of the lists looked at
    looked_at: int
    figures: list[dict[str, Any]]  # one row a model, the own first
    tested: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def call(self, item: Any) -> str:
        return self.names.get(item, str(item))


def analyse(
    data: Ratings | Recommender,
    source: str,
    n: int,
    users: Sequence[str],
    newcomers: Sequence[str],
    explain: bool,
    names: dict[Any, str],
    seed: int,
    quiet: bool = True,
) -> Recommending:
    """Fit to the ratings (or take a fitted recommender), measure, and list for those asked for, or for a few."""
    start = time.perf_counter()
    notes: list[str] = []
    figures: list[dict[str, Any]] = []
    tested: dict[str, Any] = {}
    if isinstance(data, Ratings):
        notes = data.notes
        model = fit(data, seed, quiet, notes)
        figures, tested = measure(model, n, seed, quiet, notes)
        notes.append(about(model))
    else:
        model = data
        notes.append(f"{source} is a fitted recommender: nothing is fitted or measured again")
    found = Recommending(source, model, n, names, [], [], 0, figures, tested, notes)
    with waiting("recommending", quiet):
        found.listings = [for_user(found, user, explain) for user in users]
        found.listings += [for_new(found, list(newcomers), explain)] if newcomers else []
        if not found.listings:
            found.often, found.looked_at = most_often(model, n)
            found.listings = [for_user(found, user, explain) for user in examples(model)]
    found.seconds = time.perf_counter() - start
    return found


def fit(data: Ratings, seed: int, quiet: bool, notes: list[str]) -> Recommender:
    columns = {role: name for role, name in data.columns.items() if name is not None}
    model = Recommender(**columns, random_state=seed)
    with warnings_as_notes(notes):
        model.set_callbacks(*progress(quiet)).fit(data.frame)
    again = data.frame.height - model.ratings_.nnz
    if again:
        what = "added up" if model.implicit_ else "averaged"
        notes.append(f"{again:,} row{'s' if again > 1 else ''} repeat a user and an item, and are {what}")
    return model.set_callbacks()


def about(model: Recommender) -> str:
    """What was chosen, and how it did on the ratings it held out to decide."""
    choice = model.choice_
    line = f"model {choice['model']}: {choice['why']}"
    if "score" in choice:
        line += f" ({choice['measure']} {choice['score']:.3f}, {choice['baseline']} {choice['baseline_score']:.3f})"
    return line


def measure(
    model: Recommender, n: int, seed: int, quiet: bool, notes: list[str]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The whole of it again without some of the ratings, which are then looked at."""
    count = model.ratings_.nnz
    if count > MOST_TESTED:
        notes.append(f"{count:,} ratings: not fitted a second time for the figures")
        return [], {}
    if count < 100:
        notes.append(f"too few ratings ({count}) to hold any out")
        return [], {}
    with waiting("fitting again without a tenth of the ratings", quiet), warnings_as_notes([]):
        found = model.evaluate(test_size=TEST, n=n, random_state=seed + 1)
    tested = {
        "ratings": found.ratings,
        "users": found.users,
        "unseen": found.unseen,
        "relevant": found.relevant,
        "n": n,
    }
    rows = found.table.to_dicts()
    popular = next((row["ndcg"] for row in rows if row["model"] == "popularity"), None)
    if (popular or 0) > (rows[0]["ndcg"] or 0):
        notes.append(
            "popularity alone finds more of the items held out: "
            + (
                "there is little to learn about most users"
                if model.implicit_
                else "people rate what everybody has seen, and lists put first what would be rated highest"
            )
        )
    return rows, tested


# --- lists --------------------------------------------------------------------------------------------------


def examples(model: Recommender) -> list[Any]:
    """A few users to show: the ones with the most, a middling number, and the fewest ratings."""
    order = np.argsort(-np.diff(model.ratings_.indptr), kind="stable")
    at = dict.fromkeys([0, len(order) // 2, len(order) - 1])
    return [model.users_[order[i]] for i in list(at)[:EXAMPLES]]


def most_often(model: Recommender, n: int) -> tuple[list[tuple[Any, int]], int]:
    """The items in most lists, and how many lists were looked at."""
    counts: Counter = Counter()
    users = 0
    for frame in model.recommend_all(n) or ():
        counts.update(frame["item"].to_list())
        users += frame["user"].n_unique()
        if users >= LISTED:
            break
    return counts.most_common(n), users


def for_user(found: Recommending, user: Any, explain: bool) -> Listing:
    model = found.model
    row = place(model.users_, user, "user")
    frame = model.recommend(user, found.n)
    reasons = []
    if explain:
        x = model.ratings_[[row]]
        reasons = [because(model, x, item) for item in frame["item"].to_list()]
    return Listing(str(model.users_[row]), frame, reasons)


def for_new(found: Recommending, newcomers: list[str], explain: bool) -> Listing:
    model = found.model
    ratings = parse_new(newcomers, found)
    frame = model.recommend_new(ratings, found.n)
    reasons = []
    if explain:
        from twofold.completion.recommender._ratings_table import row_of

        x, _ = row_of(ratings, model.items_, model.implicit_, model.ratings_.dtype)
        reasons = [because(model, x, item) for item in frame["item"].to_list()]
    return Listing("new", frame, reasons)


def because(model: Recommender, x: Any, item: Any) -> list[tuple[Any, float]]:
    """The rated items that spoke most for a recommendation, with their shares in it."""
    from twofold.completion.recommender._explain import contributions

    shares = contributions(model.model_, x, int(places(model.items_, [item])[0]))
    order = np.argsort(-shares, kind="stable")[:REASONS]
    return [(model.items_[x.indices[j]], float(shares[j])) for j in order if shares[j] > 0]


def parse_new(texts: Sequence[str], found: Recommending) -> dict[Any, float]:
    """Ratings as `id:5,id:3`, in one option or several; ids may hold commas and colons.

    An id ends at a colon with a number behind it, after which there is a comma or the end. If that would cut an id in
    two, it is given in an option of its own: what is left of the last colon is tried as one id first.
    """
    model = found.model
    named = {name: item for item, name in found.names.items()}
    out: dict[Any, float] = {}
    for text in texts:
        for word, value in pairs_in(text, model, named):
            item = named.get(word, word)
            at = place(model.items_, item, "item")
            low, high = model.range_
            if not model.implicit_ and not low <= value <= high:
                raise InputError(f"--new {word}:{value:g}: the ratings go from {low:g} to {high:g}. Give one of these.")
            out[model.items_[at]] = value
    return out


def pairs_in(text: str, model: Recommender, named: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """The pairs of one option."""

    def known(word: str) -> bool:
        return word in named or int(places(model.items_, [word])[0]) >= 0

    head, _, tail = text.rpartition(":")
    if known(head.strip()) and _PAIR.fullmatch(f"x:{tail.strip()}"):
        yield head.strip(), float(tail)
        return
    if model.implicit_ and (known(text.strip()) or not _PAIR.search(text)):
        yield from ((word.strip(), 1.0) for word in ([text] if known(text.strip()) else text.split(",")))
        return
    at = 0
    while at < len(text.rstrip()):
        pair = _PAIR.match(text, at)
        if pair is None:
            raise InputError(
                f'--new "{text}": "{text[at:]}" has no rating. Write ITEM:RATING, with commas between pairs.'
            )
        yield pair[1].strip(), float(pair[2])
        at = pair.end()
