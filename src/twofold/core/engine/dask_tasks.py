"""Tasks on dask.distributed: a handle is a future, whose recipe the scheduler keeps as long as anyone needs it.

Futures that the client has let go stay known as long as a later one was made of them, so a lost result is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from uuid import uuid4

from twofold.core.config import config
from twofold.core.engine.dask import DaskEngine, engine_of_files
from twofold.core.engine.tasks import Tasks, list_pieces, read_saved, run_in_budget, watch_tasks


class DaskTasks(Tasks):
    """On the workers of a cluster, each of which keeps to the memory budget with the tasks of `task_bytes` it runs."""

    costly = True

    def __init__(self, client: Any, task_bytes: int):
        self.client, self.sign, self.counter = client, uuid4().hex[:8], count()
        self.task_bytes = task_bytes
        threads = client.nthreads()
        self.workers, self.threads = max(1, len(threads)), max(1, sum(threads.values()))

    def submit(self, fn: Callable[..., Any], *args: Any) -> Any:
        key = f"{fn.__name__}-{self.sign}-{next(self.counter)}"
        DaskEngine.tasks += 1
        return self.client.submit(run_in_budget, config().memory, self.task_bytes, fn, *args, key=key)

    def hold(self, value: Any) -> Any:
        return DaskEngine(self.client).hold(value)

    def gather(self, handles: Sequence[Any], label: str = "") -> list[Any]:
        watch_tasks(handles, label)
        return DaskEngine(self.client).fetch(list(handles))

    def load(self, saved: Any) -> Any:
        return self.submit(read_saved, saved)

    def frames(self, collection: Any) -> list[Any]:
        return self.client.compute(list_pieces(collection))


def find_cluster(task_bytes: int) -> DaskTasks | None:
    """The tasks of the client in force, if any; within a task there is none."""
    engine = engine_of_files()
    return DaskTasks(engine.client, task_bytes) if isinstance(engine, DaskEngine) else None
