"""A wandering user of the page: after every action all that is shown belongs to one run, and nothing complains."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.lab.conftest import wait_for
from tests.lab.test_page import AROUND, drag

# What the parts of the page say they show: of each stage its job and its frame's, and the titles and files beside it.
SHOWN = """() => {
    const all = (of, read) => [...document.querySelectorAll(of)].map(read);
    const picked = name => document.querySelector(`select[aria-labelledby=${name}-title]`)?.selectedOptions[0]?.text;
    return {
        jobs: all('.stage', s => s.dataset.job), titles: all('.stage', s => s.getAttribute('aria-label')),
        frames: all('.picture', p => p.dataset.job ?? ''), heading: document.querySelector('.now').textContent.trim(),
        code: all('.code', c => [c.dataset.job, c.querySelector('pre').textContent]),
        links: all('.take a', a => a.getAttribute('href').split('/')[3]),
        method: picked('method'), data: picked('data'),
        held: document.querySelector('.tabs [aria-pressed=true]')?.textContent === 'Right' ? 1 : 0,
        errors: all('.error', e => e.textContent),
    };
}"""

# Data that arrive meanwhile may take an option away, which no user could choose then.
CHOOSE = """(select, value) => {
    if (![...select.options].some(one => one.value === value && !one.disabled)) return;
    select.value = value;
    for (const kind of ['input', 'change']) select.dispatchEvent(new Event(kind, {bubbles: true}));
}"""


def write_files(folder: Path) -> list[Path]:
    """Write one small file of every kind that a user may bring."""
    import polars as pl
    from PIL import Image

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) + np.repeat([[0], [6]], 30, axis=0)
    table = pl.DataFrame(X.round(2), schema=["a", "b", "c", "d"], orient="row")
    blanks = table.with_columns(pl.when(pl.int_range(60) % 7 == 3).then(None).otherwise(pl.col("b")).alias("b"))
    ratings = [(f"u{i}", f"film {j}", int(rng.integers(1, 6))) for i in range(30) for j in rng.permutation(20)[:8]]
    words = ["".join(rng.choice(list("aeiouklmnprst"), 6)) for _ in range(80)]
    texts = [" ".join(rng.choice(words[i % 2 * 40 :][:40], 15)) + "." for i in range(40)]
    files = {
        name: folder / name for name in ("table.csv", "blanks.csv", "stars.csv", "texts.txt", "photo.png", "set.npz")
    }
    table.write_csv(files["table.csv"])
    blanks.with_columns(kind=pl.lit("x")).write_csv(files["blanks.csv"])
    pl.DataFrame(ratings, schema=["user", "item", "rating"], orient="row").write_csv(files["stars.csv"])
    files["texts.txt"].write_text("\n".join(texts), encoding="utf-8")
    Image.fromarray(rng.integers(0, 256, (40, 50), dtype=np.uint8)).save(files["photo.png"])
    np.savez(files["set.npz"], images=rng.integers(0, 256, (60, 8, 8), dtype=np.uint8))
    return list(files.values())


class Wanderer:
    """Draws actions, and looks after each whether all parts of the page show the same."""

    def __init__(self, page: Any, lab: Any, files: list[Path], seed: int):
        self.page, self.lab, self.files, self.draw = page, lab, files, random.Random(seed)
        catalog = lab.client.get("/api/catalog").json()
        self.titles = {one["id"]: one["title"] for one in catalog["methods"]}
        self.done: list[str] = []

    def walk(self, steps: int) -> None:
        names = [name for name in dir(self) if name.startswith("do_")]
        for _ in range(steps):
            action = self.draw.choice(names)
            self.done.append(action)
            getattr(self, action)()
            self.page.wait_for_timeout(self.draw.choice([0, 30, 150, 600]))
            self.look()

    def look(self) -> None:
        """All that is shown belongs to the runs that are shown."""
        shown = self.page.evaluate(SHOWN)
        told = f"{self.done[-6:]} {shown}"
        assert not shown["errors"], told
        if not shown["titles"]:
            return
        for job, frame, title in zip(shown["jobs"], shown["frames"], shown["titles"], strict=True):
            assert frame in ("", job), told
            if job:
                state = self.lab.client.get(f"/api/jobs/{job}").json()
                assert self.titles[state["method"]] == title, told
        data = self.lab.client.get("/api/catalog").json()["data"]
        names = {one["name"] for one in data}
        assert shown["data"] in names and shown["heading"].endswith(f" on {shown['data']}"), told
        assert shown["heading"].startswith(" beside ".join(shown["titles"])), told
        held = shown["jobs"][shown["held"]]
        assert shown["method"] == shown["titles"][shown["held"]], told
        assert all(link == held for link in shown["links"]), told
        for job, code in shown["code"]:
            assert job == held and code == self.lab.client.get(f"/api/jobs/{job}/take/python").text, told

    # ---- actions -----------------------------------------------------------------------------------------------

    def select(self, name: str) -> None:
        select = self.page.locator(f"select[aria-labelledby={name}-title]")
        if select.count():
            values = select.locator("option:not([disabled])").evaluate_all("all => all.map(one => one.value)")
            select.evaluate(CHOOSE, self.draw.choice(values))

    def press(self, name: str) -> None:
        """Press a button of the first run, if it can be pressed."""
        button = self.page.get_by_role("button", name=name, exact=True)
        if button.count() and button.first.is_enabled():
            button.first.click(force=True)

    def do_choose(self) -> None:
        self.select("method")

    do_choose_another = do_choose

    def do_data(self) -> None:
        self.select("data")

    def do_upload(self) -> None:
        self.page.locator("input[type=file]").set_input_files(self.draw.choice(self.files))

    def do_compare(self) -> None:
        self.select("compare")

    def do_run(self) -> None:
        self.press("Run again")

    def do_set(self) -> None:
        slider = self.page.locator(".settings > .field input[type=range]")
        if slider.count():
            slider.first.press(self.draw.choice(["ArrowLeft", "ArrowRight"]))

    def do_pause_or_play(self) -> None:
        self.press(self.draw.choice(["Pause", "Play"]))

    def do_step(self) -> None:
        self.press(self.draw.choice(["One sweep on", "One frame back"]))

    def do_rewind(self) -> None:
        self.page.locator("h1").click()
        self.page.keyboard.press(self.draw.choice(["Home", "End"]))

    def do_stop(self) -> None:
        self.press("Stop this run")

    def do_lasso(self) -> None:
        if self.page.locator(".layers").count():
            drag(self.page, AROUND)

    def do_look_back(self) -> None:
        self.page.locator(".jobs").evaluate("one => { one.open = true; }")
        self.page.wait_for_timeout(100)
        runs = self.page.locator(".jobs li button")
        if runs.count():
            runs.nth(self.draw.randrange(runs.count())).click(force=True)

    def do_reload(self) -> None:
        self.page.reload()
        self.page.locator(".panel").wait_for()

    def do_back(self) -> None:
        if self.page.evaluate("history.length") > 3:
            self.page.evaluate("history.back()")

    def do_second_tab(self) -> None:
        """Open the same address in another tab, which leaves this one's job alone."""
        ask = lambda job: self.lab.client.get(f"/api/jobs/{job}").json()  # noqa: E731
        jobs = [job for job in self.page.evaluate(SHOWN)["jobs"] if job and ask(job)["status"] != "cancelled"]
        tab = self.page.context.new_page()
        tab.goto(self.page.url)
        tab.locator(".panel").wait_for()
        select = tab.locator("select[aria-labelledby=data-title]")
        select.select_option(self.draw.choice(["wine", "moons"]))
        tab.close()
        now = self.page.evaluate(SHOWN)["jobs"]
        for job in set(jobs) & set(now):
            assert ask(job)["status"] != "cancelled"


def wander(open_page: Callable[..., Any], lab: Any, folder: Path, seed: int, steps: int) -> None:
    page = open_page("data=iris&method=kmeans&n_clusters=3")
    page.locator(".stage").wait_for()
    page.on("dialog", lambda dialog: dialog.dismiss())
    one = Wanderer(page, lab, write_files(folder), seed)
    try:
        one.walk(steps)
    except Exception as error:
        error.add_note(f"after {len(one.done)} actions: {one.done[-8:]}")
        raise
    wait_for(lambda: not any(job["live"] for job in lab.client.get("/api/jobs").json()[:-4]))


def test_a_user_wanders(open_page, lab, tmp_path):
    wander(open_page, lab, tmp_path, seed=0, steps=50)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 6))
def test_users_wander_for_long(open_page, lab, tmp_path, seed):
    wander(open_page, lab, tmp_path, seed, steps=200)
