"""The guard of the lab: it accepts only this machine, only the lab's own page, only a browser with the token.

Every request is checked before anything else sees it. Its Host must be this server, so that no other name can be
made to point here; what changes something must come from our own page, so that no other page can send it; and it must
carry the cookie that the address with the token gave. Answers say that nothing from elsewhere may be loaded.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.responses import HTMLResponse, RedirectResponse, Response

from twofold.web.requests import Receive, Scope, Send, limit_body, refuse, same

NO_TOKEN = (
    "Open the address that `twofold lab` printed, with its token: this page was not opened by it, or by an earlier lab."
)
RELOAD_PAGE = "<!doctype html><meta http-equiv=refresh content='0;url=/'><title>twofold lab</title>"
CHANGES = ("POST", "PUT", "PATCH", "DELETE")


def find_inline(page: str) -> list[str]:
    """Return the hashes of the scripts in a page, as a Content-Security-Policy names them.

    >>> find_inline("<script type='importmap'>{}</script>")
    ["'sha256-RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o='"]
    """
    inside = re.findall(r"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", page, re.S)
    digests = (hashlib.sha256(text.encode()).digest() for text in inside)
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]


def policy(page: str, hosts: list[str]) -> str:
    """Let the page load its own files and the scripts that stand in it, and nothing else."""
    sockets = " ".join(f"ws://{host}" for host in hosts)
    return (
        f"default-src 'none'; script-src 'self' {' '.join(find_inline(page))}; style-src 'self'; "
        f"img-src 'self' blob: data:; font-src 'self'; connect-src 'self' {sockets}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


class Guard:
    """The application, behind its checks."""

    def __init__(self, app: Any, *, token: str, port: int, page: str, body: int, upload: int):
        self.app, self.token, self.body, self.upload = app, token, body, upload
        self.hosts = [f"127.0.0.1:{port}", f"localhost:{port}"]
        self.cookie = f"twofold_lab_{port}"  # cookies are shared by all ports, and there may be several labs
        self.headers = {
            "content-security-policy": policy(page, self.hosts),
            "x-content-type-options": "nosniff",
            "x-frame-options": "DENY",
            "referrer-policy": "no-referrer",
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "permissions-policy": "camera=(), microphone=(), geolocation=()",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        answer = self.check(scope)
        if scope["type"] == "websocket":
            if answer is not None:
                await receive()
                return await send({"type": "websocket.close", "code": 4403})
            return await self.app(scope, receive, send)
        send = self.with_headers(send)
        if answer is not None:
            return await answer(scope, receive, send)
        limit = self.upload if scope["path"] == "/api/data" else self.body
        return await limit_body(self.app, limit, scope, receive, send)

    def check(self, scope: Scope) -> Response | None:
        """Return an answer that refuses the request or exchanges the token, None if it may pass."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        named = [value for name, value in scope["headers"] if name == b"host"]
        if len(named) != 1 or headers["host"] not in self.hosts:
            return refuse(421, "This server answers to 127.0.0.1 and localhost alone.")
        ours = f"http://{headers['host']}"
        changes = scope["type"] == "websocket" or scope["method"] in CHANGES
        if (changes or "origin" in headers) and headers.get("origin") != ours:
            return refuse(403, "Requests from other pages are not taken.")
        if scope["type"] == "http" and scope["path"] == "/" and scope["method"] == "GET":
            query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            token = dict(query).get("token")
            if token is not None:
                return self.exchange(token, [(name, value) for name, value in query if name != "token"])
        if self.knows(headers.get("cookie", "")):
            return None
        if scope["path"] == "/" and headers.get("sec-fetch-site") == "cross-site":
            return HTMLResponse(
                RELOAD_PAGE
            )  # a link elsewhere led here, and strict cookies come with our own links alone
        return refuse(403, NO_TOKEN)

    def exchange(self, token: str, query: list[tuple[str, str]]) -> Response:
        """Exchange the token for a cookie, and open the page without it in its address."""
        if not same(token, self.token):
            return refuse(403, NO_TOKEN)
        answer = RedirectResponse("/" + (f"?{urlencode(query)}" if query else ""), 303)
        answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", path="/")
        return answer

    def knows(self, header: str) -> bool:
        try:
            found = SimpleCookie(header).get(self.cookie)
        except CookieError:
            return False
        return found is not None and same(found.value, self.token)

    def with_headers(self, send: Send) -> Send:
        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                have = {name for name, _ in message["headers"]}
                added = self.headers if b"cache-control" in have else self.headers | {"cache-control": "no-store"}
                message["headers"] = [*message["headers"], *((n.encode(), v.encode()) for n, v in added.items())]
            await send(message)

        return sending
