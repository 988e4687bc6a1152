"""Randomness that depends on its use, never on the order of calls: (seed, path) → generator."""

from __future__ import annotations

import numpy as np

from twofold.core.types import Seed


def seed_of(random_state: Seed) -> int:
    """One integer from an int, None, RandomState or Generator.

    >>> seed_of(7)
    7
    """
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    from sklearn.utils import check_random_state  # late: drawing from a seed does not need scikit-learn

    return int(check_random_state(random_state).randint(2**31 - 1))


def generator(seed: int, *path: int) -> np.random.Generator:
    """The generator that belongs to a place: generator(seed, sweep, block) is the same on any thread or worker."""
    return np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=path))
