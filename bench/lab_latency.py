"""The lab: how soon the first picture of a method is there, and how soon the page is answered while a fit runs."""

from __future__ import annotations

import http.client
import json
import re
import statistics
import subprocess
import sys
import time
from functools import partial
from importlib.util import find_spec
from typing import Any

from bench.harness import Bar, Contestant, Event, Missing, Row, Timed

FIRST = 2.0  # seconds, at most
ANSWER = 0.1
REQUESTS = 60


class Page:
    """A lab in a process of its own, and what a page of it asks."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "twofold", "lab", "--no-browser"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        found = re.search(r"http://([\d.:]+)/\?token=([\w-]+)", self.process.stdout.readline())
        assert found is not None
        self.host = found[1]
        self.headers = {
            "Origin": f"http://{self.host}",
            "Cookie": f"twofold_lab_{self.host.rpartition(':')[2]}={found[2]}",
        }
        self.http = http.client.HTTPConnection(self.host, timeout=60)
        self.catalog = {one["id"]: one for one in self.ask("GET", "/api/catalog")["methods"]}
        self.ask("GET", "/api/data/wine")
        time.sleep(8)  # a user looks around first; meanwhile the next process gets ready

    def fetch(self, method: str, path: str, body: Any = None) -> bytes:
        sent = None if body is None else json.dumps(body)
        try:
            self.http.request(method, path, sent, self.headers)
            answer = self.http.getresponse()
        except ConnectionError:  # it was left alone for too long
            self.http.close()
            self.http.request(method, path, sent, self.headers)
            answer = self.http.getresponse()
        content = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {content[:200]!r}")
        return content

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return json.loads(self.fetch(method, path, body))

    def start(self, method: str, data: str | None = None, **settings: Any) -> str:
        wanted = {"method": method, "data": data or self.catalog[method]["default_data"], "settings": settings}
        return self.ask("POST", "/api/jobs", wanted)["id"]

    def first_picture(self, method: str) -> Timed:
        """Seconds from choosing a method to the first picture of its fit: the frame after the first sweep."""
        from websockets.sync.client import connect

        with connect(
            f"ws://{self.host}/api/stream", origin=self.headers["Origin"],
            additional_headers={"Cookie": self.headers["Cookie"]}, max_size=None,
        ) as stream:  # fmt: skip
            begin = time.perf_counter()
            id = self.start(method)
            stream.send(json.dumps({"watch": [id]}))
            while True:
                message = stream.recv(timeout=120)
                if isinstance(message, bytes):
                    break
                if json.loads(message)["state"]["status"] == "failed":
                    raise RuntimeError(json.loads(message)["state"]["message"])
            seconds = time.perf_counter() - begin
        self.fetch("DELETE", f"/api/jobs/{id}")
        time.sleep(4)  # the next process gets ready
        return Timed(seconds, seconds)

    def answer(self, path: str) -> Timed:
        """The median of the seconds that a request takes while a fit runs."""
        id = self.start("kmeans", "many", n_clusters=30, max_iter=300, tol=0.0)
        while not self.ask("GET", f"/api/jobs/{id}")["kept"]:
            time.sleep(0.02)
        seconds = []
        for _ in range(REQUESTS):
            begin = time.perf_counter()
            self.fetch("GET", path.format(id=id))
            seconds.append(time.perf_counter() - begin)
            time.sleep(0.01)
            if self.ask("GET", f"/api/jobs/{id}")["status"] != "running":
                break
        self.fetch("DELETE", f"/api/jobs/{id}")
        return Timed(statistics.median(seconds), statistics.median(seconds))

    def close(self) -> None:
        self.process.send_signal(2)
        self.process.wait(20)


def below(seconds: float, rows: list[Row]) -> bool:
    ours = [row for row in rows if row.seconds]
    return len(ours) == len(rows) and statistics.median(row.median for row in ours) <= seconds


def event(name: str, title: str, quick: bool) -> Event | Missing:
    if find_spec("fastapi") is None or find_spec("websockets") is None:
        return Missing(f"lab_latency {name}", "the lab is not installed: pip install 'twofold[lab]'")
    page = Page()
    if name == "first picture":
        chosen = [id for id, one in page.catalog.items() if not one.get("needs")]
        jobs = {id: partial(page.first_picture, id) for id in (chosen[:3] if quick else chosen)}
        bar, limit = f"{FIRST:g} s in the median over the methods", FIRST
    else:
        paths = [
            "/",
            "/api/catalog",
            "/api/jobs",
            "/api/jobs/{id}",
            "/api/jobs/{id}/frames/0",
            "/api/data/wine/rows?at=1",
        ]
        jobs = {path: partial(page.answer, path) for path in (paths[:2] if quick else paths)}
        bar, limit = f"{ANSWER * 1000:g} ms in the median over the requests", ANSWER
    return Event(
        f"lab_latency {name}",
        title,
        [Contestant(what, job, ours=True, warm=lambda: None) for what, job in jobs.items()],
        quality=lambda result: {"milliseconds": 1000 * result},
        as_good=lambda a, b: True,
        bar=Bar(bar, test=partial(below, limit)),
        repeats=1 if quick else 3,
        close=page.close,
    )


EVENTS = (
    partial(event, "first picture", "from choosing a method on bundled data to the first picture of it"),
    partial(event, "answers", "what the page asks while k-means runs on 100,000 points"),
)
