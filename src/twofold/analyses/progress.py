"""How an analysis reports what it is doing.

An analysis takes a `Progress` and tells it; this one is silent. The command line has one that draws bars on a
terminal and prints lines elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Progress:
    """Says nothing."""

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Something goes on whose length is not known."""
        yield

    @contextmanager
    def share(self, what: str) -> Iterator[Callable[[float], Any] | None]:
        """Something goes on that tells how far it is: a function to be called with the share that is done, or None."""
        yield None

    @contextmanager
    def passes(self, what: str = "") -> Iterator[None]:
        """Passes over blocks go on, which are counted as threads or workers finish them; `what`, if they do not say."""
        yield

    def callbacks(self) -> list[Any]:
        """Callbacks for a model's `fit`."""
        return []


SILENT = Progress()
