"""What is measured of a service, for Prometheus: requests, their time, batches, the queue, versions."""

from __future__ import annotations

import functools
import time
from collections.abc import Awaitable, Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from twofold.web.requests import Refused, TooLarge

MEDIA_TYPE = "text/plain; version=0.0.4"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

registry = CollectorRegistry()
requests = Counter("twofold_requests", "Requests answered", ["model", "operation", "status"], registry=registry)
seconds = Histogram(
    "twofold_request_seconds", "Time of requests", ["model", "operation"], registry=registry, buckets=SECONDS
)
batch_size = Histogram(
    "twofold_batch_size", "Requests answered together", registry=registry, buckets=(1, 2, 4, 8, 16, 32, 64)
)
batch_seconds = Histogram("twofold_batch_seconds", "Time of the model itself", registry=registry, buckets=SECONDS)
queue = Gauge("twofold_queue", "Requests that wait", ["model"], registry=registry)
failures = Gauge("twofold_reload_failures", "Changed files that could not be loaded", ["model"], registry=registry)
version = Gauge("twofold_model_since_seconds", "When a version was loaded", ["model", "version"], registry=registry)


def measure(model: str, operation: str) -> Callable[[Callable[..., Awaitable[Any]]], Callable[..., Awaitable[Any]]]:
    """Count the requests of one operation by status, and time them."""

    def wrap(handler: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(handler)
        async def run(*args: Any, **options: Any) -> Any:
            start, status = time.perf_counter(), 500
            try:
                answer = await handler(*args, **options)
                status = answer.status_code
                return answer
            except (Refused, TooLarge) as error:
                status = getattr(error, "status", 413)
                raise
            finally:
                requests.labels(model, operation, status).inc()
                seconds.labels(model, operation).observe(time.perf_counter() - start)

        return run

    return wrap


def record_batch(size: int, took: float) -> None:
    """Measure one call of a model."""
    batch_size.observe(size)
    batch_seconds.observe(took)


def observe_queue(name: str, batcher: Any) -> None:
    """Let the gauge of a model read the length of its queue."""
    queue.labels(name).set_function(lambda: len(batcher.waiting))


def write(models: dict[str, Any]) -> bytes:
    """All measurements as text."""
    version.clear()
    for name, model in models.items():
        version.labels(name, model.current.version).set(model.current.since)
        failures.labels(name).set(model.failures)
    return generate_latest(registry)
