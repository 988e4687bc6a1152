"""A station's models are fitted once a session: the page shows the very parts that the tests look at."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from twofold.tour import EXTRAS, STATIONS

FITTED_ONCE = {
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
        for title, name in STATIONS.items():
            if title not in EXTRAS or find_spec(EXTRAS[title][0]):
                module = import_module(f"twofold.tour.{name}")
                for function in FITTED_ONCE.get(name, []):
                    patch.setattr(module, function, remember(getattr(module, function)))
        yield
