"""Requests over HTTP: their bodies have a limit, tokens are compared in constant time, errors are one JSON sentence."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MAX_DIGITS = 18  # of a whole number in a request
ROUTES = {404: "There is nothing at this address.", 405: "This address does not take such a request."}
TOO_LARGE = "The body of this request may have {:.0f} MB at most."


class Refused(Exception):
    """A request that cannot be met: a status and one sentence."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


class TooLarge(Exception):
    """A body of more bytes than the limit."""


def same(text: str, token: str) -> bool:
    """Compare a text with the token; the time that takes tells nothing about the token."""
    return hmac.compare_digest(text.encode(), token.encode())


def refuse(status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
    """Make the answer that refuses a request."""
    return JSONResponse({"error": reason}, status, headers=headers)


async def limit_body(app: Any, limit: int, scope: Scope, receive: Receive, send: Send) -> None:
    """Pass a request on, unless its body is larger than the limit, whatever its header says."""
    claimed = dict(scope["headers"]).get(b"content-length", b"0")
    if not claimed.isdigit() or int(claimed) > limit:
        return await refuse(413, TOO_LARGE.format(limit / 1e6), {"connection": "close"})(scope, receive, send)
    received = 0

    async def receiving() -> MutableMapping[str, Any]:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise TooLarge(TOO_LARGE.format(limit / 1e6))
        return message

    await app(scope, receiving, send)


async def read_json(request: Request) -> dict[str, Any]:
    """Read the body of a request, which is an object; the guard limits its size."""
    data = b"".join([part async for part in request.stream()])
    try:
        content = json.loads(data or b"{}", parse_constant=lambda name: None, parse_int=read_int)
    except (ValueError, RecursionError):
        raise Refused(400, "The request is no JSON.") from None
    if not isinstance(content, dict):
        raise Refused(400, "The request is no JSON object.")
    return content


def read_int(text: str) -> int:
    """Read a whole number that fits in 64 bits."""
    if len(text) > MAX_DIGITS:
        raise Refused(400, f"A number of {len(text):,} digits; {MAX_DIGITS} are the most.")
    return int(text)


def explain_errors(app: FastAPI) -> None:
    """Answer every error of an application with JSON that has one sentence."""
    for kind in (Refused, TooLarge, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, explain)


async def explain(request: Request, error: Exception) -> Response:
    """Answer an error with JSON that has one sentence."""
    if isinstance(error, TooLarge):
        return refuse(413, str(error), {"connection": "close"})
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        return refuse(400, f"{first['loc'][-1]}: {first['msg']}.")
    if not isinstance(error, (Refused, HTTPException)):
        fault = f"internal error, {type(error).__name__}: {error}. Set TWOFOLD_DEBUG=1 to see where."
        return refuse(500, " ".join(fault.split()))
    status: int = getattr(error, "status", 0) or getattr(error, "status_code", 500)
    said = str(getattr(error, "detail", error))
    said = ROUTES.get(status, said) if isinstance(error, HTTPException) else said
    return refuse(status, said, {"retry-after": "1"} if status == 503 else None)
