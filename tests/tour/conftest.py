"""A station's models are fitted once a session: the page shows the very parts that the tests look at."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from twofold.tour import EXTRAS, STATIONS

SLOW = {
    "topics": ["count_words", "packages", "numbers", "parts"],
    "words": ["learn_vectors", "products", "directions", "halves"],
    "signals": ["station"],
    "deep": ["train_judge", "reading", "codes", "walk", "game", "pixels"],
}


def remember(make: Callable) -> Callable:
    """Return `make` with a memory of its results; a world is the same if it is the same object."""
    made: dict[tuple, tuple] = {}

    @functools.wraps(make)
    def ask(*args: Any) -> Any:
        key = tuple(a if isinstance(a, int) else id(a) for a in args)
        if key not in made:
            made[key] = (make(*args), args)  # the arguments are kept, so that no other object takes their place
        return made[key][0]

    return ask


@pytest.fixture(scope="session", autouse=True)
def once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, place in STATIONS.items():
            module, _, _ = place.partition(":")
            if name not in EXTRAS or find_spec(EXTRAS[name][0]):
                for function in SLOW.get(module.rpartition(".")[2], []):
                    patch.setattr(f"{module}.{function}", remember(getattr(import_module(module), function)))
        yield
