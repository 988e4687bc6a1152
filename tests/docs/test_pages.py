"""What the pages show is what the code does: every prompt in the README and the guide is run.

Pages for users of another library run its calls beside ours, where it is installed; recipes of the cookbook run by
themselves.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import twofold

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def find_blocks(text: str, extra: str = "") -> list[str]:
    """Return the blocks of prompts in a text; with an extra also those that need it, ``python needs=NAME``."""
    mark = f"(?: needs={extra})?" if extra else ""
    return re.findall(rf"```python{mark}\n(>>>.*?)```", text, re.S)


def run_blocks(blocks: list[str], name: str) -> None:
    """Run blocks one after the other in one namespace; what came out differently is the error."""
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name, name, 0)
    output: list[str] = []
    result = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(example, out=output.append)
    assert result.attempted > 0
    assert result.failed == 0, "".join(output)


# --- the README and the guide --------------------------------------------------------------------------------

OWN_PAGES = [
    page
    for page in [ROOT / "README.md", *sorted(GUIDE.glob("*.md")), *sorted((ROOT / "docs" / "learn").glob("*.md"))]
    if page.stem != "cookbook" and find_blocks(page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("page", OWN_PAGES, ids=lambda page: page.stem)
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    if "from distributed" in text:
        pytest.importorskip("distributed")
    if page.stem == "networks":
        pytest.importorskip("torch")
    run_blocks(find_blocks(text, "torch" if find_spec("torch") else ""), page.name)


RECIPES = {
    part.partition("\n")[0]: part
    for part in re.split(r"^## ", (GUIDE / "cookbook.md").read_text(encoding="utf-8"), flags=re.M)[1:]
}


def test_there_are_twenty_recipes() -> None:
    assert len(RECIPES) >= 20


@pytest.mark.parametrize("title", RECIPES)
def test_recipe(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = find_blocks(RECIPES[title])
    assert len(re.findall(r"^(?:>>>|\.\.\.) ", block, re.M)) <= 12
    if "VAE" in block:
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    run_blocks([block], title)


# --- other libraries -----------------------------------------------------------------------------------------

PAGES = [page for page in sorted(GUIDE.glob("from-*.md")) if "```python needs=" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_both_sides_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.read_text(encoding="utf-8")
    (peer,) = set(re.findall(r"```python needs=(\w+)", text))
    pytest.importorskip(peer)
    monkeypatch.chdir(tmp_path)
    run_blocks(find_blocks(text, peer), page.name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_call_has_ours_beside_it(page: Path) -> None:
    fences = re.findall(r"```python(| needs=\w+)\n>>>", page.read_text(encoding="utf-8"))
    for mark, following in zip(fences, [*fences[1:], ""], strict=True):
        assert not (mark and following), "a block of the other library is not followed by one of ours"
    assert fences[-1] == "", "the last block is not ours"


MODULES = [twofold, *(import_module(f"twofold.{name}") for name in ("clusters", "signals", "topics", "words"))]


def names_of(thing: Any) -> set[str]:
    """Return what can be called or set on our class: parameters, methods and theirs, attributes in its docstring."""
    methods = [value for name, value in inspect.getmembers(thing, callable) if not name.startswith("_")]
    signed = [thing, *methods] if inspect.isclass(thing) else [thing]
    found = {name for each in signed for name in inspect.signature(each).parameters}
    return found | {each.__name__ for each in signed} | set(re.findall(r"\b\w+_\b", thing.__doc__ or ""))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_in_tables_are_ours(page: Path) -> None:
    """A name in the right column is one of something the page names: called, set, or after a point."""
    text = page.read_text(encoding="utf-8")
    words, known = set(re.findall(r"\w+", text)), {"T"}
    for module in MODULES:
        for name in words & set(module.__all__):
            thing = getattr(module, name)
            known |= {name} | (names_of(thing) if callable(thing) else set())
    for right in re.findall(r"^\| .* \| (.*) \|$", text, re.M):
        for span in re.findall(r"`(.*?)`", right):
            code = re.sub(r'".*?"', "", span)
            used = re.findall(r"\w+(?=\()|(?<=\.)[a-zA-Z]\w*|\w+(?==)|^\w+$", code)
            assert set(used) <= known, f"{span}: {set(used) - known} is unknown to us"


WISHES = re.split(r"^## ", (GUIDE / "wishes.md").read_text(encoding="utf-8"), flags=re.M)[1:]


@pytest.mark.parametrize("section", WISHES, ids=lambda section: section.partition("\n")[0])
def test_a_wish_is_granted_by_a_call_that_is_run_or_said_to_be_open(section: str) -> None:
    """Every wish names something of ours that a block of its section calls, or says "not yet"."""
    code = "".join(find_blocks(section, "torch"))
    for wish in re.findall(r"^- (.*?)(?=^- |^```|^$)", section, re.M | re.S):
        answer = wish.partition("**: ")[2] or wish.partition("): ")[2]
        names = {name for call in re.findall(r"`(.*?)`", answer) for name in re.findall(r"\w+", call)}
        assert names & set(re.findall(r"\w+", code)) or "not yet" in answer, wish


# --- what `make docs` needs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("script", sorted((ROOT / "docs" / "learn").glob("figures*.py")), ids=lambda path: path.stem)
def test_a_figure_takes_no_argument(script: Path) -> None:
    """`make docs` calls every function that has no underscore; each figure that a chapter shows is one of them."""
    functions = [
        node for node in ast.parse(script.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)
    ]
    for function in functions:
        arguments = function.args
        if not function.name.startswith("_"):
            assert len(arguments.args) == len(arguments.defaults) and not arguments.kwonlyargs, function.name


def test_every_figure_of_a_chapter_is_drawn() -> None:
    scripts = (ROOT / "docs" / "learn").glob("figures*.py")
    drawn = {name for script in scripts for name in re.findall(r"^def ([a-z]\w*)\(", script.read_text("utf-8"), re.M)}
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "learn").glob("*.md")]
    shown = {name for page in pages for name in re.findall(r"_build/figures/(\w+)\.svg", page.read_text("utf-8"))}
    assert shown <= drawn


def test_links_to_the_gallery_lead_to_its_pages() -> None:
    pages = [page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts]
    for family, name in re.findall(r"gallery/auto/(\w+)/(plot_\w+)[>.]", "".join(pages)):
        assert (ROOT / "docs" / "gallery" / family / f"{name}.py").exists(), name
