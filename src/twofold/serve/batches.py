"""Requests gathered into batches: one call of the model answers those that came within a few milliseconds.

    request → queue (bounded: 503 beyond) → batch of equal options → one thread → answers, or 504 after the deadline

While a batch is computed the next one gathers, so that more load makes larger batches. If a batch fails, its requests
are answered one by one, so that each gets its own error.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from twofold.web.requests import Refused

MAX_BATCH = 64  # requests answered by one call
BUSY = "The queue is full. Ask again in a second."
LATE = "There was no answer within {:g} s."


class Request(NamedTuple):
    """A request that waits."""

    key: Any  # requests with equal keys are answered together
    content: dict[str, Any]
    answer: Callable[[list[dict[str, Any]]], list[Any]]
    future: asyncio.Future[Any]


class Batcher:
    """Answers requests in batches, in one thread."""

    def __init__(self, *, window: float, queue: int, deadline: float, on_batch: Callable[[int, float], None]):
        self.window, self.queue, self.deadline, self.on_batch = window, queue, deadline, on_batch
        self.waiting: deque[Request] = deque()
        self.arrived = asyncio.Event()
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="twofold-serve")
        self.task = asyncio.create_task(self.run())

    async def ask(self, key: Any, content: dict[str, Any], answer: Callable[[list[dict[str, Any]]], list[Any]]) -> Any:
        """The answer to one request; Refused if the queue is full or the deadline passes."""
        if len(self.waiting) >= self.queue:
            raise Refused(503, BUSY)
        future = asyncio.get_running_loop().create_future()
        self.waiting.append(Request(key, content, answer, future))
        self.arrived.set()
        try:
            async with asyncio.timeout(self.deadline):
                return await future
        except TimeoutError:
            raise Refused(504, LATE.format(self.deadline)) from None

    async def run(self) -> None:
        """Take batches from the queue until the server ends."""
        loop = asyncio.get_running_loop()
        while True:
            await self.arrived.wait()
            if self.window and len(self.waiting) < MAX_BATCH:
                await asyncio.sleep(self.window)
            while batch := self.take():
                start = time.perf_counter()
                results = await loop.run_in_executor(self.thread, answer_batch, batch)
                self.on_batch(len(batch), time.perf_counter() - start)
                for one, result in zip(batch, results, strict=True):
                    if one.future.done():
                        continue
                    if isinstance(result, Exception):
                        one.future.set_exception(result)
                    else:
                        one.future.set_result(result)
            self.arrived.clear()

    def take(self) -> list[Request]:
        """The next requests with equal keys, without those that are no longer waited for."""
        batch: list[Request] = []
        others: list[Request] = []
        while self.waiting and len(batch) < MAX_BATCH:
            one = self.waiting.popleft()
            if one.future.done():
                continue
            if not batch or (one.key is not None and one.key == batch[0].key):
                batch.append(one)
            else:
                others.append(one)
        self.waiting.extendleft(reversed(others))
        return batch

    def close(self) -> None:
        """End the thread; what waits is not answered."""
        self.task.cancel()
        self.thread.shutdown(wait=False, cancel_futures=True)


def answer_batch(batch: list[Request]) -> list[Any]:
    """The results of requests with equal keys: of one call, or of one call each if that one fails."""
    if len(batch) > 1:
        try:
            return batch[0].answer([one.content for one in batch])
        except Exception:  # whose fault it is shows when each is asked alone
            pass
    return [answer_one(one) for one in batch]


def answer_one(request: Request) -> Any:
    """The result of one request, or the exception that says what is wrong."""
    try:
        return request.answer([request.content])[0]
    except Refused as error:
        return error
    except (ValueError, KeyError, OverflowError) as error:  # what is asked does not fit the model, in its own words
        return Refused(422, str(error.args[0]) if error.args else type(error).__name__)
    except Exception as error:
        return error
