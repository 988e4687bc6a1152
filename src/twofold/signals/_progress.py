"""How far a long job is: a function that is told the share that is done, from 0 to 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Progress = Callable[[float], Any]


def split_progress(progress: Progress | None, i: int, n: int) -> Progress:
    """The progress of job i of n, as progress of all."""
    return (lambda share: None) if progress is None else (lambda share: progress((i + share) / n))


class Sweeps:
    """A callback of a fit that tells the share of its sweeps that are done."""

    def __init__(self, tell: Progress, n: int):
        self.tell, self.n, self.done = tell, n, 0

    def setup(self, estimator: Any, context: Any) -> None: ...

    def teardown(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        if context.parent is not None:
            self.done += 1
            self.tell(self.done / self.n)
