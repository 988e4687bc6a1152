"""HTTP connections that are bounded: in number, and in the time until a request has come.

uvicorn limits neither, so that clients that open connections and send nothing, or a byte now and then, would hold them
without end. Here such a connection ends after HEADER_SECONDS; beyond MAX_CONNECTIONS the one that has waited longest
gives way to the newest, so that requests are answered.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEADER_SECONDS = 10.0
MAX_CONNECTIONS = 800  # that wait for a request

_waiting: dict[Any, asyncio.TimerHandle] = {}  # in the order in which they began to wait


class BoundedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """A connection that ends when no request comes."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._stop_waiting()
        elif self not in _waiting:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if len(_waiting) >= MAX_CONNECTIONS:
            next(iter(_waiting))._end()
        _waiting[self] = self.loop.call_later(HEADER_SECONDS, self._end)

    def _stop_waiting(self) -> None:
        timer = _waiting.pop(self, None)
        if timer is not None:
            timer.cancel()

    def _end(self) -> None:
        self._stop_waiting()
        self.transport.abort()
