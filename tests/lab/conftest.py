"""A lab on a free port, in a thread, whose methods do as told; and a client that has its cookie."""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest

NEEDED = ("fastapi", "uvicorn", "websockets", "httpx")
collect_ignore_glob = ["test_*.py"] if any(find_spec(package) is None for package in NEEDED) else []

TOKEN = "t0ken"
FLAGS = ["--no-sandbox", "--disable-gpu", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"]  # fmt: skip
WIDTHS = {1280: 800, 390: 844}
TIMEOUT_MILLISECONDS = 180_000  # the machine may be busy


@contextmanager
def running(limits: Any = None, catalog: str = "tests.lab.fake_catalog") -> Iterator[Any]:
    import httpx
    import uvicorn

    from twofold.lab import app
    from twofold.lab.jobs import Lab

    listening = app.bind(0)
    port = listening.getsockname()[1]
    lab = Lab(limits, catalog)
    server = uvicorn.Server(uvicorn.Config(app.create(lab, TOKEN, port), **app.CONFIG))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True)
    thread.start()
    wait_for(lambda: server.started)
    url = f"http://127.0.0.1:{port}"
    with httpx.Client(base_url=url, headers={"origin": url}, timeout=150) as client:
        client.cookies.set(f"twofold_lab_{port}", TOKEN)
        yield SimpleNamespace(client=client, url=url, port=port, lab=lab, limits=lab.limits)
    server.should_exit = True
    thread.join(60)
    listening.close()
    assert not thread.is_alive()
    assert not lab.folder.exists()


def wait_for(true: Callable[[], Any], seconds: float = 150.0) -> Any:
    """The first true value; a busy machine may take its time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = true()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser that looks at the page."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None or find_spec("playwright") is None:
        pytest.skip("the lab's page is looked at in chromium, by playwright: apt-get install chromium")
    return found


@pytest.fixture(scope="module")
def place() -> Iterator[Any]:
    from twofold.lab.jobs import Limits

    limits = Limits(
        jobs=4, memory=500_000_000, kept=20, body=200_000, upload_bytes=3_000_000, sockets=60
    )  # and all the time that a busy machine may need
    with running(limits) as one:
        yield one


@pytest.fixture(scope="module")
def lab(chromium: str) -> Iterator[Any]:
    from twofold.lab.jobs import Limits

    with running(Limits(answer=120, reading=300, uploads=200), catalog="twofold.lab.methods") as place:
        yield place


@pytest.fixture(scope="module")
def catalog(lab: Any) -> dict[str, Any]:
    return lab.client.get("/api/catalog").json()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        one = play.chromium.launch(executable_path=chromium, args=FLAGS)
        yield one
        one.close()


@pytest.fixture
def open_page(lab: Any, browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens the page at a fragment; whatever the console complains of fails the test."""
    contexts, complaints = [], []

    def open_at(fragment: str, width: int = 1280, scheme: str = "light", before: str = "", expected: str = "") -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": WIDTHS[width]}, color_scheme=scheme, accept_downloads=True
        )
        contexts.append(context)
        context.set_default_timeout(TIMEOUT_MILLISECONDS)
        page = context.new_page()

        def complain(text: str) -> None:
            if not expected or expected not in text:
                complaints.append(text)

        page.on("console", lambda message: complain(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: outside(asked.url))
        if before:
            page.add_init_script(before)
        page.goto(f"{lab.url}/?token={TOKEN}#{fragment}")
        return page

    def outside(url: str) -> None:
        if not url.startswith((lab.url, lab.url.replace("http", "ws", 1), "blob:", "data:")):
            complaints.append(f"asked for {url}")

    yield open_at
    for context in contexts:
        context.close()
    assert complaints == []
