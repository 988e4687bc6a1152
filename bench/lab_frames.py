"""The lab: how long one picture of 100,000 points takes while it is zoomed, with WebGL2 and with a plain canvas."""

from __future__ import annotations

import shutil
from functools import partial
from importlib.util import find_spec
from typing import Any

from bench.harness import Bar, Contestant, Event, Missing, Row, Timed
from bench.lab_latency import Page

AIM = 1 / 30  # seconds a picture
FLAGS = ["--no-sandbox", "--disable-gpu", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]  # drawn in software
WITHOUT = """const get = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
    return kind === 'webgl2' ? null : get.call(this, kind, ...rest);
};"""
# Every picture the browser gets ready for is asked to be another one.
ZOOM = """seconds => new Promise(done => {
    const plot = document.querySelector('.layers');
    const box = plot.getBoundingClientRect();
    const center = {clientX: box.x + box.width / 2, clientY: box.y + box.height / 2};
    const begin = performance.now();
    let drawn = 0;
    const next = () => {
        const deltaY = drawn % 40 < 20 ? -30 : 30;
        plot.dispatchEvent(new WheelEvent('wheel', {deltaY, ...center, cancelable: true}));
        drawn += 1;
        if (performance.now() - begin < 1000 * seconds) requestAnimationFrame(next);
        else done((performance.now() - begin) / 1000 / drawn);
    };
    requestAnimationFrame(next);
})"""


class Screen:
    """The page of a lab in a browser, twice: with WebGL2, and without."""

    def __init__(self, data: str) -> None:
        from playwright.sync_api import sync_playwright

        self.lab = Page()
        self.play = sync_playwright().start()
        self.browser = self.play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        self.pages = {how: self.open(data, script) for how, script in (("WebGL2", ""), ("canvas", WITHOUT))}

    def open(self, data: str, script: str) -> Any:
        page = self.browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(120_000)
        if script:
            page.add_init_script(script)
        token = self.lab.headers["Cookie"].partition("=")[2]
        page.goto(f"http://{self.lab.host}/?token={token}#method=kmeans&data={data}&n_clusters=12&max_iter=5")
        page.locator(".word.done").wait_for()
        page.keyboard.press("End")
        return page

    def draw(self, mode: str, seconds: float) -> Timed:
        page = self.pages[mode]
        assert page.locator(".layers").get_attribute("data-drawn-by") == mode
        page.bring_to_front()
        each = page.evaluate(ZOOM, seconds)
        return Timed(each, {"pictures a second": 1 / each})

    def close(self) -> None:
        self.browser.close()
        self.play.stop()
        self.lab.close()


def quick_enough(rows: list[Row]) -> bool:
    return any(row.contestant == "WebGL2" and row.seconds and row.median <= AIM for row in rows)


def event(quick: bool) -> Event | Missing:
    for needed in ("fastapi", "websockets", "playwright"):
        if find_spec(needed) is None:
            return Missing("lab_frames", f"{needed} is not installed")
    if not shutil.which("chromium"):
        return Missing("lab_frames", "there is no chromium: apt install chromium")
    screen = Screen("blobs" if quick else "many")
    seconds = 1.0 if quick else 4.0
    drawing: list[Contestant | Missing] = [
        Contestant(how, partial(screen.draw, how, seconds), ours=True, warm=partial(screen.draw, how, 0.5))
        for how in screen.pages
    ]
    return Event(
        "lab_frames",
        "one picture of 100,000 points, zoomed, drawn in software",
        drawing,
        quality=lambda result: result,
        as_good=lambda a, b: True,
        bar=Bar("30 pictures a second with WebGL2", test=quick_enough),
        repeats=3,
        close=screen.close,
    )


EVENTS = (event,)
