"""`twofold embed`: vectors of words, by the company they keep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table as Grid
from rich.text import Text as Line

from twofold.analyses._html_report import page
from twofold.cli._console import check_save, check_targets, print_json, say, stdout, waiting, write_all
from twofold.core.checks import InputError

if TYPE_CHECKING:
    from twofold.analyses.embed import Embedding

ENDINGS = (".txt", ".vec", ".bin", ".csv", ".tsv", ".parquet", ".png", ".html")
METHODS = {"skipgram": "skip-gram", "glove": "GloVe", "pmi": "PMI"}
TAKES = "A text file (plain or .gz), a folder or glob of them, CSV, TSV, JSONL, Parquet, or - for stdin."
RESULTS = (
    "Results, by ending: word2vec's .txt .vec .bin, tables .csv .tsv .parquet, .png map, .html report; repeatable."
)
LEAST = "Leave out words seen less often. Default: by the size of the text."
ANALOGIES = "Questions to ask: a b c d a line, a is to b as c is to d."
SIMILARITY = "People's judgement to compare with: two words and a number a line; repeatable."


def embed(
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT", help=TAKES)],
    method: Annotated[str, typer.Option(metavar="NAME", help="skipgram, glove or pmi.")] = "skipgram",
    number: Annotated[
        int | None, typer.Option("-k", "--dimensions", min=1, metavar="N", help="Numbers a word.")
    ] = None,
    window: Annotated[int | None, typer.Option(min=1, metavar="N", help="Neighbours on either side.")] = None,
    min_count: Annotated[int | None, typer.Option(min=1, metavar="N", help=LEAST)] = None,
    epochs: Annotated[int | None, typer.Option(min=1, metavar="N", help="Passes over the text.")] = None,
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="Of a table. Default: the longest.")] = None,
    analogies: Annotated[Path | None, typer.Option(metavar="FILE", help=ANALOGIES)] = None,
    similarity: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=SIMILARITY)] = None,
    out: Annotated[list[Path] | None, typer.Option("-o", "--out", metavar="FILE", help=RESULTS)] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the model (.twofold).")] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of everything random.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print results only.")] = False,
) -> None:
    if method not in METHODS:
        raise InputError(f"--method {method}: choose {', '.join(METHODS)}.")
    if method == "pmi" and epochs is not None:
        raise InputError("--epochs: PMI has none, its vectors are computed at once. Leave it out.")
    for option, file in [("--analogies", analogies), *(("--similarity", one) for one in similarity or [])]:
        if file is not None and not file.is_file():
            raise InputError(f"{option} {file}: there is no such file.")
    check_targets(out or [], ENDINGS, force, inputs)
    if save is not None:
        check_save(save, out or [], force, inputs)
    with waiting("reading", quiet):
        from twofold.analyses._corpus import read_corpus

        read = read_corpus(inputs, text)
        from twofold.analyses.embed import analyse, ask  # takes seconds to import: bad input is told before
    given = {"k": number, "min_count": min_count, "epochs": epochs, "window": window}
    found = analyse(read, method, given, seed, quiet)
    with waiting("asking", quiet or not (analogies or similarity)):
        ask(found, analogies, similarity or [])
    say(found.notes, quiet)
    with waiting("writing", quiet or not (out or save)):
        targets: dict[Path, Any] = {path: writer_of(path, found) for path in out or []}
        write_all(targets | ({save: found.model.save} if save else {}))
    written = [str(path) for path in [*targets, *([save] if save else [])]]
    if as_json:
        print_json(summary(found) | {"written": written})
    else:
        show(found)
        say([f"wrote {', '.join(written)}"] if written else [], quiet)


def writer_of(path: Path, found: Embedding) -> Any:
    from twofold.cli._word_files import map_picture, writer

    if path.suffix.lower() != ".html":
        return writer(path, found.vectors, heading(found))
    picture = map_picture(found.vectors)
    return lambda to: report(to, found, picture)


# --- words --------------------------------------------------------------------------------------------------


def heading(found: Embedding) -> str:
    own = found.vocabulary
    return f"{found.text.source}: {own.n_tokens_:,} words of text, {len(own):,} different ones with a vector"


def by_method(found: Embedding) -> str:
    return f"{found.vectors.vectors_.shape[1]} numbers a word by {METHODS[found.kind]}"


def held_out_line(found: Embedding) -> str:
    """The held-out figure as a sentence."""
    own = found.tested
    if not own:
        return "held out: nothing"
    return (
        f"held out: {own['words']:,} words of {own['texts']:,} texts not learned from; the words around a hidden one "
        f"tell it from one hidden elsewhere {own['right']:.1%} of the time, by chance {own['chance']:.0%}"
    )


def show(found: Embedding) -> None:
    """The short table on stdout."""
    console = stdout()
    grid = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    grid.add_column("word", no_wrap=True)
    grid.add_column("seen", justify="right", no_wrap=True)
    grid.add_column("nearest")
    for word, count, near in found.near:
        grid.add_row(Line(word), f"{count:,}", Line(", ".join(f"{other} {cosine:.2f}" for other, cosine in near)))
    console.print(f"{heading(found)} → {by_method(found)}", style="bold")
    console.print(grid)
    console.print(held_out_line(found), soft_wrap=True)
    if found.analogies:
        show_analogies(found.analogies)
    if found.similarity:
        show_similarity(found.similarity)


def show_analogies(asked: dict[str, Any]) -> None:
    """Sections with the first vocabulary, totals with each."""
    console = stdout()
    grid = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name, side in [("analogies", "left"), ("right", "right"), ("asked", "right"), ("not asked", "right")]:
        grid.add_column(name, justify=side, no_wrap=True)  # type: ignore[arg-type]
    for part in asked["sections"]:
        grid.add_row(Line(part["section"]), share(part["accuracy"]), f"{part['asked']:,}", f"{part['skipped']:,}")
    for name, own in asked["vocabularies"].items():
        skipped = f"{own['skipped']:,}"
        grid.add_row(
            Line(f"together, of {name} words"), share(own["accuracy"]), f"{own['asked']:,}", skipped, style="bold"
        )
    console.print()
    console.print(grid)


def show_similarity(asked: list[dict[str, Any]]) -> None:
    console = stdout()
    grid = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name, side in [("similarity", "left"), ("Spearman", "right"), ("pairs", "right"), ("not known", "right")]:
        grid.add_column(name, justify=side, no_wrap=True)  # type: ignore[arg-type]
    for own in asked:
        grid.add_row(Line(own["file"]), f"{own['spearman']:.3f}", f"{own['asked']:,}", f"{own['skipped']:,}")
    console.print()
    console.print(grid)


def share(value: float) -> str:
    return f"{value:.1%}" if value == value else "–"


def summary(found: Embedding) -> dict[str, Any]:
    """What --json prints."""
    history = getattr(found.model, "history_", {})
    own = found.vocabulary
    return {
        "input": found.text.source,
        "lines": own.n_lines_,
        "tokens": own.n_tokens_,
        "words": len(own),
        "model": type(found.model).__name__,
        "n_components": found.vectors.vectors_.shape[1],
        "settings": found.settings._asdict(),
        "nearest": {word: dict(near) for word, _, near in found.near},
        "held_out": found.tested,
        "analogies": found.analogies or None,
        "similarity": found.similarity or None,
        "objective": history.get("objective"),
        "words_per_second": history.get("words_per_second"),
        "notes": found.notes,
        "seconds": round(found.seconds, 3),
    }


def report(to: Path, found: Embedding, picture: bytes) -> None:
    """A page that needs no other file."""
    head = ["word", "seen", "", "nearest"]
    rows = [
        [word, f"{count:,}", "", ", ".join(f"{other} {cosine:.2f}" for other, cosine in near)]
        for word, count, near in found.near
    ]
    line = held_out_line(found)
    lead = f"{by_method(found)}. {line[0].upper()}{line[1:]}."
    for name, own in found.analogies.get("vocabularies", {}).items():
        lead += f" Analogies, of {name} words: {share(own['accuracy'])} of {own['asked']:,} right."
    for own in found.similarity:
        lead += f" {own['file']}: rank correlation with people {own['spearman']:.3f}."
    to.write_text(page(heading(found), lead, picture, head, rows, found.notes), encoding="utf-8")
