"""A seeded world of films and their ratings by people.

    rating = stars(3.1 + b_i + c_j + ⟨U_i, Z_j⟩ + noise)

    b (n,) how generous a person is    c (m,) how good a film is
    Z (m,g) the film's genres          U (n,g) the person's taste in them

Who rates what is not random: some people rate a lot, some films are seen by everyone, and people choose what
they like. That is what makes real ratings hard, and this keeps it.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from sklearn.utils import Bunch

from twofold.core.checks import InputError

MEAN, NOISE = 3.1, 0.6
GENRES = {
    "Adventure": ["River", "Compass", "Island", "Caravan", "Mountain", "Voyage", "Jungle", "Treasure"],
    "Comedy": ["Wedding", "Uncle", "Parrot", "Holiday", "Neighbor", "Umbrella", "Picnic", "Landlord"],
    "Crime": ["Alibi", "Witness", "Ledger", "Detective", "Harbour", "Verdict", "Informer", "Vault"],
    "Drama": ["Daughter", "Letter", "Winter", "Orchard", "Promise", "Silence", "Father", "Farewell"],
    "Family": ["Puppy", "Balloon", "Lighthouse", "Snowman", "Pony", "Toymaker", "Treehouse", "Otter"],
    "Horror": ["Cellar", "Mirror", "Whisper", "Asylum", "Scarecrow", "Fog", "Coffin", "Visitor"],
    "Romance": ["Kiss", "Summer", "Violin", "Dancer", "Rose", "Balcony", "Waltz", "Stranger"],
    "Space": ["Orbit", "Comet", "Android", "Signal", "Colony", "Starship", "Nebula", "Gravity"],
}
ADJECTIVES = [
    "Last", "Silent", "Golden", "Broken", "Second", "Hidden", "Crimson", "Endless", "Lonely", "Little",
    "Wild", "Borrowed", "Midnight", "Forgotten", "Paper", "Distant", "Burning", "Perfect", "Northern", "Wax",
]  # fmt: skip


def ratings(n_users: int = 500, n_items: int = 300, seed: int = 0) -> Bunch:
    """Film ratings in half stars, from a generator whose every number is known.

    Parameters
    ----------
    n_users, n_items : int, default=500, 300
    seed : int, default=0
        The same seed gives the same films, people and ratings.

    Returns
    -------
    Bunch
        ``ratings``: frame of user (0 to n_users - 1), item (the film's title) and rating (0.5 to 5), about
        7 % of all pairs. ``films``: frame of item, year, genres; row j is film j. ``truth``: ``expected``
        (n_users, n_items), the rating without noise and rounding, ``user_bias``, ``item_bias``, ``tastes``
        (n_users, 8), ``genres`` (n_items, 8) and ``noise``, the standard deviation that was added.

    Examples
    --------
    >>> world = ratings(n_users=100, n_items=50)
    >>> world.ratings.columns
    ['user', 'item', 'rating']
    >>> world.truth.expected.shape
    (100, 50)
    """
    if min(n_users, n_items) < 2:
        raise InputError(f"ratings needs at least 2 users and 2 items, not {n_users} and {n_items}.")
    rng = np.random.default_rng(seed)
    films, Z = _films(n_items, rng)
    U = rng.normal(scale=0.8, size=(n_users, len(GENRES)))  # (n,g)
    U -= U.mean(axis=1, keepdims=True)  # generosity is the bias's, taste is only between genres
    b = rng.normal(scale=0.35, size=n_users)
    c = rng.normal(scale=0.45, size=n_items)
    expected = np.clip(MEAN + b[:, None] + c + U @ Z.T, 0.5, 5.0)  # (n,m)
    users, items = np.nonzero(_choose_pairs(expected, c, rng))
    stars = np.round(2 * rng.normal(expected[users, items], NOISE)) / 2
    frame = pl.DataFrame({"user": users, "item": films["item"].gather(items), "rating": np.clip(stars, 0.5, 5.0)})
    truth = Bunch(expected=expected, user_bias=b, item_bias=c, tastes=U, genres=Z, noise=NOISE)
    return Bunch(ratings=frame, films=films, truth=truth)


def _films(n: int, rng: np.random.Generator) -> tuple[pl.DataFrame, np.ndarray]:
    """Titles, years and genres; and the genres as rows of weights that sum to 1."""
    names, titles, kinds, years = list(GENRES), [], [], []
    Z = np.zeros((n, len(names)))
    taken: set[str] = set()
    for j in range(n):
        kind = rng.choice(len(names), size=int(rng.choice([1, 2, 3], p=[0.4, 0.45, 0.15])), replace=False)
        Z[j, kind] = rng.dirichlet(np.full(len(kind), 3.0))
        main = names[int(Z[j].argmax())]
        year = int(2024 - min(rng.exponential(18), 90))
        title = f"The {rng.choice(ADJECTIVES)} {rng.choice(GENRES[main])} ({year})"
        while title in taken:  # a sequel
            year += 1
            title = f"{title.rsplit(' (', 1)[0]} ({year})"
        taken.add(title)
        titles.append(title)
        years.append(year)
        kinds.append(sorted(names[g] for g in kind))
    return pl.DataFrame({"item": titles, "year": years, "genres": kinds}), Z


def _choose_pairs(expected: np.ndarray, quality: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw the pairs that are rated: about 8 % of all, every person and every film at least once."""
    n, m = expected.shape
    popular = rng.permutation(np.arange(1, m + 1) ** -0.7) * np.exp(quality)
    active = rng.lognormal(sigma=0.8, size=(n, 1))
    odds = active * popular * np.exp(0.7 * (expected - MEAN))  # (n,m)
    chance = np.minimum(odds * (0.08 * n * m / odds.sum()), 0.95)
    seen = rng.random((n, m)) < chance
    seen[np.arange(n), rng.integers(m, size=n)] |= ~seen.any(axis=1)
    seen[rng.integers(n, size=m), np.arange(m)] |= ~seen.any(axis=0)
    return seen
