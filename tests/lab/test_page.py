"""The page of the lab in a real browser: every view from the choice of a method to what is taken away.

TWOFOLD_LAB_PICTURES=docs/guide/lab writes the pictures of the guide.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.lab.conftest import TIMEOUT_MILLISECONDS, WIDTHS

HERE = Path(__file__).parent
STATIC = HERE.parents[1] / "src/twofold/lab/static"
# One run for every view, small enough to be quick.
RUNS = {
    "points": "method=kmeans&data=blobs&n_clusters=5&random_state=4",
    "axes": "method=pca&data=wine",
    "codes": "method=autoencoder&data=wine&max_iter=10",
    "matrix": "method=svd_impute&max_iter=30",
    "ratings": "method=recommender&max_iter=10",
    "topics": "method=nmf&n_components=6&max_iter=20",
    "words": "method=pmi",
    "atoms": "method=ksvd&data=digits&max_iter=4&n_components=36",
    "picture": "method=denoise&max_iter=1&n_atoms=64&side=128",
    "phase": "method=phase&n=40&trials=4&cells=8",
    "latent": "method=vae&max_iter=10",
    "pixels": "method=pixelcnn&max_iter=2&examples=200",
    "plane": "method=gan&max_iter=10",
    "factors": "method=factorization&data=wine&n_components=4&max_iter=20",
}
IN_GUIDE = {"points-1280-light", "points-390-dark", "topics-1280-dark", "ratings-1280-light", "picture-1280-light",
            "latent-1280-light", "two-1280-light"}  # fmt: skip


def await_end(page: Any, runs: int = 1) -> None:
    """Until every run is done and its last frame is shown."""
    page.wait_for_function(
        """runs => {
            const words = [...document.querySelectorAll('.count .word')].map(w => w.textContent);
            return words.length === runs && words.every(w => ['done', 'failed', 'stopped'].includes(w));
        }""",
        arg=runs,
        timeout=TIMEOUT_MILLISECONDS,
    )
    assert {word.text_content() for word in page.locator(".count .word").all()} == {"done"}
    page.locator("main h2").first.click(force=True)
    page.keyboard.press("End")
    page.wait_for_function("() => [...document.querySelectorAll('.scrub')].every(s => s.disabled || s.value === s.max)")
    page.wait_for_timeout(250)  # the way from frame to frame


def colors(page: Any) -> int:
    """Count the different colors of the picture."""
    from PIL import Image

    image = Image.open(io.BytesIO(page.locator(".picture").first.screenshot())).convert("RGB")
    return len(image.getcolors(image.width * image.height))


def serious(page: Any) -> list[str]:
    page.evaluate((HERE / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("async () => (await axe.run()).violations")
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {node['html'][:200]} {node['failureSummary']}" for one in grave for node in one["nodes"]]


def keep(page: Any, name: str) -> None:
    """A picture of the page for the guide, where it is asked for, as small as it can be."""
    wanted = os.environ.get("TWOFOLD_LAB_PICTURES")
    if wanted and name in IN_GUIDE:
        from PIL import Image

        Path(wanted).mkdir(parents=True, exist_ok=True)
        image = Image.open(io.BytesIO(page.screenshot(full_page=False))).convert("RGB")
        image.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
            Path(wanted) / f"{name}.png", optimize=True
        )


def fits(page: Any) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def drag(page: Any, spots: list[tuple[float, float]], of: str = ".layers") -> None:
    """A way of the mouse over a picture, in shares of its width and height."""
    box = page.locator(of).first.bounding_box()
    at = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in spots]
    page.mouse.move(*at[0])
    page.mouse.down()
    for x, y in at[1:]:
        page.mouse.move(x, y, steps=3)
    page.mouse.up()


AROUND = [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98), (0.02, 0.05)]


# --- every view -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", RUNS)
def test_every_view_from_choice_to_take_away(view, open_page, catalog, lab):
    method = re.search(r"method=(\w+)", RUNS[view]).group(1)
    known = {one["id"]: one for one in catalog["methods"]}
    if method not in known and find_spec("torch") is None:
        pytest.skip(f"{method} needs torch")
    assert known[method]["view"] == view
    fragment = RUNS[view]
    if "TWOFOLD_LAB_PICTURES" in os.environ:  # as users see it, however long it takes
        fragment = re.sub(r"&(max_iter|n_atoms|side)=\d+", "", fragment)
    page = open_page(fragment)
    await_end(page)
    assert colors(page) > 8
    told = page.locator(".curve-plot").get_attribute("aria-label")
    assert "nothing yet" not in told
    for name in page.locator(".picture [role=img]").all():
        assert name.get_attribute("aria-label")
    EXPLORE.get(view, lambda page: None)(page)
    job = re.search(r"[#&]job=(\w+)", page.url).group(1)
    assert "import" in page.locator(".code pre").text_content()
    for row in page.locator(".take dd").all():  # one file of each kind
        link = row.locator("a").first.get_attribute("href")
        answer = lab.client.get(link, timeout=TIMEOUT_MILLISECONDS / 1000)
        assert answer.status_code == 200 and len(answer.content) > 100 and job in link
    for width, height in WIDTHS.items():
        for scheme in ("light", "dark"):
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(120)
            assert fits(page)
            keep(page, f"{view}-{width}-{scheme}")
    assert serious(page) == []  # narrow and dark; wide and light are looked at with two runs


def explore_rows(page: Any) -> None:
    drag(page, [(0.02, 0.02), (0.4, 0.02), (0.4, 0.98), (0.02, 0.98), (0.02, 0.05)])
    page.locator(".details .block .table, .details .block .thumbs").first.wait_for()


def explore_axes(page: Any) -> None:
    slider = page.locator("#axes-k")
    slider.focus()
    before = page.locator(".dots, .pair").first.text_content()
    page.keyboard.press("End")
    page.wait_for_function("before => document.querySelector('.dots, .pair').textContent !== before", arg=before)
    explore_rows(page)


def explore_matrix(page: Any) -> None:
    page.locator(".board canvas").hover(position={"x": 420, "y": 200})
    page.get_by_text("the model says").wait_for()


def explore_ratings(page: Any) -> None:
    page.get_by_label("5 of 5").first.click()
    page.locator(".likes li").first.wait_for()
    assert page.locator(".likes li").count() > 3


def explore_topics(page: Any) -> None:
    page.locator(".topic button").first.click()
    page.locator(".documents li").first.wait_for()


def explore_words(page: Any) -> None:
    page.get_by_label("Find a word").fill("arr")
    page.get_by_label("Find a word").press("Enter")
    page.locator(".bars li").first.wait_for()


def explore_picture(page: Any) -> None:
    drag(page, [(0.5, 0.5), (0.7, 0.5)], ".board")
    assert float(page.locator("#divide").input_value()) > 0.5


def explore_latent(page: Any) -> None:
    page.locator(".layers").hover(position={"x": 200, "y": 150})
    before = page.locator(".decoded canvas").get_attribute("aria-label")
    page.locator(".layers").hover(position={"x": 300, "y": 250})
    page.wait_for_function("b => document.querySelector('.decoded canvas').ariaLabel !== b", arg=before)


EXPLORE: dict[str, Callable[[Any], None]] = {
    "points": explore_rows,
    "axes": explore_axes,
    "matrix": explore_matrix,
    "ratings": explore_ratings,
    "topics": explore_topics,
    "words": explore_words,
    "picture": explore_picture,
    "latent": explore_latent,
}


# --- controls ---------------------------------------------------------------------------------------------------


def test_a_run_is_paused_stepped_resumed_and_stopped(open_page, lab):
    page = open_page("method=gaussian_mixture&data=many&n_components=12&tol=0&max_iter=2000")
    job = lambda: lab.client.get("/api/jobs").json()[-1]  # noqa: E731
    page.wait_for_function("() => document.querySelector('.count')?.textContent.includes('running')")
    page.wait_for_function("() => document.querySelector('.count').textContent.includes('sweep')")
    page.keyboard.press("Space")
    page.locator(".count .word.paused").wait_for()
    page.wait_for_timeout(500)  # the sweep in hand comes to its end
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelector('.scrub').value === document.querySelector('.scrub').max")
    frames = job()["frames"]
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "n => +document.querySelector('.scrub').max > n", arg=int(page.locator(".scrub").get_attribute("max"))
    )
    assert job()["frames"] == frames + 1 and job()["status"] == "paused"
    page.keyboard.press("Space")
    page.locator(".count .word.running").wait_for()
    page.get_by_role("button", name="Stop this run").click()
    page.locator(".count .word.stopped").wait_for()


def test_a_journey_by_keys_a_reload_and_a_new_setting(open_page, lab):
    page = open_page(RUNS["points"])
    await_end(page)
    at = "document.querySelector('.scrub').value"
    last = page.locator(".scrub").get_attribute("max")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(f"last => {at} === String(last - 1)", arg=last)
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"last => {at} === last", arg=last)
    page.keyboard.press("Home")
    page.wait_for_function(f"() => {at} === '0'")
    assert page.locator(".count").text_content().startswith("sweep 0")
    page.keyboard.press("Space")
    page.wait_for_function(f"last => {at} === last", arg=last)
    assert page.get_by_role("button", name="Play").is_visible()

    page.keyboard.press("ArrowLeft")
    page.wait_for_function(
        """() => {  // until the address has a place, and has not changed for a while: it is written a little later
            if (window.seen !== location.hash) [window.seen, window.since] = [location.hash, Date.now()];
            return location.hash.includes('at=') && Date.now() - window.since > 500;
        }"""
    )
    before, count, jobs = page.url, page.locator(".count").text_content(), len(lab.client.get("/api/jobs").json())
    page.reload()
    page.wait_for_function("text => document.querySelector('.count')?.textContent === text", arg=count)
    page.wait_for_timeout(300)  # what would be written into the address has been
    assert page.url == before and len(lab.client.get("/api/jobs").json()) == jobs

    slider = page.get_by_label("Clusters")
    slider.focus()
    meaning = page.locator(f"#{slider.get_attribute('aria-describedby')}").text_content()
    assert meaning and page.locator(".help").text_content() == meaning
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => location.hash.includes('n_clusters=6')")
    page.get_by_text("in 6 groups").wait_for()


def test_methods_that_do_not_fit_are_shown_apart_and_an_earlier_run_is_shown_again(open_page):
    page = open_page(RUNS["points"])
    await_end(page)
    before = page.url
    page.locator("select[aria-labelledby=data-title]").select_option("table_with_holes")
    page.get_by_text("Mixture of Gaussians on Wine with holes").wait_for()  # k-means cannot take blanks
    apart = page.locator("select[aria-labelledby=method-title] option[disabled]")
    reasons = {one.get_attribute("value"): one.text_content() for one in apart.all()}
    assert "has blank cells" in reasons["kmeans"] and "text is needed" in reasons["lda"]
    await_end(page)
    page.wait_for_function("before => location.href !== before", arg=before)
    page.go_back()
    page.get_by_text("k-means on Blobs").wait_for()
    await_end(page)
    assert page.url == before


def test_lasso_name_fit_again_and_export(open_page):
    page = open_page("method=kmeans&data=iris&n_clusters=3")
    await_end(page)
    drag(page, [(0.02, 0.02), (0.5, 0.02), (0.5, 0.98), (0.02, 0.98), (0.02, 0.05)])
    page.locator(".block .table tbody tr").first.wait_for()
    chosen = int(page.locator(".tally b").text_content().split()[0])
    assert 4 < chosen < 150
    name = "<b>left & 'half'</b>"
    page.get_by_label("Name for these rows").fill(name)
    page.get_by_role("button", name="Name", exact=True).click()
    assert page.locator(".names button.link").text_content() == name
    for kind, read in (("CSV", pl.read_csv), ("Parquet", pl.read_parquet)):
        with page.expect_download() as caught:
            page.locator(".block", has_text="Labels as").get_by_role("button", name=kind).click()
        table = read(caught.value.path())
        assert len(table) == 150 and table["label"].to_list().count(name) == chosen
        assert set(table["label"].to_list()) - {name} <= {"group 1", "group 2", "group 3"}
    page.get_by_role("button", name="Fit again on these rows").click()
    page.get_by_text(f"On {chosen} selected rows").wait_for()
    page.get_by_text(f"{chosen} points in 3 groups").wait_for()


def test_a_hole_is_painted_and_filled(open_page):
    page = open_page("method=inpaint&side=64&max_iter=1&n_atoms=32")
    await_end(page)
    first = re.search(r"[#&]job=(\w+)", page.url).group(1)
    drag(page, [(0.35, 0.3), (0.4, 0.4)], ".board")
    page.wait_for_function("job => /mask=/.test(location.hash) && !location.hash.includes(job)", arg=first)
    await_end(page)
    assert "for start, length in" in page.locator(".code pre").text_content()


def test_the_rate_of_a_file_is_dragged(open_page):
    page = open_page("method=compress")
    await_end(page)
    size = page.locator(".facts").text_content()
    page.locator("#rate").fill("60")
    page.wait_for_function("size => document.querySelector('.facts').textContent !== size", arg=size)


def test_two_runs_share_axes_and_selection(open_page):
    page = open_page("method=kmeans&data=iris&n_clusters=3&right=gaussian_mixture&right.n_components=3")
    await_end(page, runs=2)
    before = [shot(page, i) for i in range(2)]
    page.locator(".layers").first.hover()
    page.mouse.wheel(0, -400)
    page.wait_for_function("() => location.hash.includes('view=')")
    page.wait_for_timeout(200)
    zoomed = [shot(page, i) for i in range(2)]
    assert all(a != b for a, b in zip(before, zoomed, strict=True))  # the wheel over one moved both
    page.get_by_role("button", name="Show everything again").first.click()
    drag(page, AROUND[:2] + [(0.98, 0.5), (0.02, 0.5)])
    page.locator(".block .table tbody tr").first.wait_for()
    page.wait_for_timeout(200)
    assert all(a != b for a, b in zip(before, [shot(page, i) for i in range(2)], strict=True))
    keep(page, "two-1280-light")
    assert serious(page) == []


def shot(page: Any, i: int) -> bytes:
    return page.locator(".layers").nth(i).screenshot()


# --- one's own data ---------------------------------------------------------------------------------------------

HOSTILE = "<img src=x onerror=alert(1)>"


def test_a_file_of_ones_own_is_shown_as_text_whatever_it_holds(open_page, tmp_path):
    rows = "\n".join(f"{HOSTILE}{i},{i % 7},{i * 3 % 11},{i % 2}" for i in range(60))
    path = tmp_path / "<b>mine.csv"
    path.write_text(f"{HOSTILE},<i>a</i>,b,c\n{rows}\n", encoding="utf-8")
    page = open_page("method=kmeans&data=iris&n_clusters=2")
    await_end(page)
    page.on("dialog", lambda dialog: pytest.fail("a script of the data ran"))
    page.locator("input[type=file]").set_input_files(path)
    page.wait_for_function("() => document.querySelector('.now').textContent.includes('mine.csv')")
    page.get_by_text("60 points in 2 groups").wait_for()
    await_end(page)
    drag(page, AROUND)
    page.locator(".block .table tbody tr").first.wait_for()
    assert HOSTILE[:10] in page.locator(".block .table").text_content()
    assert page.locator("img, .table i, .table b").count() == 0


def test_what_cannot_be_read_is_refused_in_one_sentence_where_it_happened(open_page, tmp_path):
    path = tmp_path / "broken.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n and nothing else")
    page = open_page("method=kmeans&data=iris&n_clusters=2", expected="status of 400")
    await_end(page)
    page.locator("input[type=file]").set_input_files(path)
    error = page.locator("#data-title ~ .error")
    error.wait_for()
    assert error.text_content().endswith(".") and "<" not in error.text_content()


def test_points_are_drawn_without_webgl(open_page):
    page = open_page(
        RUNS["points"],
        before="""const get = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
            return kind === 'webgl2' ? null : get.call(this, kind, ...rest);
        };""",
    )
    await_end(page)
    assert page.locator(".layers").get_attribute("data-drawn-by") == "canvas"
    assert colors(page) > 5


def test_vendored_files_are_those_that_were_published():
    folder = STATIC / "vendor"
    listed = dict(reversed(line.split()) for line in (folder / "CHECKSUMS").read_text(encoding="utf-8").splitlines())
    there = {path.name for path in folder.iterdir()} - {"CHECKSUMS", "README.md"}
    assert there == set(listed)
    for name, digest in listed.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_a_run_in_one_file_plays_without_a_server(open_page, browser, lab, tmp_path):
    page = open_page("method=kmeans&data=iris&n_clusters=3")
    await_end(page)
    with page.expect_download() as caught:
        page.get_by_role("link", name="the run as one page").click()
    path = tmp_path / "run.html"
    caught.value.save_as(path)
    context = browser.new_context(offline=True)
    complaints: list[str] = []
    alone = context.new_page()
    alone.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    alone.on("pageerror", lambda error: complaints.append(str(error)))
    alone.on("request", lambda asked: complaints.append(asked.url) if asked.url.startswith("http") else None)
    alone.goto(path.as_uri())
    alone.get_by_text("150 points in 3 groups").wait_for()
    alone.wait_for_function("() => document.querySelector('.scrub')?.value === document.querySelector('.scrub')?.max")
    assert alone.locator(".code pre").text_content() == page.locator(".code pre").text_content()
    alone.get_by_role("button", name="One frame back").click()
    alone.wait_for_function("() => document.querySelector('.scrub').value < document.querySelector('.scrub').max")
    context.close()
    assert complaints == []
